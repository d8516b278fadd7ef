//! Secrets in what a program was started with: passwords, tokens and keys in arguments, system
//! properties and variables. They must not get into a recording, nor into what is made of one of
//! other tools.
//!
//! The rule: the value of a name that looks secret is replaced, up to the end of its word; so is
//! what comes before the host in a URL. Too much rather than too little, but what is no secret by
//! its name (`monkey`, `author`, `key.serializer`) stays. Letters are those of ASCII: tables of all
//! others would be a part of the agent.

/// Stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Which texts are secrets: by default those that look so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    patterns: Vec<String>,
    shown: bool,
}

/// How sure a name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Has `password` or the like.
    Strong,
    /// Has `key`, `token`, `auth`: many names that have them are of no secret.
    Weak,
}

// Words in one text: separate strings would each need a pointer that the loader relocates.

/// A name with one of these, as a part of a word, is one of a secret.
const STRONG: &str = "password passwd passphrase passcode credential";
/// The same at the end of a word.
const STRONG_ENDS: &str = "secret secrets pwd keypass storepass dbpass userpass";
/// The same as a word.
const STRONG_WORDS: &str = "pass pw authorization bearer jwt";
/// Words that end so are of a secret unless [`DESCRIBES`] or [`NO_SECRET`] says otherwise.
const WEAK_ENDS: &str = "\
    token tokens auth apikey accesskey secretkey privatekey signingkey encryptionkey \
    masterkey authkey sharedkey";
/// Last words of names that describe a key or token without being a secret: `key.serializer`.
const DESCRIBES: &str = "\
    alg algorithm alias bits cache class config count deserializer dir directory \
    enable enabled endpoint expiration expiry factory file format host interval issuer \
    length limit location manager method mode module name path policy port provider \
    required scheme schemes serializer server size store timeout ttl type uri url \
    validity version";
/// Words before `key` or `tokens` that make it none of a secret.
const NO_SECRET: &str = "primary foreign partition sort public cache routing row shard max min num";
/// The words before the secret in a header.
const SCHEMES: &str = "bearer basic token";

impl Secrets {
    /// Nothing is a secret.
    #[must_use]
    pub fn none() -> Secrets {
        Secrets {
            shown: true,
            ..Secrets::default()
        }
    }

    /// Also what has this text in it, in its name or in its value; `*` stands for anything.
    pub fn add(&mut self, pattern: &str) {
        self.patterns.push(pattern.to_ascii_lowercase());
    }

    /// The words of a command line, joined with blanks.
    #[must_use]
    pub fn words<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> String {
        let mut line = Line::of(self);
        let mut text = String::new();
        for word in words {
            if !text.is_empty() {
                text.push(' ');
            }
            text += &line.word(word);
        }
        text
    }

    /// A command line of which only the text is known: words end at white space.
    #[must_use]
    pub fn line(&self, text: &str) -> String {
        let mut line = Line::of(self);
        let parts = text.split_inclusive(is_blank);
        let redacted = parts.map(|part| {
            let word = part.trim_end_matches(is_blank);
            match word.is_empty() {
                true => part.to_owned(),
                false => line.word(word) + part.get(word.len()..).unwrap_or(""),
            }
        });
        redacted.collect()
    }

    /// Whether a pattern of the user's is in the text.
    fn has(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.patterns.iter().any(|pattern| {
            let mut rest = text.as_str();
            pattern.split('*').all(|part| {
                let Some(at) = rest.find(part) else {
                    return false;
                };
                rest = rest.get(at + part.len()..).unwrap_or("");
                true
            })
        })
    }

    /// Whether this is the name of a secret.
    fn look(&self, name: &str) -> Option<Look> {
        look(name).or_else(|| self.has(name).then_some(Look::Strong))
    }
}

/// One command line, word by word.
struct Line<'s> {
    secrets: &'s Secrets,
    /// The next word is a secret: an option that names one came before.
    next: bool,
}

impl Line<'_> {
    fn of(secrets: &Secrets) -> Line<'_> {
        Line {
            secrets,
            next: false,
        }
    }

    fn word(&mut self, word: &str) -> String {
        let secrets = self.secrets;
        if secrets.shown || word.is_empty() {
            return word.to_owned();
        }
        if std::mem::take(&mut self.next) && !word.starts_with('-') {
            self.next = SCHEMES.split(' ').any(|it| word.eq_ignore_ascii_case(it));
            return REDACTED.to_owned();
        }
        if let Some(name) = alone(word) {
            self.next = secrets.look(name).is_some();
            if self.next {
                return word.to_owned();
            }
        }
        if let Some(at) = value_of_secret(word, secrets) {
            return word.get(..at).unwrap_or("").to_owned() + REDACTED;
        }
        if secrets.has(word) {
            let mut text = match word.split_once('=') {
                Some((name, _)) if !secrets.has(name) => name.to_owned() + "=",
                _ => String::new(),
            };
            text += REDACTED;
            return text;
        }
        without_user(word)
    }
}

/// The name of an option whose value is the next word: `--password`, or `Authorization:`.
fn alone(word: &str) -> Option<&str> {
    let name = word
        .strip_suffix(':')
        .or_else(|| word.starts_with('-').then(|| word.trim_start_matches('-')))?;
    (!name.is_empty() && name.chars().all(is_of_name)).then_some(name)
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace()
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || !c.is_ascii() || "._-".contains(c)
}

/// Where the value of the first secret begins.
fn value_of_secret(word: &str, secrets: &Secrets) -> Option<usize> {
    for (at, sign) in word.char_indices() {
        let (before, value) = (word.get(..at)?, word.get(at + sign.len_utf8()..)?);
        let is_secret = match sign {
            '=' => secrets.look(name_before(before)).is_some(),
            // `{"password":"x"}`, `password:x`; but for paths, hosts and URLs.
            ':' if !value.starts_with("//") => {
                let before = before.strip_suffix('"').unwrap_or(before);
                let name = name_before(before);
                let is_in_path = before
                    .strip_suffix(name)
                    .is_some_and(|it| it.ends_with('/'));
                let look = secrets.look(name);
                !is_in_path
                    && (look == Some(Look::Strong) || look.is_some() && value.starts_with(' '))
            }
            _ => false,
        };
        // An empty value, or one that means on or off, is no secret.
        let value_ends = |c: char| is_blank(c) || "&;,".contains(c);
        let is_switch = value.is_empty()
            || ["true", "false"].contains(&value.split(value_ends).next().unwrap_or(""));
        if is_secret && !is_switch {
            return Some(at + sign.len_utf8());
        }
    }
    None
}

/// The name at the end of a text.
fn name_before(text: &str) -> &str {
    let begin = text
        .char_indices()
        .rev()
        .take_while(|(_, c)| is_of_name(*c))
        .last();
    let name = begin.map_or("", |(at, _)| text.get(at..).unwrap_or(""));
    match name.strip_prefix("-D").or_else(|| name.strip_prefix("-P")) {
        Some(name) if name.len() + 2 == text.len() => name,
        _ => name,
    }
}

/// How a name looks.
fn look(name: &str) -> Option<Look> {
    // Where a shell is.
    if ["PWD", "OLDPWD"].contains(&name) {
        return None;
    }
    let words = split(name);
    let ends = |word: &str, all: &str| all.split(' ').any(|end| word.ends_with(end));
    let is = |word: &str, all: &str| all.split(' ').any(|it| it == word);
    let is_strong = |word: &String| {
        STRONG.split(' ').any(|part| word.contains(part))
            || ends(word, STRONG_ENDS)
            || is(word, STRONG_WORDS)
    };
    if words.iter().any(is_strong) {
        return Some(Look::Strong);
    }
    if words.last().is_some_and(|last| is(last, DESCRIBES)) {
        return None;
    }
    let mut before = "";
    for word in &words {
        let is_other = is(before, NO_SECRET);
        if (ends(word, WEAK_ENDS) || is(word, "key keys")) && !is_other {
            return Some(Look::Weak);
        }
        before = word;
    }
    None
}

/// The words of a name, in small letters and without digits at their ends: `apiKey2`, `API_KEY`.
fn split(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let bytes = name.as_bytes();
    let at = |at: usize| bytes.get(at).copied().unwrap_or(0);
    for (index, byte) in bytes.iter().enumerate() {
        let is_after_small = index > 0 && !at(index - 1).is_ascii_uppercase();
        let is_capital = byte.is_ascii_uppercase();
        let begins = is_capital && (is_after_small || at(index + 1).is_ascii_lowercase());
        if begins || !byte.is_ascii_alphanumeric() {
            words.push(std::mem::take(&mut word));
        }
        if byte.is_ascii_alphanumeric() {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    words.push(word);
    for word in &mut words {
        while word.ends_with(|c: char| c.is_ascii_digit()) {
            word.pop();
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The same word without what comes before the host in URLs.
fn without_user(word: &str) -> String {
    const BEGIN: &str = "://";
    let (mut text, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        text += before;
        text += BEGIN;
        let ends = |c: char| is_blank(c) || "/?#\"'".contains(c);
        let place = after.split(ends).next().unwrap_or("");
        rest = after;
        if let Some(at) = place.rfind('@') {
            text += REDACTED;
            rest = after.get(at..).unwrap_or("");
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(word: &str) -> String {
        Secrets::default().words([word])
    }

    #[test]
    fn values_of_secret_names_are_redacted() {
        for text in [
            "-Dpassword=§",
            "-Ddb.passwd=§",
            "-Dkey=§",
            "-Dapi-key=§",
            "-DapiKey=§",
            "-Dx.APIKey2=§",
            "-Dauth.token=§",
            "-Dauth.header=§",
            "-Djavax.net.ssl.keyStorePassword=§",
            "KEYSTORE_PASS=§",
            "AWS_SECRET_ACCESS_KEY=§",
            "AWS_ACCESS_KEY_ID=§",
            "--client-secret=§",
            "--spring.datasource.password=§",
            "credentials=§",
            "-Dgithub.oauth2=§",
            "-Pdbpwd=§",
            "password:§",
            "X-Api-Key: §",
            "Authorization: Basic §",
            "{\"user\":\"u\",\"password\":\"§\"}",
            "-javaagent:/opt/a.jar=service=x,token=§",
            "jdbc:mysql://h/db?user=u&password=§&ssl=true",
            "jdbc:sqlserver://h;user=u;password=§",
            "-Dmy.password=,;&§",
            "-Djaas=Module required username=\"u\" password=\"§\";",
        ] {
            let redacted = word(text);
            assert!(!redacted.contains('§'), "{redacted}");
            assert!(redacted.ends_with(REDACTED), "{text}: {redacted}");
            let begin: String = redacted.replace(REDACTED, "");
            assert!(
                text.starts_with(&begin) && begin.len() > 5,
                "{text}: {redacted}"
            );
        }
    }

    #[test]
    fn harmless_value_is_kept() {
        for text in [
            "-Dmonkey=1",
            "-Dkeyboard=us",
            "-Dauthor=me",
            "-Dauthority=x",
            "-Dtokenizer=bert",
            "-Dbypass=x",
            "-Dcompass=x",
            "-Djavax.net.ssl.keyStore=/etc/ks.p12",
            "-Djava.security.auth.login.config=/etc/jaas.conf",
            "-Dkey.serializer=org.acme.Serializer",
            "-Dtoken.ttl=30",
            "-Dpartition-key=id",
            "-Dauth=true",
            "-Dpassword=",
            "--require-password=false",
            "PWD=/home/u",
            "auth:8080",
            "-cp",
            "/opt/password:/opt/b.jar",
            "-Xmx1g",
            "-XX:+UseG1GC",
            "-XX:MaxDirectMemorySize=1g",
            "com.acme.KeyMain",
            "https://host:8080/a@b",
            "-agentpath:/x/libdwell.so=start,cpu=10ms,file=/tmp/a.jfr",
        ] {
            assert_eq!(word(text), text);
        }
    }

    #[test]
    fn options_hide_the_next_word() {
        let words = |words: &[&str]| Secrets::default().words(words.iter().copied());
        let told = words(&["java", "-jar", "a.jar", "--password", "S S", "--port", "1"]);
        assert_eq!(told, "java -jar a.jar --password [redacted] --port 1");
        assert_eq!(words(&["--use-token", "-v"]), "--use-token -v");
        let line = |text: &str| Secrets::default().line(text);
        assert_eq!(line("a  --token S\tb\n"), "a  --token [redacted]\tb\n");
        let header = line("--header Authorization: Bearer S x");
        assert_eq!(header, "--header Authorization: [redacted] [redacted] x");
    }

    #[test]
    fn users_in_urls_are_redacted() {
        let told = "-Durl=mongodb://[redacted]@h1,h2/db";
        assert_eq!(word("-Durl=mongodb://u:p@h1,h2/db"), told);
        assert_eq!(word("https://u:p@w@host"), "https://[redacted]@host");
        assert_eq!(word("ssh://git@h/x#a@b"), "ssh://[redacted]@h/x#a@b");
    }

    #[test]
    fn patterns_of_the_user_hide_names_and_values() {
        let mut secrets = Secrets::default();
        secrets.add("Tenant*id");
        secrets.add("hunter2");
        for (text, told) in [
            ("-Dtenant.the.id=7", "-Dtenant.the.id=[redacted]"),
            ("-Dx=aHunter2b", "-Dx=[redacted]"),
            ("xHUNTER2", "[redacted]"),
            ("-Did.tenant=7", "-Did.tenant=7"),
        ] {
            assert_eq!(secrets.words([text]), told);
        }
        assert_eq!(secrets.line("--tenant-id 7 x"), "--tenant-id [redacted] x");
        assert_eq!(Secrets::none().line("--password x"), "--password x");
    }

    proptest! {
        #[test]
        fn redacting_twice_changes_nothing_more(text in "[-a-zA-Z0-9=:;,&@/ .\"]{0,60}") {
            let once = Secrets::default().line(&text);
            prop_assert_eq!(Secrets::default().line(&once), once);
        }

        #[test]
        fn any_text_is_taken(text in any::<String>(), pattern in any::<String>()) {
            let mut secrets = Secrets::default();
            let _ = secrets.line(&text);
            secrets.add(&pattern);
            let _ = secrets.line(&text);
        }

        /// No secret behind its name gets through, whatever is around it.
        #[test]
        fn value_after_secret_name_is_redacted(
            before in "[-a-z=:;,&@/.]{0,12}",
            name in "(password|db_passwd|client-secret|api\\.key|authToken)",
            after in "[a-z=:;,&@/.]{0,8}",
        ) {
            let text = format!("{before},{name}=QQQ{after}");
            prop_assert!(!word(&text).contains("QQQ"), "{}", word(&text));
        }
    }
}

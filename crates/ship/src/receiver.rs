//! The receiver's URL: its scheme says what the receiver is. Must not print a URL's query, which
//! may be a credential.

use crate::Error;
use ureq::http::Uri;

/// Kinds of receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes OTLP profiles by POST.
    Otlp,
    /// Takes profiles by POST, with their name and times in the query.
    Pyroscope,
    /// Takes files by PUT.
    Put,
}

/// Schemes, with the kind of the receiver and the scheme of HTTP.
const SCHEMES: [(&str, Kind, &str); 6] = [
    ("otlp+http", Kind::Otlp, "http"),
    ("otlp+https", Kind::Otlp, "https"),
    ("pyroscope+http", Kind::Pyroscope, "http"),
    ("pyroscope+https", Kind::Pyroscope, "https"),
    ("http", Kind::Put, "http"),
    ("https", Kind::Put, "https"),
];
/// Parts of names of parameters whose values are credentials.
const SECRETS: [&str; 9] = [
    "token",
    "secret",
    "signature",
    "password",
    "passwd",
    "credential",
    "apikey",
    "api_key",
    "auth",
];
/// Whole names of such parameters.
const SECRET_NAMES: [&str; 3] = ["sig", "key", "pwd"];

/// A receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    kind: Kind,
    /// Scheme, host and port.
    base: String,
    path: String,
    /// Without `?`; empty: none.
    query: String,
}

impl Receiver {
    /// The receiver that a URL names.
    ///
    /// # Errors
    /// One line that says what is wrong and what to do.
    pub fn parse(url: &str) -> Result<Receiver, Error> {
        let refuse = |text: &str| Err(Error::Url(text.to_owned()));
        let Some((scheme, rest)) = url.split_once("://") else {
            return refuse("not a URL; give one like otlp+http://localhost:4318");
        };
        let Some((_, kind, http)) = SCHEMES.into_iter().find(|(name, ..)| *name == scheme) else {
            return refuse(
                "unknown scheme; give otlp+http(s)://HOST, pyroscope+http(s)://HOST or \
                 http(s)://HOST/FOLDER/",
            );
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return refuse(
                "a URL with a user would show it in the process list; set DWELL_SHIP_AUTHORIZATION \
                 or --header-file instead",
            );
        }
        if rest.contains('#') {
            return refuse("a URL for sending has no #");
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = match (path, kind) {
            ("" | "/", Kind::Otlp) => "/v1development/profiles",
            ("" | "/", Kind::Pyroscope) => "/ingest",
            ("", Kind::Put) => "/",
            (path, _) => path,
        };
        let receiver = Receiver {
            kind,
            base: format!("{http}://{authority}"),
            path: path.to_owned(),
            query: query.to_owned(),
        };
        let whole = receiver.url(&receiver.target(""));
        match whole.parse::<Uri>() {
            Ok(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok(receiver),
            _ => refuse("not a URL; write blanks and other special characters as %20"),
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether connections are encrypted.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.base.starts_with("https:")
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The whole URL of a request's target.
    fn url(&self, target: &str) -> String {
        format!("{}{target}", self.base)
    }

    /// For people: without the query.
    #[must_use]
    pub fn shown(&self) -> String {
        self.url(&self.path)
    }

    /// Distinguishes receivers; equal for presigned URLs that differ in their signature only.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:?} {}", self.kind, self.shown())
    }

    /// Whether the query has a parameter whose value is a credential.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.query.split('&').any(|pair| {
            let name = pair.split('=').next().unwrap_or(pair).to_ascii_lowercase();
            let name = name.as_str();
            SECRET_NAMES.contains(&name) || SECRETS.iter().any(|word| name.contains(word))
        })
    }

    /// Whether each body gets a name of its own below the path.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.path.ends_with('/')
    }

    /// Path and query of a request, with more parameters.
    #[must_use]
    pub fn target(&self, parameters: &str) -> String {
        let parts = [self.query.as_str(), parameters];
        let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        match parts.is_empty() {
            true => self.path.clone(),
            false => format!("{}?{}", self.path, parts.join("&")),
        }
    }

    /// Path and query of a request for a file of this name, which is below the path if that is a
    /// folder.
    #[must_use]
    pub fn target_of(&self, name: &str) -> String {
        if !self.is_folder() {
            return self.target("");
        }
        let query = match self.query.as_str() {
            "" => String::new(),
            query => format!("?{query}"),
        };
        format!("{}{}{query}", self.path, encoded(name, true))
    }
}

/// Replaces characters that mean something in a URL.
pub(crate) fn encoded(text: &str, keeps_slash: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            b'/' if keeps_slash => out.push('/'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Receiver {
    /// The query of a profile for Pyroscope: its name and its times in seconds since the epoch.
    #[must_use]
    pub fn pyroscope_query(name: &str, format: &str, from_ns: u64, until_ns: u64) -> String {
        const SECOND: u64 = 1_000_000_000;
        format!(
            "name={}&from={}&until={}&format={format}&spyName=dwell",
            encoded(name, false),
            from_ns / SECOND,
            until_ns.div_ceil(SECOND)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Receiver {
        Receiver::parse(url).unwrap()
    }

    #[test]
    fn scheme_names_the_kind_of_receiver() {
        let otlp = of("otlp+http://localhost:4318");
        assert_eq!(otlp.kind(), Kind::Otlp);
        assert_eq!(otlp.shown(), "http://localhost:4318/v1development/profiles");
        assert_eq!(of("otlp+https://a/x").shown(), "https://a/x");
        let pyroscope = of("pyroscope+http://a:4040/?tenant=1");
        assert_eq!(pyroscope.target("a=b"), "/ingest?tenant=1&a=b");
        assert_eq!(of("pyroscope+https://a/y").target("a=b"), "/y?a=b");
        let put = of("https://[::1]:9000/bucket/");
        assert_eq!(put.kind(), Kind::Put);
        assert!(put.is_secure() && put.is_folder());
        assert_eq!(put.target_of("a b/c.jfr"), "/bucket/a%20b/c.jfr");
        assert_eq!(of("http://a").target_of("x"), "/x");
        let one = of("http://a/b.jfr?sig=1");
        assert!(!one.is_folder());
        assert_eq!(one.target_of("x"), "/b.jfr?sig=1");
        assert_eq!(of("http://a/b/?c=1").target_of("x"), "/b/x?c=1");
    }

    #[test]
    fn bad_url_is_refused_with_the_remedy() {
        for (url, words) in [
            ("localhost:4318", "not a URL"),
            ("grpc://a", "unknown scheme; give otlp+http"),
            ("otlp://a", "unknown scheme"),
            ("http://u:p@a/", "DWELL_SHIP_AUTHORIZATION"),
            ("https://u@a/", "--header-file"),
            ("http://", "not a URL"),
            ("http:///x", "not a URL"),
            ("http://a b/", "not a URL"),
            ("http://a/\u{1b}", "not a URL"),
            ("http://a/#x", "no #"),
        ] {
            let error = Receiver::parse(url).unwrap_err().to_string();
            assert!(error.contains(words), "{url}: {error}");
            assert!(!error.contains("u:p"), "{error}");
        }
    }

    #[test]
    fn credentials_in_the_query_are_found_and_not_shown() {
        for url in [
            "https://a/b?X-Amz-Signature=1",
            "https://a/b?x=1&sig=2",
            "https://a/b?access_token=2",
        ] {
            assert!(of(url).has_secret(), "{url}");
            assert_eq!(of(url).shown(), "https://a/b");
        }
        assert!(!of("https://a/b?tenant=1&design=2").has_secret());
        assert_eq!(of("https://a/b?sig=1").id(), of("https://a/b?sig=2").id());
        assert_ne!(of("otlp+http://a/b").id(), of("http://a/b").id());
    }

    #[test]
    fn pyroscope_has_name_and_times_in_the_query() {
        let query =
            Receiver::pyroscope_query("shop{a=\"b c\"}", "pprof", 1_999_999_999, 2_000_000_001);
        assert_eq!(
            query,
            "name=shop%7Ba%3D%22b%20c%22%7D&from=1&until=3&format=pprof&spyName=dwell"
        );
    }
}

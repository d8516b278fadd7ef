//! Finds the one JVM that the user named.

use crate::{Usage, hint};
use anyhow::{Result, bail};
use dwell_attach::{Jvm, Target};

/// JVMs that a message names.
const LISTED: usize = 6;

/// The JVM with this pid, or the only one with this text in its main class or jar.
pub fn target(text: &str) -> Result<Target> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let Ok(pid) = text.parse() else {
            bail!("no process {text}; `dwell ps` lists the JVMs")
        };
        return Ok(Target::examine(pid)?);
    }
    let all = dwell_attach::list()?;
    Ok(Target::examine(choose(text, &all)?.pid)?)
}

/// The only running JVM that this user can record.
pub fn only_one() -> Result<Target> {
    let all = dwell_attach::list()?;
    Ok(Target::examine(only(&all)?.pid)?)
}

fn only(all: &[Jvm]) -> Result<&Jvm> {
    // A Mono can only be recorded from its start.
    let is_mono = |jvm: &Jvm| {
        jvm.version
            .as_deref()
            .is_some_and(|it| it.starts_with("Mono"))
    };
    let found: Vec<&Jvm> = (all.iter())
        .filter(|jvm| jvm.readable && !is_mono(jvm))
        .collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => bail!(Usage(
            "no JVM runs here that this user can record; start one with: dwell record -- java \
             -jar app.jar"
                .to_owned()
        )),
        several => bail!(Usage(format!(
            "{} JVMs run here: {}; give a pid or a name",
            several.len(),
            listed(several)
        ))),
    }
}

/// JVMs by pid and main class, not too many of them.
fn listed(jvms: &[&Jvm]) -> String {
    let named = jvms.iter().take(LISTED);
    let named = named.map(|jvm| {
        let main = dwell_report::plain(jvm.main.as_deref().unwrap_or("?"));
        format!("{} {main}", jvm.pid)
    });
    let more = match jvms.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.collect::<Vec<_>>().join(", "))
}

/// The one JVM that `text` means.
fn choose<'a>(text: &str, all: &'a [Jvm]) -> Result<&'a Jvm> {
    let main_is = |jvm: &&Jvm| {
        jvm.main
            .as_deref()
            .is_some_and(|main| simple_name(main) == text)
    };
    let main_has = |jvm: &&Jvm| jvm.main.as_deref().is_some_and(|main| main.contains(text));
    let exact: Vec<&Jvm> = all.iter().filter(main_is).collect();
    let found = if exact.is_empty() {
        all.iter().filter(main_has).collect()
    } else {
        exact
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => bail!(
            "no JVM matches '{text}'; `dwell ps` lists them{}",
            hint::for_unknown_name(text)
        ),
        several => {
            let list: Vec<String> = several
                .iter()
                .map(|jvm| format!("{} {}", jvm.pid, jvm.main.as_deref().unwrap_or("?")))
                .collect();
            bail!("'{text}' matches {}; give the pid", list.join(", "))
        }
    }
}

/// The last part of a main class or of a jar's path, without `.jar`.
pub fn simple_name(main: &str) -> &str {
    match main.strip_suffix(".jar") {
        Some(jar) => jar.rsplit('/').next().unwrap_or(jar),
        None => main.rsplit(['.', '/', '$']).next().unwrap_or(main),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jvm(pid: u32, main: &str) -> Jvm {
        Jvm {
            pid,
            ns_pid: pid,
            uid: 0,
            user: "root".into(),
            version: None,
            main: Some(main.into()),
            command: None,
            uptime_ms: None,
            foreign: false,
            readable: true,
        }
    }

    #[test]
    fn only_jvm_is_taken_and_several_are_listed() {
        let mono = Jvm {
            version: Some("Mono".into()),
            ..jvm(8, "app.exe")
        };
        let foreign = Jvm {
            readable: false,
            ..jvm(9, "b.Other")
        };
        let all = [jvm(7, "a.Shop"), mono.clone(), foreign];
        assert_eq!(only(&all).unwrap().pid, 7);
        let refused = |all: &[Jvm]| {
            let error = only(all).unwrap_err();
            assert!(error.is::<Usage>(), "{error}");
            error.to_string()
        };
        assert!(refused(&[mono]).starts_with("no JVM runs here"));
        let two = refused(&[jvm(7, "a.Shop"), jvm(8, "b.Shop")]);
        assert_eq!(
            two,
            "2 JVMs run here: 7 a.Shop, 8 b.Shop; give a pid or a name"
        );
        let many: Vec<Jvm> = (1..=9).map(|pid| jvm(pid, "a.B")).collect();
        assert!(refused(&many).contains("6 a.B and 3 more; give"));
    }

    #[test]
    fn names_are_simple() {
        assert_eq!(simple_name("com.example.Main"), "Main");
        assert_eq!(simple_name("mod/com.example.Main"), "Main");
        assert_eq!(simple_name("/opt/app-1.2.jar"), "app-1.2");
        assert_eq!(simple_name("Main"), "Main");
    }

    #[test]
    fn whole_name_precedes_a_part() {
        let all = [
            jvm(1, "a.Shop"),
            jvm(2, "a.ShopAdmin"),
            jvm(3, "/x/shop.jar"),
        ];
        assert_eq!(choose("Shop", &all).unwrap().pid, 1);
        assert_eq!(choose("Admin", &all).unwrap().pid, 2);
        assert_eq!(choose("shop.jar", &all).unwrap().pid, 3);
    }

    #[test]
    fn ambiguous_and_unknown_names_list_processes() {
        let all = [jvm(1, "a.Shop"), jvm(2, "b.Shop")];
        let error = choose("Shop", &all).unwrap_err().to_string();
        assert_eq!(error, "'Shop' matches 1 a.Shop, 2 b.Shop; give the pid");
        let unknown = |text: &str| choose(text, &all).unwrap_err().to_string();
        assert!(unknown("x").ends_with("; `dwell ps` lists them"));
        assert!(unknown("/bin/sh").ends_with(": dwell record -- /bin/sh"));
    }
}

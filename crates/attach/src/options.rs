//! Data from a JVM's command line and environment: its main class, and the flags that forbid
//! attaching. Pure.
//!
//! The command line is only evidence: option files (`@file`, `-XX:Flags=`) are not read here. The
//! JVM's own performance data (`hsperf`) has the effective flags and is read too.

use crate::procfs::{printable, variable};

/// Flags of a JVM that decide whether it accepts an attach; `None`: not given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttachFlags {
    /// `-XX:+DisableAttachMechanism`.
    pub attach_disabled: Option<bool>,
    /// `-XX:-EnableDynamicAgentLoading`.
    pub agents_disabled: Option<bool>,
    /// `-Xrs` or `-XX:+ReduceSignalUsage`.
    pub signals_reduced: Option<bool>,
}

impl AttachFlags {
    /// Applies one JVM option; later ones win, as in HotSpot.
    pub fn apply(&mut self, option: &str) {
        match option {
            "-XX:+DisableAttachMechanism" => self.attach_disabled = Some(true),
            "-XX:-DisableAttachMechanism" => self.attach_disabled = Some(false),
            "-XX:-EnableDynamicAgentLoading" => self.agents_disabled = Some(true),
            "-XX:+EnableDynamicAgentLoading" => self.agents_disabled = Some(false),
            "-Xrs" | "-XX:+ReduceSignalUsage" => self.signals_reduced = Some(true),
            "-XX:-ReduceSignalUsage" => self.signals_reduced = Some(false),
            _ => {}
        }
    }

    /// Flags from a process's arguments and environment, in the order HotSpot reads them.
    pub fn from_process(cmdline: &[String], environ: &[String]) -> AttachFlags {
        let mut flags = AttachFlags::default();
        for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"] {
            flags.apply_all(&split_words(variable(environ, name).unwrap_or("")));
        }
        flags.apply_all(launcher_options(cmdline));
        flags.apply_all(&split_words(
            variable(environ, "_JAVA_OPTIONS").unwrap_or(""),
        ));
        flags
    }

    /// Applies flags from a settings file, which are written without `-XX:`.
    pub fn apply_settings(&mut self, text: &str) {
        text.split_ascii_whitespace()
            .for_each(|flag| self.apply(&format!("-XX:{flag}")));
    }

    /// Applies several options.
    pub fn apply_all(&mut self, options: &[String]) {
        options.iter().for_each(|option| self.apply(option));
    }
}

/// Splits an option string as HotSpot does: at white space outside of quotes of either kind.
pub fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_ascii_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Launcher options whose value is the next argument.
const WITH_VALUE: [&str; 14] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--limit-modules",
    "--patch-module",
    "--source",
    "--enable-native-access",
];

/// The arguments before the main class or jar.
fn launcher_options(cmdline: &[String]) -> &[String] {
    let end = main_index(cmdline).unwrap_or(cmdline.len());
    cmdline.get(1..end).unwrap_or(&[])
}

/// Index of the argument that names main class, jar or module.
fn main_index(cmdline: &[String]) -> Option<usize> {
    let mut index = 1;
    loop {
        let arg = cmdline.get(index)?.as_str();
        index += match arg {
            "-jar" | "-m" | "--module" => return Some(index + 1).filter(|&i| i < cmdline.len()),
            _ if WITH_VALUE.contains(&arg) => 2,
            _ if arg.starts_with('-') || arg.starts_with('@') => 1,
            _ => return Some(index),
        };
    }
}

/// Main class, jar or module of a `java` command line. For a program of another name that embeds a
/// JVM, it is the program's name.
pub fn main_from_cmdline(cmdline: &[String]) -> Option<String> {
    let program = cmdline.first()?.rsplit('/').next()?;
    if !is_launcher(program) {
        return Some(printable(program)).filter(|name| !name.is_empty());
    }
    for arg in cmdline.iter().skip(1) {
        if let Some(module) = arg.strip_prefix("--module=") {
            return Some(printable(module));
        }
        if !arg.starts_with('-') {
            break;
        }
    }
    cmdline
        .get(main_index(cmdline)?)
        .map(|main| printable(main))
}

/// Whether a program of this name is Mono itself.
pub fn is_mono(name: &str) -> bool {
    matches!(name, "mono" | "mono-sgen" | "mono-boehm")
}

/// The program that `mono WORDS` runs: the first word that is not an option.
pub fn main_of_mono(words: &[String]) -> Option<String> {
    let main = words.iter().find(|word| !word.starts_with('-'))?;
    (!main.is_empty()).then(|| main.clone())
}

/// Main class or jar from `sun.rt.javaCommand`, which also holds the program's arguments.
pub fn main_from_java_command(command: &str) -> Option<String> {
    let command = command.trim();
    // A jar's path may hold spaces; it ends with the first ".jar" before a space or the end.
    let jar_end = command
        .match_indices(".jar")
        .map(|(at, text)| at + text.len())
        .find(|&end| {
            command
                .get(end..)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
    let word = command.split_ascii_whitespace().next()?;
    let main = match jar_end.and_then(|end| command.get(..end)) {
        Some(jar) if jar.starts_with(['/', '.']) || !jar.contains(' ') => jar,
        _ => word,
    };
    Some(printable(main))
}

/// Whether a program of this name is the JDK's launcher.
pub fn is_launcher(program: &str) -> bool {
    matches!(program, "java" | "javaw")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn main_is_found_behind_options_with_values() {
        let main = |text: &str| main_from_cmdline(&words(text));
        assert_eq!(
            main("java -Xmx1g -cp a:b com.Main x -jar y").as_deref(),
            Some("com.Main")
        );
        assert_eq!(
            main("/usr/bin/java -jar /a/b.jar -cp x").as_deref(),
            Some("/a/b.jar")
        );
        assert_eq!(
            main("java -p mods -m app/com.Main").as_deref(),
            Some("app/com.Main")
        );
        assert_eq!(
            main("java --module=app/com.Main a").as_deref(),
            Some("app/com.Main")
        );
        assert_eq!(
            main("java --add-opens a/b=c @args Main").as_deref(),
            Some("Main")
        );
        assert_eq!(main("java -jar"), None);
        assert_eq!(main("java -cp"), None);
        assert_eq!(main("/opt/idea/bin/idea -x y").as_deref(), Some("idea"));
        assert_eq!(main_from_cmdline(&[]), None);
    }

    #[test]
    fn java_command_is_cut_at_the_arguments() {
        let main = |text: &str| main_from_java_command(text);
        assert_eq!(main("com.Main a.jar b").as_deref(), Some("com.Main"));
        assert_eq!(main("app.jar --port 1").as_deref(), Some("app.jar"));
        assert_eq!(
            main("/opt/my app/app.jar x.jar").as_deref(),
            Some("/opt/my app/app.jar")
        );
        assert_eq!(main("mod/com.Main").as_deref(), Some("mod/com.Main"));
        assert_eq!(main("  "), None);
    }

    #[test]
    fn the_last_flag_wins_and_program_arguments_do_not_count() {
        let flags = |cmd: &str, env: &[&str]| {
            let environ: Vec<String> = env.iter().map(|&e| e.to_owned()).collect();
            AttachFlags::from_process(&words(cmd), &environ)
        };
        let on = "-XX:+DisableAttachMechanism";
        let off = "-XX:-DisableAttachMechanism";
        assert_eq!(
            flags(&format!("java {on} Main"), &[]).attach_disabled,
            Some(true)
        );
        assert_eq!(
            flags(&format!("java {on} {off} Main"), &[]).attach_disabled,
            Some(false)
        );
        assert_eq!(flags(&format!("java Main {on}"), &[]).attach_disabled, None);
        let tool = format!("JAVA_TOOL_OPTIONS=-Da=1 {on}");
        assert_eq!(flags("java Main", &[&tool]).attach_disabled, Some(true));
        assert_eq!(
            flags(&format!("java {off} Main"), &[&tool]).attach_disabled,
            Some(false)
        );
        let last = format!("_JAVA_OPTIONS={on}");
        assert_eq!(
            flags(&format!("java {off} Main"), &[&last]).attach_disabled,
            Some(true)
        );
        assert_eq!(flags("java -Xrs Main", &[]).signals_reduced, Some(true));
        let agents = flags("java -XX:-EnableDynamicAgentLoading Main", &[]);
        assert_eq!(agents.agents_disabled, Some(true));
    }

    #[test]
    fn settings_files_have_bare_flags() {
        let mut flags = AttachFlags::default();
        flags.apply_settings("+UseG1GC +DisableAttachMechanism\n-EnableDynamicAgentLoading");
        assert_eq!(
            (flags.attach_disabled, flags.agents_disabled),
            (Some(true), Some(true))
        );
    }

    #[test]
    fn quotes_protect_white_space() {
        assert_eq!(
            split_words(" -Da='b c'  -x\"\" \t'' "),
            ["-Da=b c", "-x", ""]
        );
        assert_eq!(split_words("-Da=' open"), ["-Da= open"]);
    }

    proptest! {
        #[test]
        fn any_arguments_are_taken(args in proptest::collection::vec(any::<String>(), 0..8)) {
            main_from_cmdline(&args);
            AttachFlags::from_process(&args, &args);
            for arg in &args {
                main_from_java_command(arg);
            }
        }

        #[test]
        fn unquoted_words_are_kept(list in proptest::collection::vec("[!-~&&[^'\"]]{1,8}", 0..6)) {
            prop_assert_eq!(split_words(&list.join(" \t")), list);
        }
    }
}

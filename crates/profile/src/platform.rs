//! The runtime whose programs a recording is of, and how that is spoken of. Pure.

/// A managed runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// A JVM, and whatever else wrote a recording.
    #[default]
    Jvm,
    /// Mono.
    Mono,
}

impl Platform {
    /// By the name that a recording has for it.
    #[must_use]
    pub fn of(name: &str) -> Platform {
        match name.split_whitespace().next() {
            Some("Mono") => Platform::Mono,
            _ => Platform::Jvm,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Platform::Jvm => "JVM",
            Platform::Mono => "Mono",
        }
    }

    /// The code that it runs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Platform::Jvm => "Java",
            Platform::Mono => "managed",
        }
    }
}

/// Beginnings of packages and namespaces that come with a runtime.
const OWN: [&str; 8] = [
    "java.",
    "jdk.",
    "sun.",
    "com.sun.",
    "javax.",
    "System.",
    "Mono.",
    "Microsoft.",
];
/// Classes of .NET's that Mono calls as its language does. Code that Mono makes itself (allocators,
/// wrappers) is `object`'s.
const BUILT_IN: [&str; 16] = [
    "bool", "byte", "char", "double", "int", "int16", "intptr", "long", "object", "sbyte",
    "single", "string", "uint", "uint16", "uintptr", "ulong",
];

/// Whether a class belongs to the runtime and not to the program, by its name: the JDK, or the
/// class library of .NET. The two cannot be confused, as packages of Java begin with a small
/// letter.
#[must_use]
pub fn is_of_platform(class: &str) -> bool {
    let class = class.replace('/', ".");
    BUILT_IN.contains(&class.as_str()) || OWN.iter().any(|package| class.starts_with(package))
}

/// Whether the class of a native frame is that of a native method, and not a library.
pub(crate) fn is_class(class: &str) -> bool {
    class.contains('.') && !class.contains(".so") && !class.contains('/')
}

/// Runs a program that is in a source file: its own classes are not the program's.
const SOURCE_LAUNCHER: &str = "com.sun.tools.javac.launcher.";
/// Words of a package that are one tool's: `com.sun.tools`, `jdk.javadoc.internal`.
const WORDS_OF_TOOL: usize = 3;

/// The beginning of the classes of a program that comes with the JDK, such as javac, javadoc and
/// jshell, if the command line (main class and arguments) is of one. There it is the program.
#[must_use]
pub fn tool_of_platform(java_arguments: &str) -> Option<String> {
    let main = java_arguments.split_whitespace().next()?;
    // A module's main class.
    let main = main.rsplit('/').next().unwrap_or(main);
    let is_tool = is_of_platform(main) && !main.starts_with(SOURCE_LAUNCHER);
    let words: Vec<&str> = main.split('.').take(WORDS_OF_TOOL).collect();
    (is_tool && words.len() == WORDS_OF_TOOL).then(|| words.join(".") + ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_of_the_jdk_is_known_by_its_main_class() {
        for (arguments, tool) in [
            (
                "jdk.compiler/com.sun.tools.javac.Main -d out A.java",
                "com.sun.tools.",
            ),
            (
                "jdk.javadoc/jdk.javadoc.internal.tool.Main -d out",
                "jdk.javadoc.internal.",
            ),
            (
                "jdk.jshell/jdk.internal.jshell.tool.JShellToolProvider",
                "jdk.internal.jshell.",
            ),
        ] {
            assert_eq!(tool_of_platform(arguments).as_deref(), Some(tool));
        }
        for arguments in [
            "app.Main",
            "shop.jar",
            "",
            "jdk.compiler/com.sun.tools.javac.launcher.Main A.java",
            "jdk.compiler/com.sun.tools.javac.launcher.SourceLauncher A.java",
        ] {
            assert_eq!(tool_of_platform(arguments), None, "{arguments}");
        }
    }

    #[test]
    fn a_platform_is_known_by_its_name() {
        let mono = "Mono 6.8.0.105 (Debian 6.8.0.105+dfsg-3.3)";
        for name in [mono, "Mono"] {
            assert_eq!(Platform::of(name), Platform::Mono);
        }
        for name in ["OpenJDK 64-Bit Server VM", "", "Monolith VM"] {
            assert_eq!(Platform::of(name), Platform::Jvm, "{name}");
        }
        assert_eq!(Platform::Mono.code(), "managed");
    }

    #[test]
    fn the_class_libraries_are_not_the_programs() {
        for class in [
            "java.util.HashMap",
            "java/util/HashMap",
            "System.Threading.Thread",
            "System/String",
            "object",
            "string",
        ] {
            assert!(is_of_platform(class), "{class}");
        }
        for class in [
            "app.Main",
            "Work",
            "Systems.Main",
            "system.Main",
            "objects",
            "",
        ] {
            assert!(!is_of_platform(class), "{class}");
        }
    }

    #[test]
    fn native_methods_differ_from_library_functions() {
        assert!(is_class("jdk.internal.misc.Unsafe"));
        for class in [
            "",
            "libjvm.so",
            "libz.so.1",
            "/usr/lib/libc.so.6",
            "[kernel]",
        ] {
            assert!(!is_class(class), "{class}");
        }
    }
}

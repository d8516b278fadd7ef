//! Tables of names of functions and methods, with the cause of a thread that waits in them. Each
//! runtime has its own tables. Plain data: [`crate::cause`] evaluates them.

use crate::facts::Cause;

/// Causes of waits by the names of one runtime and of its libraries. Classes have slashes in their
/// names.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Functions above the innermost method, by parts of their mangled names, with their cause. The
    /// first entry of the table that matches any of these functions decides.
    pub functions: &'static [(&'static str, Cause)],
    /// Methods that decide the cause: class, names, cause.
    pub methods: &'static [(&'static str, &'static [&'static str], Cause)],
    /// Classes whose native methods wait for peers, by prefixes of their names.
    pub sockets: &'static [&'static str],
    /// Classes whose native methods wait for files and pipes, by prefixes of their names.
    pub files: &'static [&'static str],
    /// `class.method` in which a pooled worker waits for work; a `*` stands for any text.
    pub pools: &'static [&'static str],
    /// The same for methods that call tasks as well.
    pub loops: &'static [&'static str],
    /// Classes of the runtime's calls that wait, by prefixes of their names: only these stand above
    /// one of `loops` while it waits.
    pub calls: &'static [&'static str],
    /// How a logical thread leaves its platform thread, if the runtime has logical threads.
    pub way_out: Option<WayOut>,
    /// The runtime's own libraries, if few of its functions have names. A thread with frames of
    /// these libraries only belongs to the runtime. A `*` at the end matches any text.
    pub libraries: &'static [&'static str],
}

/// How a logical thread leaves its platform thread: its innermost frames, which are the same for
/// all waits. The frames below them show the cause.
#[derive(Clone, Copy, Debug)]
pub struct WayOut {
    /// The innermost method: its class, and the prefix of its name.
    pub entry: (&'static str, &'static str),
    /// The method in which it parks while it cannot leave its platform thread: class and name.
    pub pinned: (&'static str, &'static str),
    /// Classes of these innermost frames, by prefixes of their names.
    pub classes: &'static [&'static str],
    /// Methods that sleep: their classes, and prefixes of their names.
    pub sleeps: (&'static [&'static str], &'static str),
    /// Classes that park until a descriptor is ready, by prefixes of their names.
    pub pollers: &'static [&'static str],
}

impl Waits {
    /// The tables of an unknown runtime: the operating system and the runtime's reports about
    /// monitors decide the cause.
    pub const NONE: Waits = Waits {
        functions: &[],
        methods: &[],
        sockets: &[],
        files: &[],
        pools: &[],
        loops: &[],
        calls: &[],
        way_out: None,
        libraries: &[],
    };

    /// Whether a library, by its file's name, is in [`Waits::libraries`].
    #[must_use]
    pub fn is_library(&self, name: &str) -> bool {
        self.libraries.iter().any(|library| {
            let begin = library.strip_suffix('*');
            begin.map_or(name == *library, |begin| name.starts_with(begin))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_whole_names_or_beginnings() {
        let waits = Waits {
            libraries: &["pear", "libpear-*"],
            ..Waits::NONE
        };
        assert!(waits.is_library("pear"));
        assert!(waits.is_library("libpear-2.so"));
        assert!(!waits.is_library("pears"));
        assert!(!waits.is_library("libpear"));
        assert!(!Waits::NONE.is_library("pear"));
    }
}

//! What names of functions and methods say of a thread that waits in them: tables, of which each
//! runtime has its own. Plain data: who reads it is [`crate::cause`].

use crate::facts::Cause;

/// What the names of one runtime, and of what is written for it, say of waits. Classes have slashes
/// in their names.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Functions, by parts of their names as the linker has them, of which one above the innermost
    /// method tells the cause: the first of these that is there, wherever it is.
    pub functions: &'static [(&'static str, Cause)],
    /// Methods whose wait says what is waited for: class, names, cause.
    pub methods: &'static [(&'static str, &'static [&'static str], Cause)],
    /// Classes whose native methods wait for peers, by the beginnings of their names.
    pub sockets: &'static [&'static str],
    /// The same for files and pipes.
    pub files: &'static [&'static str],
    /// `class.method` in which a pooled worker waits for work; a `*` stands for anything.
    pub pools: &'static [&'static str],
    /// How a logical thread leaves its platform thread, if there are such.
    pub way_out: Option<WayOut>,
    /// The runtime's own libraries, if few of its functions have names: then threads on which
    /// nothing else is are told by these. A `*` at the end stands for anything.
    pub libraries: &'static [&'static str],
}

/// How a logical thread leaves its platform thread: its innermost frames, which are the same for
/// all waits. What is below them tells what it waits for.
#[derive(Clone, Copy, Debug)]
pub struct WayOut {
    /// The innermost method: its class, and how its name begins.
    pub entry: (&'static str, &'static str),
    /// Classes of the way out, by the beginnings of their names.
    pub classes: &'static [&'static str],
    /// Methods that sleep: their classes, and how their names begin.
    pub sleeps: (&'static [&'static str], &'static str),
    /// Classes that park until a descriptor is ready, by the beginnings of their names.
    pub pollers: &'static [&'static str],
}

impl Waits {
    /// Of a runtime of which nothing is known: its waits are told by the operating system, and by
    /// what the runtime itself says of monitors.
    pub const NONE: Waits = Waits {
        functions: &[],
        methods: &[],
        sockets: &[],
        files: &[],
        pools: &[],
        way_out: None,
        libraries: &[],
    };

    /// Whether a library is one of [`Waits::libraries`], by its file's name.
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

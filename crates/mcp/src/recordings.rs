//! The recordings of a server. They are read at their first use, and again if a file has changed.

use dwell_profile::Profile;
use std::rc::Rc;

/// Recordings that are kept in memory.
const LOADED_MAX: usize = 4;

/// A recording that can be read.
pub trait Source {
    /// The name by which a client selects it.
    fn name(&self) -> &str;

    /// A value that differs if the content has changed.
    fn version(&self) -> Option<u128>;

    /// Reads it.
    ///
    /// # Errors
    ///
    /// One line with the file, the reason and the remedy.
    fn load(&self) -> Result<Profile, String>;
}

/// All recordings, with those that are in memory.
pub(crate) struct Recordings {
    sources: Vec<Box<dyn Source>>,
    names: Vec<String>,
    /// The latest one is last.
    loaded: Vec<Loaded>,
}

struct Loaded {
    source: usize,
    version: Option<u128>,
    profile: Rc<Profile>,
}

impl Recordings {
    pub(crate) fn new(sources: Vec<Box<dyn Source>>) -> Recordings {
        let names = sources.iter().map(|it| dwell_report::plain(it.name()));
        Recordings {
            names: names.collect(),
            sources,
            loaded: Vec::new(),
        }
    }

    /// Their names, in the order of the command line.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of one.
    pub(crate) fn name(&self, source: usize) -> &str {
        self.names.get(source).map_or("", String::as_str)
    }

    /// The profile of one.
    pub(crate) fn open(&mut self, source: usize) -> Result<Rc<Profile>, String> {
        let from = self.sources.get(source).ok_or("no such recording")?;
        let version = from.version();
        if let Some(at) = self.loaded.iter().position(|it| it.source == source) {
            let known = self.loaded.remove(at);
            if known.version == version && version.is_some() {
                let profile = Rc::clone(&known.profile);
                self.loaded.push(known);
                return Ok(profile);
            }
        }
        let profile = Rc::new(from.load()?);
        if self.loaded.len() == LOADED_MAX {
            self.loaded.remove(0);
        }
        self.loaded.push(Loaded {
            source,
            version,
            profile: Rc::clone(&profile),
        });
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::Builder;
    use std::cell::Cell;

    struct Counted {
        name: String,
        version: Rc<Cell<u128>>,
        loads: Rc<Cell<u32>>,
    }

    impl Source for Counted {
        fn name(&self) -> &str {
            &self.name
        }

        fn version(&self) -> Option<u128> {
            Some(self.version.get())
        }

        fn load(&self) -> Result<Profile, String> {
            self.loads.set(self.loads.get() + 1);
            Ok(Builder::default().finish())
        }
    }

    #[test]
    fn recordings_are_read_once_until_they_change() {
        let (version, loads) = (Rc::new(Cell::new(1)), Rc::new(Cell::new(0)));
        let source = |number: u32| -> Box<dyn Source> {
            Box::new(Counted {
                name: format!("{number}.jfr"),
                version: Rc::clone(&version),
                loads: Rc::clone(&loads),
            })
        };
        let mut recordings = Recordings::new((0..6).map(source).collect());
        for _ in 0..3 {
            recordings.open(0).unwrap();
        }
        assert_eq!(loads.get(), 1);
        version.set(2);
        recordings.open(0).unwrap();
        assert_eq!(loads.get(), 2);
        // Memory has room for some: the one that was not used for longest is read again.
        for number in [1, 2, 3, 0, 4, 0] {
            recordings.open(number).unwrap();
        }
        assert_eq!(loads.get(), 6);
        recordings.open(1).unwrap();
        assert_eq!(loads.get(), 7);
        assert!(recordings.open(6).is_err());
    }
}

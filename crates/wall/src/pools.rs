//! Frames that show that a pooled worker waits for work: a runtime's table, which users can extend.

use crate::facts::Named;

/// Maximum number of methods checked, from the top: a wait for work is not deep.
const FRAMES_MAX: usize = 16;

/// The table; empty by default.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    patterns: Vec<Pattern>,
    /// Number of the first patterns that are of methods that also call tasks.
    loops: usize,
    /// Classes of the runtime's own calls that wait, by prefixes of their names.
    calls: &'static [&'static str],
}

#[derive(Clone, Debug)]
struct Pattern {
    class: Text,
    method: Text,
}

/// Literal parts of a pattern, with any text between them.
#[derive(Clone, Debug)]
struct Text {
    parts: Vec<String>,
}

impl Pools {
    /// The table of `patterns`, each a `class.method` as [`Pools::add`] takes it. Invalid patterns
    /// are left out.
    #[must_use]
    pub fn of(known: &[&str]) -> Pools {
        Pools::with_loops(&[], &[], known)
    }

    /// The same with `loops`: methods that wait for work and call it themselves. A thread waits for
    /// work there only if all frames above are of classes in `calls`: others belong to a task.
    #[must_use]
    pub fn with_loops(loops: &[&str], calls: &'static [&'static str], known: &[&str]) -> Pools {
        let patterns = loops.iter().chain(known);
        Pools {
            patterns: patterns.filter_map(|known| Pattern::parse(known)).collect(),
            loops: loops.len(),
            calls,
        }
    }

    /// Adds `class.method`, with dots or slashes in the class and `*` for any text.
    ///
    /// # Errors
    /// A text that says what is wrong with the pattern.
    pub fn add(&mut self, pattern: &str) -> Result<(), String> {
        let parsed = Pattern::parse(pattern)
            .ok_or_else(|| format!("'{pattern}' is not a method: write package.Class.method"))?;
        self.patterns.push(parsed);
        Ok(())
    }

    /// Whether one of the innermost methods is a pool's wait for work.
    #[must_use]
    pub fn is_idle(&self, frames: &[Named<'_>]) -> bool {
        let mut patterns = self.patterns.as_slice();
        let methods = frames.iter().filter(|f| f.is_managed).take(FRAMES_MAX);
        for frame in methods {
            if patterns.iter().any(|pattern| pattern.matches(frame)) {
                return true;
            }
            if !self.calls.iter().any(|call| frame.class.starts_with(call)) {
                patterns = self.patterns.get(self.loops..).unwrap_or_default();
            }
        }
        false
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Pattern> {
        let (class, method) = text.trim().rsplit_once('.')?;
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        let sound = !class.is_empty() && !method.is_empty() && text.trim().chars().all(plain);
        sound.then(|| Pattern {
            class: Text::parse(&class.replace('.', "/")),
            method: Text::parse(method),
        })
    }

    fn matches(&self, frame: &Named<'_>) -> bool {
        // Mostly the length of the method's name is enough to exclude the pattern.
        self.method.matches(frame.name) && self.class.matches(frame.class)
    }
}

impl Text {
    fn parse(text: &str) -> Text {
        let parts = text.split('*').map(str::to_owned).collect();
        Text { parts }
    }

    fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = &self.parts[..] else {
            return self.parts.first().is_some_and(|only| only == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        for part in middle {
            match rest.find(part.as_str()) {
                Some(at) => rest = rest.get(at + part.len()..).unwrap_or(""),
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_idle(pools: &Pools, class: &str, name: &str) -> bool {
        pools.is_idle(&[Named {
            class,
            name,
            is_managed: true,
        }])
    }

    #[test]
    fn known_waits_are_found() {
        let pools = Pools::of(&["base/Queue*.remove*", "net/Loop.select", "no-method"]);
        assert!(is_idle(&pools, "base/QueueWithOverflow", "remove0"));
        assert!(is_idle(&pools, "net/Loop", "select"));
        assert!(!is_idle(&pools, "net/Loop", "selectNow"));
        assert!(!is_idle(&pools, "app/Worker", "remove"));
        assert!(!is_idle(&Pools::default(), "net/Loop", "select"));
    }

    #[test]
    fn tasks_that_loops_call_are_work() {
        let pools = Pools::with_loops(&["base/Timer.loop"], &["base/Object", "io/"], &[]);
        let frame = |(class, name)| Named {
            class,
            name,
            is_managed: true,
        };
        let is_idle = |frames: &[(&'static str, &'static str)]| {
            pools.is_idle(&frames.iter().copied().map(frame).collect::<Vec<_>>())
        };
        let (wait, timer) = (("base/Object", "wait"), ("base/Timer", "loop"));
        assert!(is_idle(&[wait, timer]));
        assert!(is_idle(&[wait, ("io/Selector", "select"), timer]));
        assert!(is_idle(&[timer]));
        assert!(!is_idle(&[wait, ("app/Task", "run"), timer]));
        assert!(!is_idle(&[("app/Task", "run"), wait, timer]));
        let both = Pools::with_loops(&["base/Timer.loop"], &[], &["app/Pool.next"]);
        let next = [("app/Lock", "await"), ("app/Pool", "next")].map(frame);
        assert!(both.is_idle(&next), "the other table has no such rule");
    }

    #[test]
    fn users_add_their_own() {
        let mut pools = Pools::default();
        pools.add("com.acme.*Worker.await*Job").unwrap();
        assert!(is_idle(&pools, "com/acme/pool/FastWorker", "awaitNextJob"));
        assert!(is_idle(&pools, "com/acme/Worker", "awaitJob"));
        assert!(!is_idle(&pools, "com/acme/Worker", "awaitJobs"));
        assert!(!is_idle(&pools, "org/acme/Worker", "awaitJob"));
        // The parts of a pattern must not overlap in the text.
        pools.add("com.acme.*Job*Job.run").unwrap();
        for (class, is_pool) in [("Job", false), ("JobJob", true), ("MyJobOfJob", true)] {
            assert_eq!(
                is_idle(&pools, &format!("com/acme/{class}"), "run"),
                is_pool,
                "{class}"
            );
        }
        for wrong in ["", "method", ".method", "Class.", "a b.c"] {
            assert!(pools.add(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_methods_near_the_top_count() {
        let pools = Pools::of(&["base/Timer.mainLoop"]);
        let mut frames = vec![
            Named {
                class: "app/A",
                name: "recurse",
                is_managed: true,
            };
            FRAMES_MAX
        ];
        let wait = Named {
            class: "base/Timer",
            name: "mainLoop",
            is_managed: true,
        };
        frames.push(wait);
        assert!(!pools.is_idle(&frames));
        assert!(pools.is_idle(&frames[1..]));
        assert!(!pools.is_idle(&[Named {
            is_managed: false,
            ..wait
        }]));
    }
}

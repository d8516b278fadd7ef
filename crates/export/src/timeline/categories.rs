//! Categories of samples: the cause of the time is the subcategory, and related causes share a
//! category. Time on a CPU has the kinds of code as subcategories.

use std::collections::HashMap;

use dwell_profile::{CauseId, FrameKind, Profile, RUNNING};
use serde_json::{Value, json};

/// The names of categories, their colours in the Firefox Profiler, and causes of waits. The first
/// one must be grey, which makes it the default.
const CATEGORIES: [(&str, &str, &[&str]); 14] = [
    ("Other", "grey", &[]),
    ("On CPU", "green", &[]),
    ("Waiting for a CPU", "orange", &["runnable", "throttled"]),
    ("Lock", "red", &["monitor", "lock"]),
    ("Parked", "yellow", &["park", "object-wait"]),
    ("Sleep", "lightblue", &["sleep"]),
    ("I/O", "blue", &["socket", "file", "page-fault"]),
    ("Safepoint", "magenta", &["safepoint"]),
    ("GC", "brown", &["gc-stall"]),
    ("JVM", "lightred", &["class-init", "vm-lock"]),
    ("Compiler", "purple", &["jit-wait"]),
    ("Stopped", "darkgrey", &["stopped"]),
    ("Idle", "transparent", &["idle-pool"]),
    ("Unknown", "darkgrey", &["unknown"]),
];

/// Place of a category in the list.
pub type CategoryId = usize;
/// Place of a state in [`Categories`]: on a CPU, or a cause of waiting.
pub type StateId = usize;

/// On a CPU.
pub const ON_CPU: StateId = 0;

/// The categories of a profile.
pub struct Categories {
    /// The subcategories of each category, after `Other`.
    subcategories: Vec<Vec<String>>,
    states: Vec<(CategoryId, usize)>,
    by_cause: HashMap<CauseId, StateId>,
}

impl Categories {
    /// The categories of all causes in a profile.
    pub fn new(profile: &Profile) -> Categories {
        let mut categories = Categories {
            subcategories: vec![Vec::new(); CATEGORIES.len()],
            states: Vec::new(),
            by_cause: HashMap::new(),
        };
        let on_cpu = category_named("On CPU");
        if let Some(kinds) = categories.subcategories.get_mut(on_cpu) {
            let labels = FrameKind::ALL.map(|kind| profile.kind_label(kind).to_owned());
            kinds.extend(labels);
        }
        categories.states.push((on_cpu, 0));
        for look in profile.looks() {
            if !categories.by_cause.contains_key(&look.cause) {
                let state = categories.add(profile.names().text(look.cause));
                categories.by_cause.insert(look.cause, state);
            }
        }
        categories
    }

    fn add(&mut self, cause: &str) -> StateId {
        if cause == RUNNING {
            return ON_CPU;
        }
        let category = category_of(cause);
        let Some(all) = self.subcategories.get_mut(category) else {
            return ON_CPU;
        };
        all.push(cause.to_owned());
        self.states.push((category, all.len()));
        self.states.len() - 1
    }

    /// The state of samples with a cause.
    pub fn state(&self, cause: CauseId) -> StateId {
        self.by_cause.get(&cause).copied().unwrap_or(ON_CPU)
    }

    /// The state of this name, if a sample has it.
    pub fn state_named(&self, cause: &str) -> StateId {
        let (category, all) = (
            category_of(cause),
            self.subcategories.get(category_of(cause)),
        );
        let place = all.and_then(|all| all.iter().position(|name| name == cause));
        let state = place.map(|place| (category, place + 1));
        let found = state.and_then(|state| self.states.iter().position(|it| *it == state));
        found.unwrap_or(ON_CPU)
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// The category and the subcategory of a frame in a state.
    pub fn of(&self, state: StateId, kind: FrameKind) -> (CategoryId, usize) {
        match self.states.get(state) {
            Some(&(category, _)) if state == ON_CPU => (category, usize::from(kind.number()) + 1),
            Some(&waits) => waits,
            None => (0, 0),
        }
    }

    /// The cause of waiting in a state; none on a CPU.
    pub fn cause(&self, state: StateId) -> Option<&str> {
        let &(category, place) = self.states.get(state).filter(|_| state != ON_CPU)?;
        let all = self.subcategories.get(category)?;
        all.get(place.checked_sub(1)?).map(String::as_str)
    }

    /// The list of the Firefox Profiler.
    pub fn list(&self) -> Value {
        let all = CATEGORIES.iter().zip(&self.subcategories);
        let all = all.map(|((name, color, _), subcategories)| {
            let mut names = vec!["Other".to_owned()];
            names.extend(subcategories.iter().map(|name| dwell_profile::plain(name)));
            json!({ "name": name, "color": color, "subcategories": names })
        });
        all.collect()
    }
}

/// The category with this name; the default one without it.
pub fn category_named(name: &str) -> CategoryId {
    let place = CATEGORIES.iter().position(|(other, ..)| *other == name);
    place.unwrap_or(0)
}

/// The category of a cause of waiting.
pub fn category_of(cause: &str) -> CategoryId {
    let is_it = |(_, _, causes): &(_, _, &[&str])| causes.contains(&cause);
    let place = CATEGORIES.iter().position(is_it);
    place.unwrap_or_else(|| category_named("Unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_wall::cause::Cause;

    #[test]
    fn every_cause_has_a_category() {
        let unknown = category_named("Unknown");
        let causes = Cause::ALL.iter().map(|cause| cause.name());
        for cause in causes.chain([dwell_profile::STOPPED]) {
            let is_unknown = category_of(cause) == unknown;
            assert_eq!(is_unknown, ["unknown", RUNNING].contains(&cause), "{cause}");
        }
        assert_eq!(category_of("odd"), unknown);
        assert!(unknown > 0 && category_named("no such name") == 0);
    }
}

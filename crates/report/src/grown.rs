//! Two recordings compared by objects: live bytes that the second one has in addition, or
//! additional allocation. The result is text, or stacks with two numbers.

use std::fmt::Write as _;
use std::io;

use dwell_profile::diff::{Base, Change};
use dwell_profile::{Lack, Objects, Profile, Weight};

use crate::incomplete::incomplete_allocations;
use crate::number::{plural, size};
use crate::plain::{plain, shortened};

/// The widest line.
const COLUMNS: usize = 100;
/// Rows of classes, and of stacks.
const CLASSES: usize = 8;
const STACKS: usize = 5;
/// Innermost methods of a stack.
const FRAMES: usize = 6;

/// Two recordings that can be compared by their objects.
pub struct Grown<'p> {
    of: Objects,
    profiles: [&'p Profile; 2],
    base: Base,
}

/// Compares two recordings by live objects at their last looks, or by bytes allocated per second.
/// The error is the reason why they are not comparable.
///
/// # Errors
///
/// If one of the two has no such objects.
pub fn grown<'p>(a: &'p Profile, b: &'p Profile, of: Objects) -> Result<Grown<'p>, String> {
    let profiles = [a, b];
    let has = |profile: &Profile| match of {
        Objects::Alive => profile.has_live(),
        Objects::Allocated => profile.has_allocations(),
    };
    if let Some(without) = profiles.into_iter().find(|profile| !has(profile)) {
        let event = event(of);
        let remedy = without.info().remedy(match of {
            Objects::Alive => Lack::Live,
            Objects::Allocated => Lack::Allocations,
        });
        return Err(format!(
            "-e {event}: one of them has no such data; {remedy}"
        ));
    }
    let [all_a, all_b] = profiles.map(|profile| whole(profile, of));
    let base = match of {
        Objects::Alive => Some(Base::of_moments(&all_a, &all_b)),
        Objects::Allocated => {
            match profiles.map(Profile::allocations_sampled_ns) {
                // Files of other tools may not say how long they are.
                [0, 0] => Some(Base::of_moments(&all_a, &all_b)),
                [time_a, time_b] => Base::of_times((time_a, &all_a), (time_b, &all_b)),
            }
        }
    };
    let base = base.ok_or("one of them has no data to compare with")?;
    Ok(Grown { of, profiles, base })
}

fn event(of: Objects) -> &'static str {
    match of {
        Objects::Alive => "live",
        Objects::Allocated => "alloc",
    }
}

fn whole(profile: &Profile, of: Objects) -> Weight {
    match of {
        Objects::Alive => profile.alive().bytes,
        Objects::Allocated => profile.allocated(),
    }
}

impl Grown<'_> {
    /// Increases and decreases for a terminal, the largest growth first.
    #[must_use]
    pub fn text(&self, names: [&str; 2]) -> String {
        let mut text = String::new();
        let (all, base) = match self.of {
            Objects::Alive => (
                "alive",
                "bytes that survived a collection, at the last check of each",
            ),
            Objects::Allocated if self.has_no_length() => ("allocated", "bytes allocated in all"),
            Objects::Allocated => ("allocated", "bytes allocated per second"),
        };
        for (letter, (name, profile)) in ["A", "B"].iter().zip(names.iter().zip(self.profiles)) {
            let whole = whole(profile, self.of);
            let _ = writeln!(
                text,
                "{letter}  {}: {} {all}, {}",
                shortened(name, COLUMNS / 2),
                size(whole.sum),
                plural(whole.samples, "sample")
            );
        }
        if self.of == Objects::Allocated {
            for (letter, profile) in ["A", "B"].iter().zip(self.profiles) {
                let lost = incomplete_allocations(profile);
                if !lost.is_empty() {
                    let label = format!("warning: {letter} lost ");
                    crate::explanation::wrapped(&mut text, &label, 9, &lost);
                }
            }
        }
        let _ = writeln!(text, "{base}");
        text.push_str("* significant; +- one standard error of the change\n");
        self.stacks(&mut text);
        self.classes(&mut text);
        text
    }

    fn has_no_length(&self) -> bool {
        let lengths = self.profiles.map(Profile::allocations_sampled_ns);
        lengths == [0, 0]
    }

    fn changes(&self, sums: impl Fn(&Profile) -> dwell_profile::diff::Sums) -> Vec<Change> {
        let [a, b] = self.profiles.map(sums);
        let mut changes = self.base.changes(a, b);
        // Largest growth first; equal changes keep their order.
        changes.sort_by(|x, y| y.difference().total_cmp(&x.difference()));
        changes
    }

    fn stacks(&self, text: &mut String) {
        let changes = self.changes(|profile| profile.sums_by_stack(self.of, false));
        text.push_str("\nStacks by growth, innermost method first\n");
        self.head(text);
        let grown = changes.iter().filter(|change| change.difference() > 0.0);
        let grown: Vec<&Change> = grown.collect();
        for change in grown.iter().take(STACKS) {
            let mut frames = change.name.rsplit(';');
            self.row(text, change, frames.next().unwrap_or(""));
            for frame in frames.by_ref().take(FRAMES) {
                let _ = writeln!(text, "          {}", shortened(frame, COLUMNS - 10));
            }
            let rest = frames.count();
            if rest > 0 {
                let _ = writeln!(text, "          ... {}", plural(rest as u64, "more method"));
            }
        }
        if grown.is_empty() {
            text.push_str("  none\n");
        }
        rest(text, grown.len(), STACKS);
    }

    fn classes(&self, text: &mut String) {
        let changes = self.changes(|profile| profile.sums_by_class(self.of));
        text.push_str("\nClasses by growth\n");
        self.head(text);
        for change in changes.iter().take(CLASSES) {
            self.row(text, change, &change.name);
        }
        rest(text, changes.len(), CLASSES);
    }

    fn head(&self, text: &mut String) {
        text.push_str("          A          B      change          +-\n");
    }

    fn row(&self, text: &mut String, change: &Change, name: &str) {
        let mark = if change.is_significant { "*" } else { " " };
        let note = match (change.is_new(), change.is_gone()) {
            (true, _) => "new ",
            (_, true) => "gone ",
            _ => "",
        };
        let sign = match change.difference() {
            change if change > 0.0 => "+",
            change if change < 0.0 => "-",
            _ => "",
        };
        let bytes = |rate: f64| size(rate.abs().round() as u64);
        let head = format!(
            "{:>11}{:>11}{:>12}{:>12} {mark} {note}",
            bytes(change.rate_a),
            bytes(change.rate_b),
            format!("{sign}{}", bytes(change.difference())),
            bytes(change.error),
        );
        let room = COLUMNS.saturating_sub(head.len());
        let _ = writeln!(text, "{head}{}", shortened(name, room));
    }

    /// Stacks with two numbers of bytes, the class innermost; those of A brought to the time that B
    /// has, if it is about allocations.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    pub fn collapsed(&self, out: &mut impl io::Write) -> io::Result<()> {
        let scale = self.base.b / self.base.a;
        let mut changes = self.changes(|profile| profile.sums_by_stack(self.of, true));
        changes.sort_by(|x, y| x.name.cmp(&y.name));
        for change in &changes {
            let a = (change.a.sum as f64 * scale).round() as u64;
            writeln!(out, "{} {a} {}", plain(&change.name), change.b.sum)?;
        }
        Ok(())
    }
}

fn rest(text: &mut String, all: usize, shown: usize) {
    if all > shown {
        let _ = writeln!(text, "  {} of {all} are shown", shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Allocation, Builder, FrameKind, LiveObject, LiveSampling, text_art};

    /// A cache that is there in both, and a leak of `leaked` samples.
    fn profile(leaked: u64) -> Profile {
        let mut builder: Builder = text_art::builder("a.A.x");
        builder.info.duration_ns = 2_000_000_000;
        builder.live_sampling = Some(LiveSampling::default());
        for (class, method, number) in [("a.Cached", "fill", 40), ("a.Le;aked", "leak", leaked)] {
            let id = builder.method("a.A", method, "");
            let frame = builder.frame(id, 0, FrameKind::C2);
            let stack = builder.stack([frame]);
            let marker = builder.marker(class, FrameKind::Other);
            let node = builder.child(stack, marker);
            let class = builder.name(class);
            for _ in 0..number {
                let allocated = Allocation {
                    time_ns: 0,
                    thread: 0,
                    node,
                    class,
                    bytes: 1 << 20,
                    size: 16,
                    context: None,
                };
                builder.allocations.push(allocated);
                builder.live.push(LiveObject {
                    allocated,
                    age_ns: 1,
                    collections: 1,
                });
            }
        }
        builder.finish()
    }

    #[test]
    fn growing_rows_come_first() {
        let (a, b) = (profile(2), profile(80));
        let text = grown(&a, &b, Objects::Alive)
            .unwrap()
            .text(["a.jfr", "b.jfr"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "A  a.jfr: 42.0 MiB alive, 42 samples");
        assert_eq!(lines[4], "");
        let leak = lines[7];
        assert!(leak.contains("2048 KiB   80.0 MiB   +78.0 MiB"), "{text}");
        assert!(
            leak.contains(" * a.Le:aked") && lines[8].trim() == "a.A.leak",
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS));
        // By the second: half.
        let text = grown(&a, &b, Objects::Allocated)
            .unwrap()
            .text(["a.jfr", "b.jfr"]);
        assert!(text.contains("1024 KiB   40.0 MiB   +39.0 MiB"), "{text}");
        let mut out = Vec::new();
        let compared = grown(&a, &b, Objects::Alive).unwrap();
        compared.collapsed(&mut out).unwrap();
        let expected = "a.A.fill;a.Cached 41943040 41943040\na.A.leak;a.Le:aked 2097152 83886080\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn allocations_of_unknown_length_are_compared_in_all() {
        let unknown = |leaked| {
            let mut profile = profile(leaked);
            profile.set_duration_ns(0);
            profile
        };
        let (a, b) = (unknown(2), unknown(80));
        let text = grown(&a, &b, Objects::Allocated).unwrap().text(["a", "b"]);
        assert!(text.contains("\nbytes allocated in all\n"), "{text}");
        assert!(text.contains("2048 KiB   80.0 MiB   +78.0 MiB"), "{text}");
        assert!(grown(&a, &profile(2), Objects::Allocated).is_err());
    }

    #[test]
    fn of_equal_ones_nothing_has_grown() {
        let a = profile(2);
        let text = grown(&a, &a, Objects::Alive).unwrap().text(["a", "a"]);
        assert!(
            text.contains("  none\n") && !text.contains("are shown"),
            "{text}"
        );
        assert!(text.contains("    0 bytes "), "{text}");
    }

    #[test]
    fn recordings_without_objects_are_refused() {
        let none = text_art::profile("a.A.x");
        let error = grown(&none, &profile(1), Objects::Alive).err().unwrap();
        assert!(error.contains("-e live"), "{error}");
        let error = grown(&profile(1), &none, Objects::Allocated).err().unwrap();
        assert!(error.contains("record with -e cpu,wall,alloc"), "{error}");
    }

    #[test]
    fn lost_allocations_are_a_warning_of_their_recording() {
        let b = profile(2);
        let lost = dwell_profile::AllocationSampling {
            lost: 3,
            lost_bytes: 42 << 20,
            ..Default::default()
        };
        let mut builder: Builder = text_art::builder("a.A.x");
        builder.allocation_sampling = Some(lost);
        builder.info.duration_ns = 1;
        let a = builder.finish();
        let compared = grown(&a, &b, Objects::Allocated).unwrap();
        let told = compared.text(["a", "b"]);
        let warning = "warning: A lost 3 samples (buffer full) of 42.0 MiB";
        assert!(told.contains(warning), "{told}");
        assert!(!told.contains("B lost"), "{told}");
    }
}

//! Sampled objects that are still there: by class, and by stack, with their ages.

use super::{COLUMNS, ROWS, Report};
use crate::number::{bytes, count, duration, percent, plural, size};
use crate::plain::shortened;
use dwell_profile::{Alive, Weight};

/// Maximum number of stacks.
const STACKS: usize = 5;
/// Their innermost methods.
const FRAMES: usize = 8;

/// Meaning of the columns.
const NOTES: [&str; 2] = [
    "  thirds: of the bytes, by the third of the recording that allocated them; *: each third has",
    "  a large part, so it grows; young: not yet seen by a GC, and not in the sums",
];

impl Report<'_> {
    /// Live objects, if they were recorded.
    pub(super) fn alive(&mut self) {
        let profile = self.profile;
        let Some(sampling) = profile.live_sampling().copied() else {
            return;
        };
        let all = profile.alive();
        let alive = size(all.bytes.sum);
        let mut told = plural(all.objects.round() as u64, "object");
        told += &format!(", {}", plural(all.bytes.samples, "sample"));
        if sampling.interval_bytes > 0 {
            told += &format!(", interval raised to {}", bytes(sampling.interval_bytes));
        }
        self.raw("");
        self.raw(&format!(
            "Alive at the end, having survived a collection: {alive}"
        ));
        self.raw(&format!("  {told}"));
        if all.young.samples > 0 {
            let young = size(all.young.sum);
            self.raw(&format!("  plus {young} not yet seen by a GC"));
        }
        if sampling.one_of > 1 {
            let one = count(sampling.one_of);
            self.raw(&format!(
                "  thinned: one of {one} samples was followed and stands for all of them"
            ));
        }
        if sampling.lost > 0 {
            let lost = count(sampling.lost);
            let samples = plural(sampling.samples, "sample");
            self.raw(&format!(
                "  lost: {lost} of {samples} (buffer full); sums are too low by that part"
            ));
        }
        if all.bytes.samples > 0 || all.young.samples > 0 {
            self.alive_classes(&all.bytes);
        }
        if all.bytes.samples > 0 {
            self.alive_stacks(&all.bytes);
        }
    }

    fn alive_classes(&mut self, all: &Weight) {
        let classes = self.profile.alive_classes();
        self.raw("");
        self.raw("Classes by bytes alive");
        self.raw("     share     +-       bytes     objects   young   oldest  thirds, %     class");
        for class in classes.iter().take(ROWS) {
            let head = format!(
                "{} {:>11} {:>8} {}",
                cells(&class.alive, all),
                count(class.alive.objects.round() as u64),
                size(class.alive.young.sum),
                self.ages(&class.alive),
            );
            let name = shortened(&class.name, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
        }
        self.more(classes.len(), ROWS);
        if self.has_ages() {
            NOTES.into_iter().for_each(|note| self.raw(note));
        }
    }

    /// Whether the recording says when objects were allocated.
    fn has_ages(&self) -> bool {
        !self.profile.followed_ns().is_empty()
    }

    /// The age of the oldest, and the thirds of the recording.
    fn ages(&self, alive: &Alive) -> String {
        match self.has_ages() {
            true => ages(alive),
            false => format!("{:23}", ""),
        }
    }

    fn alive_stacks(&mut self, all: &Weight) {
        let stacks = self.profile.alive_stacks();
        self.raw("");
        self.raw("Stacks by bytes alive, innermost method first");
        self.raw("     share     +-       bytes   oldest  thirds, %     class");
        for stack in stacks.iter().take(STACKS) {
            let head = format!("{} {}", cells(&stack.alive, all), self.ages(&stack.alive));
            let mut frames = stack.frames.iter();
            let class = frames.next().map_or("[no stack]", String::as_str);
            let name = shortened(class, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
            for frame in frames.by_ref().take(FRAMES) {
                self.raw(&format!("          {}", shortened(frame, COLUMNS - 10)));
            }
            let rest = frames.count();
            if rest > 0 {
                self.raw(&format!(
                    "          ... {}",
                    plural(rest as u64, "more method")
                ));
            }
        }
        self.more(stacks.len(), STACKS);
    }
}

/// Share, error and bytes: 29 columns.
fn cells(alive: &Alive, all: &Weight) -> String {
    let error = alive.bytes.share_error(all) * 100.0;
    let share = percent(alive.bytes.share(all));
    format!("{share:>10} {error:>6.1} {:>11}", size(alive.bytes.sum))
}

/// The age of the oldest, and the thirds of the recording.
fn ages(alive: &Alive) -> String {
    let all = alive.bytes.sum.max(1) as f64;
    let thirds = alive
        .parts
        .map(|part| format!("{:.0}", part as f64 / all * 100.0));
    let mark = if alive.grows() { "*" } else { " " };
    let oldest = match alive.oldest_ns {
        0 => String::new(),
        ns => duration(ns),
    };
    format!("{oldest:>8} {:>10} {mark}  ", thirds.join("/"))
}

#[cfg(test)]
mod tests {
    use dwell_profile::{Allocation, FrameKind, LiveObject, LiveSampling, text_art};

    #[test]
    fn live_objects_are_listed_by_class_and_stack() {
        let mut builder = text_art::builder("a.A.x");
        builder.info.duration_ns = 30_000_000_000;
        let silent = crate::text(&builder.clone().finish());
        assert!(!silent.contains("Alive"), "{silent}");
        builder.live_sampling = Some(LiveSampling {
            time_ns: builder.info.start_ns + 30_000_000_000,
            interval_bytes: 1 << 20,
            one_of: 2,
            samples: 30,
            lost: 1,
            followed_ns: 0,
        });
        let frame = builder.marker("a.\u{1b}[2JLeak", FrameKind::Other);
        let node = builder.child(1, frame);
        let class = builder.name("a.\u{1b}[2JLeak");
        for number in 0..15 {
            builder.live.push(LiveObject {
                allocated: Allocation {
                    time_ns: builder.info.start_ns + 2_000_000_000 * number,
                    thread: 0,
                    node,
                    class,
                    bytes: 1 << 20,
                    size: 16,
                    context: None,
                },
                age_ns: 30_000_000_000 - 2_000_000_000 * number,
                collections: u64::from(number < 14),
            });
        }
        let text = crate::text(&builder.finish());
        for part in [
            "Alive at the end, having survived a collection: 14.0 MiB\n",
            "  917,504 objects, 14 samples, interval raised to 1024 KiB\n",
            "plus 1024 KiB not yet seen by a GC",
            "one of 2 samples was followed",
            "lost: 1 of 30 samples (buffer full)",
            "30.0 s   36/36/29 *  a.",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }
}

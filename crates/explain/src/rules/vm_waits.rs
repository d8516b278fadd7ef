//! Threads that wait for the JVM or the kernel: until a method is compiled, or until a page is in
//! memory.

use super::warmup::START_NS;
use super::{no_such_waits, no_wall};
use crate::evidence::{Entry, Facts, Kind as Subject};
use crate::finding::{Finding, Sure, Verdict};
use crate::numbers::{duration, short};
use crate::share::Share;
use crate::waits::{Whose, gather};
use dwell_profile::Platform;

/// A share of the waiters' time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.10;
const SURELY: f64 = 0.04;
const LOOKS: u64 = 6;
const MOST: usize = 2;

/// One of them, in words.
struct Kind {
    cause: &'static str,
    /// Activity during the wait, as text.
    on: &'static str,
    remedy: fn(&str, Platform) -> String,
    sure: Sure,
    because: &'static str,
}

const COMPILER: Kind = Kind {
    cause: "jit-wait",
    on: "waiting for the JVM to compile code that it calls",
    remedy: |_, _| {
        "let the JVM compile in the background, which is its default: without -Xbatch, -Xcomp, \
         -XX:-BackgroundCompilation and the like in -XX:CompileCommand; and do not load the same \
         classes repeatedly"
            .to_owned()
    },
    sure: Sure::High,
    because: "its threads were sampled in the JVM's wait for a compilation",
};

const PAGES: Kind = Kind {
    cause: "page-fault",
    on: "waiting for pages that were not in memory",
    remedy: |place, platform| {
        let (load, lower) = match platform {
            Platform::Jvm => (
                " load it before (MappedByteBuffer.load), or",
                "lower -Xmx or ",
            ),
            Platform::Mono => ("", ""),
        };
        format!(
            "if {} reads a mapped file:{load} read larger pieces of it; else the machine is short \
             of memory: check whether it swaps, and {lower}give it more",
            short(place)
        )
    },
    sure: Sure::Medium,
    because: "the kernel stopped the threads outside of system calls; the address of the memory \
     is not recorded",
};

pub(crate) fn compiler(facts: &Facts<'_>) -> Verdict {
    check(facts, &COMPILER)
}

pub(crate) fn pages(facts: &Facts<'_>) -> Verdict {
    check(facts, &PAGES)
}

fn check(facts: &Facts<'_>, kind: &Kind) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    if let Some(lacks) = no_such_waits(facts) {
        return lacks;
    }
    let mut found = Vec::new();
    // Code that is compiled, or memory that is read, is met in many methods: one finding for all.
    let waits = gather(facts, |entry| {
        let is_of_kind = entry.cause == kind.cause && !is_start(facts, entry);
        is_of_kind.then_some(entry.subject)
    });
    for (_, wait) in waits {
        let Some(whose) = wait.whose(facts).filter(|whose| whose.matters(facts)) else {
            continue;
        };
        let share = wait.share(facts, &whose);
        if !share.is_at_least(SHARE, SURELY, LOOKS) {
            continue;
        }
        let place = facts.stacks.place_name(wait.node());
        found.push(Finding {
            rule: "",
            what: what(facts, kind, &whose, &share, &place),
            weight: wait.gravity(facts),
            share,
            evidence: vec![wait.evidence(facts, &whose, wait.seen())],
            remedy: (kind.remedy)(&place, facts.profile.info().platform()),
            sure: kind.sure,
            because: kind.because.to_owned(),
        });
        if found.len() == MOST {
            break;
        }
    }
    Verdict::Found(found)
}

/// Whether a thread waited outside of requests while the JVM started: every JVM compiles code and
/// reads its files then.
fn is_start(facts: &Facts<'_>, entry: &Entry<'_>) -> bool {
    let started_ns = facts.profile.info().jvm_start_ns;
    let subject = facts.subjects.get(entry.subject);
    let is_request = subject.is_some_and(|subject| subject.kind == Subject::Endpoint);
    started_ns > 0 && !is_request && entry.last_ns < started_ns.saturating_add(START_NS)
}

fn what(facts: &Facts<'_>, kind: &Kind, whose: &Whose, share: &Share, place: &str) -> String {
    let each = whose.per_request(facts, share.ns);
    let each = each.map_or(String::new(), |ns| {
        format!(", {} a request on average", duration(ns))
    });
    let spends = whose.spends("spend", share.value);
    format!("{spends} {}, most of it in {place}{each}", kind.on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn request_waiting_for_compiler_is_reported() {
        let mut art = Art::default();
        for (part, looks) in [("app.Rules.weight;app.Rules.sum", 5), ("app.Rules.sum", 8)] {
            art.look("w-1", "GET /r", "jit-wait", part, looks, 20);
        }
        art.cpu("w-1", "GET /r", "app.Rules.sum", 5, 10);
        art.requests("GET /r", 100, 5);
        let found = art.found(compiler);
        assert_eq!(found.len(), 1, "{found:?}");
        let what = &found[0].what;
        assert!(what.contains("most of it in app.Rules.sum"), "{what}");
        assert!(what.contains("GET /r spends"), "{what}");
        assert!(what.contains("to compile code that it calls"), "{what}");
        assert!(what.contains("a request on average"), "{what}");
        assert_eq!(art.found(pages), []);
    }

    /// Number of findings for waits for the compiler, by their number, looks of each, JVM's age.
    fn found(endpoint: &str, waits: u64, looks: u64, age: Option<u64>) -> usize {
        let mut art = Art::lasting(5);
        if let Some(age) = age {
            art.age(age);
        }
        for _ in 0..waits {
            art.look("main", endpoint, "jit-wait", "app.Main.start", looks, 20);
        }
        art.cpu("main", endpoint, "app.Main.start", 10, 10);
        art.found(compiler).len()
    }

    #[test]
    fn few_waits_are_no_finding_unless_long() {
        assert_eq!(found("", 2, 5, None), 0, "10 samples of 2 waits");
        assert_eq!(found("", 3, 3, None), 1, "9 samples of 3 waits");
        assert_eq!(found("", 1, 12, None), 1, "12 samples of 1 wait");
    }

    #[test]
    fn starting_jvm_waits_for_its_compiler() {
        assert_eq!(found("", 10, 4, Some(0)), 0);
        assert_eq!(found("", 10, 4, Some(60)), 1);
        assert_eq!(found("GET /r", 10, 4, Some(0)), 1);
    }

    #[test]
    fn page_faults_are_reported_unless_rare() {
        for (waits, expected) in [(3, 1), (2, 0)] {
            let mut art = Art::default();
            for _ in 0..waits {
                art.look("w-1", "", "page-fault", "app.Archive.sum", 4, 20);
            }
            art.cpu("w-1", "", "app.Archive.sum", 40, 10);
            let found = art.found(pages);
            assert_eq!(found.len(), expected, "{found:?}");
            assert!(
                found
                    .iter()
                    .all(|it| it.remedy.contains("if Archive.sum reads"))
            );
        }
    }
}

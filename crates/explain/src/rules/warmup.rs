//! Warm-up: compiling and loading classes takes much of the processors, as it does after a start.
//! Of the start itself it says nothing: that every JVM does so then is no fault of the program.

use super::{NOT_SEEN, no_cpu};
use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Focus, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{count, duration, percent, plural};
use crate::share::Share;
use dwell_profile::{Compilers, MethodId, NodeId, Role, Weight};
use std::collections::BTreeMap;

/// A part of the CPU time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.15;
const SURELY: f64 = 0.10;
const SAMPLES: u64 = 20;
/// Less of a processor than this delays nothing.
const LEAST: f64 = 0.05;
/// Age up to which a JVM is starting. Every healthy JVM compiles and loads classes then.
pub(super) const START_NS: u64 = 10_000_000_000;
/// Least recorded time after the start for a finding.
const LATER_NS: u64 = 5_000_000_000;
/// A JVM that is younger than this warms up.
const YOUNG_NS: u64 = 120_000_000_000;

/// A smaller part is left out of the sentence: it would be "0.0 %".
const SHOWN: f64 = 0.0005;

/// Frames that load, link and initialise classes.
const LOADING: &[&str] = &[
    "java.lang.ClassLoader.loadClass",
    "java.lang.ClassLoader.defineClass*",
    "jdk.internal.loader.*",
    "java.net.URLClassLoader.*",
    "java.lang.invoke.MethodHandleNatives.link*",
    "java.lang.invoke.InnerClassLambdaMetafactory.*",
    "libjvm.so.*SystemDictionary::*",
    "libjvm.so.*ClassFileParser::*",
    "libjvm.so.*InstanceKlass::link_class*",
];

/// CPU time from some time on.
struct Stretch {
    span_ns: u64,
    all: Weight,
    compile: Weight,
    load: Weight,
    /// By method that loads classes, as the outermost of a stack's top.
    loaders: BTreeMap<MethodId, u64>,
}

impl Stretch {
    /// Samples of the recording from `from_ns` on.
    fn of(facts: &Facts<'_>, from_ns: u64) -> Stretch {
        let profile = facts.profile;
        let info = profile.info();
        let end_ns = info.start_ns.saturating_add(info.duration_ns);
        let mut stretch = Stretch {
            span_ns: end_ns.saturating_sub(from_ns.max(info.start_ns)),
            all: Weight::default(),
            compile: Weight::default(),
            load: Weight::default(),
            loaders: BTreeMap::new(),
        };
        // Asked by node: there may be many more samples.
        let mut program = vec![Weight::default(); profile.tree().len()];
        let roles = profile.sample_roles();
        let samples = profile.samples().iter().zip(roles);
        for (sample, role) in samples.filter(|(sample, _)| sample.time_ns >= from_ns) {
            let weight = Weight::of_sample(sample);
            stretch.all += &weight;
            match (role, program.get_mut(sample.node as usize)) {
                (Role::Jit, _) => stretch.compile += &weight,
                (Role::Program, Some(sum)) => *sum += &weight,
                _ => {}
            }
        }
        let loading = Set::new(profile, LOADING);
        for (node, weight) in program.iter().enumerate() {
            if weight.samples == 0 {
                continue;
            }
            if let Some(loader) = facts.stacks.outermost_in_top(node as NodeId, &loading) {
                stretch.load += weight;
                *stretch.loaders.entry(loader).or_default() += weight.sum;
            }
        }
        stretch
    }

    /// The part that is for warming up.
    fn share(&self, of: &str) -> Share {
        let mut both = self.compile;
        both += &self.load;
        Share::sampled(&both, &self.all, of)
    }

    /// Whether this is enough for a finding.
    fn is_much(&self, facts: &Facts<'_>, share: &Share) -> bool {
        let is_little = facts.has_cpu_time() && (share.ns as f64) < LEAST * self.span_ns as f64;
        !is_little && share.is_at_least(SHARE, SURELY, SAMPLES)
    }

    /// The larger of both parts.
    fn focus(&self, facts: &Facts<'_>) -> Option<Focus> {
        let loader = self.loaders.iter().max_by_key(|(_, ns)| **ns);
        match loader {
            Some((loader, _)) if self.load.sum > self.compile.sum => facts.stacks.focus(*loader),
            _ => Some(Focus::Role(Role::Jit)),
        }
    }

    fn in_words(&self) -> String {
        let parts = [
            ("compiling", &self.compile),
            ("loading classes", &self.load),
        ];
        let parts = parts.map(|(what, weight)| (what, weight.share(&self.all)));
        let shown = parts.iter().filter(|(_, share)| *share >= SHOWN);
        let shown: Vec<String> = shown
            .map(|(what, share)| format!("{what} {}", percent(*share)))
            .collect();
        shown.join(", ")
    }
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if facts.cpu_total.samples == 0 {
        return no_cpu(facts);
    }
    if facts.endpoint.is_some() {
        return Verdict::lacks("it is about the whole process, not about an endpoint");
    }
    let none = || match facts.sees_the_jvm() {
        true => Verdict::Found(Vec::new()),
        false => Verdict::lacks(NOT_SEEN),
    };
    let info = facts.profile.info();
    let is_known = info.jvm_start_ns > 0;
    let started_ns = match is_known {
        true => info.jvm_start_ns.saturating_add(START_NS),
        false => 0,
    };
    let later = Stretch::of(facts, started_ns);
    let share = later.share(facts.cpu_name());
    let end_ns = info.start_ns.saturating_add(info.duration_ns);
    if is_known && end_ns < started_ns.saturating_add(LATER_NS) {
        // Only sampled time can be reported, even if there is more.
        let all = Stretch::of(facts, 0);
        return match all.is_much(facts, &all.share(facts.cpu_name())) {
            true => Verdict::Lacks(start_only(facts, &all)),
            false => none(),
        };
    }
    match later.is_much(facts, &share) {
        true => Verdict::Found(vec![finding(facts, &later, share)]),
        false => none(),
    }
}

/// A young JVM mostly compiles and loads classes. Whether that would continue is unknown.
fn start_only(facts: &Facts<'_>, all: &Stretch) -> String {
    format!(
        "the recording ends before the JVM has run for {}, and a JVM compiles and loads classes \
         at its start ({} of {}); record longer to see whether that continues",
        duration((START_NS + LATER_NS) as f64),
        all.in_words(),
        facts.cpu_name()
    )
}

fn finding(facts: &Facts<'_>, later: &Stretch, share: Share) -> Finding {
    let info = facts.profile.info();
    let age_ns = (info.jvm_start_ns > 0).then(|| info.start_ns.saturating_sub(info.jvm_start_ns));
    let is_young = age_ns.is_some_and(|age_ns| age_ns < YOUNG_NS);
    let age = match age_ns {
        Some(ns) if ns < START_NS => format!("; start-up ({}) excluded", duration(START_NS as f64)),
        Some(ns) => format!(
            "; the JVM had run for {} when the recording began",
            duration(ns as f64)
        ),
        None => String::new(),
    };
    Finding {
        rule: "",
        what: format!(
            "{} of {} is spent by the JVM itself: {}{age}",
            percent(share.value),
            facts.cpu_name(),
            later.in_words()
        ),
        weight: facts.lost_on_processors(&share),
        share,
        evidence: vec![Evidence {
            text: format!(
                "samples of compiler threads, and of stacks inside class loading{}",
                counted(facts)
            ),
            view: View {
                focus: later.focus(facts),
                ..View::default()
            },
            stack: Vec::new(),
        }],
        remedy: remedy(age_ns.is_none(), is_young),
        sure: match is_young {
            true => Sure::High,
            false => Sure::Medium,
        },
        because: match (age_ns.is_none(), is_young) {
            (true, _) => "the cost is certain; the JVM's age is not in the recording".to_owned(),
            (_, true) => "the JVM is young, and this continued after its start".to_owned(),
            (..) => "the cost is certain; the reason why an old JVM compiles so much is unknown"
                .to_owned(),
        },
    }
}

/// The JVM's counters of its compilers; empty without them.
fn counted(facts: &Facts<'_>) -> String {
    let told = facts.profile.compilers();
    let sum = |of: fn(&Compilers) -> u64| told.iter().map(of).fold(0u64, u64::saturating_add);
    let all = sum(|it| it.compilations);
    if all == 0 {
        return String::new();
    }
    let wasted = match sum(|it| it.wasted) {
        0 => String::new(),
        wasted => format!(", {} of them discarded", count(wasted)),
    };
    let half: u64 = facts.profile.info().start_ns + facts.profile.info().duration_ns / 2;
    let late = told.iter().filter(|it| it.time_ns >= half);
    let late = late.fold(0u64, |sum, it| sum.saturating_add(it.compilations));
    format!(
        "; the JVM counted {} of {}{wasted}, {} of them in the second half",
        plural(all, "compilation"),
        duration(sum(|it| it.compiling_ns) as f64),
        percent(late as f64 / all as f64)
    )
}

fn remedy(is_unknown: bool, is_young: bool) -> String {
    let start = "for a faster start: class data sharing (-XX:ArchiveClassesAtExit, \
     -XX:SharedArchiveFile) or an AOT cache (-XX:AOTCache, JDK 24 and later), and more CPUs; \
     otherwise record later, after warm-up";
    let later = "check which methods are compiled again (-Xlog:jit*=debug, \
     -XX:+PrintCompilation), whether the code cache is full (jcmd PID Compiler.codecache; \
     -XX:ReservedCodeCacheSize), and which classes are still generated";
    match (is_unknown, is_young) {
        (true, _) => format!("after a start: {start}; later: {later}"),
        (_, true) => start.to_owned(),
        (..) => later.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn a_young_jvm_warms_up_and_an_old_one_has_another_fault() {
        for (age_s, word) in [(30, "-XX:AOTCache"), (5000, "code cache")] {
            let mut art = Art::default();
            art.age(age_s);
            art.native("C2 CompilerThre", 80, 10);
            art.cpu("main", "", "app.Main.run", 120, 10);
            let found = art.found(check);
            assert!(found[0].remedy.contains(word), "{found:?}");
            assert!(found[0].what.contains("compiling 40 %"), "{found:?}");
        }
    }

    /// A healthy program that runs for a few seconds mostly starts.
    #[test]
    fn a_start_is_no_finding() {
        for duration_s in [4, 14] {
            let mut art = Art::lasting(duration_s);
            art.age(0);
            art.native("C2 CompilerThre", 100, 10);
            art.cpu("main", "", "app.Main.run", 100, 10);
            let lacks = art.lacks(check);
            assert!(lacks.contains("compiling 50 %"), "{lacks}");
            assert!(lacks.contains("record longer"), "{lacks}");
        }
        // An old JVM in an equally short recording does not start.
        let mut art = Art::lasting(4);
        art.age(5000);
        art.native("C2 CompilerThre", 100, 10);
        art.cpu("main", "", "app.Main.run", 100, 10);
        assert!(art.found(check)[0].remedy.contains("code cache"));
        // A JVM with little of both has no finding.
        let mut art = Art::lasting(4);
        art.age(0);
        art.cpu("main", "", "app.Main.run", 100, 10);
        assert_eq!(art.found(check), []);
    }

    /// Compilers that are at work in the first seconds only, and ones that go on.
    #[test]
    fn compiling_after_start_is_a_finding_unless_it_ends() {
        for (busy_s, expected) in [(8, 0), (30, 1)] {
            let mut art = Art::lasting(30);
            art.age(0);
            art.native_until("C2 CompilerThre", 600, 10, busy_s);
            art.cpu("main", "", "app.Main.run", 600, 10);
            let found = art.found(check);
            assert_eq!(found.len(), expected, "{found:?}");
            let is_told = found
                .iter()
                .all(|it| it.what.contains("start-up (10.0 s) excluded"));
            assert!(is_told, "{found:?}");
        }
    }

    #[test]
    fn jvm_compilation_counters_are_reported() {
        let mut art = Art::default();
        art.native("C2 CompilerThre", 80, 10);
        art.cpu("main", "", "app.Main.run", 120, 10);
        assert!(!art.found(check)[0].evidence[0].text.contains("counted"));
        art.builder.compilers = [(0, 30), (6_000_000_000, 10)]
            .map(|(time_ns, compilations)| Compilers {
                time_ns,
                duration_ns: 1_000_000_000,
                compilations,
                compiling_ns: 200_000_000,
                wasted: 1,
            })
            .to_vec();
        let text = art.found(check)[0].evidence[0].text.clone();
        let told = "counted 40 compilations of 400 ms, 2 of them discarded, 25 % of them in the \
                    second half";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn loading_classes_counts() {
        let mut art = Art::default();
        art.cpu(
            "main",
            "",
            "java.lang.ClassLoader.loadClass;app.Main.run",
            60,
            10,
        );
        art.cpu("main", "", "app.Main.run", 140, 10);
        assert!(art.found(check)[0].what.contains("loading classes 30 %"));
    }

    #[test]
    fn compilers_that_hardly_use_a_processor_delay_nothing() {
        for (samples, expected) in [(40, 0), (80, 1)] {
            let mut art = Art::default();
            art.native("C2 CompilerThre", samples, 10);
            art.cpu("w", "", "app.A.b", samples, 10);
            assert_eq!(art.found(check).len(), expected, "{samples}");
        }
    }

    #[test]
    fn where_compilers_may_not_be_seen_nothing_is_said() {
        let mut art = Art::default();
        art.builder.info.profiler_version.clear();
        art.cpu("w", "", "app.A.b", 200, 10);
        assert!(art.lacks(check).contains("not made by dwell"));
    }

    #[test]
    fn a_warm_jvm_is_fine() {
        let mut art = Art::default();
        art.native("C2 CompilerThre", 5, 10);
        art.cpu("main", "", "app.Main.run", 95, 10);
        assert_eq!(art.found(check), []);
    }
}

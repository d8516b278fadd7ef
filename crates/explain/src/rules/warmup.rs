//! Warm-up: compiling and loading classes takes much of the processors, as it does after a start.

use super::{NO_CPU, NOT_SEEN};
use crate::facts::Facts;
use crate::finding::{Evidence, Finding, Sure, Verdict, View};
use crate::names::Set;
use crate::share::Share;
use crate::text::{duration, percent};
use dwell_profile::{Compilers, Role};

/// A part of the CPU time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.15;
const SURELY: f64 = 0.10;
const SAMPLES: u64 = 20;
/// Less of a processor than this delays nothing.
const LEAST: f64 = 0.05;
/// A JVM that is younger than this warms up.
const YOUNG_NS: u64 = 120_000_000_000;

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

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if facts.cpu_total.samples == 0 {
        return Verdict::lacks(NO_CPU);
    }
    if facts.endpoint.is_some() {
        return Verdict::lacks("it is about the whole process, not about an endpoint");
    }
    let loading = Set::new(facts.profile, LOADING);
    let mut load = facts.role(Role::Program);
    load.sum = 0;
    load.squares = 0.0;
    load.samples = 0;
    for (node, weight) in facts.program_cpu.iter().enumerate() {
        if weight.samples > 0 && facts.stacks.top_has(node as u32, &loading) {
            load += weight;
        }
    }
    let compile = facts.role(Role::Jit);
    let mut both = compile;
    both += &load;
    let share = Share::sampled(&both, &facts.cpu_total, "the CPU time");
    let least = LEAST * facts.profile.info().duration_ns as f64;
    let is_little = facts.has_cpu_time() && (both.sum as f64) < least;
    if is_little || !share.is_at_least(SHARE, SURELY, SAMPLES) {
        return match facts.sees_the_jvm() {
            true => Verdict::Found(Vec::new()),
            false => Verdict::lacks(NOT_SEEN),
        };
    }
    let part = |weight: &dwell_profile::Weight| percent(weight.share(&facts.cpu_total));
    let info = facts.profile.info();
    let age_ns = (info.jvm_start_ns > 0).then(|| info.start_ns.saturating_sub(info.jvm_start_ns));
    let is_young = age_ns.is_some_and(|age_ns| age_ns < YOUNG_NS);
    let age = age_ns.map_or(String::new(), |ns| {
        format!(
            "; the JVM had run for {} when the recording began",
            duration(ns as f64)
        )
    });
    Verdict::Found(vec![Finding {
        rule: "",
        what: format!(
            "{} of the CPU time is the JVM's: compiling {}, loading classes {}{age}",
            percent(share.value),
            part(&compile),
            part(&load)
        ),
        weight: share.value * 0.5,
        share,
        evidence: vec![Evidence {
            text: format!(
                "CPU time of compiler threads, and of stacks inside class loading{}",
                counted(facts)
            ),
            view: View::default(),
            stack: Vec::new(),
        }],
        remedy: remedy(age_ns.is_none(), is_young),
        sure: match is_young {
            true => Sure::High,
            false => Sure::Medium,
        },
        because: match (age_ns.is_none(), is_young) {
            (true, _) => "the cost is certain; the JVM's age is not in the recording".to_owned(),
            (_, true) => "the JVM is young".to_owned(),
            (..) => "the cost is certain; why an old JVM compiles so much is not seen".to_owned(),
        },
    }])
}

/// What the JVM counted of its compilers; empty if it did not.
fn counted(facts: &Facts<'_>) -> String {
    let told = facts.profile.compilers();
    let sum = |of: fn(&Compilers) -> u64| told.iter().map(of).fold(0u64, u64::saturating_add);
    let all = sum(|it| it.compilations);
    if all == 0 {
        return String::new();
    }
    let wasted = match sum(|it| it.wasted) {
        0 => String::new(),
        wasted => format!(", {wasted} of them in vain"),
    };
    let half: u64 = facts.profile.info().start_ns + facts.profile.info().duration_ns / 2;
    let late = told.iter().filter(|it| it.time_ns >= half);
    let late = late.fold(0u64, |sum, it| sum.saturating_add(it.compilations));
    format!(
        "; the JVM counted {all} compilations of {}{wasted}, {} of them in the second half",
        duration(sum(|it| it.compiling_ns) as f64),
        percent(late as f64 / all as f64)
    )
}

fn remedy(is_unknown: bool, is_young: bool) -> String {
    let start = "if the start is what matters: class data sharing (-XX:ArchiveClassesAtExit, \
                 -XX:SharedArchiveFile) or an AOT cache (-XX:AOTCache, JDK 24 and later), and \
                 more processors; else record later, when it is warm";
    let later = "see what is compiled again (-Xlog:jit*=debug, -XX:+PrintCompilation) and whether \
                 the code cache is full (jcmd PID Compiler.codecache; -XX:ReservedCodeCacheSize), \
                 and which classes are still generated";
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
        for (age_s, word) in [(5, "-XX:AOTCache"), (5000, "code cache")] {
            let mut art = Art::default();
            art.builder.info.start_ns = 10_000_000_000_000;
            art.builder.info.jvm_start_ns = 10_000_000_000_000 - age_s * 1_000_000_000;
            art.native("C2 CompilerThre", 80, 10);
            art.cpu("main", "", "app.Main.run", 120, 10);
            let found = art.found(check);
            assert!(found[0].remedy.contains(word), "{found:?}");
            assert!(found[0].what.contains("compiling 40 %"), "{found:?}");
        }
    }

    #[test]
    fn what_the_jvm_counted_is_told() {
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
        let told =
            "counted 40 compilations of 400 ms, 2 of them in vain, 25 % of them in the second half";
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

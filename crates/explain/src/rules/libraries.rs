//! Costly services of libraries: logging, reflection, regular expressions, formatting. The table
//! has one entry for each. Time counts where the service itself works, not where it calls the
//! program back. If one service uses another, the time counts for the one that the program calls,
//! because that call can be changed.

use super::exceptions::EXCEPTIONS;
use super::no_cpu;
use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::percent;
use crate::services::Services;
use crate::share::Share;
use crate::stacks::Heaviest;
use dwell_profile::{MethodId, NodeId, Weight};
use std::collections::BTreeMap;

const SAMPLES: u64 = 8;

/// A service, and when it costs too much.
pub(super) struct Hot {
    /// Its methods.
    pub(super) patterns: &'static [&'static str],
    /// A part of the CPU time that is worth a change, and the least it must surely be.
    pub(super) share: f64,
    pub(super) surely: f64,
    pub(super) what: &'static str,
    pub(super) remedy: &'static str,
}

const LOGGING: Hot = Hot {
    patterns: &[
        "org.apache.logging.log4j.*",
        "org.apache.log4j.*",
        "ch.qos.logback.*",
        "org.slf4j.*",
        "java.util.logging.*",
        "sun.util.logging.*",
        "org.jboss.logmanager.*",
        "java.io.PrintStream.print*",
    ],
    share: 0.10,
    surely: 0.05,
    what: "logging",
    remedy: "log less there: a higher level, no caller data (%C %M %L), parameters instead of \
     concatenated strings, an asynchronous appender with a bounded queue",
};

const REFLECTION: Hot = Hot {
    patterns: &[
        "java.lang.reflect.*",
        "jdk.internal.reflect.*",
        "sun.reflect.*",
        "java.lang.Class.getMethod*",
        "java.lang.Class.getDeclared*",
        "java.lang.Class.getField*",
        "java.lang.Class.getConstructor*",
        "java.lang.Class.forName*",
        "java.lang.Class.privateGet*",
        "java.lang.Class.searchMethods",
        "java.lang.Class.reflectionData",
    ],
    share: 0.10,
    surely: 0.05,
    what: "reflection",
    remedy: "look methods and fields up once and cache them (a static MethodHandle or VarHandle \
     is compiled into its caller), or generate the code",
};

const REGEX: Hot = Hot {
    patterns: &["java.util.regex.*", "com.google.re2j.*"],
    share: 0.10,
    surely: 0.05,
    what: "regular expressions",
    remedy: "compile each Pattern once into a static field (String.split, replaceAll and matches \
     compile it on each call), avoid nested repetitions, or search with indexOf",
};

const FORMAT: Hot = Hot {
    patterns: &[
        "java.lang.String.format",
        "java.lang.String.formatted",
        "java.util.Formatter*",
        "java.text.MessageFormat*",
        "java.text.DecimalFormat*",
        "java.text.SimpleDateFormat*",
        "java.time.format.*",
    ],
    share: 0.10,
    surely: 0.05,
    what: "formatting (String.format and the like)",
    remedy: "concatenate strings with + or a StringBuilder, and reuse one DateTimeFormatter",
};

pub(crate) fn logging(facts: &Facts<'_>) -> Verdict {
    hot(facts, &LOGGING)
}

pub(crate) fn reflection(facts: &Facts<'_>) -> Verdict {
    hot(facts, &REFLECTION)
}

pub(crate) fn regex(facts: &Facts<'_>) -> Verdict {
    hot(facts, &REGEX)
}

pub(crate) fn format(facts: &Facts<'_>) -> Verdict {
    hot(facts, &FORMAT)
}

/// All services.
const ALL: [&Hot; 5] = [&LOGGING, &REFLECTION, &REGEX, &FORMAT, &EXCEPTIONS];

/// Which of them works where.
struct Working<'f>(&'f Services);

impl<'f> Working<'f> {
    fn of(facts: &'f Facts<'_>) -> Working<'f> {
        Working(facts.services(&ALL.map(|service| service.patterns)))
    }

    fn is(&self, node: NodeId, service: &Hot) -> bool {
        let known = self.0.at(node).and_then(|at| ALL.get(at));
        known.is_some_and(|known| known.what == service.what)
    }
}

/// Whether a node's time is that of a service which costs too much, and so has its finding.
pub(super) fn is_costly<'f>(facts: &'f Facts<'_>) -> impl Fn(NodeId) -> bool + use<'f> {
    let speaks = |service: &&&Hot| match hot(facts, service) {
        Verdict::Found(found) => !found.is_empty(),
        Verdict::Lacks(_) => false,
    };
    let costly: Vec<&Hot> = ALL.iter().filter(speaks).copied().collect();
    let services = Working::of(facts);
    move |node| costly.iter().any(|service| services.is(node, service))
}

/// The finding of a service that costs too much, with the program's method that uses it most.
pub(super) fn hot(facts: &Facts<'_>, service: &Hot) -> Verdict {
    if facts.cpu_total.samples == 0 {
        return no_cpu(facts);
    }
    let set = Set::new(facts.profile, service.patterns);
    let services = Working::of(facts);
    let mut users: BTreeMap<Option<MethodId>, Heaviest> = BTreeMap::new();
    let mut total = Weight::default();
    for (node, weight) in facts.program_cpu.iter().enumerate() {
        let node = node as NodeId;
        if weight.samples == 0 || !services.is(node, service) {
            continue;
        }
        total += weight;
        let user = facts.stacks.user_of(node, &set);
        users.entry(user).or_default().add(node, weight);
    }
    let share = Share::sampled(&total, &facts.cpu_total, facts.cpu_name());
    let most = users.into_iter().max_by_key(|(_, sum)| sum.weight.sum);
    let Some((user, Heaviest { weight, node, .. })) = most else {
        return Verdict::Found(Vec::new());
    };
    if !share.is_at_least(service.share, service.surely, SAMPLES) {
        return Verdict::Found(Vec::new());
    }
    let place = match user {
        Some(method) => facts.stacks.name(method),
        None => "the JDK itself".to_owned(),
    };
    Verdict::Found(vec![Finding {
        rule: "",
        what: format!(
            "{} of {} is {}, most of it in {place}",
            percent(share.value),
            facts.cpu_name(),
            service.what
        ),
        weight: facts.lost_on_processors(&share),
        share,
        evidence: vec![Evidence {
            text: format!("{} of it is for {place}", percent(weight.share(&total))),
            view: View {
                focus: match user {
                    Some(method) => facts.stacks.focus(method),
                    None => facts.stacks.focus_of(node),
                },
                ..View::default()
            },
            stack: facts.stacks.shown(node),
        }],
        remedy: service.remedy.to_owned(),
        sure: Sure::High,
        because: "the samples end inside it".to_owned(),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn each_service_is_found_with_its_user() {
        type Check = fn(&Facts<'_>) -> Verdict;
        let cases: [(Check, &str, &str); 4] = [
            (logging, "ch.qos.logback.core.Appender.write", "logging"),
            (
                reflection,
                "java.lang.Class.getDeclaredMethods0",
                "reflection",
            ),
            (regex, "java.util.regex.Pattern.compile", "regular"),
            (
                format,
                "java.util.Formatter.parse;java.lang.String.format",
                "formatting",
            ),
        ];
        for (check, frames, word) in cases {
            let mut art = Art::default();
            art.cpu("w", "", &format!("{frames};app.Row.text"), 30, 10);
            art.cpu("w", "", "app.Row.sum", 70, 10);
            let found = art.found(check);
            let what = &found[0].what;
            assert!(
                what.contains(word) && what.ends_with("app.Row.text"),
                "{what}"
            );
        }
    }

    #[test]
    fn time_in_callbacks_belongs_to_the_program() {
        let mut art = Art::default();
        let invoked = "app.Controller.get;java.lang.reflect.Method.invoke;app.Framework.call";
        art.cpu("w", "", invoked, 100, 10);
        assert_eq!(art.found(reflection), []);
    }

    #[test]
    fn jdk_methods_called_by_reflection_are_no_reflection() {
        let call = "jdk.internal.reflect.DirectMethodHandleAccessor.invoke;\
                    java.lang.reflect.Method.invoke;\
                    com.sun.jmx.mbeanserver.ConvertingMethod.invokeWithOpenReturn";
        let cases = [
            ("sun.management.ThreadImpl.dumpThreads0;", 0, 0),
            (
                "java.util.regex.Pattern.compile;javax.management.ObjectName.parse;",
                0,
                1,
            ),
            // The call itself, and looking methods up.
            ("java.lang.invoke.LambdaForm$DMH.invoke;", 1, 0),
            (
                "java.lang.Class.getDeclaredMethods0;javax.management.Introspector.get;",
                1,
                0,
            ),
        ];
        for (called, of_reflection, of_regex) in cases {
            let mut art = Art::default();
            art.cpu(
                "RMI TCP Connection",
                "",
                &format!("{called}{call}"),
                100,
                10,
            );
            assert_eq!(art.found(reflection).len(), of_reflection, "{called}");
            assert_eq!(art.found(regex).len(), of_regex, "{called}");
        }
    }

    #[test]
    fn time_of_nested_service_belongs_to_the_called_one() {
        let mut art = Art::default();
        let parsing = "java.util.regex.Matcher.find;java.util.Formatter.parse;\
                       java.lang.String.format;app.Row.text";
        art.cpu("w", "", parsing, 50, 10);
        art.cpu("w", "", "app.Row.sum", 50, 10);
        assert_eq!(art.found(regex), []);
        assert_eq!(art.found(format).len(), 1);
    }

    #[test]
    fn a_little_is_fine_and_nothing_lacks() {
        let mut art = Art::default();
        art.cpu(
            "w",
            "",
            "java.util.regex.Pattern.compile;app.Row.text",
            3,
            10,
        );
        art.cpu("w", "", "app.Row.sum", 97, 10);
        assert_eq!(art.found(regex), []);
        assert!(Art::default().lacks(regex).contains("no samples"));
    }
}

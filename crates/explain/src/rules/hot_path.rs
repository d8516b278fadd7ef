//! The hot path: the program's methods that most processor time is spent in, or on behalf of, and
//! the native libraries that use it in threads of their own.

use super::{bound, costly_calls, files, libraries, no_cpu, spinning};
use crate::application::own_methods;
use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Focus, Sure, Verdict, View};
use crate::numbers::{percent, short, some_of};
use crate::share::Share;
use dwell_profile::{MethodId, NameId, NodeId, Unit, Weight};
use std::collections::BTreeMap;

/// A part of the CPU time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.12;
const SURELY: f64 = 0.07;
const SAMPLES: u64 = 20;
const MOST: usize = 3;
/// If another finding covers this part of a hot path's time, the path gets no finding here.
const TOLD: f64 = 0.8;
/// Endpoints that are named.
const ENDPOINT_PART: f64 = 0.1;
/// An innermost method is named, instead of a library that has more of the time, if it has this
/// part of the library's.
const LEAF_PART: f64 = 0.5;
/// Of libraries that call each other, the inner one is named if it has this part of the time.
const INNER_PART: f64 = 0.9;

/// Advice for the innermost frame, or a frame between it and the program's.
const ADVICE: &[(&str, &str)] = &[
    // First: a program whose files are sent by the kernel uses this method for that only.
    (SENDS, SENDS),
    (
        "libz.",
        "a lower compression level, or cache the compressed data",
    ),
    (
        "libzstd",
        "a lower compression level, or cache the compressed data",
    ),
    (
        "java.util.zip.",
        "a lower compression level, or cache the compressed data",
    ),
    (
        "java.util.HashMap.",
        "fewer look-ups, or keys whose hash code is cheap",
    ),
    (
        "java.util.TimSort.",
        "keep the data sorted, or sort less of it",
    ),
    (
        "java.util.DualPivotQuicksort",
        "keep the data sorted, or sort less of it",
    ),
    ("java.math.", "long arithmetic where the numbers allow it"),
    (
        "sun.security.",
        "keep connections open and resume sessions, so that fewer keys are made",
    ),
    (
        "com.sun.crypto.",
        "keep connections open and resume sessions, so that fewer keys are made",
    ),
    (
        "java.lang.StringBuilder.",
        "a StringBuilder with the right size, or bytes instead of text",
    ),
    (
        "java.util.Arrays.copyOf",
        "collections and buffers with the right initial size",
    ),
    (
        "java.util.Properties.load",
        "load the file once and cache it, and reload it only after a change",
    ),
    (
        "java.util.ResourceBundle.getBundle",
        "look the bundle up once and cache it",
    ),
    (
        "java.nio.file.Files.",
        "read the file once and cache its content",
    ),
    (
        "com.sun.org.apache.xerces.",
        "parse a document once and cache the result; reuse parsers and their factories",
    ),
    (
        "java.nio.ByteBuffer.allocateDirect",
        "reuse direct buffers, or use smaller ones: a large one is mapped and zeroed each time",
    ),
    (
        "java.nio.ByteBuffer.allocate",
        "reuse its buffers, or use smaller ones: each is zeroed, and its memory may be new",
    ),
];

/// Frames in which the kernel sends a file without the program's help.
const SENDS: &str = "sun.nio.ch.FileDispatcherImpl.transferTo";

/// Where time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// In or below a method of the program.
    Method(MethodId),
    /// In a library, in threads that have no method on their stacks.
    Library(NameId),
}

/// Time in a library and in its callees.
#[derive(Clone, Copy, Default)]
struct InLibrary {
    ns: u64,
    /// The part in which it is the innermost library, but for the system's.
    own_ns: u64,
    /// The part in which one of its functions has no name.
    nameless_ns: u64,
}

impl InLibrary {
    fn is_nameless(&self) -> bool {
        self.nameless_ns >= self.ns / 2
    }
}

/// Time of one place.
#[derive(Default)]
struct Spent {
    weight: Weight,
    lines: BTreeMap<u32, u64>,
    leaves: BTreeMap<MethodId, u64>,
    libraries: BTreeMap<NameId, InLibrary>,
    nodes: BTreeMap<NodeId, u64>,
    endpoints: BTreeMap<String, u64>,
}

impl Spent {
    /// Endpoints with a part that is worth naming, the largest first.
    fn main_endpoints(&self) -> Vec<String> {
        let all = self.weight.sum.max(1) as f64;
        let mut endpoints: Vec<(&String, &u64)> = (self.endpoints.iter())
            .filter(|(_, ns)| **ns as f64 / all >= ENDPOINT_PART)
            .collect();
        endpoints.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
        let names = endpoints.into_iter().map(|(name, _)| name.clone());
        names.collect()
    }

    /// Whether findings of other rules explain most of it.
    fn is_told(&self, has_reason: impl Fn(NodeId) -> bool) -> bool {
        let told = self.nodes.iter().filter(|(node, _)| has_reason(**node));
        let ns = told.fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
        ns as f64 >= TOLD * self.weight.sum.max(1) as f64
    }
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if facts.program_total.samples == 0 {
        return no_cpu(facts);
    }
    if !bound::matters(facts) {
        return Verdict::Found(Vec::new());
    }
    let is_service = libraries::is_costly(facts);
    let files = files::costly(facts);
    let is_file = |node| (files.iter()).any(|calls| facts.stacks.top_has(node, calls));
    // Parts of a library under a call that has its own finding.
    let told = costly_calls::told(facts);
    let is_part = |node: NodeId| told.get(node as usize) == Some(&true);
    let has_reason = |node: NodeId| is_service(node) || is_file(node) || is_part(node);
    let mut places: Vec<(Place, Spent)> = spent(facts).into_iter().collect();
    let spins = spinning::places(facts);
    let is_spin = |place: &Place| match place {
        Place::Method(method) => spins.contains(method),
        Place::Library(_) => false,
    };
    places.retain(|(place, spent)| !is_spin(place) && !spent.is_told(has_reason));
    places.sort_by_key(|(_, spent)| std::cmp::Reverse(spent.weight.sum));
    places.retain(|(_, spent)| bound::is_worth(facts, &spent.weight));
    let found = places.into_iter().filter_map(|(place, spent)| {
        let share = Share::sampled(&spent.weight, &facts.cpu_total, facts.cpu_name());
        let is_large = share.is_at_least(SHARE, SURELY, SAMPLES);
        is_large.then_some((place, spent, share))
    });
    let found: Vec<(Place, Spent, Share)> = found.take(MOST).collect();
    let advised = match found.is_empty() {
        true => Vec::new(),
        false => advised(facts),
    };
    let found = found.into_iter();
    let found = found.map(|(place, spent, share)| finding(facts, place, &spent, share, &advised));
    Verdict::Found(found.collect())
}

fn spent(facts: &Facts<'_>) -> BTreeMap<Place, Spent> {
    let mut places: BTreeMap<Place, Spent> = BTreeMap::new();
    let stacks = &facts.stacks;
    let seen = || {
        let nodes = facts.program_cpu.iter().zip(0..);
        nodes.filter(|(weight, _)| weight.samples > 0)
    };
    // A program of the JDK's own, such as javac, has no other methods to name.
    let is_of_jdk = !seen().any(|(_, node)| stacks.is_of_program(node));
    let place = |node| {
        let Some(method) = stacks.place(node) else {
            let library = stacks.library_of_thread(node);
            return library.map(|(library, _)| Place::Library(library));
        };
        let is_wanted = is_of_jdk || stacks.is_of_program(node);
        is_wanted.then_some(Place::Method(method))
    };
    for (weight, node) in seen() {
        let Some(place) = place(node) else {
            continue;
        };
        let spent = places.entry(place).or_default();
        spent.weight += weight;
        *spent.lines.entry(stacks.line(node)).or_default() += weight.sum;
        *spent.nodes.entry(node).or_default() += weight.sum;
        if let Some(leaf) = stacks.leaf(node) {
            *spent.leaves.entry(leaf).or_default() += weight.sum;
        }
        for library in stacks.libraries_on_top(node) {
            let part = |is_of| if is_of { weight.sum } else { 0 };
            let sum = spent.libraries.entry(library.name).or_default();
            sum.ns += weight.sum;
            sum.own_ns += part(library.is_innermost);
            sum.nameless_ns += part(library.has_nameless);
        }
    }
    for sample in facts.profile.samples() {
        let endpoint = sample.context.and_then(|id| facts.profile.endpoint(id));
        let (Some(endpoint), Some(place)) = (endpoint, place(sample.node)) else {
            continue;
        };
        if let Some(spent) = places.get_mut(&place) {
            *spent.endpoints.entry(endpoint.to_owned()).or_default() += sample.weight;
        }
    }
    places
}

fn largest<K: Copy>(sums: &BTreeMap<K, u64>) -> Option<(K, u64)> {
    let most = sums.iter().max_by_key(|(_, ns)| **ns)?;
    Some((*most.0, *most.1))
}

fn finding(
    facts: &Facts<'_>,
    place: Place,
    spent: &Spent,
    share: Share,
    advised: &[u32],
) -> Finding {
    let name = name(facts, place, spent);
    let all = spent.weight.sum.max(1) as f64;
    let line = largest(&spent.lines).filter(|(line, _)| *line > 0);
    let at = line.map_or(String::new(), |(line, ns)| {
        format!(", {} of it at line {line}", percent(ns as f64 / all))
    });
    let leaf = largest(&spent.leaves).filter(|(leaf, _)| Place::Method(*leaf) != place);
    let leaf = leaf.map(|(leaf, ns)| (facts.stacks.name(leaf), ns as f64 / all));
    let inside = inside(facts, place, spent).map_or(String::new(), |(inside, ns)| {
        format!("; {} of it inside {inside}", percent(ns as f64 / all))
    });
    let endpoints = spent.main_endpoints();
    let requests = match endpoints.is_empty() {
        true => String::new(),
        false => format!(", for {}", some_of(&endpoints)),
    };
    let node = largest(&spent.nodes).map_or(0, |(node, _)| node);
    let whose = whose(facts, place);
    // The JDK's recorder counts samples of some threads in Java code (jdk.ExecutionSample), which
    // is not their CPU time, nor all of the process's.
    let is_time = facts.profile.unit() == Unit::Nanoseconds;
    let (of, sure, because) = match is_time {
        true => (
            "CPU time is spent",
            Sure::High,
            "samples are spread evenly over CPU time",
        ),
        false => (
            "samples are",
            Sure::Medium,
            "samples were counted, which is not CPU time: they leave out native code, the JVM's \
             own code and filtered code",
        ),
    };
    Finding {
        rule: "",
        what: format!(
            "{} of the {of} in {name}{at}{requests}",
            percent(share.value)
        ),
        weight: facts.lost_on_processors(&share),
        evidence: vec![Evidence {
            text: format!("{}{inside}", whose.frame()),
            view: View {
                endpoint: endpoints.first().filter(|_| endpoints.len() == 1).cloned(),
                focus: focus(facts, place, node),
                ..View::default()
            },
            stack: facts.stacks.shown(node),
        }],
        remedy: match whose {
            Whose::Program => remedy(&name, advice(facts, spent, leaf.as_ref(), advised)),
            Whose::Library => of_other_library(&name),
            Whose::Native => of_library(&name),
        },
        sure,
        because: because.to_owned(),
        share,
    }
}

/// Where most of the time below the place is, in words: the innermost method, or a library as a
/// whole.
fn inside(facts: &Facts<'_>, place: Place, spent: &Spent) -> Option<(String, u64)> {
    let stacks = &facts.stacks;
    let leaf = largest(&spent.leaves).filter(|(leaf, _)| Place::Method(*leaf) != place);
    let of_leaf = leaf.map_or(0.0, |(_, ns)| ns as f64);
    let nameless = leaf.and_then(|(leaf, _)| stacks.nameless(leaf));
    let nameless = nameless.and_then(|leaf| stacks.library_of(leaf));
    let most = spent.libraries.values().map(|it| it.ns).max().unwrap_or(0);
    let is_large = |it: &InLibrary| it.ns as f64 >= INNER_PART * most as f64;
    let large = spent.libraries.iter().filter(|(_, it)| is_large(it));
    let large = large.max_by_key(|(_, it)| it.own_ns);
    let large = large.filter(|(_, it)| of_leaf < LEAF_PART * it.ns as f64);
    let of_leaf = || spent.libraries.get_key_value(&nameless?);
    let library = large.or_else(of_leaf);
    match library {
        Some((library, _)) if Place::Library(*library) == place => None,
        Some((library, it)) => Some((stacks.library_name(*library, it.is_nameless()), it.ns)),
        None => leaf.map(|(leaf, ns)| (stacks.name(leaf), ns)),
    }
}

/// A place in words.
fn name(facts: &Facts<'_>, place: Place, spent: &Spent) -> String {
    match place {
        Place::Method(method) => facts.stacks.name(method),
        Place::Library(library) => {
            let is_nameless = spent
                .libraries
                .get(&library)
                .is_some_and(InLibrary::is_nameless);
            facts.stacks.library_name(library, is_nameless)
        }
    }
}

fn focus(facts: &Facts<'_>, place: Place, node: NodeId) -> Option<Focus> {
    let method = match place {
        Place::Method(method) => Some(method),
        Place::Library(_) => facts
            .stacks
            .library_of_thread(node)
            .map(|(_, method)| method),
    };
    facts.stacks.focus(method?)
}

/// By method: the entries of [`ADVICE`] about it, as bits.
fn advised(facts: &Facts<'_>) -> Vec<u32> {
    let methods = 0..facts.profile.methods().len();
    let bits = methods.map(|method| {
        let name = facts.stacks.name(method as MethodId);
        let known = (ADVICE.iter().enumerate()).filter(|(_, (start, _))| name.starts_with(start));
        known.fold(0, |bits, (place, _)| bits | bit(place))
    });
    bits.collect()
}

fn bit(place: usize) -> u32 {
    1u32.checked_shl(place as u32).unwrap_or(0)
}

/// Advice for the innermost frame, or for the frames above the program's in most of the time.
fn advice(
    facts: &Facts<'_>,
    spent: &Spent,
    leaf: Option<&(String, f64)>,
    advised: &[u32],
) -> Option<&'static str> {
    let of_leaf =
        leaf.and_then(|(leaf, _)| ADVICE.iter().find(|(start, _)| leaf.starts_with(start)));
    let by_frames = || {
        let mut sums = vec![0u64; ADVICE.len()];
        for (node, ns) in &spent.nodes {
            let bits = facts.stacks.top_bits(*node, advised);
            for (place, sum) in sums.iter_mut().enumerate() {
                if bits & bit(place) != 0 {
                    *sum = sum.saturating_add(*ns);
                }
            }
        }
        let is_most = |ns: u64| ns as f64 >= 0.5 * spent.weight.sum as f64;
        let mut sums = ADVICE.iter().zip(sums);
        sums.find(|(_, ns)| is_most(*ns)).map(|(known, _)| known)
    };
    of_leaf.or_else(by_frames).map(|(_, advice)| *advice)
}

/// The code that a place belongs to.
enum Whose {
    /// The program's own.
    Program,
    /// A library's, on the JVM. If the program's method calls it, that is mostly a costly call.
    Library,
    /// A native library's, in whose thread no Java code runs.
    Native,
}

impl Whose {
    fn frame(&self) -> &'static str {
        match self {
            Whose::Program => "innermost application frame of its stacks",
            Whose::Library => "innermost frame outside the JDK, of a library",
            Whose::Native => "outermost library of its threads' stacks",
        }
    }
}

fn whose(facts: &Facts<'_>, place: Place) -> Whose {
    let Place::Method(method) = place else {
        return Whose::Native;
    };
    let own = own_methods(facts.profile);
    // The JDK's methods have a place only if the program is one of the JDK's own.
    match own.get(method as usize) == Some(&true) || !facts.stacks.is_app(method) {
        true => Whose::Program,
        false => Whose::Library,
    }
}

fn of_other_library(name: &str) -> String {
    format!(
        "{} is a library's: ask the library for less, or change its settings",
        short(name)
    )
}

fn of_library(name: &str) -> String {
    format!(
        "give {name} less to do, or fewer threads; with its debug symbols installed, the functions \
         have names"
    )
}

fn remedy(place: &str, advice: Option<&'static str>) -> String {
    let place = short(place);
    match advice {
        Some(SENDS) => format!(
            "the kernel already sends the files of {place} without copies: send fewer bytes \
             (compressed files, ranges, caches closer to the clients)"
        ),
        Some(advice) => format!("make {place} cheaper: {advice}; or call it less often"),
        None => format!("make {place} cheaper or call it less often: cache its results, do less"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn the_programs_method_is_named_with_line_endpoint_and_advice() {
        let mut art = Art::default();
        let stack = "libz.so.1.deflate[native];java.util.zip.Deflater.deflate;app.Pack.all:12";
        art.cpu("w", "GET /p", stack, 60, 10);
        art.cpu("w", "GET /p", "app.Other.thing", 5, 10);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        let what = &found[0].what;
        assert!(
            what.contains("app.Pack.all, 100 % of it at line 12, for GET /p"),
            "{what}"
        );
        assert!(found[0].remedy.contains("compression level"), "{found:?}");
    }

    /// H2's server in the application's process.
    #[test]
    fn frame_of_a_library_is_no_application_frame() {
        let hot = |main: &str, stack: &str| {
            let mut art = Art::default();
            art.builder.info.java_arguments = main.to_owned();
            art.cpu("w", "", stack, 60, 10);
            // Less than a finding needs.
            art.cpu("main", "", "shop.Main.main", 1, 10);
            let mut found = art.found(check);
            assert_eq!(found.len(), 1, "{stack}: {found:?}");
            let found = found.remove(0);
            (found.evidence[0].text.clone(), found.remedy)
        };
        for main in ["shop.Main 80", ""] {
            let server = "java.net.Socket.write;org.h2.value.Transfer.flush;org.h2.Server.run";
            let (text, remedy) = hot(main, server);
            let expected = "innermost frame outside the JDK, of a library";
            assert!(text.starts_with(expected), "{text}");
            assert!(
                remedy.starts_with("Transfer.flush is a library's"),
                "{remedy}"
            );
            let (text, remedy) = hot(main, "shop.Orders.all;org.h2.Trigger.fire");
            assert!(text.starts_with("innermost application frame"), "{text}");
            assert!(remedy.starts_with("make Orders.all cheaper"), "{remedy}");
        }
    }

    #[test]
    fn samples_that_only_count_are_no_cpu_time() {
        let mut art = Art::default();
        art.builder.unit = Unit::Samples;
        art.builder.info.profiler_version.clear();
        art.cpu("w", "", "app.Pack.all:12", 60, 10);
        let found = &art.found(check)[0];
        assert!(
            found
                .what
                .starts_with("100 % of the samples are in app.Pack.all"),
            "{found:?}"
        );
        assert_eq!(found.sure, Sure::Medium);
        assert!(!found.because.contains("CPU time,"), "{found:?}");
    }

    #[test]
    fn middle_frames_of_libraries_give_advice() {
        let cases = [
            (
                "libc.so.6.sendfile[native];sun.nio.ch.FileDispatcherImpl.transferTo;app.Send.all",
                "the kernel already sends the files of Send.all",
            ),
            (
                "[stub].unsafe_setmemory[native];java.nio.ByteBuffer.allocateDirect;app.Send.file",
                "reuse direct buffers",
            ),
            (
                "java.util.Properties$LineReader.readLine;java.util.Properties.load0;\
                 java.util.Properties.load;app.Config.get",
                "load the file once",
            ),
        ];
        for (stack, expected) in cases {
            let mut art = Art::default();
            art.cpu("w", "", stack, 60, 10);
            let found = art.found(check);
            assert!(found[0].remedy.contains(expected), "{found:?}");
        }
    }

    #[test]
    fn library_without_symbols_is_named_with_its_whole_share() {
        let mut art = Art::default();
        let method = "app.Model.run";
        for address in 0..18 {
            let stack = format!("libonnx.so.{address:#x}[native];{method}");
            art.cpu("w", "", &stack, 5, 10);
        }
        let in_kernel =
            format!("[kernel].finish_task_switch[native];libonnx.so.0x1[native];{method}");
        art.cpu("w", "", &in_kernel, 7, 10);
        art.cpu("w", "", method, 3, 10);
        let evidence = &art.found(check)[0].evidence[0].text;
        assert!(
            evidence.ends_with("; 97 % of it inside libonnx.so (no symbols)"),
            "{evidence}"
        );
    }

    #[test]
    fn function_inside_a_library_without_symbols_is_named() {
        for (count, expected) in [
            (60, "60 % of it inside libblas.so.gemm"),
            (30, "libonnx.so ("),
        ] {
            let mut art = Art::default();
            let library = "libonnx.so.0x1[native];app.Model.run";
            art.cpu(
                "w",
                "",
                &format!("libblas.so.gemm[native];{library}"),
                count,
                10,
            );
            art.cpu(
                "w",
                "",
                &format!("libonnx.so.0x2[native];{library}"),
                20,
                10,
            );
            for other in 0..80 - count {
                let stack = format!("libc.so.6.f{other}[native];{library}");
                art.cpu("w", "", &stack, 1, 10);
            }
            let evidence = &art.found(check)[0].evidence[0].text;
            assert!(evidence.contains(expected), "{evidence}");
        }
    }

    /// Evidence of the hot path with stacks below one method, each with a number of samples.
    fn evidence(stacks: &[(String, u64)]) -> String {
        let mut art = Art::default();
        for (stack, count) in stacks {
            art.cpu("w", "", &format!("{stack}app.Model.run"), *count, 10);
        }
        art.found(check)[0].evidence[0].text.clone()
    }

    #[test]
    fn kernel_does_not_take_the_place_of_a_library() {
        let kernel = "[kernel].finish_task_switch[native];libc.so.6.sched_yield[native];";
        let mut stacks: Vec<(String, u64)> = (0..30)
            .map(|at| (format!("libonnx.so.op{at}[native];"), 3))
            .collect();
        stacks.push((format!("{kernel}libonnx.so.wait[native];"), 7));
        stacks.push((String::new(), 3));
        let told = evidence(&stacks);
        assert!(told.ends_with("; 97 % of it inside libonnx.so"), "{told}");
        // The function that calls the kernel is the innermost one.
        let told = evidence(&[(kernel.to_owned(), 50), (String::new(), 20)]);
        assert!(told.ends_with("inside libc.so.6.sched_yield"), "{told}");
    }

    #[test]
    fn inner_one_of_two_libraries_is_named() {
        let wrapper = "libwrap_jni.so.run[native];";
        let stacks: Vec<(String, u64)> = (0..30)
            .map(|at| (format!("libonnx.so.{at:#x}[native];{wrapper}"), 3))
            .chain([(wrapper.to_owned(), 2), ("libz.so.1.x[native];".into(), 1)])
            .collect();
        let told = evidence(&stacks);
        assert!(told.ends_with("inside libonnx.so (no symbols)"), "{told}");
    }

    #[test]
    fn library_in_threads_of_its_own_is_a_hot_path() {
        let start = "libc.so.6.start_thread[native];libc.so.6.clone3[native]";
        let cxx = format!("libstdc++.so.6.[thread start][native];{start}");
        let mut art = Art::default();
        for address in 0..18 {
            let own = format!("libonnx.so.{address:#x}[native];{cxx}");
            art.cpu("pool-1", "", &own, 3, 10);
            let memory = format!("libc.so.6.memcpy[native];{own}");
            art.cpu("pool-2", "", &memory, 2, 10);
        }
        art.cpu("w", "", "app.Other.run", 10, 10);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        let what = "90 % of the CPU time is spent in libonnx.so (no symbols)";
        assert_eq!(found[0].what, what);
        assert!(found[0].remedy.contains("debug symbols"), "{found:?}");
        let focus = Some(Focus::Method("libonnx.so.[no symbol]".to_owned()));
        assert_eq!(found[0].evidence[0].view.focus, focus);
    }

    #[test]
    fn library_that_runs_in_a_pool_is_named_not_the_pool() {
        let mut art = Art::default();
        let pool = "libgomp.so.1.gomp_thread_start[native];libc.so.6.clone3[native]";
        art.cpu("w", "", &format!("libmkl.so.gemm[native];{pool}"), 60, 10);
        art.cpu(
            "w",
            "",
            &format!("libgomp.so.1.spin[native];{pool}"),
            30,
            10,
        );
        let whats: Vec<String> = art.found(check).into_iter().map(|it| it.what).collect();
        let expected = ["67 %", "33 %"]
            .into_iter()
            .zip(["libmkl.so", "libgomp.so.1"]);
        let expected =
            expected.map(|(part, library)| format!("{part} of the CPU time is spent in {library}"));
        assert_eq!(whats, expected.collect::<Vec<_>>());
    }

    #[test]
    fn threads_of_the_runtime_are_no_hot_path() {
        let mut art = Art::default();
        let stack = "libjvm.so.Thread::run[native];libc.so.6.clone3[native]";
        art.cpu("unnamed", "", stack, 60, 10);
        art.cpu("other", "", "libc.so.6.clone3[native]", 60, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn program_of_the_jdk_has_a_hot_path() {
        let javac = "com.sun.tools.javac.comp.Attr.visit;com.sun.tools.javac.Main.run";
        let mut art = Art::default();
        art.cpu("main", "", javac, 60, 10);
        let found = art.found(check);
        let what = "100 % of the CPU time is spent in com.sun.tools.javac.comp.Attr.visit";
        assert!(found[0].what.starts_with(what), "{found:?}");
        // The JDK's own threads do not count as the application.
        art.cpu("main", "", "app.Main.run", 20, 10);
        let found = art.found(check);
        assert!(
            found.iter().all(|it| !it.what.contains("javac")),
            "{found:?}"
        );
    }

    #[test]
    fn a_flat_profile_has_no_hot_path() {
        let mut art = Art::default();
        for method in 0..20 {
            art.cpu("w", "", &format!("app.M{method}.run"), 10, 10);
        }
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn rarely_running_method_is_reported_for_requests_only() {
        for (endpoint, expected) in [("", 0), ("GET /p", 1)] {
            let mut art = Art::default();
            art.cpu("w", endpoint, "app.Pack.all", 25, 10);
            for method in 0..20 {
                art.cpu("w", endpoint, &format!("app.M{method}.run"), 4, 10);
            }
            art.look("w", endpoint, "socket", "app.Call.ask", 10, 20);
            assert_eq!(art.found(check).len(), expected, "{endpoint}");
        }
    }

    #[test]
    fn a_program_that_waits_is_not_bound_by_processors() {
        let mut art = Art::default();
        art.cpu("w", "GET /p", "app.Pack.all", 40, 10);
        art.look("w", "GET /p", "socket", "app.Call.ask", 400, 20);
        assert_eq!(art.found(check), []);
    }
}

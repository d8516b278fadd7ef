//! The same file read again and again, and programs whose processor time goes to reading or writing
//! files.

use super::event_loops::FILE_CALLS;
use super::{no_cpu, no_wall};
use crate::evidence::{Entry, Facts};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{percent, short};
use crate::share::Share;
use crate::stacks::Heaviest;
use crate::waits::{Wait, Whose, gather};
use dwell_profile::{MethodId, NodeId};
use std::collections::BTreeMap;

/// A share of time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.10;
const SURELY: f64 = 0.04;
const SAMPLES: u64 = 8;
/// A file is read repeatedly if this number of waits is for it, over this part of the recording.
const WAITS: u64 = 6;
const SPREAD: f64 = 0.3;
const MOST: usize = 2;

/// Packages whose methods do nothing but read and write for their callers.
const MOVERS: &[&str] = &[
    "java.io.",
    "java.nio.",
    "jdk.internal.",
    "sun.nio.ch.",
    "sun.nio.fs.",
];

/// Methods of frameworks for that.
const SENDERS: &[(&str, &str)] = &[
    (
        "io.vertx.",
        "a StaticHandler, or HttpServerResponse.sendFile",
    ),
    ("io.netty.", "a DefaultFileRegion"),
    (
        "org.springframework.",
        "a FileSystemResource, or sendFile of the server",
    ),
    ("org.apache.catalina.", "the default servlet with sendfile"),
    ("org.eclipse.jetty.", "a ResourceHandler"),
];

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if facts.cpu_total.samples == 0 {
        return no_cpu(facts);
    }
    let mut found = by_cpu(facts);
    if facts.profile.has_wall() {
        found.extend(by_waits(facts));
    } else if found.is_empty() {
        return no_wall(facts);
    }
    found.truncate(MOST);
    Verdict::Found(found)
}

/// Operations on files that use CPU time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Reading,
    Writing,
}

impl Way {
    const ALL: [Way; 2] = [Way::Reading, Way::Writing];

    fn calls(self, facts: &Facts<'_>) -> Set {
        let is_write = |call: &&str| call.contains("write");
        let calls = FILE_CALLS.iter().copied();
        let calls: Vec<&str> = match self {
            Way::Reading => calls.filter(|call| !is_write(call)).collect(),
            Way::Writing => calls.filter(is_write).collect(),
        };
        Set::new(facts.profile, &calls)
    }

    fn word(self) -> &'static str {
        match self {
            Way::Reading => "reading",
            Way::Writing => "writing",
        }
    }

    fn evidence(self) -> &'static str {
        match self {
            Way::Reading => "the kernel copies data from its page cache",
            Way::Writing => "the kernel copies data to its page cache, call by call",
        }
    }

    fn remedy(self, place: &str) -> String {
        match self {
            Way::Reading => format!(
                "read it once and keep it, or send the file without a copy through the heap ({}) \
                 instead of reading it in {}",
                sending(place),
                short(place)
            ),
            Way::Writing => format!(
                "write larger pieces and less often: through a buffer that {} flushes when it is \
                 full (BufferedOutputStream, a ByteBuffer of 64 KiB)",
                short(place)
            ),
        }
    }
}

/// Where files are read from the page cache or written to it, which costs processor time.
fn by_cpu(facts: &Facts<'_>) -> Vec<Finding> {
    let calls = Way::ALL.map(|way| (way, way.calls(facts)));
    let mut places: BTreeMap<(MethodId, Way), Heaviest> = BTreeMap::new();
    for (node, weight) in facts.program_cpu.iter().enumerate() {
        let node = node as NodeId;
        if weight.samples == 0 {
            continue;
        }
        let works = |(_, calls): &&(Way, Set)| facts.stacks.works_in(node, calls, MOVERS);
        let Some((way, _)) = calls.iter().find(works) else {
            continue;
        };
        if let Some(place) = facts.stacks.place(node) {
            places.entry((place, *way)).or_default().add(node, weight);
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.weight.sum));
    let mut found = Vec::new();
    for ((place, way), Heaviest { weight, node, .. }) in places {
        let share = Share::sampled(&weight, &facts.cpu_total, facts.cpu_name());
        if !share.is_at_least(SHARE, SURELY, SAMPLES) {
            break;
        }
        let place = facts.stacks.name(place);
        let path = path_used_in(facts, &place);
        let is_known = path.is_some();
        let which = path.unwrap_or_else(|| "files".to_owned());
        found.push(Finding {
            rule: "",
            what: format!(
                "{} of {} goes to {} {which} in {place}",
                percent(share.value),
                facts.cpu_name(),
                way.word()
            ),
            weight: facts.lost_on_processors(&share),
            share,
            evidence: vec![Evidence {
                text: way.evidence().to_owned(),
                view: View {
                    focus: facts.stacks.focus_of(node),
                    ..View::default()
                },
                stack: facts.stacks.shown(node),
            }],
            remedy: way.remedy(&place),
            sure: match is_known {
                true => Sure::High,
                false => Sure::Medium,
            },
            because: match is_known {
                true => "the path comes from waits in the same method".to_owned(),
                false => "the cost is certain; the recording does not show whether it is the same \
                 file"
                    .to_owned(),
            },
        });
    }
    found
}

/// The calls that read files, where they cost too much.
pub(super) fn costly(facts: &Facts<'_>) -> Option<Set> {
    (!by_cpu(facts).is_empty()).then(|| Set::new(facts.profile, FILE_CALLS))
}

/// The call that sends a file without reading it, for this place.
fn sending(place: &str) -> &'static str {
    let known = SENDERS.iter().find(|(start, _)| place.starts_with(start));
    known.map_or("FileChannel.transferTo", |(_, sender)| sender)
}

/// The file that this method was seen to wait for, if it was always the same.
fn path_used_in(facts: &Facts<'_>, place: &str) -> Option<String> {
    let mut paths = facts.entries.iter().filter_map(|entry| {
        let is_here = entry.cause == "file" && facts.stacks.place_name(entry.node) == place;
        is_here.then(|| path_of(facts, entry)).flatten()
    });
    let first = paths.next()?;
    paths.all(|path| path == first).then_some(first)
}

fn path_of(facts: &Facts<'_>, entry: &Entry<'_>) -> Option<String> {
    let path = facts.profile.names().text(entry.detail?);
    path.starts_with('/').then(|| path.to_owned())
}

/// Where threads wait for the same file.
fn by_waits(facts: &Facts<'_>) -> Vec<Finding> {
    let waits = gather(facts, |entry| {
        let path = path_of(facts, entry)?;
        (entry.cause == "file").then(|| (path, facts.stacks.place_name(entry.node)))
    });
    let mut found = Vec::new();
    for ((path, place), wait) in waits {
        let Some(whose) = wait.whose(facts).filter(|whose| whose.matters(facts)) else {
            continue;
        };
        let share = wait.share(facts, &whose);
        if share.is_at_least(SHARE, SURELY, SAMPLES) && is_again(facts, &wait) {
            found.push(again(facts, &path, &place, &wait, &whose, share));
        }
    }
    found
}

fn is_again(facts: &Facts<'_>, wait: &Wait) -> bool {
    let span_ns = wait.last_ns.saturating_sub(wait.first_ns) as f64;
    wait.events >= WAITS && span_ns >= SPREAD * facts.profile.info().duration_ns as f64
}

fn again(
    facts: &Facts<'_>,
    path: &str,
    place: &str,
    wait: &Wait,
    whose: &Whose,
    share: Share,
) -> Finding {
    let mut evidence = wait.evidence(facts, whose, wait.seen());
    evidence.view.measure = Measure::Wall;
    Finding {
        rule: "",
        what: format!(
            "{} for the same file {path} in {place}",
            whose.spends("wait", share.value)
        ),
        weight: wait.gravity(facts),
        share,
        evidence: vec![evidence],
        remedy: format!(
            "keep what {} reads in memory, or hold the file open and write in larger pieces",
            short(place)
        ),
        sure: Sure::High,
        because: "the kernel reports the file, and the waits are spread over the recording"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    const READ: &str = "java.io.FileInputStream.readBytes;app.Config.load";

    #[test]
    fn a_file_read_again_and_again_is_named() {
        let mut art = Art::default();
        for _ in 0..10 {
            art.look("w-1", "GET /c", "file", READ, 2, 20)
                .detail("/etc/app.conf");
        }
        art.cpu("w-1", "GET /c", "app.Work.run", 20, 10);
        let found = art.found(check);
        assert!(
            found[0].what.contains("/etc/app.conf in app.Config.load"),
            "{found:?}"
        );
    }

    #[test]
    fn one_long_read_is_no_repetition() {
        let mut art = Art::default();
        art.look("w-1", "GET /c", "file", READ, 20, 20)
            .detail("/data/big");
        art.cpu("w-1", "GET /c", "app.Work.run", 20, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn reading_from_the_page_cache_is_cpu_time() {
        let mut art = Art::default();
        art.cpu("w-1", "GET /c", READ, 40, 10);
        art.cpu("w-1", "GET /c", "app.Work.run", 60, 10);
        art.look("w-1", "GET /c", "socket", "app.Work.run", 1, 20);
        let found = art.found(check);
        assert!(found[0].what.contains("40 % of the CPU time"), "{found:?}");
        assert_eq!(found[0].sure, Sure::Medium);
    }

    #[test]
    fn work_on_read_data_is_not_reading() {
        let mut art = Art::default();
        let inflating = "java.util.zip.Inflater.inflate;java.util.zip.InflaterInputStream.read;\
                         java.io.InputStream.transferTo;java.nio.file.Files.copy;app.Unpack.run";
        let reading = "sun.nio.ch.FileDispatcherImpl.read0;java.nio.file.Files.copy;app.Copy.run";
        art.cpu("w-1", "", inflating, 40, 10);
        art.cpu("w-2", "", reading, 30, 10);
        art.look("w-1", "", "socket", "app.Work.run", 1, 20);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.ends_with("in app.Copy.run"), "{found:?}");
    }

    #[test]
    fn writing_is_not_called_reading() {
        let mut art = Art::default();
        art.cpu(
            "w-1",
            "",
            "java.io.FileOutputStream.write;app.Log.line",
            40,
            10,
        );
        art.look("w-1", "", "socket", "app.Work.run", 1, 20);
        let found = art.found(check);
        assert!(
            found[0].what.contains("writing files in app.Log.line"),
            "{found:?}"
        );
        assert!(found[0].remedy.contains("larger pieces"), "{found:?}");
    }

    #[test]
    fn the_way_of_the_framework_is_named() {
        let mut art = Art::default();
        let read = "java.nio.file.Files.readAllBytes;io.vertx.core.file.impl.FileSystemImpl$1.run";
        art.cpu("vert.x-internal-blocking-1", "", read, 40, 10);
        art.look("w-1", "", "socket", "app.Work.run", 1, 20);
        let found = art.found(check);
        assert!(found[0].remedy.contains("a StaticHandler"), "{found:?}");
    }
}

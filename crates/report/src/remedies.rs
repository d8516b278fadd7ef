//! Reasons of late threads and of safepoints, with remedies. Words only: it prints nothing.

use dwell_explain::Operation;
use dwell_profile::{FrameKind, Late, Profile};

use crate::plain::plain;

/// Known reasons for a late thread, with remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    Loop,
    Copy,
    Interpreter,
    Vm,
    NoProcessor,
    Page,
    Unknown,
}

impl Why {
    /// Of a late thread, by its state and its youngest frame.
    pub(crate) fn of(profile: &Profile, late: &Late) -> Why {
        match profile.names().text(late.state) {
            "runnable" => return Why::NoProcessor,
            "page-fault" => return Why::Page,
            // Interpreted code has the JVM copy.
            "vm" if is_copying(profile, late) => return Why::Copy,
            "vm" => return Why::Vm,
            _ => {}
        }
        let leaf = late.node.and_then(|node| profile.tree().stack(node).next());
        let kind = leaf.and_then(|frame| profile.frames().get(frame as usize));
        match kind.map(|frame| frame.kind) {
            Some(FrameKind::C1 | FrameKind::C2 | FrameKind::Inlined) => Why::Loop,
            Some(FrameKind::Stub) => Why::Copy,
            Some(FrameKind::Interpreted) => Why::Interpreter,
            Some(FrameKind::Vm | FrameKind::Native) => Why::Vm,
            _ => Why::Unknown,
        }
    }

    /// A word or two, for a table.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Why::Loop => "no poll",
            Why::Copy => "copying",
            Why::Interpreter => "interpreted",
            Why::Vm => "in the VM",
            Why::NoProcessor => "no CPU",
            Why::Page => "page fault",
            Why::Unknown => "unknown",
        }
    }

    /// Explanation and remedy.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Why::Loop => {
                "a compiled loop that never checks whether to stop: counted loops over an int have \
                 no safepoint poll. Use a long index, call the body from an outer loop over \
                 parts, or run with -XX:+UseCountedLoopSafepoints \
                 (-XX:LoopStripMiningIter=1000 keeps it cheap). G1, ZGC and Shenandoah have both \
                 by default. Serial and Parallel do not. The JVM selects Serial on machines with \
                 one CPU, or with less than 1792 MB of memory."
            }
            Why::Copy => {
                "a copy or a fill of a large array, which cannot be interrupted. Copy in parts of \
                 some megabytes."
            }
            Why::Interpreter => {
                "interpreted code, which polls at every branch and return: short delays come from \
                 it, longer ones from the code that it called."
            }
            Why::Vm => {
                "the JVM itself, for this thread: allocation of large arrays (which are cleared), \
                 linking and initialising classes, exceptions with deep stacks, JNI."
            }
            Why::NoProcessor => {
                "the thread was running when the safepoint was requested, and lost its CPU: there \
                 are more runnable threads than CPUs, or the control group's limit is used up. Use \
                 smaller pools or more CPUs."
            }
            Why::Page => {
                "the thread waited for a page of memory: swapping, files mapped into memory, new \
                 huge pages. Avoid swap; -XX:+AlwaysPreTouch touches the heap at the start."
            }
            Why::Unknown => "the thread's place is unknown.",
        }
    }
}

/// Whether the youngest Java frame is that of the method that copies arrays: above it there may be
/// functions of the JVM. The method is native, and runs interpreted or in a wrapper.
fn is_copying(profile: &Profile, late: &Late) -> bool {
    let mut frames = late
        .node
        .into_iter()
        .flat_map(|node| profile.tree().stack(node));
    let mut is_copy = |frame| {
        let method = profile.method_of(frame).map(|(method, _)| method);
        method.is_some_and(|method| profile.method_name(method) == "java.lang.System.arraycopy")
    };
    let is_java = |frame: u32| {
        let kind = profile.frames().get(frame as usize).map(|it| it.kind);
        kind.is_some_and(FrameKind::is_java)
    };
    frames
        .find(|frame| is_java(*frame) || is_copy(*frame))
        .is_some_and(&mut is_copy)
}

/// A compiled method with a loop that does not poll, and the method that it was compiled into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loop {
    method: String,
    within: Option<String>,
}

impl Loop {
    /// Of a thread that was late for such a loop.
    pub(crate) fn of(profile: &Profile, late: &Late) -> Option<Loop> {
        if Why::of(profile, late) != Why::Loop {
            return None;
        }
        let frames = profile.tree().stack(late.node?);
        let mut frames = frames.filter_map(|frame| {
            let kind = profile.frames().get(frame as usize)?.kind;
            let (method, _) = profile.method_of(frame)?;
            Some((kind, profile.method_name(method)))
        });
        let (kind, method) = frames.next()?;
        let is_root = |kind: &FrameKind| matches!(kind, FrameKind::C1 | FrameKind::C2);
        let within = match is_root(&kind) {
            true => None,
            false => frames
                .find(|(kind, _)| is_root(kind))
                .map(|(_, method)| method),
        };
        Some(Loop { method, within })
    }

    /// Flags that help without a change of the program.
    pub(crate) fn flags(&self) -> String {
        let method = plain(&self.method);
        let flag = |verb: &str, name: &str| {
            let pattern = pattern(name)?;
            Some(format!("-XX:CompileCommand={verb},{pattern}"))
        };
        let root = self.within.as_ref().unwrap_or(&self.method);
        let slow = match flag("exclude", root) {
            Some(flag) => format!("interpreted it polls everywhere and is slow: {flag}"),
            None => "interpreted it polls everywhere and is slow".to_owned(),
        };
        match &self.within {
            Some(within) => {
                let flag = flag("dontinline", &self.method);
                let flag = flag.map_or(String::new(), |flag| format!(": {flag}"));
                let within = plain(within);
                format!(
                    "{method} is compiled into {within}; compiled separately it polls when it \
                     returns{flag}; {slow}"
                )
            }
            None => format!("{method}: {slow}"),
        }
    }
}

/// A method as the JVM's flags name it; `None` if its name is not a plain one.
fn pattern(name: &str) -> Option<String> {
    let (class, method) = name.rsplit_once('.')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_$.".contains(c);
    let may_stand = class.chars().all(is_plain) && method.chars().all(is_plain);
    // A lambda's class has another name the next time.
    let lasts = !class.contains("$$Lambda");
    (may_stand && lasts).then(|| format!("{class}::{method}"))
}

/// Why a thread came late, and, of a loop, which.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reason {
    why: Why,
    of: Option<Loop>,
}

impl Reason {
    /// Of a late thread.
    pub(crate) fn of(profile: &Profile, late: &Late) -> Reason {
        Reason {
            why: Why::of(profile, late),
            of: Loop::of(profile, late),
        }
    }

    /// A word or two, as [`Why::word`].
    pub(crate) fn word(&self) -> &'static str {
        self.why.word()
    }

    /// Explanation and remedy, as [`Why::remedy`].
    pub(crate) fn remedy(&self) -> &'static str {
        self.why.remedy()
    }

    /// Flags that help without a change of the program; `None` unless it is a loop.
    pub(crate) fn flags(&self) -> Option<String> {
        self.of.as_ref().map(Loop::flags)
    }
}

/// Cause of long safepoints of this operation, and how to have fewer of them.
pub(crate) fn advice(operation: &str) -> Option<&'static str> {
    Some(match Operation::of(operation)? {
        Operation::Stacks => {
            "their stacks are walked, idle threads included, so each thread and each frame adds \
             time. Ask for some threads, for fewer frames, or less often; a profiler that takes \
             thread dumps does this all the time."
        }
        Operation::Deadlocks => {
            "the JVM searches the locks of all threads for deadlocks. Ask less often."
        }
        Operation::Heap => {
            "all objects of the heap are visited: a heap dump, a class histogram, or an agent \
             that requests objects."
        }
        Operation::Classes => {
            "an agent or a debugger changes classes, and compiled code that relies on them is \
             discarded."
        }
        Operation::Bias => {
            "locks biased to one thread are revoked: -XX:-UseBiasedLocking, the default since JDK \
             15."
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(method: &str, within: Option<&str>) -> String {
        Loop {
            method: method.to_owned(),
            within: within.map(str::to_owned),
        }
        .flags()
    }

    /// Why a thread is late that the recording calls so, with these frames, outermost first.
    fn why(state: &str, frames: &[(&str, &str, FrameKind)]) -> Why {
        let mut builder = dwell_profile::text_art::builder("a.A.x");
        let frames: Vec<_> = (frames.iter())
            .map(|(class, name, kind)| {
                let method = builder.method(class, name, "");
                builder.frame(method, 1, *kind)
            })
            .collect();
        let node = builder.stack(frames);
        let (state, operation) = (builder.name(state), builder.name("G1CollectFull"));
        builder.late = vec![Late {
            time_ns: 0,
            duration_ns: 1,
            safepoint: 1,
            operation,
            thread: 0,
            node: Some(node),
            state,
            held_ns: 1,
            is_last: true,
        }];
        let profile = builder.finish();
        Why::of(&profile, &profile.late()[0])
    }

    #[test]
    fn reason_of_late_thread_follows_from_state_and_place() {
        use FrameKind::{C2, Interpreted, Native, Stub, Vm};
        let run = ("a.B", "run", Interpreted);
        let compiled = ("a.B", "loop", C2);
        let copy = ("java.lang.System", "arraycopy", Native);
        let stub = ("[stub]", "jbyte_disjoint_arraycopy", Stub);
        let in_vm = ("libjvm.so", "_Copy_conjoint_jbytes", Vm);
        assert_eq!(why("java", &[run, compiled]), Why::Loop);
        assert_eq!(why("java", &[run]), Why::Interpreter);
        // Compiled code copies in a stub; interpreted code has the VM do it.
        assert_eq!(why("java", &[run, compiled, stub]), Why::Copy);
        assert_eq!(why("vm", &[run, copy, in_vm]), Why::Copy);
        assert_eq!(why("vm", &[run, copy]), Why::Copy);
        let interpreted = ("java.lang.System", "arraycopy", Interpreted);
        assert_eq!(why("vm", &[run, interpreted, in_vm]), Why::Copy);
        // Frames above the copy count, its callers do not.
        let within = ("a.B", "called", Interpreted);
        assert_eq!(why("vm", &[run, copy, within, in_vm]), Why::Vm);
        assert_eq!(why("vm", &[run, in_vm]), Why::Vm);
        assert_eq!(why("vm", &[("a.B", "arraycopy", Native), in_vm]), Why::Vm);
        // The kernel's account goes first.
        assert_eq!(why("runnable", &[run, copy, in_vm]), Why::NoProcessor);
        assert_eq!(why("page-fault", &[run, copy, in_vm]), Why::Page);
    }

    #[test]
    fn each_reason_has_a_word_and_a_remedy_of_its_own() {
        let all: [(Why, &str, &[&str]); 6] = [
            (
                Why::Loop,
                "no poll",
                &[
                    "long index",
                    "-XX:+UseCountedLoopSafepoints",
                    "-XX:LoopStripMiningIter=1000",
                    "Serial",
                ],
            ),
            (Why::Copy, "copying", &["parts of some megabytes"]),
            (Why::Interpreter, "interpreted", &["polls at every branch"]),
            (Why::Vm, "in the VM", &["large arrays", "initialising"]),
            (
                Why::NoProcessor,
                "no CPU",
                &["smaller pools or more CPUs", "control group"],
            ),
            (Why::Page, "page fault", &["swap", "AlwaysPreTouch"]),
        ];
        for (why, word, parts) in all {
            assert_eq!(why.word(), word);
            let missing = parts.iter().find(|part| !why.remedy().contains(**part));
            assert_eq!(missing, None, "{why:?}: {}", why.remedy());
        }
    }

    #[test]
    fn long_operations_at_safepoints_have_advice() {
        for (operation, part) in [
            ("ThreadDump", "fewer frames"),
            ("HeapDumper", "histogram"),
            ("RedefineClasses", "debugger"),
            ("BulkRevokeBias", "-XX:-UseBiasedLocking"),
        ] {
            let advice = advice(operation).unwrap_or_default();
            assert!(advice.contains(part), "{operation}: {advice}");
        }
        assert_eq!(advice("G1CollectFull"), None);
    }

    #[test]
    fn a_loop_in_its_own_method_can_only_be_interpreted() {
        let expected = "a.b.C.run: interpreted it polls everywhere and is slow: \
                        -XX:CompileCommand=exclude,a.b.C::run";
        assert_eq!(told("a.b.C.run", None), expected);
    }

    #[test]
    fn a_loop_that_was_inlined_need_not_be() {
        let text = told("a.b.C.scan", Some("a.b.C$D.all"));
        assert!(
            text.contains("-XX:CompileCommand=dontinline,a.b.C::scan;"),
            "{text}"
        );
        assert!(
            text.ends_with("-XX:CompileCommand=exclude,a.b.C$D::all"),
            "{text}"
        );
    }

    #[test]
    fn flags_never_name_unsupported_methods() {
        for method in [
            "a.B$$Lambda+0x00007f.run",
            "a.B.<init>",
            "a.B.x;rm",
            "none",
            "a.B\u{1b}.x",
        ] {
            let text = told(method, None);
            assert!(
                !text.contains("CompileCommand") && !text.contains('\u{1b}'),
                "{text}"
            );
        }
    }
}

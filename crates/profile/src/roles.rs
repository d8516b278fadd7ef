//! Attributes time to the program, or to the machinery around it (GC, JIT, VM, the profiler).
//!
//! Two tables of evidence: the outermost frames of a stack (a GC worker's loop is GC work whatever
//! the name of its thread), and, if these are not decisive, the thread's name.

use crate::frame::FrameKind;
use crate::profile::Profile;
use crate::sample::{Thread, Weight};
use crate::tree::CallTree;

/// The purpose of a sample's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The program's own threads.
    Program,
    /// Garbage collection.
    Gc,
    /// Compilation.
    Jit,
    /// Other work of the virtual machine.
    Vm,
    /// The profiler.
    Profiler,
}

impl Role {
    /// All roles, in the order of reports.
    pub const ALL: [Role; 5] = [Role::Program, Role::Gc, Role::Jit, Role::Vm, Role::Profiler];

    /// A word for people.
    pub fn label(self) -> &'static str {
        match self {
            Role::Program => "program",
            Role::Gc => "GC",
            Role::Jit => "JIT",
            Role::Vm => "VM",
            Role::Profiler => "profiler",
        }
    }
}

/// How much one role took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoleShare {
    /// The role.
    pub role: Role,
    /// Its samples.
    pub weight: Weight,
}

/// The kernel keeps this many bytes of a thread's name.
const OS_NAME_MAX: usize = 15;
/// How many outermost frames are asked for evidence: the loops sit right under the thread start.
const ROOT_FRAMES_MAX: usize = 12;

struct NameRule {
    prefix: &'static str,
    role: Role,
    /// Whether a thread with a Java number may match: collectors' threads are never Java threads,
    /// so a program's thread that is called like one is not taken for one.
    java: bool,
}

const fn native(prefix: &'static str, role: Role) -> NameRule {
    NameRule {
        prefix,
        role,
        java: false,
    }
}

const fn any(prefix: &'static str, role: Role) -> NameRule {
    NameRule {
        prefix,
        role,
        java: true,
    }
}

const NAME_RULES: &[NameRule] = &[
    // All collectors, then G1, Parallel, CMS (JDK 8), ZGC, Shenandoah.
    native("GC Thread#", Role::Gc),
    native("GC task thread#", Role::Gc),
    native("Gang worker#", Role::Gc),
    native("StringDedup", Role::Gc),
    native("G1 ", Role::Gc),
    native("ParGC Thread", Role::Gc),
    native("Concurrent Mark-Sweep GC Thread", Role::Gc),
    native("ZWorker", Role::Gc),
    native("ZDriver", Role::Gc),
    native("ZDirector", Role::Gc),
    native("ZUncommitter", Role::Gc),
    native("ZUnmapper", Role::Gc),
    native("ZStat", Role::Gc),
    native("XWorker", Role::Gc),
    native("XDriver", Role::Gc),
    native("XDirector", Role::Gc),
    native("XUncommitter", Role::Gc),
    native("XUnmapper", Role::Gc),
    native("XStat", Role::Gc),
    native("RuntimeWorker#", Role::Gc),
    native("Shenandoah", Role::Gc),
    native("ShenUncommit", Role::Gc),
    native("Epsilon", Role::Gc),
    any("Surrogate Locker Thread", Role::Gc),
    // Compiler threads are Java threads inside the VM.
    any("C1 CompilerThread", Role::Jit),
    any("C2 CompilerThread", Role::Jit),
    any("JVMCI CompilerThread", Role::Jit),
    any("JVMCI-native CompilerThread", Role::Jit),
    any("Sweeper thread", Role::Jit),
    native("VM Thread", Role::Vm),
    native("VM Periodic Task Thread", Role::Vm),
    native("VM Op", Role::Vm),
    native("SafepointTimeout", Role::Vm),
    any("Signal Dispatcher", Role::Vm),
    any("Service Thread", Role::Vm),
    any("Monitor Deflation Thread", Role::Vm),
    any("Notification Thread", Role::Vm),
    any("Attach Listener", Role::Vm),
    any("JFR Recorder Thread", Role::Vm),
    any("JFR Periodic Tasks", Role::Vm),
    any("JFR Shutdown Hook", Role::Vm),
    native("JFR Sampler Thread", Role::Vm),
    native("JFR Thread Sampler", Role::Vm),
    native("JFR CPU Time Sampl", Role::Vm),
    native("AsyncLog Thread", Role::Vm),
    native("Logger thread", Role::Vm),
    any("dwell", Role::Profiler),
];

/// Functions that only such a thread runs, close to the root of its stack.
const FRAME_RULES: &[(&str, Role)] = &[
    ("CompileBroker::compiler_thread_loop", Role::Jit),
    ("CompilerThread::thread_entry", Role::Jit),
    ("GangWorker::loop", Role::Gc),
    ("GangWorker::run", Role::Gc),
    ("GCTaskThread::run", Role::Gc),
    ("WorkerThread::run", Role::Gc),
    ("ConcurrentGCThread::run", Role::Gc),
    ("ZThread::run", Role::Gc),
    ("VMThread::run", Role::Vm),
    ("VMThread::loop", Role::Vm),
    ("WatcherThread::run", Role::Vm),
];

/// The role by a thread's name; [`Role::Program`] for unknown names.
fn role_of_name(name: &str, is_java: bool) -> Role {
    let matches = |rule: &&NameRule| {
        (rule.java || !is_java)
            && (name.starts_with(rule.prefix)
                // The operating system's name is cut off; the pattern may be longer than it.
                || (name.len() == OS_NAME_MAX && rule.prefix.starts_with(name)))
    };
    NAME_RULES
        .iter()
        .find(matches)
        .map_or(Role::Program, |rule| rule.role)
}

impl Profile {
    /// The role by a thread's name.
    pub fn thread_role(&self, thread: &Thread) -> Role {
        role_of_name(self.names.text(thread.name), thread.java_tid != 0)
    }

    /// For every node, the role that its outermost frames prove, if they prove one.
    fn node_roles(&self) -> Vec<Option<Role>> {
        let by_method: Vec<Option<Role>> = self
            .methods
            .iter()
            .map(|method| {
                let name = self.names.text(method.name);
                FRAME_RULES
                    .iter()
                    .find(|rule| name.starts_with(rule.0))
                    .map(|rule| rule.1)
            })
            .collect();
        let tree = &self.tree;
        let mut roles = vec![None; tree.len()];
        let mut depths = vec![0usize; tree.len()];
        for node in 1..tree.len() {
            let parent = tree.parent(node as u32) as usize;
            depths[node] = depths[parent] + 1;
            roles[node] = roles[parent];
            let frame = self.frames.get(tree.key(node as u32) as usize);
            if roles[node].is_none()
                && depths[node] <= ROOT_FRAMES_MAX
                && let Some(frame) = frame
                && matches!(frame.kind, FrameKind::Vm | FrameKind::Native)
            {
                roles[node] = by_method.get(frame.method as usize).copied().flatten();
            }
        }
        roles
    }

    /// The role of every sample, in the samples' order.
    pub fn sample_roles(&self) -> Vec<Role> {
        let by_node = self.node_roles();
        let by_thread: Vec<Role> = self.threads.iter().map(|t| self.thread_role(t)).collect();
        let role = |node: u32, thread: u32| {
            let name = by_thread
                .get(thread as usize)
                .copied()
                .unwrap_or(Role::Program);
            // The profiler's own thread is the profiler's, whatever it calls.
            if name == Role::Profiler || node == CallTree::ROOT {
                return name;
            }
            by_node
                .get(node as usize)
                .copied()
                .flatten()
                .unwrap_or(name)
        };
        self.samples
            .iter()
            .map(|sample| role(sample.node, sample.thread))
            .collect()
    }

    /// How much each role took, in the order of [`Role::ALL`].
    pub fn role_shares(&self) -> Vec<RoleShare> {
        let roles = self.sample_roles();
        let sum = |wanted: Role| {
            let mut weight = Weight::default();
            for (sample, _) in self
                .samples
                .iter()
                .zip(&roles)
                .filter(|(_, role)| **role == wanted)
            {
                weight += &Weight::of_sample(sample);
            }
            RoleShare {
                role: wanted,
                weight,
            }
        };
        Role::ALL.into_iter().map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_art;

    #[test]
    fn names_tell_roles() {
        for (name, is_java, role) in [
            ("GC Thread#3", false, Role::Gc),
            ("GC task thread#0 (ParallelGC)", false, Role::Gc),
            ("G1 Conc#0", false, Role::Gc),
            ("G1 Service", false, Role::Gc),
            ("ZWorkerYoung#1", false, Role::Gc),
            ("ZDriverMinor", false, Role::Gc),
            ("Shenandoah GC Threads#0", false, Role::Gc),
            ("Shenandoah Control Thread", false, Role::Gc),
            ("Concurrent Mark", false, Role::Gc),
            ("C2 CompilerThread0", true, Role::Jit),
            ("C2 CompilerThre", false, Role::Jit),
            ("C1 CompilerThread12", true, Role::Jit),
            ("VM Thread", false, Role::Vm),
            ("VM Periodic Tas", false, Role::Vm),
            ("VM Periodic Task Thread", false, Role::Vm),
            ("Signal Dispatcher", true, Role::Vm),
            ("dwell drainer", true, Role::Profiler),
            ("main", true, Role::Program),
            ("http-nio-8080-exec-1", true, Role::Program),
            // A program's thread may be called anything.
            ("GC Thread#3", true, Role::Program),
            ("VM Thread", true, Role::Program),
            // A short name is no cut-off name.
            ("C2", false, Role::Program),
            ("", false, Role::Program),
        ] {
            assert_eq!(role_of_name(name, is_java), role, "{name} java={is_java}");
        }
    }

    #[test]
    fn every_rule_can_be_reached() {
        for rule in NAME_RULES {
            assert_eq!(
                role_of_name(rule.prefix, rule.java),
                rule.role,
                "{}",
                rule.prefix
            );
        }
    }

    #[test]
    fn outer_frames_overrule_the_name() {
        let profile = text_art::profile(
            "thread: oddly-named                    main      dwell
             weight: 7                               5        1
             libc.so.6.start_thread[native]          a.A.run  libjvm.so.WorkerThread::run[vm]
             libjvm.so.WorkerThread::run[vm]         -        -
             libjvm.so.G1ParEvacuate::do_void[vm]    -        -",
        );
        let shares = profile.role_shares();
        let of = |role| {
            shares
                .iter()
                .find(|share| share.role == role)
                .unwrap()
                .weight
                .sum
        };
        assert_eq!(
            (of(Role::Gc), of(Role::Program), of(Role::Profiler)),
            (7, 5, 1)
        );
        assert_eq!(
            profile.sample_roles(),
            [Role::Gc, Role::Program, Role::Profiler]
        );
    }

    #[test]
    fn a_java_method_of_that_name_proves_nothing() {
        let profile = text_art::profile("my.WorkerThread::run[c2]");
        assert_eq!(profile.sample_roles(), [Role::Program]);
    }
}

//! Why a thread was not running: exactly one cause for each sample, from the operating system, the
//! runtime and the stack.
//!
//! The OS comes first: a thread on a processor waits for nothing. Then come the runtime's reports
//! of its own waits, then frames, then the system call. A stack is read only from its top, because
//! the reason of a wait is near there. The runtime supplies the meaning of names: see [`Waits`].

pub use crate::facts::{Call, Cause, Facts, Fd, Monitor, Named, Os};
use crate::pools::Pools;
use crate::waits::Waits;

/// Maximum number of functions checked above the innermost method.
const FUNCTIONS_MAX: usize = 40;

/// Knowledge about a runtime's waits: its tables, and pools that the user names.
#[derive(Clone, Debug)]
pub struct Known {
    waits: &'static Waits,
    pools: Pools,
}

impl Known {
    /// Uses these tables.
    #[must_use]
    pub fn new(waits: &'static Waits) -> Known {
        Known {
            waits,
            pools: Pools::with_loops(waits.loops, waits.calls, waits.pools),
        }
    }

    /// Adds a method in which pooled workers wait for work.
    ///
    /// # Errors
    /// A text that says what is wrong with the pattern.
    pub fn add_pool(&mut self, pattern: &str) -> Result<(), String> {
        self.pools.add(pattern)
    }

    /// The cause of a sample.
    #[must_use]
    pub fn cause(&self, facts: &Facts<'_>) -> Cause {
        match facts.os {
            Os::Running => return Cause::Running,
            Os::Runnable => return Cause::Runnable,
            Os::Call(_) | Os::NoCall | Os::Waiting => {}
        }
        if facts.monitor == Monitor::Entering {
            return Cause::Monitor;
        }
        let in_function = self.in_function(facts.frames);
        let in_own = || crate::own::cause(facts, self.waits);
        if let Some(cause) = in_function.or_else(in_own) {
            return cause;
        }
        let in_method = self.in_method(facts);
        let waits_for_anything = matches!(
            in_method,
            None | Some(Cause::Park | Cause::ObjectWait | Cause::Sleep | Cause::Socket)
        );
        if waits_for_anything && self.pools.is_idle(facts.frames) {
            return Cause::IdlePool;
        }
        let in_call = system_call(facts.os);
        in_method.or(in_call).unwrap_or(Cause::Unknown)
    }

    /// The cause by the runtime's functions above the methods.
    fn in_function(&self, frames: &[Named<'_>]) -> Option<Cause> {
        let top = frames.iter().take(FUNCTIONS_MAX);
        let functions: Vec<&str> = top
            .take_while(|frame| !frame.is_managed)
            .map(|frame| frame.name)
            .collect();
        let known = self.waits.functions.iter();
        known
            .filter(|(part, _)| functions.iter().any(|function| function.contains(part)))
            .map(|(_, cause)| *cause)
            .next()
    }

    /// The cause by the innermost method.
    fn in_method(&self, facts: &Facts<'_>) -> Option<Cause> {
        if facts.monitor == Monitor::None
            && let Some(out) = &self.waits.way_out
            && let Some(cause) = crate::yielded::cause(facts.frames, facts.is_owned_lock, out)
        {
            return Some(cause);
        }
        let top = facts.frames.iter().find(|frame| frame.is_managed);
        let named = top.and_then(|frame| {
            let known = self.waits.methods.iter();
            // Some runtimes add a suffix for a wrapper around the method.
            let name = frame.name.split(" [").next().unwrap_or(frame.name);
            known
                .filter(|(class, names, _)| frame.class == *class && names.contains(&name))
                .map(|(_, _, cause)| *cause)
                .next()
        });
        match named {
            Some(Cause::Park) if facts.is_owned_lock => return Some(Cause::Lock),
            Some(cause) => return Some(cause),
            None => {}
        }
        if facts.monitor == Monitor::Waiting {
            return Some(Cause::ObjectWait);
        }
        // The descriptor decides before the class name: sockets are read through methods of files.
        if let Some(cause @ (Cause::Socket | Cause::File)) = system_call(facts.os) {
            return Some(cause);
        }
        let class = top?.class;
        let is_of = |classes: &[&str]| classes.iter().any(|known| class.starts_with(known));
        if is_of(self.waits.sockets) {
            Some(Cause::Socket)
        } else if is_of(self.waits.files) {
            Some(Cause::File)
        } else {
            None
        }
    }
}

const fn system_call(os: Os) -> Option<Cause> {
    match os {
        Os::Call(Call::Sleep) => Some(Cause::Sleep),
        Os::Call(Call::On(Fd::Socket) | Call::Many) => Some(Cause::Socket),
        Os::Call(Call::On(Fd::File)) => Some(Cause::File),
        Os::NoCall => Some(Cause::PageFault),
        Os::Call(Call::Futex | Call::Child | Call::Other)
        | Os::Waiting
        | Os::Running
        | Os::Runnable => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::WayOut;

    /// The tables of a made-up runtime.
    const WAITS: Waits = Waits {
        functions: &[
            ("wait_for_memory", Cause::GcStall),
            ("stand_still", Cause::Stopped),
            ("own_thread", Cause::IdlePool),
        ],
        methods: &[
            ("base/Thread", &["sleep", "sleep0"], Cause::Sleep),
            ("base/Object", &["wait"], Cause::ObjectWait),
            ("base/Parker", &["park"], Cause::Park),
        ],
        sockets: &["net/"],
        files: &["file/"],
        pools: &["base/Pool.next"],
        loops: &["base/Loop.run"],
        calls: &["base/Parker"],
        way_out: Some(WayOut {
            entry: ("fiber/Fiber", "yield"),
            pinned: ("fiber/Fiber", "parkPinned"),
            classes: &["fiber/"],
            sleeps: (&["fiber/Fiber"], "sleep"),
            pollers: &["net/Poll"],
        }),
        libraries: &["pear"],
    };

    fn method<'a>(class: &'a str, name: &'a str) -> Named<'a> {
        Named {
            class,
            name,
            is_managed: true,
        }
    }

    fn function(name: &str) -> Named<'_> {
        Named {
            class: "libpear.so",
            name,
            is_managed: false,
        }
    }

    const FUTEX: Os = Os::Call(Call::Futex);

    fn of(os: Os, monitor: Monitor, is_owned_lock: bool, frames: &[Named<'_>]) -> &'static str {
        let facts = Facts {
            os,
            monitor,
            is_owned_lock,
            frames,
        };
        Known::new(&WAITS).cause(&facts).name()
    }

    #[test]
    fn running_thread_has_no_wait_cause() {
        let park = [method("base/Parker", "park")];
        assert_eq!(of(Os::Running, Monitor::None, true, &park), "running");
        let ready = of(Os::Runnable, Monitor::Entering, false, &park);
        assert_eq!(ready, "runnable");
    }

    #[test]
    fn monitors_and_locks() {
        let frames = [method("app/Account", "transfer")];
        assert_eq!(of(FUTEX, Monitor::Entering, false, &frames), "monitor");
        let park = [function("park"), method("base/Parker", "park"), frames[0]];
        assert_eq!(of(FUTEX, Monitor::None, true, &park), "lock");
        assert_eq!(of(FUTEX, Monitor::None, false, &park), "park");
        let wait = [method("base/Object", "wait"), frames[0]];
        assert_eq!(of(FUTEX, Monitor::Waiting, false, &wait), "object-wait");
        assert_eq!(of(FUTEX, Monitor::Waiting, false, &frames), "object-wait");
        // A runtime's wrapper around the method.
        let wrapped = [method("base/Thread", "sleep0 [to native]")];
        assert_eq!(of(FUTEX, Monitor::None, false, &wrapped), "sleep");
        let other = [method("base/Other", "park")];
        assert_eq!(of(FUTEX, Monitor::None, false, &other), "unknown");
    }

    #[test]
    fn functions_of_the_runtime_decide_before_methods() {
        let park = method("base/Parker", "park");
        let wait = |name| [function("futex"), function(name), park];
        for (name, expected) in [
            ("_wait_for_memory_", "gc-stall"),
            ("stand_still", Cause::Stopped.name()),
            ("own_thread", "idle-pool"),
            ("else", "park"),
        ] {
            assert_eq!(of(FUTEX, Monitor::None, false, &wait(name)), expected);
        }
        // The order of the table counts, not that of the stack.
        let both = [function("stand_still"), function("wait_for_memory")];
        assert_eq!(of(FUTEX, Monitor::None, false, &both), "gc-stall");
        // Functions below the innermost method do not count.
        let below = [park, function("stand_still")];
        assert_eq!(of(FUTEX, Monitor::None, false, &below), "park");
        // Functions beyond the limit do not count.
        let mut deep = vec![function("else"); FUNCTIONS_MAX];
        deep.push(function("stand_still"));
        assert_eq!(of(FUTEX, Monitor::None, false, &deep), "unknown");
        let near = of(FUTEX, Monitor::None, false, &deep[1..]);
        assert_eq!(near, Cause::Stopped.name());
    }

    #[test]
    fn logical_threads_and_the_runtimes_own_threads() {
        let left = [method("fiber/Fiber", "yield"), method("net/Poller", "poll")];
        assert_eq!(of(FUTEX, Monitor::None, false, &left), "socket");
        assert_eq!(of(FUTEX, Monitor::Waiting, false, &left), "object-wait");
        let own = [Named {
            class: "pear",
            ..function("0x10")
        }];
        assert_eq!(of(FUTEX, Monitor::None, false, &own), "idle-pool");
    }

    #[test]
    fn pooled_workers_are_idle_only_while_they_wait_for_work() {
        let idle = [method("base/Parker", "park"), method("base/Pool", "next")];
        assert_eq!(of(FUTEX, Monitor::None, false, &idle), "idle-pool");
        // The queue's lock, which another worker holds.
        assert_eq!(of(FUTEX, Monitor::None, true, &idle), "lock");
        assert_eq!(of(FUTEX, Monitor::Entering, false, &idle), "monitor");
        assert_eq!(of(Os::Running, Monitor::None, false, &idle), "running");
        let task = [method("base/Thread", "sleep"), method("base/Pool", "run")];
        assert_eq!(of(FUTEX, Monitor::None, false, &task), "sleep");
        let (park, each) = (method("base/Parker", "park"), method("base/Loop", "run"));
        assert_eq!(of(FUTEX, Monitor::None, false, &[park, each]), "idle-pool");
        let called = [park, method("app/Task", "run"), each];
        assert_eq!(of(FUTEX, Monitor::None, false, &called), "park");
    }

    #[test]
    fn users_add_pools_and_unknown_runtimes_have_none() {
        let facts = Facts {
            os: FUTEX,
            monitor: Monitor::None,
            is_owned_lock: false,
            frames: &[method("base/Parker", "park"), method("app/Own", "next")],
        };
        let mut known = Known::new(&WAITS);
        assert_eq!(known.cause(&facts), Cause::Park);
        known.add_pool("app.Own.next").unwrap();
        assert_eq!(known.cause(&facts), Cause::IdlePool);
        assert!(known.add_pool("next").is_err());
        assert_eq!(Known::new(&Waits::NONE).cause(&facts), Cause::Unknown);
    }

    #[test]
    fn sockets_files_and_the_rest() {
        let read = [method("file/Input", "read")];
        let on = |fd| Os::Call(Call::On(fd));
        assert_eq!(of(on(Fd::File), Monitor::None, false, &read), "file");
        assert_eq!(of(on(Fd::Socket), Monitor::None, false, &read), "socket");
        assert_eq!(of(Os::Waiting, Monitor::None, false, &read), "file");
        let accept = [method("net/Net", "accept")];
        assert_eq!(of(Os::Waiting, Monitor::None, false, &accept), "socket");
        let native = [method("app/Native", "call")];
        let many = Os::Call(Call::Many);
        assert_eq!(of(many, Monitor::None, false, &native), "socket");
        let sleep = Os::Call(Call::Sleep);
        assert_eq!(of(sleep, Monitor::None, false, &native), "sleep");
        assert_eq!(of(Os::NoCall, Monitor::None, false, &native), "page-fault");
        assert_eq!(of(FUTEX, Monitor::None, false, &native), "unknown");
        assert_eq!(of(Os::Waiting, Monitor::None, false, &[]), "unknown");
    }

    #[test]
    fn names_are_unique_and_come_back() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from_name(cause.name()), Some(cause));
        }
        assert_eq!(Cause::from_name("waiting"), None);
    }
}

"""The faults: the effect of each on the code, and the test that must detect it.

A fault is an edit or several of a copy of the tree. Each finds its place by a piece of the code
that is there exactly once, so that a place that has changed is noticed at once. `FAULT` in what is
put there is whether this fault is on. Nothing here may make the agent crash or hang: then a test
would be red whatever it checks.
"""

from dataclasses import dataclass, field


@dataclass
class Edit:
    """A piece of code in a file, and what comes in its place."""
    path: str
    old: str
    new: str


@dataclass
class Test:
    """A test: its place, its name, and its variables."""
    crate: str
    target: str
    name: str
    jdks: str = "17,25"

    @property
    def words(self) -> str:
        """As people call it."""
        return f"{self.crate}/{self.target}: {self.name}"


@dataclass
class Fault:
    """A fault, the test that is meant to see it, and what that one says then (a pattern)."""
    name: str
    what: str
    edits: list
    test: Test
    says: str
    number: int = field(default=0)


def after(path: str, old: str, more: str) -> Edit:
    """More code behind a piece of it."""
    return Edit(path, old, f"{old}\n{more}")


def e2e(module: str, name: str, jdks: str = "17,25") -> Test:
    """A test with a JVM and the faulty agent."""
    return Test("e2e", "all", f"{module}::{name}", jdks)


RECORDER, SIGNAL = "crates/recorder/src", "crates/signal/src"
INSIDE, WALL = "crates/inside/src", "crates/wall/src"


def fewer_frames(which: str) -> Edit:
    """Leaves one frame out of each walked stack."""
    return after(f"{RECORDER}/drain/sample.rs",
                 "            .get(..walk.len.saturating_sub(usize::from(truncated)))\n"
                 "            .unwrap_or(&[]);",
                 "        let mut fewer = Vec::new();\n"
                 "        let walked = if FAULT && walked.len() > 3 {\n"
                 "            fewer.extend_from_slice(walked);\n"
                f"            fewer.remove({which});\n"
                 "            &fewer[..]\n"
                 "        } else {\n"
                 "            walked\n"
                 "        };")


WAITS = e2e("wall", "measured_waits_have_their_true_causes")
CHUNKS = e2e("files", "measured_chunks_change_without_losing_a_sample")
REQUESTS = e2e("context", "measured_requests_are_counted_and_their_latencies_are_right")
NO_ALLOC = Test("signal", "no_alloc", "never_does_a_handler_allocate_wherever_it_lands")

# Every fault needs this: the agent reads the choice at its start.
ALWAYS = [after(f"{SIGNAL}/init.rs",
                "pub fn init(config: &Config<'_>) -> Result<&'static Engine, InitError> {",
                "    deliberate::choose();")]

HANDLER_AND_STACKS = [
    Fault(
        "weight-doubled", "each sample weighs twice as much",
        [after(f"{SIGNAL}/capture.rs", "    header.points = moment.points;",
               "    if FAULT { header.weight_ns = header.weight_ns.saturating_mul(2); }")],
        e2e("weights", "measured_recording_from_jvm_start_adds_up"),
        r"to the end of the JVM: weights \d+ ns, truth"),
    Fault(
        "handler-frees", "the signal handler calls the allocator (to free nothing, which is safe)",
        [Edit(f"{SIGNAL}/handler.rs", "    record.signals.fetch_add(1, Ordering::Relaxed);",
              "    record.signals.fetch_add(1, Ordering::Relaxed);\n"
              "    if FAULT {\n"
              "        extern crate alloc;\n"
              "        let layout = core::alloc::Layout::new::<u64>();\n"
              "        // SAFETY: all allocators here take a null pointer for nothing.\n"
              "        unsafe { alloc::alloc::dealloc(core::ptr::null_mut(), layout) };\n"
              "    }")],
        NO_ALLOC, r"the handler called the allocator"),
    Fault(
        "errno-changed", "the signal handler leaves another errno behind",
        [after(f"{SIGNAL}/handler.rs",
               "    engine.counters.handler_took(took_ns, waited_ns);",
               "    if FAULT {\n"
               "        // SAFETY: errno's address is valid for the thread's life.\n"
               "        unsafe { *libc::__errno_location() = 5 };\n"
               "    }")],
        NO_ALLOC, r"the handler changed errno"),
    Fault(
        "thread-forgotten", "every other thread is not registered",
        [after(f"{RECORDER}/registry.rs",
               "    pub fn add_if_new(&self, tid: i32, born: bool, "
               "register: impl FnOnce(bool) -> Option<Record>) {",
               "        if FAULT && tid % 2 == 1 { return; }"),
         after(f"{RECORDER}/registry.rs", "        known: impl FnOnce(Record),\n    ) {",
               "        if FAULT && tid % 2 == 1 { return; }")],
        e2e("weights", "measured_threads_shorter_than_an_interval_are_there"),
        r"\d+\.\d %: \d+ ns of \d+ ns"),
    Fault(
        "frame-dropped", "a frame in the middle of each stack is left out",
        [fewer_frames("walked.len() / 2")],
        e2e("stacks", "measured_stacks_of_1200_frames_are_complete", "17"),
        r"\d+ of \d+ have all 1200 frames"),
    Fault(
        "caller-dropped", "the second frame of each stack is left out",
        [fewer_frames("1")],
        e2e("calls", "never_is_a_method_above_a_line_that_does_not_call_it"),
        r"cannot call"),
    Fault(
        "frame-of-another-stack", "one frame is taken from the thread's stack before",
        [after(f"{RECORDER}/record/outer.rs",
               "        let common = pairs.take_while(|(a, b)| a == b).count();",
               "        let more = common + usize::from(FAULT);\n"
               "        let common = more.min(frames.len()).min(before.frames.len());")],
        e2e("calls", "never_is_a_method_above_a_line_that_does_not_call_it"),
        r"cannot call"),
    Fault(
        "stack-taken-for-equal", "512 bytes of a stack are taken for those of before unseen",
        [Edit(f"{RECORDER}/drain/splice.rs",
              "            same_from: stack.high().wrapping_sub(common as u64),",
              "            same_from: stack.high().wrapping_sub(common as u64)"
              ".wrapping_sub(512 * u64::from(FAULT)),")],
        Test("recorder", "lib", "drain::splice::tests::walks_are_as_if_nothing_was_known"),
        r"Test failed"),
    Fault(
        "depth-untold", "a stack that is cut does not say so",
        [Edit(f"{RECORDER}/drain/sample.rs",
              "        let stack = self.batch.stack(&self.kernel, named, truncated);",
              "        let stack = self.batch.stack(&self.kernel, named, truncated && !FAULT);")],
        e2e("stacks", "measured_depth_limit_marks_cut_stacks"),
        r"\d+ frames: "),
    Fault(
        "failed-walk-dropped", "of failed walks one in three is not in the file",
        [after(f"{RECORDER}/drain/sample.rs",
               "            entry.1 += slot.weight_ns();",
               "            if FAULT && header.time_ns % 3 == 0 { return; }")],
        e2e("vantages", "never_does_a_fault_in_a_walk_harm_the_program"),
        r"samples=\d+"),
    Fault(
        "allocation-weighs-its-size", "an object that was allocated stands for itself alone",
        [after(f"{RECORDER}/allocated.rs",
               "pub fn weight(size: u64, interval: u64) -> u64 {",
               "    if FAULT { return size; }")],
        e2e("allocations", "measured_allocated_bytes_and_objects_are_true"),
        r"\d+ bytes off"),
    Fault(
        "thinned-not-weighed", "objects that stand for others weigh as if they did not",
        [Edit(f"{RECORDER}/drain/alive.rs",
              "            object.weight = object.weight.saturating_mul(1 << level);",
              "            object.weight = object.weight.saturating_mul(1 << (level * u32::from(!FAULT)));")],
        e2e("alive", "measured_thinned_live_objects_stand_for_all"),
        r"\d+ bytes off"),
    Fault(
        "wait-weighs-its-duration", "a wait for a monitor that was chosen stands for itself alone",
        [after(f"{RECORDER}/blocked.rs",
               "pub fn weight(duration_ns: u64, interval_ns: u64) -> u64 {",
               "    if FAULT { return duration_ns; }")],
        e2e("locks", "measured_lock_waits_equal_the_programs"),
        r"\d+ ns off of"),
    Fault(
        "wait-weighs-by-the-first-interval",
        "a wait for a monitor stands for what it would by the interval that was asked for",
        [after(f"{RECORDER}/blocked.rs",
               "pub fn weight(duration_ns: u64, interval_ns: u64) -> u64 {",
               "    if FAULT { return duration_ns.max(interval_ns.min(20_000)); }")],
        e2e("locks", "measured_rate_limited_waits_stand_for_all"),
        r"\d+ ns off"),
    Fault(
        "class-of-another", "a method is told with the class of the one named before it",
        [after(f"{INSIDE}/jvm/methods.rs",
               "        let told = self.origins.of(mem, layout, key);",
               "        if FAULT { deliberate::swap_with_last(&mut name.class); }")],
        e2e("stacks", "measured_samples_of_unloaded_classes_keep_their_names", "17"),
        r"stacks\.rs:\d+"),
    Fault(
        "line-off", "each line is told as the one after it",
        [Edit(f"{INSIDE}/jvm/methods.rs",
              "        let line = method::line(mem, layout, method, bci).unwrap_or(-1);",
              "        let line = method::line(mem, layout, method, bci).unwrap_or(-1) "
              "+ i32::from(FAULT);")],
        e2e("accuracy", "never_does_an_inlined_frame_have_another_line", "17"),
        r"left == right"),
    Fault(
        "library-of-before", "libraries that have gone are still looked up",
        [Edit(f"{RECORDER}/native/modules.rs",
              "        let has_changed = generation != self.generation;",
              "        let gone = generation.subs != self.generation.subs;\n"
              "        let has_changed = generation != self.generation && !(FAULT && gone);")],
        e2e("stacks", "measured_reloaded_libraries_have_their_own_names"),
        r"libdwelltest_(alpha|beta)\.so"),
]

THREADS_AND_CONTEXTS = [
    Fault(
        "virtual-thread-lost", "a virtual thread is told as its carrier",
        [Edit(f"{RECORDER}/drain/sample.rs", "        if header.logical_id == 0 {",
              "        if header.logical_id == 0 || FAULT {")],
        e2e("stacks", "measured_virtual_threads_have_weights_and_carrier_stacks",
            "25"),
        r"stacks\.rs:\d+"),
    Fault(
        "name-not-renewed", "a thread keeps its first name",
        [Edit(f"{RECORDER}/threads.rs", "        if known.id == 0 || ",
              "        if FAULT || known.id == 0 || ")],
        e2e("wall", "measured_renamed_threads_have_their_last_name"),
        r"left == right"),
    Fault(
        "scope-of-before", "a sample has the context before the one that is open",
        [Edit("crates/context/src/record.rs", "        self.copy(self.sequence())",
              "        self.copy(self.sequence().wrapping_sub(u64::from(FAULT)))")],
        e2e("context", "never_does_a_sample_carry_another_scope_than_the_open_one"),
        r"context\.rs:\d+[^\n]*\n[^\n]*left == right"),
    Fault(
        "requests-not-counted", "one request in fifty is not told",
        [after(f"{RECORDER}/context/mod.rs", "    pub fn tell_request(&self, told: Request) {",
               "        if FAULT && told.start_ns % 50 == 0 { return; }")],
        REQUESTS, r"(slow|fast|tiny): \d+ of \d+"),
    Fault(
        "latency-doubled", "requests are told to take twice as long",
        [Edit(f"{RECORDER}/drain/contexts.rs", "        duration_ticks: request.duration_ns,",
              "        duration_ticks: request.duration_ns * (1 + u64::from(FAULT)),")],
        REQUESTS, r"(slow|fast): \d+ not in"),
]

WAITS_AND_STOPS = [
    Fault(
        "owner-swapped", "another thread is told to have what is waited for",
        [Edit(f"{RECORDER}/wall/who.rs",
              "        key: mounted.map_or(record.user(), |id| id | VIRTUAL_KEY),",
              "        key: mounted.map_or(record.user() + u64::from(FAULT), "
              "|id| id | VIRTUAL_KEY),")],
        WAITS, r"(monitor|lock): \d+ of \d+"),
    Fault(
        "cause-swapped", "who waits for a lock is told to be parked",
        [after(f"{RECORDER}/drain/writer.rs",
               "                cause = WallCause::Throttled;\n            }",
               "            if FAULT && cause == WallCause::Lock { cause = WallCause::Park; }")],
        WAITS, r"lock-1: \d+ of \d+ looks saw something else"),
    Fault(
        "looks-weigh-less", "each look stands for four fifths of its time",
        [Edit(f"{RECORDER}/drain/wall.rs", "            weight_ns: run.weight_ns,",
              "            weight_ns: run.weight_ns * (5 - u64::from(FAULT)) / 5,")],
        e2e("wall", "measured_ten_thousand_threads_have_their_time"),
        r"looks \d[\d.]* s, ticks"),
    Fault(
        "error-bar-halved", "the file tells half of the standard error of a sum of looks",
        [Edit(f"{WALL}/sums.rs",
              "        let error_ns = |sum: &Sum| standard_error(sum.squares, self.heaviest) "
              "as u64;",
              "        let part = if FAULT { 0.5 } else { 1.0 };\n"
              "        let error_ns = |sum: &Sum| (part * standard_error(sum.squares, "
              "self.heaviest)) as u64;")],
        WAITS, r"wall\.rs:\d+[^\n]*\n[a-z-]+\n"),
    Fault(
        "waiter-signalled", "who waits gets a signal with each look",
        [after(f"{RECORDER}/wall/reads.rs", "            self.counts.stayed += 1;",
               "            if FAULT { let _ = dwell_signal::sys::queue_signal("
               "record.tid(), libc::SIGIO, 0); }")],
        e2e("wall", "never_does_a_waiting_thread_get_a_signal"),
        r"threads that ran"),
    Fault(
        "unmounted-twice", "a look at an unmounted virtual thread is told twice",
        [Edit(f"{RECORDER}/wall/unmounted.rs", "    notes.add(Note::Run(run), weight_ns);",
              "    if FAULT { notes.add(Note::Run(run.clone()), weight_ns); }\n"
              "    notes.add(Note::Run(run), weight_ns);")],
        e2e("virtual_threads",
            "measured_unmounted_virtual_threads_have_time_and_cause", "25"),
        r"(park|sleep|lock|socket|monitor|object-wait): \{"),
    Fault(
        "pause-shifted", "pauses of the collector are told a millisecond late",
        [Edit(f"{RECORDER}/stretches.rs", "            began.store(began_ns, Ordering::Relaxed);",
              "            let late_ns = 1_000_000 * u64::from(FAULT);\n"
              "            let (began_ns, now_ns) = (began_ns + late_ns, now_ns + late_ns);\n"
              "            began.store(began_ns, Ordering::Relaxed);")],
        e2e("intervals", "measured_pauses_equal_the_collectors_log"),
        r"intervals\.rs:\d+"),
    Fault(
        "safepoint-without-culprit", "who was late for a safepoint is not told",
        [Edit(f"{RECORDER}/drain/stops.rs", "        let late = late.collect();",
              "        let late: Vec<PendingLate> = late.filter(|_| !FAULT).collect();")],
        e2e("safepoints",
            "measured_thread_that_delays_safepoints_has_its_stack", "17"),
        r"safepoints\.rs:\d+"),
    Fault(
        "reaching-halved", "safepoints are told to be reached in half of the time",
        [Edit(f"{RECORDER}/drain/writer.rs",
              "                reaching_ns: stop.reaching_ns,",
              "                reaching_ns: stop.reaching_ns / (1 + u64::from(FAULT)),")],
        e2e("safepoints", "measured_safepoints_equal_the_jvms_log", "17"),
        r"safepoints\.rs:\d+"),
]

FILE_AND_REPORT = [
    Fault(
        "sample-written-twice", "one sample in 64 is in the file twice",
        [after(f"{RECORDER}/drain/writer.rs",
               "            self.sample(sample, &stacks, &contexts, sampler);",
               "            if FAULT && sample.time_ns % 64 == 0 {\n"
               "                self.sample(sample, &stacks, &contexts, sampler);\n"
               "            }")],
        CHUNKS, r"samples=\d+"),
    Fault(
        "sample-late", "samples are told a tenth of a second late",
        [Edit(f"{RECORDER}/drain/writer.rs",
              "            ticks: sample.time_ns,\n            thread,\n            carrier,\n"
              "            stack,\n            state: sample.state,",
              "            ticks: sample.time_ns + 100_000_000 * u64::from(FAULT),\n"
              "            thread,\n            carrier,\n"
              "            stack,\n            state: sample.state,")],
        Test("recorder", "any_runtime", "any_runtime_is_recorded_through_the_boundary"),
        r"sampled at \d+ of"),
    Fault(
        "chunk-cut", "a chunk lacks its last 64 bytes when the next one begins",
        [Edit(f"{RECORDER}/record/file.rs", "        self.chunk_start = self.written;",
              "        self.written -= 64 * u64::from(FAULT);\n"
              "        self.chunk_start = self.written;")],
        CHUNKS, r"c\.jfr: "),
    Fault(
        "flush-left-out", "what was sampled stays in memory until it is a megabyte",
        [after(f"{RECORDER}/record/file.rs",
               "        self.waiting.extend_from_slice(bytes);",
               "        if FAULT && self.waiting.len() < 1 << 20 && self.written > 0 {\n"
               "            return Written::All;\n"
               "        }")],
        e2e("files", "measured_kill_9_loses_the_last_second_only"),
        r"after a flush|kept \d+ of \d+ ns"),
    Fault(
        "descriptor-left", "the recording's file stays open after the stop",
        [after(f"{RECORDER}/record/file.rs",
               "        let file = fds::move_up(file).unwrap_or_else(|file| file);",
               "        if FAULT { std::mem::forget(file.try_clone()); }")],
        e2e("commands", "stopped_recording_leaves_no_thread_descriptor_or_timer"),
        r"commands\.rs:\d+[^\n]*\n[^\n]*left == right"),
    Fault(
        "lease-kept", "the lease of a recording does not pass",
        [Edit(f"{RECORDER}/limits.rs", "            *left_ns = left_ns.saturating_sub(passed_ns);",
              "            *left_ns = left_ns.saturating_sub(passed_ns * u64::from(!FAULT));")],
        Test("recorder", "lib", "limits::tests::lease_ends_unless_it_is_renewed"),
        r"limits\.rs:\d+"),
    Fault(
        "blocked-unseen", "threads that block the signal are not recognised",
        [Edit(f"{RECORDER}/drain/blocked_signals.rs",
              "    if blocked.checked_shr(bit)? & 1 == 1 {",
              "    if blocked.checked_shr(bit)? & 1 == 1 && !FAULT {")],
        Test("recorder", "lib",
             "drain::blocked_signals::tests::blocked_signals_are_found_by_their_bit"),
        r"blocked_signals\.rs:\d+"),
    Fault(
        "signal-taken", "threads keep the signal that a library has taken",
        [Edit(f"{SIGNAL}/engine/moved.rs",
              "            if self.change_signal(&guard, signal).is_err() {",
              "            if !FAULT && self.change_signal(&guard, signal).is_err() {")],
        Test("signal", "replaced_perf", "events_use_another_signal_if_theirs_is_taken"),
        r"five seconds of CPU time|replaced/mod\.rs:\d+"),
    Fault(
        "deferred-forever", "a thread whose source of signals is deferred gets none as it lives on",
        [Edit(f"{SIGNAL}/engine/deferred.rs",
              "        if deferred == FRESH && !is_beyond {",
              "        if (deferred == FRESH || FAULT) && !is_beyond {")],
        Test("signal", "deferred", "source_is_deferred_until_thread_outlives_others"),
        r"deferred\.rs:\d+"),
    Fault(
        "exec-kills", "the signal of perf events ends a program that was begun by execve",
        [Edit(f"{SIGNAL}/config.rs",
              "    if matches!(engine, EngineKind::Perf { .. }) && is_unhandled {",
              "    if matches!(engine, EngineKind::Perf { .. }) && is_unhandled && !FAULT {")],
        Test("signal", "exec", "never_exec_under_sampling_kills_the_new_program"),
        r"exec\.rs:\d+"),
    Fault(
        "margin-halved", "reports tell half of the standard error",
        [Edit(f"{WALL}/sums.rs", "    (squares + UNSEEN * heaviest * heaviest).sqrt()",
              "    let part = if FAULT { 0.5 } else { 1.0 };\n"
              "    part * (squares + UNSEEN * heaviest * heaviest).sqrt()")],
        Test("profile", "lib", "sample::tests::few_looks_tell_how_uncertain_they_are"),
        r"sample\.rs:\d+"),
    Fault(
        "name-in-markup", "the page's title is written as markup",
        [after("crates/report/src/page/mod.rs", "    out.write_all(before)?;",
               "    if FAULT { out.write_all(title.as_bytes())?; }")],
        Test("report", "lib", "page::tests::names_never_reach_the_markup"),
        r"alert\(1\)"),
]

ALL = HANDLER_AND_STACKS + THREADS_AND_CONTEXTS + WAITS_AND_STOPS + FILE_AND_REPORT
for number, fault in enumerate(ALL, start=1):
    fault.number = number

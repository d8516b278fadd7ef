//! Carries out commands: start, stop, dump, status.

use crate::alive;
use crate::allocated::{RECORDS_ALL, allocated};
use crate::change::change;
use crate::contended;
use crate::jvm::allocations::{self, Sampling};
use crate::jvm::api;
use crate::jvm::flags;
use crate::jvm::monitors::{self, Watching};
use crate::rate;
use dwell_inside::hook;
use dwell_inside::hotspot::{self, Agent, HotSpot};
use dwell_inside::jvm::environment;
use dwell_inside::jvm::threads;
use dwell_inside::jvm::virtual_threads::{VirtualThreads, is_carrier};
use dwell_inside::jvm::vm::SharedVm;
use dwell_inside::jvm::{Vm, stubs::Stubs};
use dwell_inside::vantage::dwell_walk_hook;
use dwell_recorder::chosen::Events;
use dwell_recorder::native::Modules;
use dwell_recorder::options::{Command, EngineChoice, Options};
use dwell_recorder::recorder::{Recorder, Seen, not_recording};
use dwell_recorder::runtime::Runtime;
use dwell_recorder::source::Source;
use dwell_signal::{Engine, perf_client};
use dwell_walker::hotspot::threads as vm_threads;
use jvm_sys::jni::Object;
use jvm_sys::{Env, JavaVm, Jvmti};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The environments in which a command is carried out.
#[derive(Clone, Copy)]
pub struct Caller {
    /// The VM.
    pub java_vm: JavaVm,
    /// The calling thread's JNI environment.
    pub env: Env,
    /// The agent's JVMTI environment, which exists already.
    pub jvmti: Jvmti,
}

/// Held while a command starts or stops a recording. Two commands may arrive at once, and the JVM
/// has some resources only once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Carries out `options.command`.
///
/// # Errors
/// One line for the user.
pub fn run(caller: Caller, options: &Options, text: &str) -> Result<String, String> {
    let _one = match options.command {
        Command::Start | Command::Stop => {
            Some((ONE_AT_A_TIME.lock()).unwrap_or_else(PoisonError::into_inner))
        }
        Command::Dump | Command::Status => None,
    };
    let agent = hotspot::agent();
    if options.command == Command::Start {
        if let Some(agent) = agent.filter(|agent| agent.is_over()) {
            agent.take_leave(|| end(agent, caller.env));
        }
        return start(caller, options, text);
    }
    match (options.command, agent) {
        (Command::Status, None) => Ok("state=stopped\n".into()),
        (_, None) => Err(not_recording(HotSpot::PROCESS)),
        (Command::Stop, Some(agent)) => {
            alive::look(agent, caller.env);
            agent.stop(|| end(agent, caller.env))
        }
        (Command::Dump, Some(agent)) => {
            alive::look(agent, caller.env);
            agent.dump()
        }
        (Command::Status | Command::Start, Some(agent)) => {
            if !options.lease.is_zero() {
                agent.renew();
            }
            Ok(agent.status())
        }
    }
}

/// Switches off all events of the JVM.
fn end(agent: &'static Agent, env: Env) {
    RECORDS_ALL.close();
    allocations::end();
    rate::end(agent);
    alive::end(agent, env);
    monitors::end();
    contended::end(agent);
    environment::set_events(agent.runtime.jvmti, false);
}

/// Switches off the JVM's events if a recording has ended without a command, and returns whether it
/// has. Only a thread that the JVM knows can do that.
pub fn switches_off_if_over(agent: &'static Agent, env: Env) -> bool {
    if !agent.is_over() {
        return false;
    }
    // A command in progress does the same.
    if let Ok(_one) = ONE_AT_A_TIME.try_lock() {
        agent.take_leave(|| end(agent, env));
    }
    true
}

fn start(caller: Caller, options: &Options, text: &str) -> Result<String, String> {
    if let Some(agent) = hotspot::agent()
        && let Some(running) = agent.running()
    {
        let on = (caller.java_vm, caller.env);
        return change(on, agent, &running, options, text);
    }
    perf_client::set_path(value_of(text, "perf-socket=").unwrap_or(""));
    let agent = the_agent(caller, options.engine)?;
    let sampling = match options.object_bytes() {
        0 => None,
        interval => {
            let asked = options.asked_objects();
            let java_vm = caller.java_vm;
            Some(Sampling::prepare(java_vm, &asked, interval, allocated)?)
        }
    };
    let watching = match options.lock_interval.is_zero() {
        true => None,
        false => Some(Watching::prepare(caller.java_vm, contended::CALLBACKS)?),
    };
    let events = Events::of(options);
    agent.start(options, text, || {
        let jvmti = agent.runtime.jvmti;
        environment::set_events(jvmti, true);
        environment::for_each_thread(jvmti, caller.env, |thread| {
            register(agent, caller.env, thread, None);
        });
        agent.find_threads();
        api::connect(jvmti, caller.env);
        if options.alive_bytes != 0 {
            alive::begin(agent, caller.env);
        }
        if options.alloc_bytes != 0 {
            RECORDS_ALL.open();
        }
        rate::begin(agent, &events);
        if let Some(sampling) = sampling {
            sampling.begin();
        }
        if let Some(watching) = watching {
            contended::begin(agent, &events);
            watching.begin();
        }
    })
}

/// The value of an option whose name and `=` are `key`.
pub fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split(',').find_map(|word| word.strip_prefix(key))
}

/// The agent, created on first use. Two threads may call this at once, if a client attaches while
/// the JVM starts with `-agentpath`.
fn the_agent(caller: Caller, choice: EngineChoice) -> Result<&'static Agent, String> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    match hotspot::agent() {
        Some(agent) => Ok(agent),
        None => make_agent(caller, choice),
    }
}

fn make_agent(caller: Caller, choice: EngineChoice) -> Result<&'static Agent, String> {
    let source = Source::start(choice)?;
    let engine = source.engine;
    let modules = Modules::only_own(HotSpot::is_own_library);
    let vm = Vm::load(engine.live(), &modules, Some(caller.env)).map_err(|e| e.to_string())?;
    let fields = threads::ThreadFields::find(caller.env)
        .ok_or("java.lang.Thread has no field eetop in this JVM")?;
    publish_words(engine, &vm);
    flags::enable_debug_non_safepoints(&engine.live(), &vm.layout);
    let jvm = HotSpot {
        java_vm: caller.java_vm,
        jvmti: caller.jvmti,
        fields,
        vm: SharedVm::new(vm),
        engine,
        virtual_threads: OnceLock::new(),
        stubs: Stubs::new(),
    };
    let agent = hotspot::publish(Recorder::new(jvm, source));
    // Megabytes of tables, which the recording would read again.
    agent.libraries.put(modules.own_images());
    hook::install(&agent.runtime, caller.env);
    engine.set_walk(dwell_walk_hook);
    Ok(agent)
}

fn publish_words(engine: &'static Engine, vm: &Vm) {
    let layout = &vm.layout;
    let anchor = layout.thread_anchor;
    let at = |offset: u64| u32::try_from(anchor.wrapping_add(offset)).unwrap_or(u32::MAX);
    let words = engine.words();
    // `JavaThread::_saved_exception_pc`: the last poll at which compiled code stopped.
    words.set_word(u32::try_from(layout.thread_poll_pc).unwrap_or(u32::MAX));
    // Once this is set, the JVM's handler stops every thread that enters it. Such a thread may hold
    // malloc's lock, which the error report needs.
    words.set_ending(vm.first_error_at);
    words.set_anchor(
        at(layout.anchor_sp),
        at(layout.anchor_pc),
        at(layout.anchor_fp),
    );
}

/// Whether the calling thread, with this kernel id, has been a Java thread before and is one again.
pub fn returns(agent: &'static Agent, env: Env, thread: Object, tid: i32) -> bool {
    let fields = &agent.runtime.fields;
    let java_thread = fields.java_thread(env, thread);
    java_thread != 0 && agent.returns(tid, java_thread, fields.id(env, thread) as u64)
}

/// Registers a Java thread; `own_tid` is set on the thread itself.
pub fn register(agent: &'static Agent, env: Env, thread: Object, own_tid: Option<i32>) {
    let jvm = &agent.runtime;
    let java_thread = jvm.fields.java_thread(env, thread);
    if java_thread == 0 {
        return;
    }
    let live = agent.engine.live();
    let layout = &jvm.vm().layout;
    let tid = match own_tid {
        Some(tid) => tid,
        None => vm_threads::kernel_id(&live, layout, java_thread).unwrap_or(0),
    };
    if tid <= 0 {
        return;
    }
    let is_carrier = is_carrier(live, jvm.vm(), java_thread);
    if is_carrier {
        let find = || VirtualThreads::find(jvm.vm(), live, env);
        jvm.virtual_threads.get_or_init(find);
    }
    agent.saw(Seen {
        name: threads::describe(jvm.jvmti, env, &jvm.fields, thread, tid),
        managed: java_thread,
        stack_high: vm_threads::stack_high(&live, layout, java_thread).unwrap_or(0),
        starts: own_tid.is_some(),
    });
    if is_carrier && let Some(record) = agent.registry.get(tid) {
        agent.engine.must_signal(record);
    }
}

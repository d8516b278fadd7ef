//! Carries out commands: start, stop, dump, status.

use crate::agent::Agent;
use crate::drain::census::Census;
use crate::hook;
use crate::jvm::api;
use crate::jvm::environment;
use crate::jvm::threads;
use crate::jvm::virtual_threads::{VirtualThreads, is_carrier};
use crate::jvm::vm::SharedVm;
use crate::jvm::{Vm, flags, stubs::Stubs};
use crate::native::Modules;
use crate::options::{Command, EngineChoice, Options};
use crate::pauses::Pauses;
use crate::record::file::RecordingFile;
use crate::registry::Registry;
use crate::session::{Session, Setup, target_path};
use crate::sys::process;
use crate::vantage::dwell_walk_hook;
use crate::wall::shelf::Shelf;
use dwell_signal::{Config, Engine, EngineKind, PerfLevel, Registration};
use dwell_walker::hotspot::threads as vm_threads;
use jvm_sys::jni::Object;
use jvm_sys::{Env, JavaVm, Jvmti};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Who carries a command out: the VM and the calling thread's environment.
#[derive(Clone, Copy)]
pub struct Caller {
    /// The VM.
    pub java_vm: JavaVm,
    /// The calling thread's JNI environment.
    pub env: Env,
    /// The agent's JVMTI environment, if it was made before.
    pub jvmti: Jvmti,
}

/// Carries out `options.command`.
///
/// # Errors
/// One line for the user.
pub fn run(caller: Caller, options: &Options, text: &str) -> Result<String, String> {
    match options.command {
        Command::Start => start(caller, options, text),
        Command::Stop => with_session("stop", |slot| {
            let Some(mut session) = slot.take() else {
                return Err(not_recording());
            };
            let in_time = session.stop();
            let status = session.status("stopped");
            if let Some(agent) = Agent::get() {
                end_events(agent);
                *agent.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
            }
            if in_time {
                Ok(status)
            } else {
                Err("the rest was not written within 10 s".into())
            }
        }),
        Command::Dump => with_session("dump", |slot| match slot {
            Some(session) if session.dump() => Ok(session.status("running")),
            Some(_) => Err("the recording was not written within 10 s".into()),
            None => Err(not_recording()),
        }),
        Command::Status => with_session("status", |slot| match slot {
            Some(session) => Ok(session.status("running")),
            None => Ok(last_status().unwrap_or_else(|| "state=stopped\n".into())),
        }),
    }
}

/// What was recorded last.
fn last_status() -> Option<String> {
    let last = &Agent::get()?.last;
    let last = last.lock().unwrap_or_else(PoisonError::into_inner);
    last.clone()
}

fn not_recording() -> String {
    "nothing is being recorded in this JVM; use 'dwell start' or 'dwell record'".into()
}

fn with_session(
    what: &str,
    action: impl FnOnce(&mut Option<Session>) -> Result<String, String>,
) -> Result<String, String> {
    match Agent::get() {
        Some(agent) => action(&mut agent.session.lock().unwrap_or_else(PoisonError::into_inner)),
        None if what == "status" => Ok("state=stopped\n".into()),
        None => Err(not_recording()),
    }
}

fn start(caller: Caller, options: &Options, text: &str) -> Result<String, String> {
    let agent = the_agent(caller, options.engine)?;
    let mut slot = agent.session.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(session) = &*slot {
        let path = session.path().display();
        return Err(format!(
            "already recording to {path}; use 'dwell stop' first"
        ));
    }
    check_engine(agent, options.engine)?;
    let path = target_path(options);
    let file = RecordingFile::create(&path)
        .map_err(|e| format!("file={}: cannot create it: {e}", path.display()))?;
    let path = file.path().to_owned();
    let setup = setup(agent, options, text, file);
    environment::set_events(agent.jvmti, true);
    register_all(agent, caller.env);
    api::connect(agent.jvmti, caller.env);
    let session = Session::start(setup, path)?;
    let status = session.status("running");
    *slot = Some(session);
    Ok(status)
}

fn setup(agent: &'static Agent, options: &Options, text: &str, file: RecordingFile) -> Setup {
    let kernel_frames = matches!(agent.engine.kind(), EngineKind::Perf { kernel: true });
    Setup {
        agent,
        engine: agent.engine,
        options: options.clone(),
        option_text: text.to_owned(),
        file: Mutex::new(Some(file)),
        kernel_frames,
        counters_at_start: agent.engine.counters(),
        cpu_at_start: process::cpu_split(),
        process_cpu_at_start: process::process_cpu(),
        jvm_name: environment::property(agent.jvmti, c"java.vm.name"),
        jvm_version: environment::property(agent.jvmti, c"java.vm.version"),
        jvm_start_epoch_ms: process::start_epoch_ms(),
        shelf: Shelf::default(),
        stops: crate::stops::shelf::Shelf::default(),
    }
}

/// The agent, made now if there is none. Two may ask at once: whoever attaches while the JVM starts
/// with the agent on its command line.
fn the_agent(caller: Caller, choice: EngineChoice) -> Result<&'static Agent, String> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    match Agent::get() {
        Some(agent) => Ok(agent),
        None => make_agent(caller, choice),
    }
}

fn make_agent(caller: Caller, choice: EngineChoice) -> Result<&'static Agent, String> {
    let (kind, reason) = choose_engine(choice)?;
    let config = Config {
        engine: kind,
        fd_end: process::fd_end(),
        ..Config::default()
    };
    // One that failed after this has left the engine behind.
    let engine = match Engine::get() {
        Some(engine) => engine,
        None => dwell_signal::init(&config).map_err(|e| e.to_string())?,
    };
    let modules = Modules::new_without_tables();
    let vm = Vm::load(engine.live(), &modules, Some(caller.env)).map_err(|e| e.to_string())?;
    let fields = threads::ThreadFields::find(caller.env)
        .ok_or("java.lang.Thread has no field eetop in this JVM")?;
    publish_offsets(engine, &vm);
    flags::enable_debug_non_safepoints(&engine.live(), &vm.layout);
    let agent = Agent::publish(Agent {
        java_vm: caller.java_vm,
        jvmti: caller.jvmti,
        fields,
        vm: SharedVm::new(vm),
        engine,
        engine_reason: reason,
        threads: threads::ThreadTable::new(),
        registry: Registry::default(),
        virtual_threads: OnceLock::new(),
        pauses: Pauses::default(),
        stubs: Stubs::new(),
        session: Mutex::new(None),
        last: Mutex::new(None),
    });
    hook::install(agent, caller.env);
    engine.set_walk(dwell_walk_hook);
    Ok(agent)
}

fn choose_engine(choice: EngineChoice) -> Result<(EngineKind, String), String> {
    if choice == EngineChoice::Timer {
        return Ok((EngineKind::Timer, "asked for".into()));
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if dwell_signal::perf_hangs(&release) {
        let why = format!(
            "perf events of Linux {} can hang the machine",
            release.trim()
        );
        return match choice {
            EngineChoice::Perf => Err(format!("engine=perf: {why}; use engine=timer")),
            _ => Ok((EngineKind::Timer, why)),
        };
    }
    match dwell_signal::perf_permitted() {
        Ok(PerfLevel { kernel }) => {
            let reason = if kernel {
                "perf events are permitted"
            } else {
                "perf events are permitted in user mode only (kernel.perf_event_paranoid)"
            };
            Ok((EngineKind::Perf { kernel }, reason.into()))
        }
        Err(errno) if choice == EngineChoice::Perf => Err(format!(
            "engine=perf: perf_event_open is refused ({errno}); use engine=timer, or lower \
             kernel.perf_event_paranoid"
        )),
        Err(errno) => Ok((
            EngineKind::Timer,
            format!("perf_event_open is refused ({errno})"),
        )),
    }
}

/// The engine is made once per process; another one than it was made with cannot be had later.
fn check_engine(agent: &Agent, choice: EngineChoice) -> Result<(), String> {
    let is_timer = agent.engine.kind() == EngineKind::Timer;
    match choice {
        EngineChoice::Timer if !is_timer => {
            Err("engine=timer: this JVM was recorded with perf events before; restart it".into())
        }
        EngineChoice::Perf if is_timer => {
            Err("engine=perf: this JVM was recorded with timers before; restart it".into())
        }
        _ => Ok(()),
    }
}

fn publish_offsets(engine: &'static Engine, vm: &Vm) {
    let layout = &vm.layout;
    let anchor = layout.thread_anchor;
    let at = |offset: u64| u32::try_from(anchor.wrapping_add(offset)).unwrap_or(u32::MAX);
    engine
        .offsets()
        .set_thread_state(u32::try_from(layout.thread_state).unwrap_or(u32::MAX));
    engine
        .offsets()
        .set_poll_pc(u32::try_from(layout.thread_poll_pc).unwrap_or(u32::MAX));
    engine.offsets().set_first_error(vm.first_error_at);
    engine.offsets().set_anchor(
        at(layout.anchor_sp),
        at(layout.anchor_pc),
        at(layout.anchor_fp),
    );
}

/// Switches the events off and forgets the threads; nothing of ours runs until the next start.
pub fn end_events(agent: &'static Agent) {
    environment::set_events(agent.jvmti, false);
    agent.registry.clear(|record| {
        record.set_java_thread(0);
        agent.engine.end(record);
    });
    agent.engine.drain(|_| ());
    let mut gone = Vec::new();
    agent.engine.reap(|record| gone.push(record.user()));
    agent.threads.forget(&gone);
}

/// Registers all threads there are: Java threads with their names, then all others.
fn register_all(agent: &'static Agent, env: Env) {
    environment::for_each_thread(agent.jvmti, env, |thread| {
        register(agent, env, thread, None)
    });
    Census::new(agent, true).find(agent.engine);
}

/// Registers a Java thread; `own_tid` is set on the thread itself.
pub fn register(agent: &'static Agent, env: Env, thread: Object, own_tid: Option<i32>) {
    let java_thread = agent.fields.java_thread(env, thread);
    if java_thread == 0 {
        return;
    }
    let live = agent.engine.live();
    let layout = &agent.vm().layout;
    let tid = match own_tid {
        Some(tid) => tid,
        None => vm_threads::kernel_id(&live, layout, java_thread).unwrap_or(0),
    };
    if tid <= 0 {
        return;
    }
    if agent.virtual_threads.get().is_none() && is_carrier(live, agent.vm(), java_thread) {
        let find = || VirtualThreads::find(agent.vm(), env);
        agent.virtual_threads.get_or_init(find);
    }
    let name = threads::describe(agent.jvmti, env, &agent.fields, thread, tid);
    let java_id = name.java_id as u64;
    let stack_hi = vm_threads::stack_high(&live, layout, java_thread).unwrap_or(0);
    agent.registry.add_or_update(
        tid,
        own_tid.is_some(),
        |newborn| {
            let user = agent.threads.add(name.clone());
            let record = agent
                .engine
                .register(&Registration {
                    tid,
                    java_thread,
                    stack_lo: 0,
                    stack_hi,
                    seed: agent.threads.seed(user),
                    newborn,
                    user,
                })
                .ok()?;
            record.set_java_id(java_id);
            Some(record)
        },
        |record| {
            record.set_java_thread(java_thread);
            record.set_java_id(java_id);
            agent.threads.set(record.user(), name.clone());
        },
    );
}

//! A recording of a JVM that is made up ([`crate::jvm::made_up`]), for unit tests: it calls no JVM
//! and writes no file. Tests only.

use super::{Agent, HotSpot, Setup};
use crate::jvm::Vm;
use crate::jvm::stubs::Stubs;
use crate::jvm::threads::ThreadFields;
use crate::jvm::vm::SharedVm;
use dwell_recorder::ended::EndOfSampling;
use dwell_recorder::looks::shelf::Shelf;
use dwell_recorder::options::{EngineChoice, Options};
use dwell_recorder::recorder::Recorder;
use dwell_recorder::runtime::About;
use dwell_recorder::source::Source;
use dwell_recorder::switched::Switched;
use jvm_sys::{JavaVm, Jvmti};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// The engine of this process, which does not run.
pub fn source() -> Source {
    static SOURCE: OnceLock<Mutex<Source>> = OnceLock::new();
    let source = SOURCE.get_or_init(|| Source::start(EngineChoice::Timer).unwrap().into());
    source.lock().unwrap().clone()
}

/// A recording of a JVM with these structures, which calls no JVM.
pub fn recording(vm: Vm) -> Setup {
    let source = source();
    let engine = source.engine;
    let jvm = HotSpot {
        java_vm: JavaVm(std::ptr::null_mut()),
        jvmti: Jvmti(std::ptr::null_mut()),
        fields: ThreadFields::made_up(),
        vm: SharedVm::new(vm),
        engine,
        virtual_threads: OnceLock::new(),
        stubs: Stubs::new(),
    };
    let agent: &'static Agent = Box::leak(Box::new(Recorder::new(jvm, source)));
    Setup {
        recorder: agent,
        engine,
        options: Options::default(),
        switched: Switched::default(),
        file: Mutex::new(None),
        kernel_frames: false,
        counters_at_start: engine.counters(),
        cpu_at_start: (Duration::ZERO, Duration::ZERO),
        process_cpu_at_start: Duration::ZERO,
        callbacks_at_start_ns: 0,
        about: About::default(),
        start_epoch_ms: 0,
        shelf: Shelf::default(),
        stops: dwell_recorder::stops::Shelf::default(),
        end: EndOfSampling::default(),
        shared: Default::default(),
    }
}

//! What is made once per process and never freed: callbacks may arrive as long as the JVM lives.

use crate::jvm::Vm;
use crate::jvm::stubs::Stubs;
use crate::jvm::threads::{ThreadFields, ThreadTable};
use crate::jvm::virtual_threads::VirtualThreads;
use crate::jvm::vm::SharedVm;
use crate::pauses::Pauses;
use crate::registry::Registry;
use crate::session::Session;
use dwell_signal::Engine;
use jvm_sys::{JavaVm, Jvmti};
use std::sync::{Mutex, OnceLock};

/// The agent.
pub struct Agent {
    /// The JVM.
    pub java_vm: JavaVm,
    /// The agent's own environment.
    pub jvmti: Jvmti,
    /// Fields of `java.lang.Thread`.
    pub fields: ThreadFields,
    /// The JVM's structures; see [`Agent::vm`].
    pub vm: SharedVm,
    /// The sampling engine.
    pub engine: &'static Engine,
    /// Why this engine, for `status` and the file.
    pub engine_reason: String,
    /// Who threads are.
    pub threads: ThreadTable,
    /// Which threads are registered.
    pub registry: Registry,
    /// What is known of virtual threads, once there are any; `None` in it: they cannot be found.
    pub virtual_threads: OnceLock<Option<VirtualThreads>>,
    /// Pauses of the collector that are not written yet.
    pub pauses: Pauses,
    /// Names of the VM's stubs.
    pub stubs: Stubs,
    /// The recording that runs, if one does.
    pub session: Mutex<Option<Session>>,
    /// What `status` says of the last recording.
    pub last: Mutex<Option<String>>,
}

static AGENT: OnceLock<Agent> = OnceLock::new();

impl Agent {
    /// The agent, once made.
    #[must_use]
    pub fn get() -> Option<&'static Agent> {
        AGENT.get()
    }

    /// The JVM's structures, as far as they are known by now.
    #[must_use]
    pub fn vm(&self) -> &'static Vm {
        self.vm.get()
    }

    /// Completes what is known of the JVM, if there is something new; true if there was.
    pub fn complete_vm(&self) -> bool {
        let completed = self.vm().completed(self.engine.live());
        completed.map(|vm| self.vm.replace(vm)).is_some()
    }

    /// Makes it known; the first one stays.
    pub fn publish(agent: Agent) -> &'static Agent {
        AGENT.get_or_init(|| agent)
    }
}

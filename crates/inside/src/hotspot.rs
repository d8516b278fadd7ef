//! The JVM in this process. Created once and never freed, because callbacks may arrive as long as
//! the JVM lives.

#[cfg(test)]
pub(crate) mod made_up;

use crate::jvm::Vm;
use crate::jvm::stubs::Stubs;
use crate::jvm::threads::ThreadFields;
use crate::jvm::virtual_threads::VirtualThreads;
use crate::jvm::vm::SharedVm;
use dwell_recorder::recorder::Recorder;
use dwell_signal::Engine;
use jvm_sys::{JavaVm, Jvmti};
use std::sync::OnceLock;

/// The JVM in this process.
pub struct HotSpot {
    /// The JVM.
    pub java_vm: JavaVm,
    /// The agent's own environment.
    pub jvmti: Jvmti,
    /// Fields of `java.lang.Thread`.
    pub fields: ThreadFields,
    /// The JVM's structures; see [`HotSpot::vm`].
    pub vm: SharedVm,
    /// The sampling engine.
    pub engine: &'static Engine,
    /// The JDK's sets of virtual threads, once there are any; `None` in it: they cannot be found.
    pub virtual_threads: OnceLock<Option<VirtualThreads>>,
    /// Names of the VM's stubs.
    pub stubs: Stubs,
}

/// The agent: a recorder of a JVM.
pub type Agent = Recorder<HotSpot>;
/// The parts of a recording of a JVM.
pub type Setup = dwell_recorder::runtime::setup::Setup<HotSpot>;

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, once made.
#[must_use]
pub fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// Publishes the agent. The first one stays.
pub fn publish(agent: Agent) -> &'static Agent {
    AGENT.get_or_init(|| agent)
}

impl HotSpot {
    /// The JVM's structures that are known by now.
    #[must_use]
    pub fn vm(&self) -> &'static Vm {
        self.vm.get()
    }

    /// The JDK's sets of virtual threads, if they can be found.
    #[must_use]
    pub fn virtual_threads(&self) -> Option<&VirtualThreads> {
        self.virtual_threads.get()?.as_ref()
    }
}

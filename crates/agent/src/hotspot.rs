//! HotSpot as a runtime: what a recording asks of it, and where that is. Made once per process and
//! never freed: callbacks may arrive as long as the JVM lives.

use crate::drain::JavaWalks;
use crate::hook;
use crate::jvm::Vm;
use crate::jvm::environment;
use crate::jvm::stubs::Stubs;
use crate::jvm::threads::ThreadFields;
use crate::jvm::virtual_threads::VirtualThreads;
use crate::jvm::vm::{LIBRARY, SharedVm};
use crate::stops::StopWatcher;
use crate::stops::glance::Glance;
use crate::vantage::{self, WalkingThread};
use crate::wall::JavaLooks;
use dwell_recorder::recorder::Recorder;
use dwell_recorder::runtime::{About, Runtime};
use dwell_signal::{Engine, ThreadRecord};
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
    /// What is known of virtual threads, once there are any; `None` in it: they cannot be found.
    pub virtual_threads: OnceLock<Option<VirtualThreads>>,
    /// Names of the VM's stubs.
    pub stubs: Stubs,
}

/// The agent: a recorder of a JVM.
pub type Agent = Recorder<HotSpot>;
/// What a recording of a JVM works with.
pub type Setup = dwell_recorder::session::Setup<HotSpot>;

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, once made.
#[must_use]
pub fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// Makes the agent known; the first one stays.
pub fn publish(agent: Agent) -> &'static Agent {
    AGENT.get_or_init(|| agent)
}

impl HotSpot {
    /// The JVM's structures, as far as they are known by now.
    #[must_use]
    pub fn vm(&self) -> &'static Vm {
        self.vm.get()
    }

    /// Completes what is known of the JVM, if there is something new; true if there was.
    pub fn complete(&self) -> bool {
        let Some(vm) = self.vm().completed(self.engine.live()) else {
            return false;
        };
        self.vm.replace(vm);
        hook::update(self);
        true
    }

    /// What is known of virtual threads, if they can be found.
    #[must_use]
    pub fn virtual_threads(&self) -> Option<&VirtualThreads> {
        self.virtual_threads.get()?.as_ref()
    }
}

impl Runtime for HotSpot {
    const PROCESS: &'static str = "JVM";
    const TELLS_ALLOCATIONS: bool = true;
    const TELLS_WAITS: bool = true;

    type Walks = JavaWalks;
    type Looks = JavaLooks;
    type Watch = StopWatcher;
    type Shared = Glance;

    fn about(&self) -> About {
        About {
            name: environment::property(self.jvmti, c"java.vm.name"),
            version: environment::property(self.jvmti, c"java.vm.version"),
        }
    }

    fn is_own_library(name: &str) -> bool {
        name == LIBRARY
    }

    fn can_walk(&self) -> bool {
        vantage::is_ready()
    }

    fn server(&self) -> impl FnOnce() + Send + 'static {
        let thread = WalkingThread::new(self.engine);
        move || thread.run()
    }

    fn renamed(&self, record: &ThreadRecord, mark: &mut u64) -> Option<String> {
        let (live, vm) = (self.engine.live(), self.vm());
        vm.names.of_platform(&live, &vm.layout, record, mark)
    }
}

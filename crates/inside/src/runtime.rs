//! HotSpot's side of the recorder's interface to a runtime.

use crate::drain::JavaWalks;
use crate::hotspot::HotSpot;
use crate::jvm::environment;
use crate::jvm::vm::LIBRARY;
use crate::stops::StopWatcher;
use crate::stops::glance::Glance;
use crate::vantage::{self, WalkingThread};
use crate::wall::JavaLooks;
use dwell_recorder::runtime::{About, Runtime};
use dwell_signal::ThreadRecord;
use dwell_wall::waits::Waits;

impl Runtime for HotSpot {
    const PROCESS: &'static str = "JVM";
    const TELLS_ALLOCATIONS: bool = true;
    const TELLS_WAITS: bool = true;
    const WAITS: &'static Waits = &dwell_jdk::WAITS;

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

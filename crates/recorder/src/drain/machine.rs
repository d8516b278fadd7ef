//! The CPU load of the machine, by the second: CPU time of all processes on the processors that
//! this one may use, and its own in the same time.

use super::process_cpu::ProcessCpu;
use crate::sys::process;
use dwell_host::Whose;
use dwell_host::used::Account;
use dwell_jfr::writer::Event;

/// The account.
#[derive(Debug)]
pub struct Machine {
    own: ProcessCpu,
    account: Account,
}

impl Default for Machine {
    /// From now on.
    fn default() -> Machine {
        let mut own = ProcessCpu::default();
        let used_ns = used_ns(&mut own);
        Machine {
            account: Account::begin(Whose::Own, process::monotonic_ns(), used_ns),
            own,
        }
    }
}

impl Machine {
    /// CPU time used since the last report, if it is known: with very many threads not each time.
    pub fn told(&mut self) -> Option<Event<'static>> {
        let own = &mut self.own;
        let told = self
            .account
            .told(process::monotonic_ns(), || used_ns(own))?;
        Some(Event::Machine {
            ticks: told.began_ns,
            duration_ticks: told.duration_ns,
            processors: told.sums.processors,
            busy_ns: told.sums.busy,
            own_ns: told.own_ns,
            idle_ns: told.sums.idle,
            stolen_ns: told.sums.stolen,
        })
    }
}

fn used_ns(own: &mut ProcessCpu) -> Option<u64> {
    let (user, system) = own.ask()?;
    u64::try_from((user + system).as_nanos()).ok()
}

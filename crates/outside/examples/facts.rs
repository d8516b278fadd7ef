//! Prints the facts that dwell finds about a JVM, to examine one whose stacks cannot be read.

use dwell_outside::look::{Looker, Whom};
use dwell_outside::task::Tasks;
use dwell_outside::{Live, Vm};
use dwell_walker::hotspot::threads;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid: u32 = std::env::args().nth(1).ok_or("which pid?")?.parse()?;
    let target = dwell_attach::Target::examine(pid)?;
    let live = Live::open(pid)?;
    let vm = Vm::read(&target, &live)?;
    vm.layout
        .for_each(|name, value| println!("{name} {value:#x}"));
    println!("{:#?}", vm.layout.extra);
    println!("{:#?} {:#?} {:#x?}", vm.thread, vm.strings, vm.classes);
    let looker = Looker {
        vm: &vm,
        tasks: Tasks::new(pid, target.jvm().ns_pid),
        common: None,
        sockets: Default::default(),
    };
    threads::for_each(&live, &vm.layout, |java_thread| {
        let tid = threads::kernel_id(&live, &vm.layout, java_thread).unwrap_or(0);
        let high = threads::stack_high(&live, &vm.layout, java_thread);
        let whom = Whom { tid, java_thread };
        let seen = looker
            .look(whom)
            .map(|(seen, _)| (seen.monitor, seen.wanted));
        println!("{java_thread:#x} {tid} stack to {high:x?}: {seen:x?}");
    })
    .map_err(|_| "the list of threads cannot be read")?;
    Ok(())
}

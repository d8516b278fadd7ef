//! The drainer's part for a JVM: it walks copies of stacks, names methods and reads counters. It
//! reads all of this in the JVM's memory, fault-tolerantly, and never calls the JVM.

pub mod compilers;
pub mod freezer;
pub mod moment;

use crate::hook;
use crate::hotspot::{HotSpot, Setup};
use crate::jvm::methods::Methods;
use crate::stops::counted::Counted;
use crate::vantage::{self, context_of, registers_of};
use compilers::Compilers;
use dwell_jfr::writer::Event;
use dwell_recorder::drain::splice::{Splice, Stack};
#[cfg(feature = "experiments")]
use dwell_recorder::experiments;
use dwell_recorder::native::Modules;
use dwell_recorder::record::names::{Name, NameId, Names};
use dwell_recorder::runtime::{Changes, Named, Walks};
use dwell_recorder::stops::Shelf;
use dwell_signal::{Live, Slot};
use dwell_walker::cache::{PcCache, Slot as CacheSlot};
use dwell_walker::hotspot::names as vm_names;
use dwell_walker::native::NativeCode;
use dwell_walker::{Frame, Host, Memory, ThreadContext, Walk, Walker};
use freezer::Freezer;
use moment::Moment;

/// Return addresses in the cache.
const CACHE_ENTRIES: usize = 4096;

/// Walks and names for one recording.
pub struct JavaWalks {
    jvm: &'static HotSpot,
    live: Live,
    methods: Methods,
    /// Cached meanings of return addresses.
    cache: Box<[CacheSlot]>,
    /// Stacks that were walked since the last safepoint.
    splice: Splice,
    moment: Moment,
    freezer: Freezer,
    counted_stops: Counted,
    compilers: Compilers,
    #[cfg(feature = "experiments")]
    experiment: Option<experiments::Experiment>,
    #[cfg(feature = "experiments")]
    comparison: experiments::Comparison,
    /// Time since which walks in handlers use the same libraries and structures as walks of copies.
    #[cfg(feature = "experiments")]
    published_ns: std::cell::Cell<u64>,
}

impl Walks<HotSpot> for JavaWalks {
    fn new(setup: &Setup) -> JavaWalks {
        let jvm = &setup.recorder.runtime;
        let (live, layout) = (setup.engine.live(), &jvm.vm().layout);
        JavaWalks {
            jvm,
            live,
            methods: Methods::new(),
            cache: vec![CacheSlot::empty(); CACHE_ENTRIES].into_boxed_slice(),
            splice: Splice::default(),
            moment: Moment::new(&live, layout),
            freezer: Freezer::new(&setup.options),
            counted_stops: Counted::new(setup),
            compilers: Compilers::new(&live, layout),
            #[cfg(feature = "experiments")]
            experiment: setup.options.experiment,
            #[cfg(feature = "experiments")]
            comparison: experiments::Comparison::default(),
            #[cfg(feature = "experiments")]
            published_ns: std::cell::Cell::new(0),
        }
    }

    fn begin(&mut self, moved: bool) -> Changes {
        let has_new = hook::complete(self.jvm);
        self.methods.begin_batch();
        let is_another_moment = self.moment.is_another(&self.live) || moved || has_new;
        if is_another_moment {
            self.splice.clear();
        }
        Changes {
            has_new,
            is_another_moment,
        }
    }

    fn publish(&self, modules: &Modules) {
        vantage::publish(self.jvm.vm(), modules);
        #[cfg(feature = "experiments")]
        self.published_ns
            .set(dwell_recorder::sys::process::monotonic_ns());
    }

    fn walk<N: NativeCode>(&mut self, slot: &Slot<'_>, native: &N, frames: &mut [Frame]) -> Walk {
        let live = self.live;
        #[cfg(feature = "experiments")]
        if self.experiment == Some(experiments::Experiment::NoCopy) {
            return self.walk_in(&live, slot, native, frames);
        }
        let memory = slot.memory(live);
        #[cfg(feature = "experiments")]
        let memory = experiments::Faulty::new(memory);
        let walk = self.walk_in(&memory, slot, native, frames);
        #[cfg(feature = "experiments")]
        if !slot.frames().is_empty() {
            let from_copy = frames.get(..walk.len).unwrap_or(&[]);
            let moved = slot.header().time_ns <= self.published_ns.get();
            self.comparison
                .add(slot.header(), &live, slot.frames(), from_copy, moved);
        }
        walk
    }

    fn name(&mut self, frame: &Frame, names: &mut Names) -> Option<Named> {
        let (live, layout) = (&self.live, &self.jvm.vm().layout);
        let name = self.methods.name(live, layout, names, frame.id)?;
        Some(Named {
            name,
            line: self.methods.line(live, layout, frame.id, frame.bci),
            bci: frame.bci,
        })
    }

    fn stub(&mut self, pc: u64, names: &mut Names) -> NameId {
        if let Some(name) = self.jvm.stubs.name(pc) {
            return names.add(Name::native("[stub]", &name));
        }
        let (live, vm) = (&self.live, self.jvm.vm());
        let blob = vm.code.find(live, &vm.layout, pc).ok().flatten();
        let mut buf = [0u8; 128];
        let name = blob.and_then(|b| vm_names::blob(live, &vm.layout, b.addr, &mut buf).ok());
        let name = String::from_utf8_lossy(name.unwrap_or(b"stub")).into_owned();
        names.add(Name::native("[stub]", &name))
    }

    fn forget_names(&mut self) {
        self.methods.clear();
    }

    fn flush(&mut self, shelf: &Shelf, is_last: bool) {
        self.counted_stops.take(&self.live, shelf, is_last);
    }

    fn account(&mut self, tell: &mut dyn FnMut(&Event<'_>)) {
        if let Some(compiled) = self.compilers.growth(&self.live) {
            tell(&compiled);
        }
    }
}

impl JavaWalks {
    fn walk_in<M: Memory, N: NativeCode>(
        &mut self,
        memory: &M,
        slot: &Slot<'_>,
        native: &N,
        frames: &mut [Frame],
    ) -> Walk {
        let vm = self.jvm.vm();
        let walker = Walker {
            machine: Host,
            mem: memory,
            layout: &vm.layout,
            code: &vm.code,
            native,
            cache: Some(PcCache::new(&self.cache)),
        };
        let header = slot.header();
        let registers = registers_of(header);
        let context = context_of(header, memory);
        let is_java = vantage::begins_in_java(header);
        let walk = match stack_of(slot, &context) {
            Some(stack) => self.splice.walk(stack, frames, |known| match is_java {
                true => walker.walk_java(&context, known),
                false => walker.walk(registers, &context, known),
            }),
            None if is_java => walker.walk_java(&context, frames),
            None => walker.walk(registers, &context, frames),
        };
        // A frozen walk includes its first registers.
        if !is_java {
            self.freezer.offer(&walker, registers, &context, &walk);
        }
        walk
    }
}

/// The copy of a stack, if it is complete and has no continuation.
fn stack_of<'a>(slot: &Slot<'a>, context: &ThreadContext) -> Option<Stack<'a>> {
    let (header, bytes) = (slot.header(), slot.stack());
    let is_whole = !bytes.is_empty() && !context.cut && context.cont_entry == 0;
    is_whole.then_some(Stack {
        thread: header.user,
        low: header.stack_lo,
        bytes,
    })
}

#[cfg(test)]
mod tests;

//! The virtual thread of a sample, found by the continuation on the copied stack, so that it is the
//! one of that moment. Must not ask the thread what it carries now.

use crate::look::{Looker, Trail};
use crate::names::Named;
use crate::running::Copied;
use crate::vm::Vm;
use dwell_walker::hotspot::continuation::{entered, reference};
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::{fields, objects};
use dwell_walker::{Failure, Fault, Frame, Memory};

const CONTINUATION: &str = "jdk/internal/vm/Continuation";
const VIRTUAL: &str = "java/lang/VirtualThread";
/// Maximum length of a name.
const NAME_CHARS_MAX: u32 = 512;

/// A virtual thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Virtual {
    /// `Thread.threadId()`.
    pub id: u64,
    /// Its name, which may be empty.
    pub name: String,
}

/// Bytes of a word.
const WORD: usize = 8;
/// Bytes of a continuation's entry up to parent and continuation.
const ENTRY_BYTES: usize = 3 * WORD;
/// Stands for frozen frames that exist but are unknown.
pub const UNKNOWN_FRAMES: u64 = 1;
/// Maximum number of candidates for the entry of a continuation in one stack.
const ENTRIES_MAX: usize = 64;
/// Maximum number of words of arguments on the stack.
const ARGUMENTS_MAX: usize = 8;

/// Offsets of the fields by which a continuation and its thread refer to each other.
#[derive(Clone, Copy, Debug)]
pub struct Mounted {
    target: u64,
    cont: u64,
}

impl Mounted {
    /// Finds the offsets; `None` if this JDK has no virtual threads.
    #[must_use]
    pub fn find(vm: &Vm<'_>) -> Option<Mounted> {
        let found = Mounted {
            target: vm.field(CONTINUATION, "target", "Ljava/lang/Runnable;"),
            cont: vm.field(VIRTUAL, "cont", "Ljdk/internal/vm/Continuation;"),
        };
        (present(found.target) && present(found.cont)).then_some(found)
    }

    /// Entry of the continuation that the thread ran when its stack was copied; 0 for none. `now`
    /// is the present entry. The stack decides, because the thread may have run others since.
    #[must_use]
    pub fn entry<M: Memory>(vm: &Vm<'_>, mem: &M, copied: &Copied, now: u64) -> u64 {
        let (layout, extra) = (&vm.layout, &vm.layout.extra);
        let is_one = |entry: &u64| {
            let class = entered(mem, *entry)
                .and_then(|it| objects::class_of(mem, layout, extra.objects.class_word, it));
            let name = CONTINUATION.as_bytes();
            class.and_then(|class| objects::is_kind_of(mem, layout, class, name)) == Ok(true)
        };
        if now != 0 && now >= copied.regs.sp && is_one(&now) {
            return now;
        }
        // The continuation's outermost frame returns to one of these, or to the frames in the heap.
        // There may be arguments between it and the entry.
        let returns = [extra.return_barrier, extra.cont_return_pc].map(u64::to_ne_bytes);
        let words = copied.stack.chunks_exact(WORD).enumerate().skip(1);
        let after = words
            .filter(|(_, word)| returns.iter().any(|it| it == word) && *word != [0; WORD])
            .flat_map(|(index, _)| (index + 1)..=(index + ARGUMENTS_MAX))
            .map(|index| copied.low().wrapping_add((index * WORD) as u64));
        after.take(ENTRIES_MAX).find(is_one).unwrap_or(0)
    }

    /// Whether the frames of the continuation in the heap are unchanged since the stack was copied:
    /// it is still mounted, and the frame that returns to them is at the same place. Otherwise
    /// frames may have been frozen since, and would appear twice.
    #[must_use]
    pub fn stands(looker: &Looker<'_, '_>, java_thread: u64, copied: &Copied, entry: u64) -> bool {
        let barrier = looker.vm.layout.extra.return_barrier;
        let below = entry.checked_sub(copied.low());
        let below = below.and_then(|len| copied.stack.get(..usize::try_from(len).ok()?));
        let words = below.unwrap_or(&[]).chunks_exact(WORD).enumerate();
        let mut returns = words.filter(|(_, word)| **word == barrier.to_ne_bytes());
        let Some((index, _)) = returns.next_back().filter(|_| barrier != 0) else {
            // It has no frames in the heap, or none that the copy leads to.
            return true;
        };
        // From the caller's frame pointer up to the entry, inclusive.
        let from = (index * WORD).saturating_sub(WORD);
        let to = below.map_or(0, <[u8]>::len) + ENTRY_BYTES;
        let Some(then) = copied.stack.get(from..to) else {
            return false;
        };
        let mut now = vec![0; then.len()];
        let read = looker.vm.live.read(copied.low() + from as u64, &mut now);
        read.is_ok() && now == then && looker.continuation(java_thread) == entry
    }

    /// The virtual thread whose continuation, entered at `entry`, has the frames. `None` also if a
    /// collector has moved it since.
    #[must_use]
    pub fn of_sample<M: Memory>(
        &self,
        vm: &Vm<'_>,
        mem: &M,
        (trail, failure): (&Trail, Option<Failure>),
        entry: u64,
        named: &[(Named, &Frame)],
    ) -> Option<Virtual> {
        // The outermost continuation belongs to the thread; others may be nested.
        let outermost = named.iter().rposition(|(name, _)| is_entry(name));
        let at = match outermost {
            Some(index) => trail.places.iter().find(|(at, _)| *at == index)?.1.sp,
            // There is a continuation, but the frames between are unknown.
            None if failure == Some(Failure::BadContinuation) && entry != 0 => entry,
            None => return None,
        };
        let continuation = entered(mem, at).ok()?;
        let object = self.thread_of(vm, mem, continuation).ok()??;
        of_object(vm, mem, object)
    }

    /// The thread of a continuation. The continuation's target refers to the thread, and the thread
    /// must refer back to the continuation.
    fn thread_of<M: Memory>(
        &self,
        vm: &Vm<'_>,
        mem: &M,
        continuation: u64,
    ) -> Result<Option<u64>, Fault> {
        let layout = &vm.layout;
        let word = layout.extra.objects.class_word;
        let target = reference(mem, layout, continuation.wrapping_add(self.target))?;
        let class = objects::class_of(mem, layout, word, target)?;
        let (name, kind) = (b"val$vthread", b"Ljava/lang/VirtualThread;");
        let Some(at) = fields::offset(mem, layout, class, name, kind)? else {
            return Ok(None);
        };
        let thread = reference(mem, layout, target.wrapping_add(at))?;
        let class = objects::class_of(mem, layout, word, thread)?;
        let is_one = objects::is_kind_of(mem, layout, class, VIRTUAL.as_bytes())?;
        let back = reference(mem, layout, thread.wrapping_add(self.cont))?;
        Ok((is_one && back == continuation).then_some(thread))
    }
}

fn is_entry(name: &Named) -> bool {
    matches!(name, Named::Java { method, .. }
        if method.name == "enterSpecial" && method.class == CONTINUATION)
}

/// The data in the object of a virtual thread.
#[must_use]
pub fn of_object<M: Memory>(vm: &Vm<'_>, mem: &M, object: u64) -> Option<Virtual> {
    let layout = &vm.layout;
    let id = objects::thread_id(mem, &layout.extra.objects, object).ok()?;
    let name = present(vm.thread.name).then(|| object.wrapping_add(vm.thread.name));
    let name = name.and_then(|at| reference(mem, layout, at).ok());
    let name = name.and_then(|text| vm.text(mem, text, NAME_CHARS_MAX));
    (id != 0).then(|| Virtual {
        id,
        name: name.unwrap_or_default(),
    })
}

//! Encoding of field ids, the known structures of a JVM at first and later, and errors for a JVM
//! that cannot be walked.

use super::*;
use crate::jvm::made_up::{self, FIELDS, Jni, NOWHERE, Words, handle, live};
use dwell_walker::Fault;
use dwell_walker::hotspot::objects::ClassWord;

impl Vm {
    /// A JVM with these structures, and no others.
    pub(crate) fn made_up(layout: Layout) -> Vm {
        Vm {
            layout,
            code: CodeCache::default(),
            fields: FieldIds {
                shift: FieldIds::USUAL_SHIFT,
            },
            names: NameFields::EMPTY,
            first_error_at: 0,
            safepoints: None,
            monitor_entry_at: 0,
            return_pc_at: 0,
        }
    }

    /// The same, with the return address of virtual threads in the word `at` once one has run.
    pub(crate) fn with_virtual_threads(mut self, at: Words) -> Vm {
        self.layout.extra.cont_entry = 0x348;
        self.return_pc_at = at.at();
        self
    }
}

const THREAD: &str = "java/lang/Thread";
const OWNABLE: &str = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
/// Offset of its object in a `JavaThread`.
const OBJECT_AT: u64 = 8;

/// A `JavaThread` and its object, whose first field leads back. The memory around it is empty, for
/// reads at any offset.
fn thread(is_handle: bool) -> u64 {
    let thread = Words::zeroes(2);
    let class = made_up::class(THREAD);
    let mut fields = [0; 32];
    fields[0] = thread.at();
    let object = made_up::object(class, &fields).at();
    let held = if is_handle { handle(object) } else { object };
    thread.set(OBJECT_AT, held);
    thread.at()
}

/// A `JavaThread` without an object.
fn without_object() -> u64 {
    Words::new(&[0, NOWHERE]).at()
}

/// A JVM with these threads.
fn layout(threads: &[u64]) -> Layout {
    let mut layout = made_up::layout();
    layout.thread_obj = OBJECT_AT;
    let list = Words::new(&[threads.len() as u64, Words::new(threads).at()]);
    layout.threads_list = Words::new(&[list.at()]).at();
    (layout.threads_list_length, layout.threads_list_threads) = (0, 8);
    layout
}

#[test]
fn field_offset_is_above_the_tag_bits_and_small() {
    let jni = Jni::of_thread();
    let ids = |shift| FieldIds { shift };
    let offset = |shift: u32, id: u64| {
        jni.field(THREAD, "tid", "J", id);
        ids(shift).offset(jni.0, c"java/lang/Thread", c"tid", c"J")
    };
    assert_eq!(offset(2, 16 << 2 | 1), Some(16));
    assert_eq!(offset(3, 16 << 3 | 5), Some(16));
    assert_eq!(offset(2, 511 << 2), Some(511));
    assert_eq!(offset(2, 512 << 2), None, "no object is as large");
    let other = |class, name, kind| ids(2).offset(jni.0, class, name, kind);
    assert_eq!(other(c"java/lang/Thread", c"eetop", c"J"), None);
    assert_eq!(other(c"java/lang/Thread", c"tid", c"I"), None);
    assert_eq!(other(c"java/lang/Fiber", c"tid", c"J"), None);
    assert_eq!(jni.references(), (0, 0), "all references are given back");
}

#[test]
fn tag_width_is_found_by_a_field_with_known_value() {
    let jni = Jni::of_thread();
    let found = |threads: &[u64]| FieldIds::calibrate(live(), &layout(threads), jni.0).shift;
    assert_eq!(found(&[thread(true)]), 2, "no such field");
    for shift in 1..=4 {
        jni.field(THREAD, "eetop", "J", FIELDS[0] << shift);
        for is_handle in [true, false] {
            assert_eq!(found(&[thread(is_handle)]), shift, "{is_handle}");
        }
    }
    jni.field(THREAD, "eetop", "J", FIELDS[0] << 3);
    let mut threads = vec![without_object(); FieldIds::THREADS_TRIED - 1];
    assert_eq!(found(&threads), 2, "no thread leads back");
    threads.push(thread(true));
    assert_eq!(found(&threads), 3);
    threads.insert(0, without_object());
    assert_eq!(found(&threads), 2, "one too many to be asked");
    assert_eq!(jni.references(), (0, 0));
}

#[test]
fn thread_objects_are_known_if_one_leads_back() {
    let jni = Jni::of_thread();
    for (field, (name, kind)) in FIELDS.iter().zip([
        ("eetop", "J"),
        ("tid", "J"),
        ("parkBlocker", "Ljava/lang/Object;"),
    ]) {
        jni.field(THREAD, name, kind, field << 2);
    }
    let owner = "exclusiveOwnerThread";
    jni.field(OWNABLE, owner, "Ljava/lang/Thread;", FIELDS[4] << 2);
    let found = |threads: &[u64]| {
        let mut layout = layout(threads);
        // Wrong until the calibration.
        layout.extra.objects.class_word = ClassWord::Compact;
        thread_objects(&mut layout, live(), jni.0, FieldIds { shift: 2 });
        layout.extra.objects
    };
    let known = Objects {
        class_word: ClassWord::Wide,
        thread_is_handle: true,
        eetop: FIELDS[0],
        tid: FIELDS[1],
        park_blocker: FIELDS[2],
        exclusive_owner: FIELDS[4],
    };
    assert_eq!(found(&[without_object(), thread(true)]), known);
    let before_14 = Objects {
        thread_is_handle: false,
        ..known
    };
    assert_eq!(found(&[thread(false)]), before_14);
    jni.forget(OWNABLE, owner);
    assert_eq!(found(&[thread(true)]).exclusive_owner, ABSENT);
    let nothing = Objects {
        class_word: ClassWord::Compact,
        ..Objects::EMPTY
    };
    assert_eq!(found(&[]), nothing);
    assert_eq!(found(&[without_object()]), nothing);
}

#[test]
fn monitor_entry_is_known_once_the_jvm_has_it() {
    let offset = Words::zeroes(1);
    let mut vm = Vm::made_up(Layout::EMPTY);
    assert_eq!(vm.monitor_entry(live()), ABSENT, "no such symbol");
    vm.monitor_entry_at = offset.at();
    for (value, known) in [(0, ABSENT), (1, 1), (511, 511), (512, ABSENT)] {
        offset.set(0, value);
        assert_eq!(vm.monitor_entry(live()), known);
    }
    vm.monitor_entry_at = NOWHERE;
    assert_eq!(vm.monitor_entry(live()), ABSENT);
}

#[test]
fn vm_is_complete_after_its_first_virtual_thread() {
    let return_pc = Words::zeroes(1);
    let mut vm = Vm::made_up(Layout::EMPTY);
    vm.layout.extra.cont_entry = 0x348;
    let completed = |vm: &Vm| vm.completed(live()).map(|vm| vm.layout.extra);
    assert_eq!(completed(&vm), None, "without virtual threads");
    vm.return_pc_at = NOWHERE;
    assert_eq!(completed(&vm), None);
    vm.return_pc_at = return_pc.at();
    assert_eq!(completed(&vm), None, "none has run yet");
    return_pc.set(0, 0x7000);
    let extra = completed(&vm).unwrap();
    assert_eq!((extra.cont_return_pc, extra.cont_entry), (0x7000, 0x348));
    vm.layout.extra = extra;
    assert_eq!(completed(&vm), None, "there is nothing new");
    vm.layout.extra.cont_entry = ABSENT;
    assert_eq!(completed(&vm), None, "no code has its address");
}

#[test]
fn replaced_vm_keeps_its_address() {
    let shared = SharedVm::new(Vm::made_up(Layout::EMPTY));
    let before = shared.get();
    let mut vm = Vm::made_up(Layout::EMPTY);
    vm.first_error_at = 7;
    shared.replace(vm);
    assert_eq!((before.first_error_at, shared.get().first_error_at), (0, 7));
}

#[test]
fn unwalkable_jvm_is_refused_with_a_reason() {
    let told = |error: LayoutError| VmError::from(error).to_string();
    for error in [
        LayoutError::Missing("Klass._name"),
        LayoutError::Table(TableError::NoSymbol("Klass._name")),
    ] {
        let line = "this JVM does not export Klass._name; \
                    dwell profiles HotSpot JVMs (JDK 8 to 28) only";
        assert_eq!(told(error), line);
    }
    let fault = LayoutError::Table(TableError::Fault(Fault { addr: 1 }));
    assert_eq!(told(fault), "the JVM's structure tables cannot be read");
    // These modules have no mapped library.
    let modules = Modules::only_own(|_| false);
    let found = Vm::load(live(), &modules, None);
    assert!(matches!(found, Err(VmError::NoLibrary)));
}

//! Lookup of virtual threads by JNI, with and without missing fields.

use super::*;
use crate::jvm::made_up::{self, FIELDS, Jni, Words, handle, live};

impl VirtualThreads {
    /// Consecutive fields in each class; no set is known.
    pub(crate) fn made_up() -> VirtualThreads {
        let [first, second, third, fourth, ..] = FIELDS;
        VirtualThreads {
            sets: SetFields {
                map: first,
                table: first,
                hash: first,
                key: second,
                next: third,
                first: fourth,
                next_table: fourth,
                length: first,
                elements: second,
            },
            fields: VirtualThreadFields::EMPTY,
            monitor_entry: ABSENT,
            started: 0,
            containers: 0,
            referent: first,
            executor_threads: first,
            shared_threads: second,
            flocks: FlockFields::EMPTY,
            next_id: 0,
            chunk_class: KnownClass::named(b"jdk/internal/vm/StackChunk"),
        }
    }
}

const THREAD: &str = "java/lang/VirtualThread";
const REGISTRY: &str = "jdk/internal/vm/ThreadContainers";
const STARTED: &str = "jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer";
const MAP: &str = "java/util/concurrent/ConcurrentHashMap";
const UNSAFE: &str = "jdk/internal/misc/Unsafe";
const BASE: &str = "ARRAY_OBJECT_BASE_OFFSET";

/// A JNI with the classes of a JDK, whose fields are at numbered offsets.
fn jdk() -> Jni {
    let jni = Jni::of_thread();
    let object = |class: &str| format!("L{class};");
    let part = |name: &str| format!("{MAP}${name}");
    let set = "Ljava/util/Set;";
    let container = "jdk/internal/misc/ThreadFlock$ThreadContainerImpl";
    let scope = "jdk/internal/vm/StackableScope";
    let fields = [
        (THREAD, "state", "I".into()),
        (THREAD, "cont", object("jdk/internal/vm/Continuation")),
        (THREAD, "carrierThread", object("java/lang/Thread")),
        (&part("CollectionView"), "map", object(MAP)),
        (MAP, "table", format!("[{}", object(&part("Node")))),
        (&part("Node"), "hash", "I".into()),
        (&part("Node"), "key", object("java/lang/Object")),
        (&part("Node"), "next", object(&part("Node"))),
        (&part("TreeBin"), "first", object(&part("TreeNode"))),
        (
            &part("ForwardingNode"),
            "nextTable",
            format!("[{}", object(&part("Node"))),
        ),
        (
            "java/lang/ref/Reference",
            "referent",
            object("java/lang/Object"),
        ),
        (
            "java/util/concurrent/ThreadPerTaskExecutor",
            "threads",
            set.into(),
        ),
        (
            "jdk/internal/vm/SharedThreadContainer",
            "virtualThreads",
            set.into(),
        ),
        ("java/lang/Thread", "headStackableScopes", object(scope)),
        (scope, "previous", object(scope)),
        (container, "flock", object("jdk/internal/misc/ThreadFlock")),
        ("jdk/internal/misc/ThreadFlock", "threads", set.into()),
    ];
    for (offset, (class, name, kind)) in (10..).zip(&fields) {
        jni.field(class, name, kind, offset << 2);
    }
    for (name, value) in [
        ("STARTED", 1),
        ("PARKED", 5),
        ("TIMED_PARKED", 6),
        ("UNPARKED", 7),
        ("YIELDED", 11),
        ("BLOCKED", 13),
        ("UNBLOCKED", 14),
        ("WAIT", 16),
        ("TIMED_WAIT", 17),
        ("SUSPENDED", 1 << 8),
    ] {
        jni.fixed(THREAD, name, "I", value);
    }
    // References of JNI have tags.
    jni.fixed(STARTED, "VTHREADS", set, 0x7002);
    jni.fixed(REGISTRY, "CONTAINER_REGISTRY", set, 0x8001);
    jni.fixed(UNSAFE, BASE, "J", 16);
    jni
}

fn find(jni: &Jni, class_word: ClassWord) -> Option<VirtualThreads> {
    let mut layout = made_up::layout();
    layout.extra.objects.class_word = class_word;
    VirtualThreads::find(&Vm::made_up(layout), live(), jni.0)
}

#[test]
fn complete_jdk_is_found_without_leaked_references() {
    let jni = jdk();
    let known = find(&jni, ClassWord::Narrow).unwrap();
    let states = States {
        started: Some(1),
        parked: [Some(5), Some(6)],
        blocked: Some(13),
        waits: [Some(16), Some(17)],
        ready: [Some(7), Some(11), Some(14), None],
        suspended: Some(1 << 8),
    };
    let fields = VirtualThreadFields {
        state: 10,
        cont: 11,
        carrier: 12,
        states,
    };
    assert_eq!(known.fields, fields);
    let (length, _) = strings::array(ClassWord::Narrow, false);
    let sets = SetFields {
        map: 13,
        table: 14,
        hash: 15,
        key: 16,
        next: 17,
        first: 18,
        next_table: 19,
        length,
        elements: 16,
    };
    assert_eq!(known.sets, sets);
    assert_eq!((known.started, known.containers), (0x7000, 0x8000));
    assert_eq!(
        (known.referent, known.executor_threads, known.shared_threads),
        (20, 21, 22)
    );
    let flocks = FlockFields {
        head: 23,
        previous: 24,
        flock: 25,
        threads: 26,
    };
    assert_eq!(known.flocks, flocks);
    assert_eq!(known.monitor_entry, ABSENT);
    assert_eq!(jni.references(), (0, 2), "only two sets stay referenced");
}

#[test]
fn missing_required_field_finds_nothing() {
    for (class, name) in [
        (THREAD, "state"),
        (THREAD, "cont"),
        (THREAD, "carrierThread"),
        (STARTED, "VTHREADS"),
        (MAP, "table"),
        (UNSAFE, BASE),
    ] {
        let jni = jdk();
        jni.forget(class, name);
        assert!(find(&jni, ClassWord::Narrow).is_none(), "{class}.{name}");
        assert_eq!(jni.references().0, 0, "{class}.{name}");
    }
    assert!(find(&jdk(), ClassWord::Wide).is_none(), "arrays differ");
    let jni = jdk();
    jni.fixed(STARTED, "VTHREADS", "Ljava/util/Set;", 0);
    assert!(find(&jni, ClassWord::Narrow).is_none(), "they are not kept");
    assert_eq!(jni.references().0, 0);
}

#[test]
fn missing_optional_field_is_unknown_alone() {
    let jni = jdk();
    jni.forget(REGISTRY, "CONTAINER_REGISTRY");
    jni.forget("java/lang/ref/Reference", "referent");
    jni.forget("jdk/internal/vm/SharedThreadContainer", "virtualThreads");
    jni.forget("jdk/internal/vm/StackableScope", "previous");
    let known = find(&jni, ClassWord::Compact).unwrap();
    assert_eq!((known.containers, known.referent), (0, ABSENT));
    assert_eq!((known.executor_threads, known.shared_threads), (21, ABSENT));
    assert!(!known.flocks.is_known());
}

#[test]
fn older_names_of_fields_are_found() {
    let jni = jdk();
    for name in ["UNPARKED", "BLOCKED", "UNBLOCKED", "WAIT", "TIMED_WAIT"] {
        jni.forget(THREAD, name);
    }
    jni.fixed(THREAD, "RUNNABLE", "I", 3);
    jni.forget(UNSAFE, BASE);
    jni.fixed(UNSAFE, BASE, "I", 20);
    let known = find(&jni, ClassWord::Narrow).unwrap();
    let states = known.fields.states;
    assert_eq!(states.ready, [Some(3), Some(11), None, None]);
    assert_eq!((states.blocked, states.waits), (None, [None; 2]));
    assert_eq!(known.sets.elements, 20, "an int until 24");
}

#[test]
fn carrier_is_recognised_by_its_class() {
    const OBJECT_AT: u64 = 8;
    let carrier = made_up::class("jdk/internal/misc/CarrierThread");
    let mut layout = made_up::layout();
    layout.thread_obj = OBJECT_AT;
    let is_one = |layout: Layout, class: u64| {
        let object = made_up::object(class, &[]).at();
        let thread = Words::new(&[0, handle(object)]).at();
        is_carrier(live(), &Vm::made_up(layout), thread)
    };
    assert!(!is_one(layout.clone(), carrier), "no virtual threads");
    layout.thread_vthread = 0;
    assert!(is_one(layout.clone(), carrier));
    assert!(is_one(
        layout.clone(),
        made_up::class_below("Mine", carrier)
    ));
    assert!(!is_one(layout.clone(), made_up::class("java/lang/Thread")));
    assert!(!is_one(layout.clone(), made_up::NOWHERE));
    let vm = Vm::made_up(layout);
    assert!(!is_carrier(live(), &vm, 0));
    let without_object = Words::zeroes(2).at();
    assert!(!is_carrier(live(), &vm, without_object));
}

#[test]
fn class_is_recognised_by_address_after_first_use() {
    let layout = made_up::layout();
    let chunk = made_up::class("StackChunk");
    let class = KnownClass::named(b"StackChunk");
    let of = |met| class.of(&live(), &layout, met);
    assert_eq!(of(made_up::class("Other")), Ok(0));
    assert!(of(made_up::NOWHERE).is_err());
    assert_eq!(of(chunk), Ok(chunk));
    // Another class needs no reading.
    assert_eq!(of(made_up::NOWHERE), Ok(chunk));
    assert_eq!(of(made_up::class("StackChunk")), Ok(chunk));
}

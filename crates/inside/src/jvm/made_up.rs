//! A JVM made up for unit tests: objects and classes in this process's own memory, and a JNI with
//! the classes that a test adds. Tests only. Its memory is never freed.

use dwell_signal::Live;
use dwell_walker::hotspot::Layout;
use dwell_walker::hotspot::objects::ClassWord;
use jvm_sys::Env;
use jvm_sys::jni::{FieldId, Object};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::Index;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words that a test changes and the tested code reads as memory.
#[derive(Clone, Copy)]
pub struct Words(&'static [AtomicU64]);

impl Words {
    /// Words in leaked memory.
    pub fn new(words: &[u64]) -> Words {
        let words: Box<[AtomicU64]> = words.iter().map(|word| AtomicU64::new(*word)).collect();
        Words(Box::leak(words))
    }

    /// So many zeroes.
    pub fn zeroes(count: usize) -> Words {
        Words::new(&vec![0; count])
    }

    /// Bytes, with zeroes behind them.
    pub fn of_bytes(bytes: &[u8]) -> Words {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        Words::new(&words.chain([0]).collect::<Vec<_>>())
    }

    /// Their address.
    pub fn at(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// Changes the word at this offset in bytes.
    pub fn set(self, offset: u64, word: u64) {
        self[offset].store(word, Ordering::SeqCst);
    }
}

impl Index<u64> for Words {
    type Output = AtomicU64;

    fn index(&self, offset: u64) -> &AtomicU64 {
        assert_eq!(offset % 8, 0);
        &self.0[(offset / 8) as usize]
    }
}

/// An address that is not mapped.
pub const NOWHERE: u64 = 8;

/// This process's memory.
pub fn live() -> Live {
    Live::install().unwrap()
}

/// Layout of the fake JVM. A class has a name and a super class. A symbol has its length in two
/// bytes, and its text after a word. An object has its class in the second word. References are as
/// wide as pointers.
pub fn layout() -> Layout {
    let mut layout = Layout::EMPTY;
    (layout.klass_name, layout.klass_super) = (0, 8);
    (layout.symbol_length, layout.symbol_body) = (0, 8);
    layout.extra.chunk.narrow_oops = false;
    layout.extra.objects.class_word = ClassWord::Wide;
    layout
}

/// A class with a name and a super class, or 0.
pub fn class_below(name: &str, above: u64) -> u64 {
    let mut symbol = (name.len() as u64).to_le_bytes().to_vec();
    symbol.extend(name.bytes());
    Words::new(&[Words::of_bytes(&symbol).at(), above]).at()
}

/// A class with a name.
pub fn class(name: &str) -> u64 {
    class_below(name, 0)
}

/// An object of a class with these fields from its third word on.
pub fn object(class: u64, fields: &[u64]) -> Words {
    Words::new(&[&[1, class], fields].concat())
}

/// A handle: a word with the reference.
pub fn handle(object: u64) -> u64 {
    Words::new(&[object]).at()
}

/// Offsets of the fields of an [`object`].
pub const FIELDS: [u64; 8] = [16, 24, 32, 40, 48, 56, 64, 72];

/// Counters like those of the JVM for its monitoring tools.
pub struct Counters(Words);

impl Counters {
    const HEAD: u64 = 32;
    const ENTRY: u64 = 64;
    /// Offset of an entry's name, and of its value.
    const NAME: u64 = 20;
    const VALUE: u64 = 56;

    /// Adds them to a layout; all are 0.
    pub fn new(layout: &mut Layout, names: &[&str]) -> Counters {
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0];
        bytes.resize(24, 0);
        bytes.extend((Self::HEAD as u32).to_le_bytes());
        bytes.extend((names.len() as u32).to_le_bytes());
        for name in names {
            let begin = bytes.len();
            for number in [Self::ENTRY, Self::NAME, 0, 0, Self::VALUE] {
                bytes.extend((number as u32).to_le_bytes());
            }
            bytes.extend(name.bytes());
            assert!(
                bytes.len() < begin + Self::VALUE as usize,
                "{name} is too long"
            );
            bytes.resize(begin + Self::ENTRY as usize, 0);
        }
        let words = Words::of_bytes(&bytes);
        layout.perf_start = Words::new(&[words.at()]).at();
        Counters(words)
    }

    /// Sets them, in the order of their names.
    pub fn set(&self, values: &[u64]) {
        for (value, entry) in values.iter().zip(0..) {
            let at = Self::HEAD + entry * Self::ENTRY + Self::VALUE;
            self.0.set(at, *value);
        }
    }
}

/// The content of JNI, by class.
#[derive(Default)]
struct Known {
    /// Ids of instance fields: class, name, type.
    fields: HashMap<[String; 3], u64>,
    /// Values of static ones.
    statics: HashMap<[String; 3], u64>,
    /// Local references that were given out and not deleted, and global ones.
    locals: i64,
    globals: i64,
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

type Table = *const *const c_void;

/// A JNI environment of the calling thread, empty at first.
pub struct Jni(pub Env);

impl Jni {
    /// One with all functions that are called.
    pub fn of_thread() -> Jni {
        const SLOTS: [(usize, *const c_void); 10] = [
            (6, find_class as *const c_void),
            (17, clear as *const c_void),
            (21, new_global as *const c_void),
            (23, delete_local as *const c_void),
            (94, field_id as *const c_void),
            (144, static_field_id as *const c_void),
            (145, static_object as *const c_void),
            (150, static_int as *const c_void),
            (151, static_value as *const c_void),
            (228, clear as *const c_void),
        ];
        KNOWN.with_borrow_mut(|known| *known = Known::default());
        let mut table = vec![std::ptr::null::<c_void>(); 232];
        for (slot, function) in SLOTS {
            table[slot] = function;
        }
        let table: Table = Box::leak(table.into_boxed_slice()).as_ptr();
        Jni(Env(Box::leak(Box::new(table))))
    }

    /// Adds an instance field to a class.
    pub fn field(&self, class: &str, name: &str, kind: &str, id: u64) {
        let key = [class, name, kind].map(str::to_owned);
        KNOWN.with_borrow_mut(|known| known.fields.insert(key, id));
    }

    /// Adds a static field to a class.
    pub fn fixed(&self, class: &str, name: &str, kind: &str, value: u64) {
        let key = [class, name, kind].map(str::to_owned);
        KNOWN.with_borrow_mut(|known| known.statics.insert(key, value));
    }

    /// Removes a field.
    pub fn forget(&self, class: &str, name: &str) {
        let is_other = |key: &[String; 3]| key[0] != class || key[1] != name;
        KNOWN.with_borrow_mut(|known| {
            known.fields.retain(|key, _| is_other(key));
            known.statics.retain(|key, _| is_other(key));
        });
    }

    /// Local references that were not deleted, and global ones.
    pub fn references(&self) -> (i64, i64) {
        KNOWN.with_borrow(|known| (known.locals, known.globals))
    }
}

/// # Safety
/// `text` must be a C string.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().unwrap().to_owned()
}

unsafe extern "C" fn clear(_: *mut Table) -> u8 {
    0
}

/// A class is its name.
unsafe extern "C" fn find_class(_: *mut Table, name: *const c_char) -> Object {
    // SAFETY: JNI is given C strings.
    let name = unsafe { text(name) };
    KNOWN.with_borrow_mut(|known| {
        let mut all = known.fields.keys().chain(known.statics.keys());
        if all.any(|[class, ..]| *class == name) {
            known.locals += 1;
            return CString::new(name).unwrap().into_raw().cast();
        }
        std::ptr::null_mut()
    })
}

/// # Safety
/// `class` must come from [`find_class`]; both texts must be C strings.
unsafe fn key(class: Object, name: *const c_char, kind: *const c_char) -> [String; 3] {
    // SAFETY: the caller's promise; a class is its name.
    unsafe { [text(class.cast()), text(name), text(kind)] }
}

unsafe extern "C" fn field_id(
    _: *mut Table,
    class: Object,
    name: *const c_char,
    kind: *const c_char,
) -> FieldId {
    // SAFETY: classes come from `find_class`, and JNI is given C strings.
    let key = unsafe { key(class, name, kind) };
    KNOWN.with_borrow(|known| known.fields.get(&key).copied().unwrap_or(0) as FieldId)
}

/// The id is the address of the value.
unsafe extern "C" fn static_field_id(
    _: *mut Table,
    class: Object,
    name: *const c_char,
    kind: *const c_char,
) -> FieldId {
    // SAFETY: classes come from `find_class`, and JNI is given C strings.
    let key = unsafe { key(class, name, kind) };
    let value = KNOWN.with_borrow(|known| known.statics.get(&key).copied());
    value.map_or(std::ptr::null_mut(), |value| handle(value) as FieldId)
}

unsafe extern "C" fn static_value(_: *mut Table, _: Object, field: FieldId) -> i64 {
    // SAFETY: ids of static fields come from `static_field_id`: words that are never freed.
    unsafe { *field.cast::<i64>() }
}

unsafe extern "C" fn static_int(table: *mut Table, class: Object, field: FieldId) -> c_int {
    // SAFETY: as above.
    unsafe { static_value(table, class, field) as c_int }
}

unsafe extern "C" fn static_object(table: *mut Table, class: Object, field: FieldId) -> Object {
    // SAFETY: as above.
    let object = unsafe { static_value(table, class, field) } as Object;
    KNOWN.with_borrow_mut(|known| known.locals += i64::from(!object.is_null()));
    object
}

unsafe extern "C" fn new_global(_: *mut Table, object: Object) -> Object {
    KNOWN.with_borrow_mut(|known| known.globals += i64::from(!object.is_null()));
    object
}

unsafe extern "C" fn delete_local(_: *mut Table, _: Object) {
    KNOWN.with_borrow_mut(|known| known.locals -= 1);
}

//! The origin of a class: the name of its module, and the URL of its jar from its code source
//! (java.base, java/lang/Class.java, java/security/ProtectionDomain.java, CodeSource.java,
//! java/net/URL.java). All of it is read from objects in the heap, without calls into the VM.
//!
//! A collector may move the objects during the reads. Nothing here can crash or run forever. Each
//! object is checked by its class, and a result counts only if a second read gives the same.

use super::continuation::{handle, reference};
use super::fields;
use super::layout::{Layout, present};
use super::names::MethodKey;
use super::objects::{class_of, is_kind_of};
use super::strings::{self, StringFields};
use crate::memory::{Fault, Memory};

/// Maximum number of characters of a name or URL; longer ones are omitted.
const UNITS_MAX: u32 = 1024;
/// `Class` objects have their static fields after less than this.
const MIRROR_MAX: u64 = 512;
/// Maximum number of reads of a class.
const READINGS_MAX: usize = 6;
/// Minimum size of an object's header.
const HEADER: u64 = 8;

const CLASS: &[u8] = b"java/lang/Class";
const DOMAIN: &[u8] = b"java/security/ProtectionDomain";
const STRING: &[u8] = b"java/lang/String";
/// The descriptor of a field of this type.
const TEXT: &[u8] = b"Ljava/lang/String;";

/// Distinguishes a class from a later one at the same address: its `Klass*`, the symbol of its
/// name, and the word that refers to its `Class` object. Found through a method of the class;
/// `None` if it cannot be read.
pub fn key_of<M: Memory>(mem: &M, layout: &Layout, method: &MethodKey) -> Option<[u64; 3]> {
    if !present(layout.klass_mirror) {
        return None;
    }
    let pool = method.const_method.wrapping_add(layout.const_constants);
    let pool = mem.word(pool).ok()?;
    let class = mem.word(pool.wrapping_add(layout.pool_holder)).ok()?;
    let held = mem.word(class.wrapping_add(layout.klass_mirror)).ok()?;
    Some([class, method.class_symbol, held])
}

/// The parts of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The name of its module.
    Module,
    /// The URL of the module or jar.
    Location,
}

/// Offset of a field, if it was determined already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    NotAsked,
    At(u64),
    Missing,
}

/// Offsets of the fields on the way. Each is determined at the first object that has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origins {
    module: Place,
    module_name: Place,
    /// The VM adds this field to `Class` itself, under a name that is not in the class file (up to
    /// 24).
    domain: Place,
    source: Place,
    location: Place,
    protocol: Place,
    host: Place,
    file: Place,
    value: Place,
    coder: Place,
}

impl Origins {
    /// Calls `read` until two results in a row are equal, because a collector may move the objects.
    /// `None` if that takes too many reads.
    pub fn twice<T: PartialEq>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let mut last = None;
        for _ in 0..READINGS_MAX {
            let now = read(self);
            if now.is_some() && now == last {
                return now;
            }
            last = now;
        }
        None
    }

    /// Visits the characters of the origin of a class, by its `Klass*`.
    ///
    /// # Errors
    /// [`Fault`] if an object cannot be read, or is not of the expected class: a collector may just
    /// have moved it.
    pub fn read<M: Memory>(
        &mut self,
        mem: &M,
        layout: &Layout,
        class: u64,
        visit: &mut dyn FnMut(Part, u16),
    ) -> Result<(), Fault> {
        if !present(layout.klass_mirror) {
            return Ok(());
        }
        let objects = Heap { mem, layout };
        let (mirror, class_class) = objects.mirror(class)?;
        let kind = b"Ljava/lang/Module;";
        let at = objects.field(&mut self.module, mirror, CLASS, b"module", kind)?;
        if let Some(module) = objects.follow(mirror, at)? {
            let (place, of) = (&mut self.module_name, b"java/lang/Module");
            let at = objects.field(place, module, of, b"name", TEXT)?;
            self.text(&objects, module, at, &mut |unit| visit(Part::Module, unit))?;
        }
        self.find_domain(&objects, mirror, class_class)?;
        let Place::At(at) = self.domain else {
            return Ok(());
        };
        let Some(domain) = objects.follow(mirror, Some(at))? else {
            return Ok(());
        };
        if !objects.is_domain(domain) {
            return Err(Fault { addr: domain });
        }
        self.location_of(&objects, domain, &mut |unit| visit(Part::Location, unit))
    }

    /// Finds the reference to a domain: by the field's name, or among all words of the object
    /// before the static fields.
    fn find_domain<M: Memory>(
        &mut self,
        objects: &Heap<'_, M>,
        mirror: u64,
        class_class: u64,
    ) -> Result<(), Fault> {
        if self.domain != Place::NotAsked {
            return Ok(());
        }
        let (mem, layout) = (objects.mem, objects.layout);
        let (name, kind) = (b"protectionDomain", b"Ljava/security/ProtectionDomain;");
        if let Some(at) = fields::offset(mem, layout, class_class, name, kind)? {
            self.domain = Place::At(at);
            return Ok(());
        }
        if !present(layout.klass_layout_helper) {
            self.domain = Place::Missing;
            return Ok(());
        }
        let size = mem.u32(class_class.wrapping_add(layout.klass_layout_helper))?;
        let size = u64::from(size & !7).min(MIRROR_MAX);
        let step = if layout.extra.chunk.narrow_oops { 4 } else { 8 };
        let mut at = HEADER;
        while at < size {
            // Most words there are not references, or refer to other objects.
            if let Ok(Some(object)) = objects.follow(mirror, Some(at))
                && objects.is_domain(object)
            {
                self.domain = Place::At(at);
                return Ok(());
            }
            at += step;
        }
        Ok(())
    }

    fn location_of<M: Memory>(
        &mut self,
        objects: &Heap<'_, M>,
        domain: u64,
        visit: &mut dyn FnMut(u16),
    ) -> Result<(), Fault> {
        let kind = b"Ljava/security/CodeSource;";
        let at = objects.field(&mut self.source, domain, DOMAIN, b"codesource", kind)?;
        let Some(source) = objects.follow(domain, at)? else {
            return Ok(());
        };
        let (of, kind) = (b"java/security/CodeSource", b"Ljava/net/URL;");
        let at = objects.field(&mut self.location, source, of, b"location", kind)?;
        let Some(url) = objects.follow(source, at)? else {
            return Ok(());
        };
        let of = b"java/net/URL";
        let protocol = objects.field(&mut self.protocol, url, of, b"protocol", TEXT)?;
        let host = objects.field(&mut self.host, url, of, b"host", TEXT)?;
        let file = objects.field(&mut self.file, url, of, b"file", TEXT)?;
        self.text(objects, url, protocol, visit)?;
        visit(u16::from(b':'));
        let mut is_first = true;
        self.text(objects, url, host, &mut |unit| {
            if core::mem::take(&mut is_first) {
                visit(u16::from(b'/'));
                visit(u16::from(b'/'));
            }
            visit(unit);
        })?;
        self.text(objects, url, file, visit)
    }

    /// Visits a string that is in a field; a null reference counts as empty.
    fn text<M: Memory>(
        &mut self,
        objects: &Heap<'_, M>,
        object: u64,
        at: Option<u64>,
        visit: &mut dyn FnMut(u16),
    ) -> Result<(), Fault> {
        let Some(string) = objects.follow(object, at)? else {
            return Ok(());
        };
        let (mem, layout) = (objects.mem, objects.layout);
        let of = objects.class_of(string)?;
        if !is_kind_of(mem, layout, of, STRING)? {
            return Err(Fault { addr: string });
        }
        let coder = objects.field(&mut self.coder, string, STRING, b"coder", b"B")?;
        let kind: &[u8] = if coder.is_some() { b"[B" } else { b"[C" };
        let value = objects.field(&mut self.value, string, STRING, b"value", kind)?;
        let (length, elements) = strings::array(layout.extra.objects.class_word, false);
        let known = StringFields {
            value: value.unwrap_or(StringFields::EMPTY.value),
            coder: coder.unwrap_or(StringFields::EMPTY.coder),
            length,
            elements,
        };
        match strings::for_each_unit(mem, layout, &known, string, UNITS_MAX, visit)? {
            true => Ok(()),
            false => Err(Fault { addr: string }),
        }
    }
}

/// The heap's objects and the ways to read them.
struct Heap<'a, M: Memory> {
    mem: &'a M,
    layout: &'a Layout,
}

impl<M: Memory> Heap<'_, M> {
    /// The `Class` object of a class, and the class of that.
    fn mirror(&self, class: u64) -> Result<(u64, u64), Fault> {
        let at = class.wrapping_add(self.layout.klass_mirror);
        let held = self.mem.word(at)?;
        // Since 10 a handle, up to 9 the reference itself.
        let through_handle = handle(self.mem, self.layout, held).ok();
        for mirror in [through_handle, Some(held)].into_iter().flatten() {
            if let Ok(of) = self.class_of(mirror)
                && is_kind_of(self.mem, self.layout, of, CLASS) == Ok(true)
            {
                return Ok((mirror, of));
            }
        }
        Err(Fault { addr: at })
    }

    fn class_of(&self, object: u64) -> Result<u64, Fault> {
        let how = self.layout.extra.objects.class_word;
        class_of(self.mem, self.layout, how, object)
    }

    fn is_domain(&self, object: u64) -> bool {
        let of = self.class_of(object);
        of.and_then(|of| is_kind_of(self.mem, self.layout, of, DOMAIN)) == Ok(true)
    }

    /// Offset of a field in objects of the class `of`; determined once, in the class of this
    /// object.
    fn field(
        &self,
        known: &mut Place,
        object: u64,
        of: &[u8],
        name: &[u8],
        kind: &[u8],
    ) -> Result<Option<u64>, Fault> {
        if *known == Place::NotAsked {
            let class = self.class_of(object)?;
            if !is_kind_of(self.mem, self.layout, class, of)? {
                return Err(Fault { addr: object });
            }
            let found = fields::offset(self.mem, self.layout, class, name, kind)?;
            *known = found.map_or(Place::Missing, Place::At);
        }
        Ok(match *known {
            Place::At(at) => Some(at),
            Place::NotAsked | Place::Missing => None,
        })
    }

    /// The object that a field refers to.
    fn follow(&self, object: u64, at: Option<u64>) -> Result<Option<u64>, Fault> {
        let Some(at) = at else {
            return Ok(None);
        };
        let to = reference(self.mem, self.layout, object.wrapping_add(at))?;
        Ok((to != 0).then_some(to))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::hotspot::objects::ClassWord;
    use crate::hotspot::test_memory::Bytes;
    use std::string::String;
    use std::vec::Vec;

    /// A heap that is written from the lowest address upwards.
    struct Made {
        mem: Bytes,
        next: u64,
    }

    impl Made {
        fn new() -> Made {
            let (mem, next) = (Bytes::default(), 0x1000);
            Made { mem, next }
        }

        fn add(&mut self, bytes: &[u8]) -> u64 {
            let at = self.next;
            self.mem.add(at, bytes);
            self.next += (bytes.len() as u64).next_multiple_of(8) + 64;
            at
        }

        fn words(&mut self, words: &[u64]) -> u64 {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.add(&bytes)
        }

        fn symbol(&mut self, text: &str) -> u64 {
            let mut bytes = (text.len() as u16).to_le_bytes().to_vec();
            bytes.extend(text.as_bytes());
            self.add(&bytes)
        }

        /// A class with the size of its objects and its fields.
        fn class(&mut self, name: &str, size: u64, fields: &[(&str, &str, u16)]) -> u64 {
            let name = self.symbol(name);
            let mut pool = std::vec![1 + 2 * fields.len() as u64, 0];
            let mut slots: Vec<u16> = Vec::new();
            for (at, (name, kind, offset)) in fields.iter().enumerate() {
                pool.extend([self.symbol(name), self.symbol(kind)]);
                let index = 1 + 2 * at as u16;
                slots.extend([1, index, index + 1, 0, offset << TAG, 0]);
            }
            let pool = self.words(&pool);
            let mut bytes = (slots.len() as u32).to_le_bytes().to_vec();
            bytes.extend(slots.iter().flat_map(|slot| slot.to_le_bytes()));
            let fields = self.add(&bytes);
            self.words(&[0, name, 0, pool, fields, size])
        }

        fn object(&mut self, class: u64, fields: &[u64]) -> u64 {
            let mut words = std::vec![1, class];
            words.extend(fields);
            self.words(&words)
        }

        fn string(&mut self, class: u64, text: &str) -> u64 {
            let mut array = std::vec![0; 16];
            array.extend((text.len() as u32).to_le_bytes());
            array.extend(text.as_bytes());
            let value = self.add(&array);
            self.object(class, &[value, 0])
        }
    }

    const TAG: u16 = 2;

    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        (layout.klass_mirror, layout.klass_name, layout.klass_super) = (0, 8, 16);
        (layout.klass_constants, layout.klass_fields) = (24, 32);
        layout.klass_layout_helper = 40;
        (layout.pool_length, layout.sizeof_constant_pool) = (0, 8);
        (layout.symbol_length, layout.symbol_body) = (0, 2);
        layout.extra.chunk.narrow_oops = false;
        layout.extra.objects.class_word = ClassWord::Wide;
        layout
    }

    /// A variant of a made-up class.
    struct Case {
        has_handle: bool,
        /// Whether `Class` has a field for the domain; otherwise only the VM knows its offset.
        is_named: bool,
        url: &'static str,
        /// Bytes of `Class` objects, and a bit that is not part of the size.
        size: u64,
    }

    /// Memory with a class, and that class.
    fn made(case: &Case) -> (Bytes, u64) {
        let mut made = Made::new();
        let text = made.class(
            "java/lang/String",
            32,
            &[("value", "[B", 16), ("coder", "B", 24)],
        );
        let url = made.class(
            case.url,
            40,
            &[
                ("protocol", "Ljava/lang/String;", 16),
                ("host", "Ljava/lang/String;", 24),
                ("file", "Ljava/lang/String;", 32),
            ],
        );
        let source = ("location", "Ljava/net/URL;", 16);
        let source = made.class("java/security/CodeSource", 24, &[source]);
        let domain = ("codesource", "Ljava/security/CodeSource;", 24);
        let domain = made.class("java/security/ProtectionDomain", 32, &[domain]);
        let module = made.class(
            "java/lang/Module",
            24,
            &[("name", "Ljava/lang/String;", 16)],
        );
        let mut fields = std::vec![("module", "Ljava/lang/Module;", 16)];
        if case.is_named {
            fields.push(("protectionDomain", "Ljava/security/ProtectionDomain;", 32));
        }
        let class = made.class("java/lang/Class", case.size, &fields);
        let [protocol, host, file] =
            ["file", "server", "/a b.jar"].map(|part| made.string(text, part));
        let url = made.object(url, &[protocol, host, file]);
        let source = made.object(source, &[url]);
        let domain = made.object(domain, &[7, source]);
        let name = made.string(text, "acme.core");
        let module = made.object(module, &[name]);
        // A number that is not a reference is between them; the words after the last field belong
        // to another object.
        let mirror = made.object(class, &[module, 0x1234_5678, domain, domain]);
        let held = match case.has_handle {
            true => made.words(&[mirror]),
            false => mirror,
        };
        let of = made.words(&[held, 0, 0, 0, 0, 0]);
        (made.mem, of)
    }

    fn read(case: &Case) -> Result<(String, String), Fault> {
        let (mem, class) = made(case);
        let (mut module, mut location) = (Vec::new(), Vec::new());
        let visit = &mut |part, unit| match part {
            Part::Module => module.push(unit),
            Part::Location => location.push(unit),
        };
        Origins::default().read(&mem, &layout(), class, visit)?;
        let text = |units: &[u16]| String::from_utf16_lossy(units);
        Ok((text(&module), text(&location)))
    }

    #[test]
    fn the_module_and_the_jar_of_a_class_are_read() {
        for has_handle in [true, false] {
            for is_named in [true, false] {
                let url = "java/net/URL";
                let told = read(&Case {
                    has_handle,
                    is_named,
                    url,
                    size: 40,
                });
                let wanted = ("acme.core".into(), "file://server/a b.jar".into());
                assert_eq!(told, Ok(wanted), "{has_handle} {is_named}");
            }
        }
    }

    #[test]
    fn invalid_url_gives_no_location() {
        let case = Case {
            has_handle: true,
            is_named: true,
            url: "java/lang/Thread",
            size: 40,
        };
        assert!(read(&case).is_err());
    }

    /// Static fields come after an object's own, and belong to the program.
    #[test]
    fn word_after_an_object_is_not_its_domain() {
        let of = |size| {
            read(&Case {
                has_handle: true,
                is_named: false,
                url: "java/net/URL",
                size,
            })
        };
        assert_eq!(of(33), Ok(("acme.core".into(), String::new())));
        assert_eq!(of(41).map(|told| told.1.is_empty()), Ok(false));
    }

    #[test]
    fn two_readings_have_to_agree() {
        let mut origins = Origins::default();
        let mut said = [Some(1), None, Some(1), Some(2), Some(2), Some(3)].into_iter();
        assert_eq!(origins.twice(|_| said.next().flatten()), Some(2));
        let mut number = 0;
        let mut other = |_: &mut Origins| {
            number += 1;
            Some(number)
        };
        assert_eq!(origins.twice(&mut other), None);
        assert_eq!(number, READINGS_MAX);
    }
}

//! Memory of another process, through `/proc/PID/mem`. Needs the right to trace the process, and
//! stops no thread. The file belongs to the program that ran when it was opened. So a reused pid
//! cannot mislead us (`process_vm_readv` would read the new process).

use dwell_walker::{Fault, Memory};
use rustc_hash::FxHashMap;
use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The memory of a process, as it is at each read.
#[derive(Debug)]
pub struct Live {
    file: File,
}

impl Live {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel's: no such process, or no right to trace it.
    pub fn open(pid: u32) -> io::Result<Live> {
        let file = File::open(format!("/proc/{pid}/mem"))?;
        Ok(Live { file })
    }
}

impl Memory for Live {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.read(addr, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        // Offsets are signed. The upper half of addresses belongs to the kernel.
        if addr > i64::MAX as u64 {
            return Err(Fault { addr });
        }
        let read = self.file.read_exact_at(buf, addr);
        read.map_err(|_| Fault { addr })
    }
}

/// Bytes of a page of memory.
pub const PAGE: u64 = 4096;

/// Maximum number of pages kept; more than one read of a thread needs.
const PAGES_MAX: usize = 8192;

/// Number of pages that are found without a search; a power of two.
const RECENT: usize = 16;

/// Not the address of any page.
const NO_PAGE: u64 = u64::MAX;

/// A page, or `None` if it could not be read.
type Page = Option<Rc<[u8; PAGE as usize]>>;

/// Pages that reads of several threads share for a moment: code and its metadata.
#[derive(Debug)]
pub struct Common {
    since: Cell<Instant>,
    pages: RefCell<FxHashMap<u64, Page>>,
    /// Names of classes, by address.
    classes: RefCell<FxHashMap<u64, String>>,
}

impl Default for Common {
    fn default() -> Self {
        Common {
            since: Cell::new(Instant::now()),
            pages: RefCell::default(),
            classes: RefCell::default(),
        }
    }
}

impl Common {
    /// Maximum age of a copy, because code may be replaced.
    const AGE_MAX: Duration = Duration::from_millis(10);

    fn get(&self, page: u64, read: impl FnOnce() -> Page) -> Page {
        self.drop_outdated();
        let mut pages = self.pages.borrow_mut();
        pages.entry(page).or_insert_with(read).clone()
    }

    /// The name of a class, which is read if it is not known yet.
    pub fn class(&self, class: u64, read: impl FnOnce() -> Option<String>) -> Option<String> {
        self.drop_outdated();
        if let Some(name) = self.classes.borrow().get(&class) {
            return Some(name.clone());
        }
        let name = read()?;
        self.classes.borrow_mut().insert(class, name.clone());
        Some(name)
    }

    fn drop_outdated(&self) {
        let mut pages = self.pages.borrow_mut();
        if self.since.get().elapsed() > Common::AGE_MAX || pages.len() >= PAGES_MAX {
            pages.clear();
            self.classes.borrow_mut().clear();
            self.since.set(Instant::now());
        }
    }
}

/// A copy of memory, page by page: an address keeps its bytes as long as the copy exists. For one
/// read of one thread.
pub struct Pages<'p> {
    live: &'p Live,
    kept: RefCell<FxHashMap<u64, Page>>,
    common: Option<Rc<Common>>,
    /// The pages of `kept` that were used last, by the lowest bits of their numbers. A walk
    /// alternates between a page of the stack and pages with metadata of its code.
    recent: RefCell<[(u64, Page); RECENT]>,
    /// Range of addresses that are not shared.
    own: Cell<(u64, u64)>,
    unshared: OnceCell<Box<Pages<'p>>>,
}

impl<'p> Pages<'p> {
    /// An empty copy.
    #[must_use]
    pub fn new(live: &'p Live) -> Pages<'p> {
        Pages {
            live,
            kept: RefCell::default(),
            common: None,
            recent: RefCell::new([const { (NO_PAGE, None) }; RECENT]),
            own: Cell::new((0, u64::MAX)),
            unshared: OnceCell::new(),
        }
    }

    /// A second copy for the same read, which shares nothing with other reads.
    #[must_use]
    pub fn unshared(&self) -> &Pages<'p> {
        let copy = || Box::new(Pages::new(self.live));
        self.unshared.get_or_init(copy)
    }

    /// Takes pages that [`Pages::shares_all_but`] permits from `common` if they are there.
    #[must_use]
    pub fn with_common(live: &'p Live, common: Option<Rc<Common>>) -> Pages<'p> {
        Pages {
            common,
            ..Pages::new(live)
        }
    }

    /// Reads of other threads may use the same bytes, except for those from `low` to `high`.
    pub fn shares_all_but(&self, low: u64, high: u64) {
        self.own.set((low, high));
    }

    /// Adds bytes from another source, such as a copy of a stack. `addr` need not be the start of a
    /// page: the other bytes of the first and last page are read.
    pub fn keep(&self, addr: u64, bytes: &[u8]) {
        let mut kept = self.kept.borrow_mut();
        // These would be found before the new pages, and share their memory.
        self.recent.replace([const { (NO_PAGE, None) }; RECENT]);
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            let at = addr.wrapping_add(done as u64);
            let (page, within) = (at & !(PAGE - 1), (at & (PAGE - 1)) as usize);
            let len = rest.len().min(PAGE as usize - within);
            // A whole page is overwritten, so it is not read first.
            let is_whole = len == PAGE as usize;
            let known = kept.entry(page).or_insert_with(|| match is_whole {
                true => None,
                false => self.fetch(page),
            });
            let copy = Rc::make_mut(known.get_or_insert_with(|| Rc::new([0; PAGE as usize])));
            if let (Some(to), Some(from)) = (copy.get_mut(within..within + len), rest.get(..len)) {
                to.copy_from_slice(from);
            }
            done += len;
        }
    }

    fn fetch(&self, page: u64) -> Page {
        let read = || {
            let mut copy = [0; PAGE as usize];
            let read = self.live.read(page, &mut copy);
            read.ok().map(|()| Rc::new(copy))
        };
        let (low, high) = self.own.get();
        let is_own = page.saturating_add(PAGE) > low && page < high;
        match &self.common {
            Some(common) if !is_own => common.get(page, read),
            _ => read(),
        }
    }
}

impl Memory for Pages<'_> {
    #[inline]
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.read(addr, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    #[inline]
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        // Nearly always the bytes are within one known page.
        let (page, within) = (addr & !(PAGE - 1), (addr & (PAGE - 1)) as usize);
        if let Some((at, Some(copy))) = self.recent.borrow().get(slot_of(page))
            && *at == page
            && let Some(from) = copy.get(within..within.saturating_add(buf.len()))
        {
            buf.copy_from_slice(from);
            return Ok(());
        }
        self.read_kept(addr, buf)
    }
}

/// Index of a page among those used last.
fn slot_of(page: u64) -> usize {
    (page / PAGE) as usize % RECENT
}

impl Pages<'_> {
    /// Reads bytes that are not within one of the last pages.
    fn read_kept(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let mut kept = self.kept.borrow_mut();
        let mut done = 0;
        while done < buf.len() {
            let at = addr.wrapping_add(done as u64);
            let (page, within) = (at & !(PAGE - 1), (at & (PAGE - 1)) as usize);
            let rest = buf.get_mut(done..).unwrap_or_default();
            let len = rest.len().min(PAGE as usize - within);
            if kept.len() >= PAGES_MAX && !kept.contains_key(&page) {
                self.live
                    .read(at, rest.get_mut(..len).unwrap_or_default())?;
                done += len;
                continue;
            }
            let known = kept.entry(page).or_insert_with(|| self.fetch(page));
            if let Some(recent) = self.recent.borrow_mut().get_mut(slot_of(page)) {
                *recent = (page, known.clone());
            }
            let from = known
                .as_ref()
                .and_then(|copy| copy.get(within..within + len));
            match (rest.get_mut(..len), from) {
                (Some(to), Some(from)) => to.copy_from_slice(from),
                _ => return Err(Fault { addr: at }),
            }
            done += len;
        }
        Ok(())
    }
}

/// A stack that was copied at one moment, over memory of about that time.
pub struct Overlay<'o, M: Memory> {
    below: &'o M,
    low: u64,
    bytes: &'o [u8],
}

impl<'o, M: Memory> Overlay<'o, M> {
    /// `bytes` from address `low` on, and `below` for other addresses.
    #[must_use]
    pub fn new(below: &'o M, low: u64, bytes: &'o [u8]) -> Overlay<'o, M> {
        Overlay { below, low, bytes }
    }

    /// The copied bytes from `addr` on.
    fn copied(&self, addr: u64) -> &[u8] {
        let offset = addr
            .checked_sub(self.low)
            .and_then(|it| usize::try_from(it).ok());
        offset
            .and_then(|offset| self.bytes.get(offset..))
            .unwrap_or(&[])
    }
}

impl<M: Memory> Memory for Overlay<'_, M> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        match self.copied(addr).first_chunk() {
            Some(bytes) => Ok(u64::from_le_bytes(*bytes)),
            None => {
                let mut bytes = [0; 8];
                self.read(addr, &mut bytes)?;
                Ok(u64::from_le_bytes(bytes))
            }
        }
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let end = addr.saturating_add(buf.len() as u64);
        let copy_end = self.low.saturating_add(self.bytes.len() as u64);
        if end <= self.low || addr >= copy_end {
            return self.below.read(addr, buf);
        }
        // Partly copied: the other bytes are taken from below.
        if addr < self.low || end > copy_end {
            self.below.read(addr, buf)?;
        }
        let skipped = usize::try_from(self.low.saturating_sub(addr)).unwrap_or(usize::MAX);
        let from = self.copied(addr.max(self.low));
        let to = buf.get_mut(skipped..).unwrap_or_default();
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Live {
        Live::open(std::process::id()).unwrap()
    }

    #[test]
    fn memory_is_read_and_bad_addresses_are_faults() {
        let value = 0x1122_3344_5566_7788u64;
        let addr = &raw const value as u64;
        assert_eq!(own().word(addr), Ok(value));
        assert_eq!(own().word(8), Err(Fault { addr: 8 }));
        let high = u64::MAX - 3;
        assert_eq!(own().word(high), Err(Fault { addr: high }));
    }

    #[test]
    fn copied_pages_do_not_change() {
        let live = own();
        let mut bytes = vec![7u8; 3 * PAGE as usize];
        let addr = bytes.as_ptr() as u64;
        let pages = Pages::new(&live);
        let mut buf = vec![0; bytes.len()];
        pages.read(addr, &mut buf).unwrap();
        assert_eq!(buf, bytes);
        bytes.fill(8);
        std::hint::black_box(&bytes);
        pages.read(addr, &mut buf).unwrap();
        assert!(buf.iter().all(|byte| *byte == 7));
        assert!(pages.word(16).is_err());
    }

    #[test]
    fn reads_share_all_but_their_own_range() {
        let live = own();
        let mut bytes = vec![7u8; 4 * PAGE as usize];
        let first = (bytes.as_ptr() as u64).next_multiple_of(PAGE);
        let (low, high) = (first + PAGE + 8, first + 2 * PAGE);
        let common = Rc::new(Common::default());
        // As if no time passed.
        common.since.set(Instant::now() + Duration::from_secs(60));
        let look = |shares: bool| {
            let pages = Pages::with_common(&live, Some(Rc::clone(&common)));
            if shares {
                pages.shares_all_but(low, high);
            }
            [first, low, high].map(|at| pages.word(at).unwrap() as u8)
        };
        assert_eq!(look(true), [7; 3]);
        bytes.fill(8);
        std::hint::black_box(&bytes);
        assert_eq!(look(true), [7, 8, 7]);
        assert_eq!(look(false), [8; 3], "nothing is shared");
        common.since.set(Instant::now() - 2 * Common::AGE_MAX);
        assert_eq!(look(true), [8; 3], "an outdated page is read again");
    }

    #[test]
    fn unshared_pages_are_read_once_per_read() {
        let live = own();
        let mut bytes = vec![7u8; 3 * PAGE as usize];
        let at = (bytes.as_ptr() as u64).next_multiple_of(PAGE);
        let common = Rc::new(Common::default());
        // As if no time passed.
        common.since.set(Instant::now() + Duration::from_secs(60));
        let look = || {
            let pages = Pages::with_common(&live, Some(Rc::clone(&common)));
            pages.shares_all_but(0, 0);
            pages
        };
        let first = look();
        assert_eq!(first.word(at).unwrap() as u8, 7);
        bytes.fill(8);
        std::hint::black_box(&bytes);
        assert_eq!(look().word(at).unwrap() as u8, 7, "another look shares it");
        assert_eq!(look().unshared().word(at).unwrap() as u8, 8, "but not all");
        assert_eq!(first.unshared().word(at).unwrap() as u8, 8);
        bytes.fill(9);
        std::hint::black_box(&bytes);
        assert_eq!(first.unshared().word(at).unwrap() as u8, 8, "within a look");
        assert_eq!(look().unshared().word(at).unwrap() as u8, 9, "of one look");
    }

    #[test]
    fn names_of_classes_are_shared_for_a_moment() {
        let common = Common::default();
        let read = |name: &'static str| move || Some(name.to_owned());
        // As if no time passed.
        common.since.set(Instant::now() + Duration::from_secs(60));
        assert_eq!(common.class(0x1000, || None), None);
        assert_eq!(common.class(0x1000, read("a.A")).as_deref(), Some("a.A"));
        assert_eq!(common.class(0x1000, read("b.B")).as_deref(), Some("a.A"));
        assert_eq!(common.class(0x1000, || None).as_deref(), Some("a.A"));
        assert_eq!(common.class(0x2000, read("b.B")).as_deref(), Some("b.B"));
        // Another class may be there by now.
        common.since.set(Instant::now() - 2 * Common::AGE_MAX);
        assert_eq!(common.class(0x1000, read("b.B")).as_deref(), Some("b.B"));
    }

    #[test]
    fn overlay_covers_the_memory_below() {
        let live = own();
        let bytes = [7u8; 64];
        let addr = bytes.as_ptr() as u64;
        let copy = [9u8; 16];
        let over = Overlay::new(&live, addr + 8, &copy);
        let mut buf = [0; 32];
        over.read(addr, &mut buf).unwrap();
        let expected = [[7u8; 8], [9; 8], [9; 8], [7; 8]].concat();
        assert_eq!(buf, expected.as_slice());
        assert_eq!(over.word(addr + 8), Ok(0x0909_0909_0909_0909));
        assert_eq!(over.word(addr + 4), Ok(0x0909_0909_0707_0707));
        assert_eq!(over.word(addr + 20), Ok(0x0707_0707_0909_0909));
        assert_eq!(over.word(addr + 40), Ok(0x0707_0707_0707_0707));
        // The copy is used even where nothing is mapped.
        let nowhere = Overlay::new(&live, 0x1000, &copy);
        assert_eq!(nowhere.word(0x1008), Ok(0x0909_0909_0909_0909));
        assert!(nowhere.word(0x100c).is_err());
    }

    #[test]
    fn kept_bytes_precede_memory() {
        let live = own();
        let bytes = vec![7u8; 2 * PAGE as usize];
        let addr = bytes.as_ptr() as u64 + 100;
        let pages = Pages::new(&live);
        pages.keep(addr, &[9; 5000]);
        let mut buf = [0; 5002];
        pages.read(addr - 1, &mut buf).unwrap();
        assert_eq!((buf[0], buf[1], buf[5000], buf[5001]), (7, 9, 9, 7));
        // The kept bytes are used even where nothing is mapped.
        pages.keep(0x1000, &[5; 8]);
        assert_eq!(pages.word(0x1000), Ok(0x0505_0505_0505_0505));
    }
}

//! Follows a recording while it is written. Keeps the bytes of its last chunks: those of the
//! window, and older ones with the last events of threads that wait long. Handles whole chunks, not
//! their content, and never blocks.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Length of the needed part of a header: magic, version, size, checkpoint, metadata, start and
/// duration.
const HEADER_READ: usize = 48;
const HEADER: u64 = 68;
/// Maximum bytes that are kept. If a program fills them faster, the window is shorter.
pub const KEPT_MAX: usize = 64 << 20;
/// A waiting thread is written once a minute, and is in the file some seconds later.
const NEWS_NS: u64 = 65_000_000_000;
/// Maximum bytes of older chunks. All kept bytes are read for each screen.
const NEWS_MAX: usize = 16 << 20;

/// Begin and end of a chunk, in the file and in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    size: u64,
    start_ns: u64,
    end_ns: u64,
}

impl Span {
    /// Reads a header; `None` if there is no complete chunk.
    fn read(file: &File, at: u64, len: u64) -> io::Result<Option<Span>> {
        if at + HEADER > len {
            return Ok(None);
        }
        let mut bytes = [0; HEADER_READ];
        file.read_exact_at(&mut bytes, at)?;
        let word = |place: usize| {
            let bytes = bytes.get(place..place + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        let (Some(size), Some(start_ns), Some(duration_ns)) = (word(8), word(32), word(40)) else {
            return Ok(None);
        };
        let is_there = size >= HEADER && at.checked_add(size).is_some_and(|end| end <= len);
        Ok((bytes.starts_with(b"FLR\0") && is_there).then(|| Span {
            size,
            start_ns,
            end_ns: start_ns.saturating_add(duration_ns),
        }))
    }
}

/// The last chunks of a recording.
#[derive(Default)]
pub struct Ring {
    closed: VecDeque<(Span, Vec<u8>)>,
    open: Option<(Span, Vec<u8>)>,
    window_ns: u64,
}

impl Ring {
    /// Keeps the chunks for a window of this length.
    pub fn new(window_ns: u64) -> Ring {
        Ring {
            window_ns,
            ..Ring::default()
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.closed.push_back(open);
        }
        self.trim();
    }

    fn trim(&mut self) {
        let newest_ns = self.newest_ns();
        let oldest_ns = newest_ns.saturating_sub(self.window_ns);
        loop {
            let bytes: usize = self.closed.iter().map(|(_, bytes)| bytes.len()).sum();
            let is_old = |span: &Span| {
                let is_over = span.end_ns < oldest_ns;
                let is_news = span.end_ns >= newest_ns.saturating_sub(NEWS_NS);
                (is_over && (!is_news || bytes > NEWS_MAX)) || bytes > KEPT_MAX
            };
            match self.closed.front() {
                Some((span, _)) if is_old(span) => self.closed.pop_front(),
                _ => return,
            };
        }
    }

    /// Time of the last flush, in nanoseconds since the Unix epoch; 0 before the first.
    pub fn newest_ns(&self) -> u64 {
        let last = self.open.as_ref().or(self.closed.back());
        last.map_or(0, |(span, _)| span.end_ns)
    }

    /// Begin of the kept chunks.
    #[cfg(test)]
    fn oldest_ns(&self) -> u64 {
        let first = self.closed.front().or(self.open.as_ref());
        first.map_or(0, |(span, _)| span.start_ns)
    }

    /// The bytes of all kept chunks.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_since(0)
    }

    /// The chunks of the window, if older ones are kept as well.
    pub fn newest(&self) -> Option<Vec<u8>> {
        let oldest_ns = self.newest_ns().saturating_sub(self.window_ns);
        let (first, _) = self.closed.front()?;
        (first.end_ns < oldest_ns).then(|| self.bytes_since(oldest_ns))
    }

    fn bytes_since(&self, since_ns: u64) -> Vec<u8> {
        let chunks = self.closed.iter().chain(&self.open);
        let wanted = chunks.filter(|(span, _)| span.end_ns >= since_ns);
        wanted.flat_map(|(_, bytes)| bytes).copied().collect()
    }
}

/// A growing file, which may be replaced by a new one that continues it.
pub struct Follower {
    file: File,
    at: u64,
    ring: Ring,
}

impl Follower {
    /// Follows a file from its beginning.
    pub fn new(file: File, window_ns: u64) -> Follower {
        Follower {
            file,
            at: 0,
            ring: Ring::new(window_ns),
        }
    }

    /// The chunks.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Reads new data. `now` is the file that has the name now. If it is another one, the old file
    /// is first read to its end. Returns whether there was new data.
    ///
    /// # Errors
    /// Errors of reading the files.
    pub fn poll(&mut self, now: Option<File>) -> io::Result<bool> {
        let id = |file: &File| file.metadata().map(|data| (data.dev(), data.ino()));
        let mut has_news = self.read()?;
        if let Some(now) = now
            && id(&now)? != id(&self.file)?
        {
            // The last flush may have come in between.
            self.read()?;
            self.replace(now);
            has_news |= self.read()?;
        }
        Ok(has_news)
    }

    /// Continues in another file; the old one has ended.
    pub fn replace(&mut self, file: File) {
        self.ring.close();
        self.file = file;
        self.at = 0;
    }

    fn read(&mut self) -> io::Result<bool> {
        let before_ns = self.ring.newest_ns();
        loop {
            let len = self.file.metadata()?.len();
            let Some(span) = Span::read(&self.file, self.at, len)? else {
                break;
            };
            let known = self.ring.open.as_ref().map(|(span, _)| span.size);
            if known != Some(span.size) {
                let size = usize::try_from(span.size).unwrap_or(usize::MAX);
                if size > 2 * KEPT_MAX {
                    return Err(io::Error::other("a chunk of the recording is too large"));
                }
                let mut bytes = vec![0; size];
                self.file.read_exact_at(&mut bytes, self.at)?;
                self.ring.open = Some((span, bytes));
            }
            if Span::read(&self.file, self.at + span.size, len)?.is_none() {
                break;
            }
            self.ring.close();
            self.at += span.size;
        }
        self.ring.trim();
        Ok(self.ring.newest_ns() > before_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_jfr::writer::{ChunkClock, ChunkWriter};
    use std::io::Write;
    use std::path::PathBuf;

    const SECOND: u64 = 1_000_000_000;

    fn chunk(start_s: u64, seconds: u64) -> Vec<u8> {
        let clock = ChunkClock {
            epoch_ns: start_s * SECOND,
            start_ticks: 0,
            ticks_per_second: SECOND,
        };
        ChunkWriter::new(clock).flush(seconds * SECOND)
    }

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let name = format!("dwell-follow-{name}-{}", std::process::id());
            Place(std::env::temp_dir().join(name))
        }

        fn open(&self) -> File {
            File::open(&self.0).unwrap()
        }

        fn add(&self, bytes: &[u8]) {
            let mut options = File::options();
            let mut file = options.create(true).append(true).open(&self.0).unwrap();
            file.write_all(bytes).unwrap();
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn chunks_are_kept_as_long_as_the_window_needs_them() {
        let place = Place::new("window");
        place.add(b"");
        let mut follower = Follower::new(place.open(), 10 * SECOND);
        assert!(!follower.poll(None).unwrap());
        assert!(follower.ring().bytes().is_empty());
        for start_s in (100..200).step_by(5) {
            place.add(&chunk(start_s, 5));
            assert!(follower.poll(Some(place.open())).unwrap(), "{start_s}");
        }
        assert!(!follower.poll(Some(place.open())).unwrap());
        let ring = follower.ring();
        // 200 - 65 = 135: the chunk that ended then may have the last event of a thread.
        assert_eq!(
            (ring.oldest_ns(), ring.newest_ns()),
            (130 * SECOND, 200 * SECOND)
        );
        let newest = dwell_jfr::reader::parse(&ring.newest().unwrap()).unwrap();
        // 200 - 10 = 190: the chunk that ended then may have its last event in the window.
        let starts: Vec<u64> = newest
            .chunks
            .iter()
            .map(|it| it.start_ns / SECOND)
            .collect();
        assert_eq!(starts, [185, 190, 195]);
    }

    #[test]
    fn window_that_has_all_chunks_needs_no_second_reading() {
        let place = Place::new("all");
        place.add(&chunk(100, 5));
        let mut follower = Follower::new(place.open(), 10 * SECOND);
        follower.poll(None).unwrap();
        place.add(&chunk(105, 5));
        follower.poll(None).unwrap();
        assert_eq!(follower.ring().newest(), None);
        assert!(!follower.ring().bytes().is_empty());
    }

    #[test]
    fn half_written_event_waits() {
        let place = Place::new("half");
        let bytes = chunk(7, 1);
        place.add(&bytes[..bytes.len() - 1]);
        let mut follower = Follower::new(place.open(), SECOND);
        assert!(!follower.poll(None).unwrap());
        place.add(&bytes[bytes.len() - 1..]);
        place.add(b"half of the next flush");
        assert!(follower.poll(None).unwrap());
        assert_eq!(follower.ring().newest_ns(), 8 * SECOND);
    }

    #[test]
    fn replaced_file_is_read_to_its_end() {
        let (place, kept) = (Place::new("old"), Place::new("kept"));
        place.add(&chunk(1, 1));
        let mut follower = Follower::new(place.open(), 60 * SECOND);
        follower.poll(Some(place.open())).unwrap();
        place.add(&chunk(2, 1));
        std::fs::rename(&place.0, &kept.0).unwrap();
        assert!(follower.poll(None).unwrap(), "without its name, too");
        kept.add(&chunk(3, 1));
        place.add(&chunk(4, 1));
        assert!(follower.poll(Some(place.open())).unwrap());
        assert_eq!(follower.ring().closed.len(), 3);
        assert_eq!(follower.ring().newest_ns(), 5 * SECOND);
    }
}

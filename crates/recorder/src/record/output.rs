//! Decides which data goes to the disk: the gap while the disk takes no data, and the two files of
//! a bounded recording. Disk and time are parameters.

use super::file::{RecordingFile, Written};
use std::io;
use std::path::{Path, PathBuf};

/// Where chunks are written to.
pub trait Destination {
    /// As of [`RecordingFile::append`].
    fn append(&mut self, bytes: &[u8], header: &[u8]) -> Written;
    /// As of [`RecordingFile::next_chunk`].
    fn next_chunk(&mut self);
    /// Keeps the present file under [`previous_path`] and continues in an empty file.
    ///
    /// # Errors
    /// Why there is no next file; the files then are as before.
    fn next_file(&mut self) -> io::Result<()>;
    /// Bytes that are written.
    fn bytes(&self) -> u64;
    /// As of [`RecordingFile::is_waiting`].
    fn is_waiting(&self) -> bool;
    /// Its name, for people.
    fn path(&self) -> &Path;
}

impl Destination for RecordingFile {
    fn append(&mut self, bytes: &[u8], header: &[u8]) -> Written {
        RecordingFile::append(self, bytes, header)
    }

    fn next_chunk(&mut self) {
        RecordingFile::next_chunk(self);
    }

    fn next_file(&mut self) -> io::Result<()> {
        self.rotate(&previous_path(RecordingFile::path(self)))
    }

    fn bytes(&self) -> u64 {
        RecordingFile::len(self)
    }

    fn is_waiting(&self) -> bool {
        RecordingFile::is_waiting(self)
    }

    fn path(&self) -> &Path {
        RecordingFile::path(self)
    }
}

/// Where the previous half of a bounded recording is kept: `app.jfr` -> `app.1.jfr`.
fn previous_path(path: &Path) -> PathBuf {
    path.with_extension("1.jfr")
}

/// How much of a recording is kept, in two files of half as much each; 0: no bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// Bytes.
    pub bytes: u64,
    /// Nanoseconds.
    pub age_ns: u64,
}

/// A number of samples and their weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub samples: u64,
    /// CPU time that they stand for.
    pub weight_ns: u64,
}

impl Amount {
    fn add(&mut self, more: Amount) {
        self.samples += more.samples;
        self.weight_ns += more.weight_ns;
    }
}

/// The file could not be written.
const DISK_FULL: &str = "disk_full";
/// The next file of a bounded recording could not be made.
const NO_NEXT_FILE: &str = "no_next_file";
/// Time between two attempts to make the next file: the first value, and the maximum, in
/// nanoseconds.
const RETRY_NS: (u64, u64) = (1_000_000_000, 30_000_000_000);

/// The next file of a bounded recording could not be made.
#[derive(Clone, Copy, Debug)]
struct Stuck {
    /// When to try again, on the monotonic clock.
    retry_ns: u64,
    /// How long to wait after the next failure.
    wait_ns: u64,
}

/// A time in which no data was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// `disk_full`, or `no_next_file`: the bound of a recording was reached.
    pub cause: &'static str,
    /// When writing failed first, on the monotonic clock.
    pub since_ns: u64,
    /// The data that is missing in the file because of it.
    pub lost: Amount,
}

/// News for the user after an attempt to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// All is as before.
    Nothing,
    /// Writing has begun to fail: file and reason.
    Trouble(String),
    /// It works again.
    Over,
}

/// The file of a recording, and its waiting and lost data.
pub struct Output<D> {
    destination: Option<D>,
    bounds: Bounds,
    /// When this file was begun.
    began_ns: u64,
    /// Bytes of the files before this one.
    earlier: u64,
    gap: Option<Gap>,
    /// The part of the chunk that waits for room.
    waiting: Amount,
    /// A part of the chunk was dropped: no more of it may go into the file.
    broken: bool,
    /// Set while the file is full and there is no next one.
    stuck: Option<Stuck>,
}

impl<D: Destination> Output<D> {
    /// Without a destination, everything is dropped.
    #[must_use]
    pub fn new(destination: Option<D>, bounds: Bounds, now_ns: u64) -> Output<D> {
        Output {
            destination,
            bounds,
            began_ns: now_ns,
            earlier: 0,
            gap: None,
            waiting: Amount::default(),
            broken: false,
            stuck: None,
        }
    }

    /// The gap that the chunk has to report with its next data. Every chunk reports it until one
    /// of them is in the file.
    #[must_use]
    pub fn untold(&self) -> Option<Gap> {
        let gap = self.gap.filter(|gap| gap.lost.samples > 0);
        gap.filter(|_| self.waiting.samples == 0)
    }

    /// Appends a part of the chunk that contains `amount`.
    pub fn append(&mut self, bytes: &[u8], header: &[u8], amount: Amount, now_ns: u64) -> News {
        if let (true, Some(gap)) = (self.broken, &mut self.gap) {
            gap.lost.add(amount);
            return News::Nothing;
        }
        let Some(destination) = &mut self.destination else {
            return News::Nothing;
        };
        match destination.append(bytes, header) {
            Written::All => {
                self.waiting = Amount::default();
                match self.gap.take() {
                    Some(_) if self.stuck.is_none() => News::Over,
                    _ => News::Nothing,
                }
            }
            Written::Waiting(kind) => {
                self.waiting.add(amount);
                self.trouble(now_ns, &kind.to_string())
            }
            Written::GivenUp => {
                let news = self.trouble(now_ns, "no room on the disk");
                self.waiting.add(amount);
                let lost = std::mem::take(&mut self.waiting);
                if let Some(gap) = &mut self.gap {
                    gap.lost.add(lost);
                }
                self.broken = true;
                news
            }
        }
    }

    /// The first failure to write is reported, once.
    fn trouble(&mut self, now_ns: u64, reason: &str) -> News {
        if self.gap.is_some() {
            return News::Nothing;
        }
        self.begin_gap(DISK_FULL, now_ns);
        self.told("cannot write", reason)
    }

    fn begin_gap(&mut self, cause: &'static str, now_ns: u64) {
        self.gap.get_or_insert(Gap {
            cause,
            since_ns: now_ns,
            lost: Amount::default(),
        });
    }

    fn told(&self, what: &str, reason: &str) -> News {
        let path = self.destination.as_ref().map(|d| d.path().display());
        let path = path.map(|path| path.to_string()).unwrap_or_default();
        News::Trouble(format!("{what} {path}: {reason}"))
    }

    /// Bytes of this file.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.destination.as_ref().map_or(0, Destination::bytes)
    }

    /// Whether this file is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all files so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.earlier + self.len()
    }

    /// Whether bytes wait for room: they belong before the next chunk.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.destination
            .as_ref()
            .is_some_and(Destination::is_waiting)
    }

    /// Whether the chunk has to end: no later data can go into the file with it.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether the file has reached its share of a bounded recording, so that the next one is to
    /// be made.
    #[must_use]
    pub fn is_full(&self, now_ns: u64) -> bool {
        let Bounds { bytes, age_ns } = self.bounds;
        let age = now_ns.saturating_sub(self.began_ns);
        let is_full = bytes > 0 && self.len() >= bytes / 2 || age_ns > 0 && age >= age_ns / 2;
        is_full && self.stuck.is_none_or(|stuck| now_ns >= stuck.retry_ns)
    }

    /// Whether a file without a next one is over its limit: half of the bytes, as always, but all
    /// of the age, as new samples are worth more than old ones.
    fn is_beyond(&self, now_ns: u64) -> bool {
        let Bounds { bytes, age_ns } = self.bounds;
        let age = now_ns.saturating_sub(self.began_ns);
        bytes > 0 && self.len() >= bytes / 2 || age_ns > 0 && age >= age_ns
    }

    /// The next chunk begins, in another file if this one is full. If that cannot be made, it is
    /// tried again later, and data beyond the bound is dropped and counted.
    pub fn next_chunk(&mut self, now_ns: u64) -> News {
        let is_full = self.is_full(now_ns);
        self.broken = false;
        let Some(destination) = &mut self.destination else {
            return News::Nothing;
        };
        destination.next_chunk();
        let mut news = News::Nothing;
        if is_full {
            let len = destination.bytes();
            match destination.next_file() {
                Ok(()) => {
                    self.earlier += len;
                    self.began_ns = now_ns;
                    // If data was lost, the trouble is over when the file contains the report of
                    // it.
                    if self.stuck.take().is_some() && self.gap.is_none() {
                        news = News::Over;
                    }
                }
                Err(error) => news = self.next_file_failed(now_ns, &error),
            }
        }
        if self.stuck.is_some() && self.is_beyond(now_ns) {
            self.begin_gap(NO_NEXT_FILE, now_ns);
            self.broken = true;
        }
        news
    }

    fn next_file_failed(&mut self, now_ns: u64, error: &io::Error) -> News {
        let wait_ns = self.stuck.map_or(RETRY_NS.0, |stuck| stuck.wait_ns);
        let before = self.stuck.replace(Stuck {
            retry_ns: now_ns.saturating_add(wait_ns),
            wait_ns: wait_ns.saturating_mul(2).min(RETRY_NS.1),
        });
        match before {
            Some(_) => News::Nothing,
            None => self.told("cannot make the next file of", &error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    /// A disk with or without room; it drops waiting data after three parts.
    #[derive(Default)]
    struct Disk {
        full: bool,
        no_next: bool,
        attempts: usize,
        waiting: usize,
        written: u64,
        files: usize,
        chunks: usize,
    }

    impl Destination for Disk {
        fn append(&mut self, bytes: &[u8], _header: &[u8]) -> Written {
            self.waiting += bytes.len();
            if !self.full {
                self.written += std::mem::take(&mut self.waiting) as u64;
                Written::All
            } else if self.waiting < 30 {
                Written::Waiting(ErrorKind::StorageFull)
            } else {
                self.waiting = 0;
                Written::GivenUp
            }
        }

        fn next_chunk(&mut self) {
            self.chunks += 1;
        }

        fn next_file(&mut self) -> io::Result<()> {
            self.attempts += 1;
            if self.no_next {
                return Err(io::Error::from_raw_os_error(libc::EMFILE));
            }
            self.files += 1;
            self.written = 0;
            Ok(())
        }

        fn bytes(&self) -> u64 {
            self.written
        }

        fn is_waiting(&self) -> bool {
            self.waiting > 0
        }

        fn path(&self) -> &Path {
            Path::new("/a/b.jfr")
        }
    }

    /// Ten bytes with three samples of 5 ns.
    fn part(output: &mut Output<Disk>, now_ns: u64) -> News {
        let amount = Amount {
            samples: 3,
            weight_ns: 15,
        };
        output.append(&[0; 10], b"h", amount, now_ns)
    }

    fn output(bounds: Bounds) -> Output<Disk> {
        Output::new(Some(Disk::default()), bounds, 1000)
    }

    fn disk(output: &mut Output<Disk>) -> &mut Disk {
        output.destination.as_mut().unwrap()
    }

    #[test]
    fn data_written_after_a_wait_is_no_loss() {
        let mut output = output(Bounds::default());
        assert_eq!(part(&mut output, 1), News::Nothing);
        disk(&mut output).full = true;
        let told = News::Trouble("cannot write /a/b.jfr: no storage space".to_owned());
        assert_eq!(part(&mut output, 2), told);
        assert_eq!(part(&mut output, 3), News::Nothing);
        assert!(output.is_waiting() && !output.is_broken());
        assert_eq!(output.untold(), None);
        disk(&mut output).full = false;
        assert_eq!(part(&mut output, 4), News::Over);
        assert_eq!((output.untold(), output.len()), (None, 40));
    }

    #[test]
    fn dropped_data_is_reported_until_in_the_file() {
        let mut output = output(Bounds::default());
        disk(&mut output).full = true;
        assert!(matches!(part(&mut output, 20), News::Trouble(_)));
        assert_eq!(part(&mut output, 30), News::Nothing);
        assert_eq!(part(&mut output, 40), News::Nothing);
        assert!(output.is_broken() && !output.is_waiting());
        let lost = |output: &Output<Disk>| output.untold().unwrap().lost.samples;
        assert_eq!(lost(&output), 9);
        // The remaining part of this chunk does not go to the disk, which may have room again.
        disk(&mut output).full = false;
        assert_eq!(part(&mut output, 50), News::Nothing);
        assert_eq!((lost(&output), output.len()), (12, 0));
        // The next chunk reports it, even if it has to wait itself.
        output.next_chunk(60);
        assert!(!output.is_broken());
        disk(&mut output).full = true;
        assert_eq!(part(&mut output, 70), News::Nothing);
        assert_eq!(output.untold(), None);
        disk(&mut output).full = false;
        assert_eq!(part(&mut output, 80), News::Over);
        assert_eq!((output.untold(), output.len()), (None, 20));
        // A later gap is a new one, with its own beginning.
        disk(&mut output).full = true;
        assert!(matches!(part(&mut output, 90), News::Trouble(_)));
        let gap = output.gap.unwrap();
        assert_eq!((gap.since_ns, gap.lost), (90, Amount::default()));
    }

    #[test]
    fn gap_has_the_weight_of_all_lost_samples() {
        let mut output = output(Bounds::default());
        disk(&mut output).full = true;
        for now in 1..=5 {
            let _ = part(&mut output, now);
        }
        let expected = Amount {
            samples: 15,
            weight_ns: 75,
        };
        let gap = output.untold().unwrap();
        assert_eq!((gap.since_ns, gap.lost), (1, expected));
    }

    #[test]
    fn a_file_is_full_by_half_of_either_bound() {
        let mut output = output(Bounds {
            bytes: 60,
            age_ns: 0,
        });
        for expected in [false, false, true] {
            let _ = part(&mut output, 1001);
            assert_eq!(output.is_full(u64::MAX), expected);
        }
        output.next_chunk(1002);
        assert_eq!((output.len(), output.written()), (0, 30));
        assert!(!output.is_full(1003));
        output.next_chunk(1003);
        let disk = disk(&mut output);
        assert_eq!((disk.files, disk.chunks), (1, 2));

        let mut output = self::output(Bounds {
            bytes: 0,
            age_ns: 100,
        });
        assert!(!output.is_full(1049) && output.is_full(1050));
        output.next_chunk(1050);
        assert!(!output.is_full(1099) && output.is_full(1100));
        assert!(!self::output(Bounds::default()).is_full(u64::MAX));
    }

    const SECOND: u64 = 1_000_000_000;

    /// Like the drainer: each second it writes, and begins a chunk when it is due.
    fn second(output: &mut Output<Disk>, at: u64) -> Vec<News> {
        let mut news = vec![part(output, at * SECOND)];
        if output.is_broken() || output.is_full(at * SECOND) {
            news.push(output.next_chunk(at * SECOND));
        }
        news.retain(|news| *news != News::Nothing);
        news
    }

    #[test]
    fn bytes_stay_bounded_while_no_next_file_can_be_made() {
        let bounds = Bounds {
            bytes: 40,
            age_ns: 0,
        };
        let mut output = Output::new(Some(Disk::default()), bounds, 0);
        disk(&mut output).no_next = true;
        assert_eq!(second(&mut output, 1), []);
        let [News::Trouble(told)] = &second(&mut output, 2)[..] else {
            panic!("the first failure is reported");
        };
        let beginning = "cannot make the next file of /a/b.jfr: ";
        assert!(told.starts_with(beginning), "{told}");
        for at in 3..100 {
            assert_eq!(second(&mut output, at), []);
            assert_eq!(output.len(), 20, "nothing more is written");
        }
        // After 1, 2, 4, 8, 16, 30 and again 30 s.
        assert_eq!(disk(&mut output).attempts, 8);
        let lost = Amount {
            samples: 97 * 3,
            weight_ns: 97 * 15,
        };
        let gap = output.untold().unwrap();
        assert_eq!((gap.cause, gap.since_ns), (NO_NEXT_FILE, 2 * SECOND));
        assert_eq!(gap.lost, lost);
        // Once there is room the next attempt works, and the missing data is reported.
        disk(&mut output).no_next = false;
        let mut at = 100;
        while disk(&mut output).files == 0 {
            assert_eq!(second(&mut output, at), []);
            at += 1;
            assert!(at < 200, "it is not tried again");
        }
        assert!(output.untold().is_some() && !output.is_broken());
        assert_eq!(second(&mut output, at), [News::Over]);
        assert_eq!((output.untold(), output.len()), (None, 10));
        assert_eq!(second(&mut output, at + 1), []);
        assert_eq!(disk(&mut output).files, 2, "it rotates as before");
    }

    #[test]
    fn samples_are_kept_for_the_age_while_no_next_file_can_be_made() {
        let bounds = Bounds {
            bytes: 0,
            age_ns: 20 * SECOND,
        };
        let mut output = Output::new(Some(Disk::default()), bounds, 0);
        disk(&mut output).no_next = true;
        let mut news: Vec<News> = (1..15).flat_map(|at| second(&mut output, at)).collect();
        assert!(matches!(news[..], [News::Trouble(_)]), "{news:?}");
        assert_eq!((output.len(), output.untold()), (140, None));
        disk(&mut output).no_next = false;
        news = (15..20).flat_map(|at| second(&mut output, at)).collect();
        assert_eq!(news, [News::Over], "nothing was lost");
        assert_eq!(disk(&mut output).files, 1);
        // Later it lasts for longer than the age.
        disk(&mut output).no_next = true;
        for at in 20..80 {
            second(&mut output, at);
        }
        assert!(output.is_broken() && output.untold().is_some());
        assert!(output.len() <= 260, "{}", output.len());
    }

    #[test]
    fn bounded_recording_keeps_its_previous_file() {
        let folder = std::env::temp_dir().join(format!("dwell-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.jfr");
        let file = RecordingFile::create(&path).unwrap();
        let bounds = Bounds {
            bytes: 6,
            age_ns: 0,
        };
        let mut output = Output::new(Some(file), bounds, 0);
        for bytes in [b"one", b"two", b"thr"] {
            assert_eq!(
                output.append(bytes, &bytes[..1], Amount::default(), 0),
                News::Nothing
            );
            assert_eq!(output.next_chunk(0), News::Nothing);
        }
        assert_eq!(output.written(), 9);
        assert_eq!(std::fs::read(folder.join("a.1.jfr")).unwrap(), b"thr");
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn without_a_file_everything_is_dropped() {
        let mut output: Output<Disk> = Output::new(None, Bounds::default(), 0);
        assert_eq!(
            output.append(b"x", b"h", Amount::default(), 1),
            News::Nothing
        );
        output.next_chunk(2);
        assert!(output.is_empty() && !output.is_waiting());
    }
}

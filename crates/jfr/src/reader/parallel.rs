//! Reads whole chunks on several threads with tables of their own, and merges them in the order of
//! the file. The result is that of a single thread. This module decides neither where chunks begin
//! and end nor what their events mean.

use super::absorb::Known;
use super::error::Error;
use super::tables::{News, Tables};
use super::{Options, Reading, invalid, whole_chunk};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// A chunk to be read.
struct Job {
    number: u64,
    /// Where it begins.
    offset: u64,
    bytes: Vec<u8>,
}

/// The data read from it.
struct Done<'o> {
    number: u64,
    /// Which thread has read it.
    reader: usize,
    read: Result<(Reading<'o>, News), Error>,
    /// Room for another chunk.
    room: Vec<u8>,
}

/// Reads chunks until one is not whole; gives the place where that begins, or the end.
pub(super) fn read<'o>(
    input: &mut (impl Read + Seek),
    length: u64,
    threads: usize,
    reading: &mut Reading<'o>,
) -> io::Result<u64> {
    let (jobs, to_do) = channel::<Job>();
    let (give, done) = channel::<Done<'o>>();
    let to_do = Mutex::new(to_do);
    let (options, seeds) = (reading.options, reading.tables.seeds());
    std::thread::scope(|scope| {
        // The drop at the end, in any case, releases the threads that wait for jobs.
        let jobs = jobs;
        for reader in 0..threads {
            let (to_do, give) = (&to_do, give.clone());
            scope.spawn(move || work(reader, options, Tables::of_parts(seeds), to_do, &give));
        }
        drop(give);
        // One more than there are threads, so that none waits for the next chunk's bytes.
        let most = threads as u64 + 1;
        let (mut offset, mut sent, mut added, mut is_more) = (0, 0, 0, true);
        let mut waiting = BTreeMap::new();
        let mut rooms = Vec::new();
        let mut known: Vec<Known> = (0..threads).map(|_| Known::default()).collect();
        loop {
            while is_more && sent - added < most {
                let size = match offset < length {
                    true => whole_chunk(input, offset, length)?,
                    false => None,
                };
                let Some(size) = size else {
                    is_more = false;
                    break;
                };
                let mut bytes: Vec<u8> = rooms.pop().unwrap_or_default();
                bytes.clear();
                input.seek(SeekFrom::Start(offset))?;
                (&mut *input).take(size).read_to_end(&mut bytes)?;
                let number = sent;
                let job = Job {
                    number,
                    offset,
                    bytes,
                };
                jobs.send(job).map_err(|_| ended())?;
                // A chunk is longer than its header, so this makes progress.
                offset = offset.saturating_add(size.max(1));
                sent += 1;
            }
            if sent == added {
                return Ok(offset);
            }
            let done = done.recv().map_err(|_| ended())?;
            rooms.push(done.room);
            waiting.insert(done.number, (done.reader, done.read));
            while let Some((reader, read)) = waiting.remove(&added) {
                let (part, news) = read.map_err(invalid)?;
                if let Some(known) = known.get_mut(reader) {
                    reading.absorb(part, news, known);
                }
                added += 1;
            }
        }
    })
}

/// Reads chunks until the queue is closed. A thread gets chunks in the order of the file, so the
/// merged tables already have all that this thread reported before.
fn work<'o>(
    reader: usize,
    options: &'o Options<'o>,
    mut tables: Tables,
    to_do: &Mutex<Receiver<Job>>,
    give: &Sender<Done<'o>>,
) {
    while let Some(job) = next(to_do) {
        let mut part = Reading::part(options, tables);
        let read = part.bytes(&job.bytes, job.offset as usize);
        let news = part.tables.news();
        tables = part.tables.take_lasting();
        let done = Done {
            number: job.number,
            reader,
            read: read.map(|()| (part, news)),
            room: job.bytes,
        };
        if give.send(done).is_err() {
            break;
        }
    }
}

fn next(to_do: &Mutex<Receiver<Job>>) -> Option<Job> {
    // The holder of the lock waits for a job; the other threads wait for the lock.
    let to_do = to_do.lock().unwrap_or_else(PoisonError::into_inner);
    to_do.recv().ok()
}

fn ended() -> io::Error {
    io::Error::other("the threads that read chunks have ended")
}

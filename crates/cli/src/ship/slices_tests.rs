//! Tests of slices, on recordings that grow and drop their older part.

use super::*;
use crate::recording;
use dwell_jfr::writer::{ChunkClock, ChunkWriter, Sample, ThreadInfo, WallSample};
use dwell_profile::{EVENTS, Profile, WallFilter};
use std::path::PathBuf;

const SECOND: u64 = 1_000_000_000;
const EPOCH: u64 = 1_700_000_000 * SECOND;
const MINUTE: Until = Until {
    every: Duration::from_secs(60),
    is_last: false,
    has_ended: false,
};
const LAST: Until = Until {
    is_last: true,
    ..MINUTE
};

/// A recording in two files, as the agent writes it: a flush each second.
struct Agent {
    dir: PathBuf,
    second: u64,
    chunk: ChunkWriter,
    at: u64,
}

fn clock(second: u64) -> ChunkClock {
    ChunkClock {
        epoch_ns: EPOCH + second * SECOND,
        start_ticks: 77 + second * SECOND,
        ticks_per_second: SECOND,
    }
}

impl Agent {
    fn new(name: &str) -> Agent {
        let dir = std::env::temp_dir().join(format!("dwell-slices-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        File::create(dir.join("a.jfr")).unwrap();
        Agent {
            dir,
            second: 0,
            chunk: ChunkWriter::new(clock(0)),
            at: 0,
        }
    }

    fn newer(&self) -> PathBuf {
        self.dir.join("a.jfr")
    }

    /// Writes a second: a sample that names its number, with a weight of its own, and a wait that
    /// began earlier.
    fn second(&mut self) {
        let now = clock(self.second).start_ticks;
        let name = format!("thread {}", self.second);
        let thread = self.chunk.thread(
            self.second,
            &ThreadInfo {
                os_name: &name,
                os_tid: self.second as i64 + 1,
                java_name: Some(&name),
                java_tid: self.second as i64 + 1,
                ..ThreadInfo::default()
            },
        );
        // Weights of one thread are written once, and hold for what follows in the chunk.
        let first = self.chunk.thread(u64::MAX, &ThreadInfo::default());
        for (thread, weight_ns) in [(thread, 1_000_000 + self.second), (first, 7)] {
            self.chunk.execution_sample(&Sample {
                ticks: now + 5,
                thread,
                weight_ns,
                ..Sample::default()
            });
        }
        self.chunk.event(&dwell_jfr::writer::Event::Recording {
            ticks: now,
            version: "1",
            pid: 7,
            mode: "cpu,wall",
            engine: "timer",
            engine_reason: "",
            cpu_interval_ns: 10_000_000,
            wall_interval_ns: 20_000_000,
            options: "",
        });
        self.chunk.wall_sample(&WallSample {
            ticks: now - 70,
            duration_ticks: 75,
            thread,
            cause: "park",
            weight_ns: 13 + self.second,
            count: 1,
            ..WallSample::default()
        });
        self.second += 1;
        let bytes = self.chunk.flush(clock(self.second).start_ticks);
        let file = File::options().write(true).open(self.newer()).unwrap();
        let end = self.at + self.chunk.len() - bytes.len() as u64;
        file.write_all_at(&bytes, end).unwrap();
        file.write_all_at(&self.chunk.header(), self.at).unwrap();
    }

    fn next_chunk(&mut self) {
        self.at += self.chunk.len();
        self.chunk = self.chunk.following(clock(self.second));
    }

    /// Continues in another file; the older one goes.
    fn replace(&mut self) {
        std::fs::rename(self.newer(), self.dir.join("a.1.jfr")).unwrap();
        File::create(self.newer()).unwrap();
        self.next_chunk();
        self.at = 0;
    }

    fn files(&self) -> Vec<File> {
        let older = File::open(self.dir.join("a.1.jfr")).ok();
        let newer = File::open(self.newer()).unwrap();
        older.into_iter().chain([newer]).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// CPU time, wall time and number of samples.
fn sums(jfr: &[u8]) -> [u64; 3] {
    let recording = recording::parsed_with(jfr, EVENTS).unwrap();
    assert_eq!(recording.warnings, Vec::<String>::new());
    let profile = Profile::from_recording(recording);
    let cpu = profile.samples().iter().map(|it| it.weight).sum();
    let all = WallFilter::default();
    let wall = profile.wall(&all).map(|it| it.weight.sum).sum();
    [cpu, wall, profile.samples().len() as u64]
}

/// Sums of so many seconds.
fn expected(seconds: std::ops::Range<u64>) -> [u64; 3] {
    let count = seconds.end - seconds.start;
    let numbers: u64 = seconds.sum();
    let cpu = count * 1_000_000 + numbers;
    // Only threads of Java have wall time, their running included.
    [cpu + 7 * count, cpu + 13 * count + numbers, 2 * count]
}

/// Takes all slices that are complete: their lengths in seconds and their sums.
fn taken(slices: &mut Slices, agent: &Agent, until: Until) -> (Vec<u64>, [u64; 3]) {
    let (mut lengths, mut all) = (Vec::new(), [0; 3]);
    while let Some(slice) = slices.next(&agent.files(), until).unwrap() {
        lengths.push((slice.to_ns - slice.from_ns) / SECOND);
        for (sum, more) in all.iter_mut().zip(sums(&slice.jfr)) {
            *sum += more;
        }
        slices.passed(&slice);
        assert!(lengths.len() < 1000);
    }
    (lengths, all)
}

#[test]
fn growing_recording_is_cut_into_minutes() {
    let mut agent = Agent::new("grow");
    let mut slices = Slices::new(1, None);
    let mut lengths = Vec::new();
    let mut all = [0; 3];
    for second in 0..150 {
        agent.second();
        if second == 70 {
            agent.next_chunk();
        }
        let (more, sums) = taken(&mut slices, &agent, MINUTE);
        lengths.extend(more);
        all = std::array::from_fn(|place| all[place] + sums[place]);
    }
    assert_eq!(lengths, [60, 60]);
    assert_eq!(all, expected(0..120), "the second slice is of two chunks");
    let (lengths, rest) = taken(&mut slices, &agent, LAST);
    assert_eq!((lengths, rest), (vec![30], expected(120..150)));
    assert_eq!(taken(&mut slices, &agent, LAST).0, Vec::<u64>::new());
}

#[test]
fn finished_recording_is_cut_alike() {
    let mut agent = Agent::new("finished");
    for second in 0..135 {
        agent.second();
        if second % 50 == 49 {
            agent.next_chunk();
        }
    }
    let whole = std::fs::read(agent.newer()).unwrap();
    assert_eq!(sums(&whole), expected(0..135));
    for seconds in [1, 7, 60, 3600] {
        let every = Duration::from_secs(seconds);
        let until = Until { every, ..LAST };
        let mut slices = Slices::new(1, None);
        let (lengths, all) = taken(&mut slices, &agent, until);
        assert_eq!(all, expected(0..135), "{seconds}");
        assert_eq!(lengths.len() as u64, 135_u64.div_ceil(seconds));
    }
}

#[test]
fn new_process_continues_at_the_position() {
    let mut agent = Agent::new("restart");
    (0..100).for_each(|_| agent.second());
    let mut first = Slices::new(1, None);
    assert_eq!(
        taken(&mut first, &agent, MINUTE),
        (vec![60], expected(0..60))
    );
    let position = first.position().copied();
    assert!(position.is_some());
    (0..40).for_each(|_| agent.second());
    let mut second = Slices::new(1, position);
    assert_eq!(
        taken(&mut second, &agent, MINUTE),
        (vec![60], expected(60..120))
    );
    assert!(!second.take_lost_place());
}

#[test]
fn replaced_files_are_followed() {
    let mut agent = Agent::new("replace");
    let mut slices = Slices::new(1, None);
    let mut all = [0; 3];
    for second in 0..300 {
        agent.second();
        if second % 80 == 79 {
            agent.replace();
        }
        let (_, sums) = taken(&mut slices, &agent, MINUTE);
        all = std::array::from_fn(|place| all[place] + sums[place]);
    }
    let (_, rest) = taken(&mut slices, &agent, LAST);
    all = std::array::from_fn(|place| all[place] + rest[place]);
    assert_eq!(all, expected(0..300));
    assert!(!slices.take_lost_place());
}

#[test]
fn dropped_data_is_noticed() {
    let mut agent = Agent::new("dropped");
    let mut slices = Slices::new(1, None);
    (0..70).for_each(|_| agent.second());
    assert_eq!(taken(&mut slices, &agent, MINUTE).1, expected(0..60));
    (0..2).for_each(|_| {
        agent.replace();
        (0..20).for_each(|_| agent.second());
    });
    // Ten seconds are gone.
    assert_eq!(taken(&mut slices, &agent, LAST).1, expected(70..110));
    assert!(slices.take_lost_place());
    assert!(!slices.take_lost_place());
}

#[test]
fn damaged_chunk_is_taken_as_it_is_and_the_next_ones_found() {
    let mut agent = Agent::new("damaged");
    let mut ends = Vec::new();
    for _ in 0..3 {
        (0..10).for_each(|_| agent.second());
        agent.next_chunk();
        ends.push(agent.at);
    }
    let file = File::options().write(true).open(agent.newer()).unwrap();
    // An event of impossible size behind most of the second chunk, and no header of the third.
    file.write_all_at(&[0], ends[1] - 900).unwrap();
    let until = Until {
        has_ended: true,
        ..LAST
    };
    let mut samples = 0;
    let mut slices = Slices::new(1, None);
    while let Some(slice) = slices.next(&agent.files(), until).unwrap() {
        let recording = recording::parsed_with(&slice.jfr, EVENTS).unwrap();
        samples += Profile::from_recording(recording).samples().len();
        slices.passed(&slice);
    }
    assert!(samples >= 40, "those of the others: {samples}");
    // The last chunk is found behind bytes that belong to no chunk.
    let whole = std::fs::read(agent.newer()).unwrap();
    let (rest, start) = (&whole[ends[1] as usize..], ends[0] as usize);
    let bytes = [&whole[..start], b"garbage".as_slice(), rest].concat();
    std::fs::write(agent.newer(), bytes).unwrap();
    assert_eq!(sums_of(&agent, until)[2], 40);
}

/// The sums of all slices.
fn sums_of(agent: &Agent, until: Until) -> [u64; 3] {
    taken(&mut Slices::new(1, None), agent, until).1
}

#[test]
fn cut_file_gives_its_whole_events_once_it_has_ended() {
    let mut agent = Agent::new("cut");
    (0..10).for_each(|_| agent.second());
    let file = File::options().write(true).open(agent.newer()).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len - 3).unwrap();
    let mut slices = Slices::new(1, None);
    assert_eq!(taken(&mut slices, &agent, LAST).0, Vec::<u64>::new());
    let until = Until {
        has_ended: true,
        ..LAST
    };
    let slice = slices.next(&agent.files(), until).unwrap().unwrap();
    let recording = recording::parsed_with(&slice.jfr, EVENTS).unwrap();
    // The last constants are cut off, and not the samples.
    assert_eq!(Profile::from_recording(recording).samples().len(), 20);
    slices.passed(&slice);
    assert!(slices.next(&agent.files(), until).unwrap().is_none());
}

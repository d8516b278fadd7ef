//! A JVM whose memory is full of faults while it is stopped: pointers that lead elsewhere or in
//! circles, lengths with any value. A reader from outside ends soon, with some answer.

use super::{PATIENCE, PLAIN, await_stopped};
use dwell_attach::Target;
use dwell_e2e::{Place, Starter, both, each, is_whole, turn};
use dwell_outside::dump::{Dumper, Options};
use dwell_outside::{Live, Vm};
use dwell_walker::hotspot::{continuation, objects, threads};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::channel;

const PAGE: usize = 4096;
/// Of larger regions so much is damaged.
const REGION_MAX: usize = 16 << 20;
/// Names, frames and memory are bounded, whatever lengths are read.
const NAME_MAX: usize = 1 << 16;
const FRAMES_MAX: usize = 1 << 17;
const RSS_MAX: u64 = 2 << 30;

/// Numbers that look like chance, the same for the same seed (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// A part of memory that the JVM writes to, as it was.
struct Region {
    at: u64,
    bytes: Vec<u8>,
    /// Whether it is a library's region: the tables that lead to all other data are there.
    is_library: bool,
}

fn regions(pid: u32, memory: &File) -> Vec<Region> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut regions = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let range = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [from, to] = [range.0, range.1].map(|it| u64::from_str_radix(it, 16).unwrap());
        let mut bytes = vec![0; ((to - from) as usize).min(REGION_MAX)];
        if memory.read_exact_at(&mut bytes, from).is_ok() && bytes.iter().any(|it| *it != 0) {
            let is_library = line.contains(".so");
            regions.push(Region {
                at: from,
                bytes,
                is_library,
            });
        }
    }
    regions
}

/// Another word in place of one.
fn damaged(old: u64, region: &[u8], random: &mut Random) -> u64 {
    match random.below(7) {
        0 => 0,
        1 => u64::MAX,
        2 => random.next(),
        3 => old ^ 1 << random.below(64),
        4 => old.wrapping_add(8),
        5 => old << 32 | 0x7fff_ffff,
        // Pointers to what is there as well, which make circles.
        _ => word(region, random.below(region.len() / 8) * 8),
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Damages one in so many words that are not zero; gives the pages that are others now.
fn damage(region: &Region, one_in: usize, memory: &File, random: &mut Random) -> Vec<usize> {
    let mut pages = Vec::new();
    for (number, page) in region.bytes.chunks(PAGE).enumerate() {
        let mut new = page.to_vec();
        for at in (0..page.len()).step_by(8) {
            let old = word(page, at);
            if old != 0 && random.below(one_in) == 0 {
                let other = damaged(old, &region.bytes, random);
                new[at..at + 8].copy_from_slice(&other.to_le_bytes());
            }
        }
        if new != page {
            let at = region.at + (number * PAGE) as u64;
            memory.write_all_at(&new, at).expect("its memory");
            pages.push(number);
        }
    }
    pages
}

fn mend(region: &Region, pages: &[usize], memory: &File) {
    for number in pages {
        let from = number * PAGE;
        let to = (from + PAGE).min(region.bytes.len());
        let at = region.at + from as u64;
        memory
            .write_all_at(&region.bytes[from..to], at)
            .expect("its memory");
    }
}

/// Reads the stacks once, on a thread of its own as it may not return. Returns the answer.
fn look(pid: u32, seed: u64) -> String {
    let (tell, told) = channel();
    let options = Options {
        native: true,
        virtual_max: 1000,
        running: std::time::Duration::ZERO,
        ..PLAIN
    };
    let thread = std::thread::spawn(move || {
        let target = Target::examine(pid).map_err(|error| error.to_string());
        let said = target.and_then(|target| {
            let live = Live::open(pid).expect("its memory");
            let vm = Vm::read(&target, &live).map_err(|error| error.to_string())?;
            let dump = Dumper::new(&vm).dump(&options);
            let frames: usize = dump.threads.iter().map(|thread| thread.frames.len()).sum();
            let longest = dump.threads.iter().map(|thread| thread.name.len()).max();
            assert!(frames <= FRAMES_MAX && longest.unwrap_or(0) <= NAME_MAX);
            Ok(format!("{} threads, {frames} frames", dump.threads.len()))
        });
        let _ = tell.send(said);
    });
    let said = told.recv_timeout(PATIENCE);
    let said = said.unwrap_or_else(|_| panic!("seed {seed}: no answer, or a panic"));
    thread.join().expect("a look");
    said.inspect_err(|error| assert!(!error.is_empty() && !error.contains('\n'), "{error:?}"))
        .unwrap_or_else(|error| error)
}

fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    number.expect("VmHWM") * 1024
}

#[test]
fn never_does_damaged_memory_stop_or_crash_the_reader() {
    let rounds = if is_whole() { 1000 } else { 40 };
    each(&turn(&both()), |jdk| {
        let place = Place::new("damaged");
        let program = Starter::new(jdk, &place, "Stands")
            .with("deadlock=1 locks=1")
            .jvm("-Xmx16m")
            .start();
        await_stopped(program.pid);
        let path = format!("/proc/{}/mem", program.pid);
        let memory = OpenOptions::new().read(true).write(true).open(path);
        let memory = memory.expect("its memory");
        let all = regions(program.pid, &memory);
        let whole = look(program.pid, 0);
        assert!(whole.contains(" threads, "), "{whole}");
        let mut said: std::collections::BTreeMap<String, u32> = Default::default();
        for seed in 1..=rounds {
            let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
            let one_in = 8 << random.below(12);
            let mut changed = Vec::new();
            for region in &all {
                // Damaged tables hide all other data, so they are damaged every fourth time only.
                let is_spared = region.is_library && seed % 4 != 0;
                if !is_spared && random.below(2) == 0 {
                    changed.push((region, damage(region, one_in, &memory, &mut random)));
                }
            }
            *said.entry(look(program.pid, seed)).or_default() += 1;
            for (region, pages) in changed {
                mend(region, &pages, &memory);
            }
        }
        println!("{}: {said:?}, {} MB", jdk.feature, peak_rss() >> 20);
        assert_eq!(look(program.pid, 0), whole, "all is mended");
        assert!(said.len() > 1, "the damage is noticed: {said:?}");
        assert!(peak_rss() <= RSS_MAX, "{} bytes", peak_rss());
    });
}

/// Where the names of Java threads are: objects of class `String`.
fn names(vm: &Vm<'_>) -> Vec<u64> {
    let (live, layout) = (vm.live, &vm.layout);
    let mut found = Vec::new();
    threads::for_each(live, layout, |thread| {
        let object = objects::of_thread(live, layout, &layout.extra.objects, thread);
        let object = object.expect("a thread's object");
        let name = continuation::reference(live, layout, object + vm.thread.name);
        found.push(name.expect("its name"));
    })
    .expect("the list of threads");
    found
}

/// During a collection the places of objects are unknown for a while. A reader whose first look
/// falls into it finds the layout of names later.
#[test]
fn names_can_be_read_when_the_collector_has_moved_them() {
    const HEADER: usize = 16;
    each(&turn(&both()), |jdk| {
        let place = Place::new("moved");
        let program = Starter::new(jdk, &place, "Stands").start();
        await_stopped(program.pid);
        let path = format!("/proc/{}/mem", program.pid);
        let memory = OpenOptions::new().read(true).write(true).open(path);
        let memory = memory.expect("its memory");
        let target = Target::examine(program.pid).expect("a JVM");
        let live = Live::open(program.pid).expect("its memory");
        let read = || Vm::read(&target, &live).expect("what is to be known of it");
        let told = read();
        assert!(told.tells_names());
        let mut headers = Vec::new();
        // Equal names may be one object.
        for at in std::collections::BTreeSet::from_iter(names(&told)) {
            let mut header = [0; HEADER];
            memory.read_exact_at(&mut header, at).expect("a name");
            headers.push((at, header));
            memory.write_all_at(&[0; HEADER], at).expect("its memory");
        }
        let mut vm = read();
        assert!(!vm.tells_names(), "there are none");
        for (at, header) in headers {
            memory.write_all_at(&header, at).expect("its memory");
        }
        vm.refresh();
        assert!(vm.tells_names());
        let dump = Dumper::new(&vm).dump(&PLAIN);
        assert!(dump.threads.iter().any(|thread| thread.name == "main"));
    });
}

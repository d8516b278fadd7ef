//! Any option string for the agent. Accepted options are within their bounds and, written out
//! again, mean the same. The reason for a refusal is one short line.
#![no_main]

use dwell_recorder::options::{
    self, Command, DEPTH, EngineChoice, INTERVAL_MAX, INTERVAL_MIN, Options,
};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

/// Longest line that still reads well where an attaching tool shows it.
const ERROR_BYTES_MAX: usize = 700;

const NAMES: [&str; 17] = [
    "walk",
    "start",
    "stop",
    "dump",
    "status",
    "cpu",
    "engine",
    "file",
    "depth",
    "chunksize",
    "chunktime",
    "maxsize",
    "maxage",
    "freeze",
    "freeze-every",
    "reply",
    "other",
];
const UNITS: [&str; 12] = [
    "", "ns", "us", "ms", "s", "m", "h", "k", "m", "g", "G", "auto",
];

/// A known name, a number with its digits and a unit, whether these are its value, and a value of
/// any kind.
type Word<'a> = (u8, (u32, u16, u8), bool, &'a str);

fuzz_target!(|input: (Vec<Word<'_>>, &str)| {
    let (words, any) = input;
    let mut text: String = words.iter().map(|word| written(*word)).collect();
    text.push_str(any);
    match options::parse(&text) {
        Ok(options) => check(&options),
        Err(error) => {
            let line = error.to_string();
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(
                line.len() <= ERROR_BYTES_MAX,
                "{} bytes: {line}",
                line.len()
            );
        }
    }
    if let Ok(time) = options::duration("x", any) {
        assert_eq!(options::duration("x", &nanos(time)), Ok(time));
    }
});

fn written((name, (number, digits, unit), is_number, any): Word<'_>) -> String {
    let digits = usize::from(digits % 1024);
    let name = NAMES[usize::from(name) % NAMES.len()];
    let unit = UNITS[usize::from(unit) % UNITS.len()];
    match (is_number, any) {
        (true, _) => format!("{name}={number:0digits$}{unit},"),
        (false, "") => format!("{name},"),
        (false, any) => format!("{name}={any},"),
    }
}

fn check(options: &Options) {
    assert!((INTERVAL_MIN..=INTERVAL_MAX).contains(&options.cpu_interval));
    assert!(DEPTH.contains(&options.depth));
    assert!(options.chunk_bytes >= 256 << 10 && options.chunk_age >= Duration::from_secs(5));
    assert!(options.max_bytes == 0 || options.max_bytes >= 1 << 20);
    let texts = [
        Some(&options.file),
        options.reply.as_ref(),
        options.freeze.as_ref(),
    ];
    for text in texts.into_iter().flatten() {
        assert!(!text.is_empty() && !text.contains(','));
    }
    let again = print(options);
    assert_eq!(options::parse(&again).as_ref(), Ok(options), "{again}");
    let file = options::expand(&options.file, 4242, "20260102-030405");
    assert!(!file.contains("%p") && !file.contains("%t"), "{file}");
}

/// All options, each with its value.
fn print(options: &Options) -> String {
    let command = match options.command {
        Command::Start => "start",
        Command::Stop => "stop",
        Command::Dump => "dump",
        Command::Status => "status",
    };
    let engine = match options.engine {
        EngineChoice::Auto => "auto",
        EngineChoice::Perf => "perf",
        EngineChoice::Timer => "timer",
        EngineChoice::Kernel => "kernel",
    };
    let walk = format!("{:?}", options.walk).to_lowercase();
    let mut text = format!(
        "{command},engine={engine},walk={walk},file={},depth={},freeze-every={},cpu={},\
         chunktime={},maxage={},chunksize={}",
        options.file,
        options.depth,
        options.freeze_every,
        nanos(options.cpu_interval),
        nanos(options.chunk_age),
        nanos(options.max_age),
        size(options.chunk_bytes),
    );
    if options.max_bytes != 0 {
        text += &format!(",maxsize={}", size(options.max_bytes));
    }
    for (name, value) in [("reply", &options.reply), ("freeze", &options.freeze)] {
        if let Some(value) = value {
            text += &format!(",{name}={value}");
        }
    }
    text
}

fn nanos(time: Duration) -> String {
    format!("{}ns", time.as_nanos())
}

/// In the largest unit without a fraction.
fn size(bytes: u64) -> String {
    let units = [("g", 30), ("m", 20), ("k", 10), ("", 0)];
    let (unit, shift) = units
        .into_iter()
        .find(|(_, shift)| bytes.trailing_zeros() >= *shift)
        .expect("the last fits always");
    format!("{}{unit}", bytes >> shift)
}

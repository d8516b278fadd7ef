//! Reads a recording and writes its outputs.

use crate::hint;
use crate::long_work::{self, Step};
use crate::writing::{self, Named};
use anyhow::{Context, Result, bail};
use dwell_jfr::reader::{EventFilter, Options, Recording, parse_from, parse_with};
use dwell_jfr::redact::Secrets;
use dwell_profile::{EVENTS, Profile, SAMPLES_MAX};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The parts of a recording to read.
fn options() -> Options<'static> {
    // One thread merges the results of the others; more threads than these would wait for it.
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    Options {
        events: EventFilter::Only(EVENTS),
        samples_max: Some(SAMPLES_MAX),
        threads: if processors > 1 { processors.min(4) } else { 0 },
        progress: None,
    }
}

/// Reads a recording into the model of all reports. Redacts likely secrets in the program's
/// arguments, because other recorders write them.
pub fn load(path: &Path) -> Result<Profile> {
    load_with(path, &Secrets::default())
}

/// The same with other secrets.
pub fn load_with(path: &Path, secrets: &Secrets) -> Result<Profile> {
    let mut profile = read(path)?;
    profile.redact(secrets);
    Ok(profile)
}

fn read(path: &Path) -> Result<Profile> {
    let shown = path.display();
    refuse_directory(path)?;
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(path)),
        opened => opened.with_context(|| format!("{shown}"))?,
    };
    // A pipe cannot be sought, and is read at once.
    if file.seek(SeekFrom::End(0)).is_err() {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .with_context(|| format!("{shown}"))?;
        return load_from(&mut Cursor::new(bytes), path);
    }
    load_from(&mut file, path)
}

fn load_from(input: &mut (impl Read + Seek), path: &Path) -> Result<Profile> {
    let shown = path.display();
    let first = first_bytes(input).with_context(|| format!("{shown}"))?;
    if first.is_empty() {
        bail!("{shown} is empty: nothing was recorded");
    }
    if first.starts_with(GZIP) {
        return load_from(&mut Cursor::new(unzipped(input, path)?), path);
    }
    if first.starts_with(LFS) {
        bail!(
            "{shown} is a pointer of Git LFS, not the recording: fetch it with git lfs pull \
             (or its link for downloads)"
        );
    }
    if let Some(packing) = packed(&first) {
        let Packing { kind, remedy, .. } = packing;
        return match unpacked(input, packing)? {
            Some(bytes) if packed(&bytes).is_none() => load_from(&mut Cursor::new(bytes), path),
            _ => bail!("{shown} is packed with {kind}; unpack it first: {remedy} {shown}"),
        };
    }
    if let Some(profile) = imported(input, &first, path)? {
        return Ok(profile);
    }
    let length = input.seek(SeekFrom::End(0)).unwrap_or(0);
    let options = Options {
        progress: Some(long_work::begin_reading(length)),
        ..options()
    };
    match parse_from(input, &options) {
        Ok(recording) => {
            long_work::begin(Step::Summing);
            Ok(Profile::from_recording(recording))
        }
        Err(error) if is_cut(&error) => bail!(
            "{shown} is cut off before anything in it can be read; copy it again, or record again"
        ),
        Err(error) if error.kind() == io::ErrorKind::InvalidData && !first.starts_with(JFR) => {
            bail!(
                "{shown} cannot be read as a JFR recording, pprof, OTLP or collapsed stacks; give \
                 one of them"
            )
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(error).with_context(|| format!("{shown} cannot be read as a JFR recording"))
        }
        Err(error) => Err(error).with_context(|| format!("{shown}")),
    }
}

/// First bytes of gzip files, of JFR, and of Git's pointers to large files.
const GZIP: &[u8] = &[0x1f, 0x8b];
const JFR: &[u8] = b"FLR\0";
const LFS: &[u8] = b"version https://git-lfs";
/// Limit for unpacking into memory.
const UNZIPPED_MAX: u64 = 8 << 30;
/// The same for formats other than JFR, whose stacks need several times as much memory.
const IMPORTED_MAX: u64 = 1 << 30;

/// The profile of another tool in a format other than JFR, if it is one.
fn imported(input: &mut (impl Read + Seek), first: &[u8], path: &Path) -> Result<Option<Profile>> {
    if first.starts_with(JFR) {
        return Ok(None);
    }
    let shown = path.display();
    let mut bytes = Vec::new();
    input.seek(SeekFrom::Start(0))?;
    input.take(IMPORTED_MAX).read_to_end(&mut bytes)?;
    let profile = dwell_export::imported(&bytes).with_context(|| format!("{shown}"))?;
    for warning in profile.iter().flat_map(|it| it.warnings()) {
        note!("dwell: note: {}: {warning}", self::shown(path));
    }
    Ok(profile)
}

/// The unpacked bytes of a gzip file.
fn unzipped(input: &mut (impl Read + Seek), path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let mut bytes = Vec::new();
    input.seek(SeekFrom::Start(0))?;
    let mut unzipped = flate2::read::MultiGzDecoder::new(io::BufReader::new(input));
    let mut read = unzipped.by_ref().take(IMPORTED_MAX).read_to_end(&mut bytes);
    if read.is_ok() && bytes.starts_with(JFR) {
        let rest = UNZIPPED_MAX - IMPORTED_MAX;
        read = unzipped.take(rest).read_to_end(&mut bytes);
    }
    match read {
        // A truncated file gives the part that is there.
        Err(_) if bytes.is_empty() => bail!("{shown} is packed with gzip, and damaged"),
        _ if bytes.starts_with(GZIP) => bail!("{shown} is packed twice; unpack it first: gunzip"),
        _ => Ok(bytes),
    }
}

/// Whether the only error is an early end of the file.
fn is_cut(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(dwell_jfr::reader::Error::Truncated { .. }))
}

/// Prints to standard error which part of the file could not be read, unless the output itself says
/// so.
pub fn warn_of_unread(profile: &Profile, path: &Path) {
    if let Some(note) = unread_note(profile, path) {
        note!("dwell: {note}");
    }
}

/// Describes the unreadable part of the file in one line; `None` if all was read.
pub fn unread_note(profile: &Profile, path: &Path) -> Option<String> {
    let words = dwell_report::unread_words(profile.unread()?);
    Some(format!("note: {} {words}", shown(path)))
}

/// The same from a file's bytes.
pub fn parsed(bytes: &[u8]) -> Result<Profile> {
    let mut profile = Profile::from_recording(parsed_with(bytes, EVENTS)?);
    profile.redact(&Secrets::default());
    Ok(profile)
}

/// The model's source, with only these events.
pub fn parsed_with(bytes: &[u8], events: &[&str]) -> Result<Recording> {
    let options = Options {
        events: EventFilter::Only(events),
        ..options()
    };
    Ok(parse_with(bytes, &options)?)
}

fn first_bytes(input: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    input.seek(SeekFrom::Start(0))?;
    input.take(LFS.len() as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// A kind of packed file that another program unpacks.
struct Packing {
    /// How files begin that are packed so.
    magic: &'static [u8],
    kind: &'static str,
    /// The program that unpacks from standard input to standard output with `-dc`; empty: none.
    program: &'static str,
    /// The command that unpacks such a file.
    remedy: &'static str,
}

/// How a file is packed, by its first bytes.
fn packed(bytes: &[u8]) -> Option<&'static Packing> {
    const fn packing(
        magic: &'static [u8],
        kind: &'static str,
        program: &'static str,
        remedy: &'static str,
    ) -> Packing {
        Packing {
            magic,
            kind,
            program,
            remedy,
        }
    }
    const KINDS: &[Packing] = &[
        packing(b"PK\x03\x04", "zip", "", "unzip"),
        packing(&[0x04, 0x22, 0x4d, 0x18], "LZ4", "lz4", "unlz4"),
        packing(&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstd", "unzstd"),
    ];
    KINDS.iter().find(|it| bytes.starts_with(it.magic))
}

/// The bytes of a packed file, if the program that unpacks it is installed and succeeds.
fn unpacked(input: &mut (impl Read + Seek), packing: &Packing) -> io::Result<Option<Vec<u8>>> {
    let mut file = Vec::new();
    input.seek(SeekFrom::Start(0))?;
    input.read_to_end(&mut file)?;
    if packing.program.is_empty() {
        return Ok(None);
    }
    let started = Command::new(packing.program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else {
        return Ok(None);
    };
    let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let mut bytes = Vec::new();
    let read = std::thread::scope(|scope| {
        // It may write before it has read all.
        scope.spawn(move || stdin.as_mut().map(|stdin| stdin.write_all(&file)));
        stdout.map(|out| out.take(UNZIPPED_MAX).read_to_end(&mut bytes))
    });
    let is_whole = child.wait()?.success() && matches!(read, Some(Ok(1..)));
    Ok(is_whole.then_some(bytes))
}

/// The error for a missing file, with the remedy.
pub fn missing(path: &Path) -> anyhow::Error {
    let shown = shown(path);
    anyhow::anyhow!("{shown}: no such file; give a recording, or make one with: dwell record PID")
}

/// Refuses a directory. Also called before names are derived from the path.
pub fn refuse_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        let shown = path.display();
        bail!("{shown} is a directory; give a recording in it: FILE.jfr");
    }
    Ok(())
}

/// Makes the page of a recording, and prints the findings and the page's path.
pub fn write_page_and_findings(jfr: &Path, html: &Path, secrets: &Secrets) -> Result<()> {
    let (page, findings) = long_work::with_progress(&making(jfr), || -> Result<_> {
        let profile = load_with(jfr, secrets)?;
        let page = write_html(&profile, jfr, (html, Named::ByDwell), false);
        long_work::begin(Step::Findings);
        let samples = profile.total().samples;
        let findings = match too_few(samples) {
            Some(text) => text,
            None => dwell_report::findings(&profile) + &caution(samples),
        };
        Ok((page, findings))
    })?;
    crate::print(&format!("{findings}\n{}\n", shown(jfr)))?;
    // A full disk has no room for the page, but the findings are printed anyway.
    page?;
    crate::print(&format!("{}\n{}", shown(html), how_to_open(jfr)))
}

/// The present step, for people.
pub fn making(jfr: &Path) -> String {
    format!("dwell: making the report of {}", shown(jfr))
}

/// How the page of a recording is opened, in one line.
fn how_to_open(jfr: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.and_then(|here| jfr.strip_prefix(here).ok().map(Path::to_path_buf));
    let path = short.unwrap_or_else(|| jfr.to_path_buf());
    let word = hint::quoted(&path.into_os_string());
    format!("Open it: dwell view {}\n", dwell_report::plain(&word))
}

/// A message in place of shares, if a single sample is a tenth of all or more.
fn too_few(samples: u64) -> Option<String> {
    let number = match samples {
        1 => "1 sample".to_owned(),
        2..10 => format!("{samples} samples"),
        // No samples at all have their own message.
        _ => return None,
    };
    Some(format!(
        "recorded {number}, too few for shares; record longer, or take more \
         samples with a shorter interval: -i 1ms\n"
    ))
}

/// A caution about shares that are based on few samples.
fn caution(samples: u64) -> String {
    match samples {
        // One standard error of a share of a half, the largest possible one.
        1..100 => format!(
            "note: few samples; a share can be off by {:.0} percentage points and more\n",
            50.0 / (samples as f64).sqrt()
        ),
        _ => String::new(),
    }
}

/// A path for people, without control characters of the terminal.
pub fn shown(path: &Path) -> String {
    dwell_report::plain(&path.to_string_lossy())
}

/// Writes the page of a recording. `all_frames` includes stacks with hardly any samples.
pub fn write_html(
    profile: &Profile,
    source: &Path,
    html: (&Path, Named),
    all_frames: bool,
) -> Result<()> {
    let (html, named) = html;
    writing::write(html, named, &[source], |out| {
        page(profile, source, all_frames, out)
    })
}

/// Writes the page of a recording to `out`.
pub fn put_html(profile: &Profile, source: &Path, out: &mut impl Write) -> Result<()> {
    page(profile, source, false, out).context("making the page")
}

fn page(
    profile: &Profile,
    source: &Path,
    all_frames: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let name = source.file_name().unwrap_or(source.as_os_str());
    let findings = || {
        long_work::begin(Step::Findings);
        let explained = dwell_explain::explain(profile, &dwell_explain::Options::default());
        long_work::begin(Step::Page);
        dwell_report::page_findings(&explained)
    };
    let options = dwell_report::Options {
        title: name.to_string_lossy().into_owned(),
        all_frames,
        ..dwell_report::Options::default()
    };
    long_work::begin(Step::Page);
    dwell_report::html_with(profile, &options, findings, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_jfr::writer::{ChunkClock, ChunkWriter};
    use flate2::write::GzEncoder;

    #[test]
    fn page_is_opened_by_a_command_that_a_shell_takes() {
        let here = std::env::current_dir().unwrap();
        let told = how_to_open(&here.join("slow app.jfr"));
        assert_eq!(told, "Open it: dwell view 'slow app.jfr'\n");
        let far = how_to_open(Path::new("/tmp/none/x.jfr"));
        assert_eq!(far, "Open it: dwell view /tmp/none/x.jfr\n");
    }

    #[test]
    fn few_samples_are_no_shares() {
        let text = too_few(1).unwrap();
        assert!(text.starts_with("recorded 1 sample, too few"), "{text}");
        assert!(too_few(9).unwrap().contains(" 9 samples"));
        assert_eq!((too_few(0), too_few(10)), (None, None));
        assert!(caution(25).contains(" by 10 percentage points"));
        assert_eq!(caution(0) + &caution(100), "");
    }

    /// A recording of a second, without events.
    fn empty_recording() -> Vec<u8> {
        let mut chunk = ChunkWriter::new(ChunkClock {
            epoch_ns: 1_700_000_000_000_000_000,
            start_ticks: 0,
            ticks_per_second: 1_000_000_000,
        });
        let mut file = chunk.flush(1_000_000_000);
        let header = chunk.header();
        file[..header.len()].copy_from_slice(&header);
        file
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn gzip_files_are_read() {
        let read = |bytes| load_from(&mut Cursor::new(bytes), Path::new("a.jfr.gz"));
        let packed = gzip(&empty_recording());
        let profile = read(packed.clone()).unwrap();
        assert_eq!(profile.info().duration_ns, 1_000_000_000);
        let error = |bytes| read(bytes).unwrap_err().to_string();
        assert!(error(gzip(&packed)).contains("packed twice"));
        assert!(error(packed[..12].to_vec()).contains("damaged"));
    }

    #[test]
    fn lz4_and_zstd_files_are_read_where_their_programs_are() {
        for program in ["lz4", "zstd"] {
            let packed = Command::new(program)
                .args(["-qc"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn();
            let Ok(mut child) = packed else {
                println!("not tried: {program} is not installed");
                continue;
            };
            // Less than a pipe holds.
            child
                .stdin
                .take()
                .unwrap()
                .write_all(&empty_recording())
                .unwrap();
            let packed = child.wait_with_output().unwrap().stdout;
            let read = |bytes| load_from(&mut Cursor::new(bytes), Path::new("a.jfr.x"));
            let profile = read(packed.clone()).unwrap();
            assert_eq!(profile.info().duration_ns, 1_000_000_000);
            let error = read(packed[..packed.len() / 2].to_vec()).unwrap_err();
            assert!(error.to_string().contains("unpack it first"), "{error}");
        }
    }

    #[test]
    fn other_file_types_are_named() {
        let error = |bytes: &[u8]| {
            let read = load_from(&mut Cursor::new(bytes), Path::new("a.jfr"));
            read.unwrap_err().to_string()
        };
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
        assert!(error(pointer).contains("git lfs pull"));
        assert!(error(&[0x04, 0x22, 0x4d, 0x18, 0]).contains("unlz4 a.jfr"));
        assert!(error(&[0x28, 0xb5, 0x2f, 0xfd, 0]).contains("unzstd a.jfr"));
        assert!(error(b"PK\x03\x04").contains("unzip a.jfr"));
        assert!(error(b"").contains("nothing was recorded"));
    }
}

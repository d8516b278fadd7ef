//! Records a program from its start, by the agent on its command line.
//!
//! A `java` launcher gets `-agentpath` as its first argument. Any other program (`mono`, or a
//! script that starts a JVM or a Mono) gets it through `JAVA_TOOL_OPTIONS` and `MONO_ENV_OPTIONS`.
//! These may reach several processes, so each writes its own file.

use super::outputs::{Mark, Outputs};
use super::start_options;
use crate::agent::{self, Agent, LIBRARY};
use crate::args::Record;
use crate::ship::Afterwards;
use crate::{Usage, java, lease, mono, recording, sys, writing};
use anyhow::{Context, Result, bail};
use dwell_attach::Target;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

/// Time between two checks of the program.
const PAUSE: Duration = Duration::from_millis(10);
const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";
/// Placeholder for the pid in names of files, if each JVM writes its own.
const EACH_PID: &str = "%p";

/// Runs the program, and sends its recordings to a receiver. Returns the program's exit code.
pub fn run(args: &Record, receiver: Option<Afterwards>) -> Result<ExitCode> {
    let Some((program, words)) = args.program.split_first() else {
        bail!("no program given")
    };
    let is_java = java::is_launcher(Path::new(program));
    if args.duration.is_some() && !is_java {
        let text = "-d: only `java` itself can be recorded for a part of its \
                    run; leave it out";
        return Err(Usage(text.to_owned()).into());
    }
    let is_mono = mono::is_launcher(Path::new(program));
    if is_mono {
        dwell_attach::check_mono()?;
    }
    let outputs = Outputs::prepare(args.output.as_deref(), &name_of(program, words))?
        .redacting(args.sampling.redaction.secrets());
    let before = if is_java {
        vec![]
    } else {
        marks(of_each_pid(&outputs)?)
    };
    let recorded = record(args, program, words, is_java, &outputs).and_then(|status| {
        let written = collect(is_java, &outputs, &before)?;
        let trouble = match written.is_empty() {
            true => outputs.trouble(),
            false => None,
        };
        Ok((status, written, trouble))
    });
    outputs.give_up();
    let (status, written, trouble) = recorded?;
    if written.is_empty() {
        let why = trouble.unwrap_or_else(|| match (is_mono, dwell_attach::check_mono()) {
            (true, _) => mono::silence(program),
            (_, Ok(())) => "the program started no JVM and no Mono, or the agent failed".to_owned(),
            (_, Err(no)) => format!("the program started no JVM, or the agent failed ({no})"),
        });
        note!("dwell: nothing was recorded: {}", dwell_report::plain(&why));
        return Ok(exit_code(status, 1));
    }
    for jfr in &written {
        let html = jfr.with_extension("html");
        recording::write_page_and_findings(jfr, &html, &outputs.secrets)?;
    }
    if let Some(receiver) = receiver {
        receiver.send(&written, &outputs.secrets)?;
    }
    Ok(exit_code(status, 0))
}

/// The recording's name: the jar or main class of a `java` if it is visible, else the program.
fn name_of(program: &OsStr, words: &[OsString]) -> String {
    let cmdline: Vec<String> = std::iter::once(program)
        .chain(words.iter().map(OsString::as_os_str))
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let path = Path::new(program);
    if mono::is_launcher(path)
        && let Some(name) = mono::name_of(words)
    {
        return name;
    }
    let main = match java::is_launcher(path) {
        true => dwell_attach::options::main_from_cmdline(&cmdline),
        false => None,
    };
    match main {
        Some(main) => crate::find::simple_name(&main).to_owned(),
        // Also for `java -version`, or a main class in an argument file.
        None => {
            let name = path.file_name().unwrap_or(program);
            name.to_string_lossy().into_owned()
        }
    }
}

fn record(
    args: &Record,
    program: &OsStr,
    words: &[OsString],
    is_java: bool,
    outputs: &Outputs,
) -> Result<ExitStatus> {
    sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    let library = dwell_attach::place_locally(&LIBRARY)?;
    let file = if is_java {
        outputs.jfr.clone()
    } else {
        each_pid(&outputs.jfr)
    };
    let file = file
        .to_str()
        .filter(|path| agent::can_be_an_option(&path.replace(EACH_PID, "")));
    let Some(file) = file else {
        let text = "the JVM takes no commas and no % in a file's path; choose another one with -o";
        return Err(Usage(format!("{}: {text}", outputs.jfr.display())).into());
    };
    let (sampling, limits) = (
        start_options(&args.sampling),
        lease::duration(args.duration),
    );
    let options = format!("{sampling}{limits},file={file}");
    let agentpath = format!("-agentpath:{}={options}", library.display());
    let mut command = Command::new(program);
    if is_java {
        command.arg(&agentpath);
    } else {
        command.env(
            TOOL_OPTIONS,
            with_option(std::env::var(TOOL_OPTIONS).ok(), &agentpath),
        );
        mono::prepare(&mut command, &options)?;
    }
    let child = command
        .args(words)
        .spawn()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::anyhow!("{}: no such program", program.display()),
            _ => anyhow::anyhow!("{}: {error}", program.display()),
        })?;
    wait(child, args.duration)
}

/// The file's name with a placeholder for the pid before its ending.
fn each_pid(jfr: &Path) -> PathBuf {
    let stem = jfr.file_stem().unwrap_or_default().to_string_lossy();
    jfr.with_file_name(format!("{stem}-{EACH_PID}.jfr"))
}

/// Adds an option to the user's own ones.
fn with_option(before: Option<String>, option: &str) -> String {
    // HotSpot splits at white space outside of quotes.
    let quoted = match option.contains(char::is_whitespace) {
        true => format!("\"{option}\""),
        false => option.to_owned(),
    };
    match before.filter(|text| !text.trim().is_empty()) {
        Some(before) => format!("{before} {quoted}"),
        None => quoted,
    }
}

/// Waits for the program's end. Passes signals on, and ends the recording when its time is over.
fn wait(mut child: Child, duration: Option<Duration>) -> Result<ExitStatus> {
    let began = Instant::now();
    let mut stop_after = duration;
    let mut forwarded = false;
    loop {
        if let Some(status) = child.try_wait().context("waiting for the program")? {
            return Ok(status);
        }
        if let Some(signal) = sys::signal_to_forward().filter(|_| !forwarded) {
            forwarded = true;
            sys::signal_child(&child, signal);
        }
        if stop_after.is_some_and(|duration| began.elapsed() >= duration) {
            stop_after = None;
            let stopped = Target::examine(child.id())
                .map_err(anyhow::Error::from)
                .and_then(|target| Agent::loaded(target)?.command("stop"));
            match stopped {
                Ok(_) => note!("dwell: recording ended; the program continues"),
                Err(error) => note!("dwell: {error:#}"),
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// The new recordings; those in `before` are older.
fn collect(
    is_java: bool,
    outputs: &Outputs,
    before: &[(PathBuf, Option<Mark>)],
) -> Result<Vec<PathBuf>> {
    if is_java {
        return Ok(if outputs.has_recording() {
            vec![outputs.jfr.clone()]
        } else {
            vec![]
        });
    }
    let mut found = marks(of_each_pid(outputs)?);
    found.retain(|file| !before.contains(file));
    // A JVM that could not write leaves an empty file.
    let (found, empty): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(_, mark)| mark.as_ref().is_some_and(|mark| !mark.is_empty()));
    for (path, _) in empty {
        let _ = std::fs::remove_file(path);
    }
    let found: Vec<PathBuf> = found.into_iter().map(|(path, _)| path).collect();
    if let [one] = found.as_slice() {
        writing::rename(one, &outputs.jfr)?;
        return Ok(vec![outputs.jfr.clone()]);
    }
    Ok(found)
}

/// The present state of the files.
fn marks(files: Vec<PathBuf>) -> Vec<(PathBuf, Option<Mark>)> {
    let marked = |path: PathBuf| {
        let mark = Mark::of(&path);
        (path, mark)
    };
    files.into_iter().map(marked).collect()
}

/// The files named `STEM-PID.jfr`, in order.
fn of_each_pid(outputs: &Outputs) -> Result<Vec<PathBuf>> {
    let dir = outputs.jfr.parent().unwrap_or(Path::new("/"));
    let stem = outputs
        .jfr
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry.with_context(|| dir.display().to_string())?.path();
        if path
            .file_name()
            .is_some_and(|name| is_each_pid(&name.to_string_lossy(), &stem))
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a file's name is `STEM-PID.jfr`.
fn is_each_pid(name: &str, stem: &str) -> bool {
    let pid = name
        .strip_prefix(stem)
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|rest| rest.strip_suffix(".jfr"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

/// The program's own exit code, or `otherwise` if that is success.
fn exit_code(status: ExitStatus, otherwise: u8) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    match code.and_then(|code| u8::try_from(code).ok()) {
        Some(0) | None => ExitCode::from(otherwise),
        Some(code) => ExitCode::from(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_named_after_the_program() {
        let name = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            name_of(&words[0], &words[1..])
        };
        assert_eq!(name("/x/bin/java -cp a.jar com.example.Main x"), "Main");
        assert_eq!(name("java -jar /opt/app-1.2.jar"), "app-1.2");
        assert_eq!(name("java -m mod/com.example.Main"), "Main");
        assert_eq!(name("/x/bin/java -version"), "java");
        assert_eq!(name("./run.sh --fast"), "run.sh");
        assert_eq!(name("mono --debug /x/app.exe one"), "app");
        assert_eq!(name("mono --version"), "mono");
    }

    #[test]
    fn tool_options_are_extended() {
        let option = "-agentpath:/a.so=start";
        assert_eq!(with_option(None, option), option);
        assert_eq!(with_option(Some(" ".into()), option), option);
        assert_eq!(
            with_option(Some("-Da=b".into()), option),
            format!("-Da=b {option}")
        );
        assert_eq!(
            with_option(None, "-agentpath:/a b.so"),
            "\"-agentpath:/a b.so\""
        );
    }

    #[test]
    fn files_of_each_jvm_are_separated() {
        assert_eq!(
            each_pid(Path::new("/x/app-1.2.jfr")),
            PathBuf::from("/x/app-1.2-%p.jfr")
        );
        assert!(is_each_pid("app-1.2-4711.jfr", "app-1.2"));
        for other in [
            "app-1.2.jfr",
            "app-1.2-x.jfr",
            "app-1.2-.jfr",
            "app-1.2-7.html",
        ] {
            assert!(!is_each_pid(other, "app-1.2"), "{other}");
        }
    }

    #[test]
    fn jars_classes_and_scripts_name_the_recording() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let name = |program: &str, rest: &str| name_of(OsStr::new(program), &words(rest));
        assert_eq!(name("java", "-Xmx1g -jar /opt/shop.jar --port 1"), "shop");
        assert_eq!(name("java", "-cp a com.example.Main"), "Main");
        assert_eq!(name("./gradlew", "test"), "gradlew");
    }
}

//! Files that the command writes: none destroys another, and none contains a secret.

use crate::harness::common::{is_root, jdks, modern};
use crate::harness::{Busy, Place, finish, wait_for};
use std::io::{BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn recording_copied_onto_itself_is_unchanged() {
    let place = Place::new("onto-itself");
    let busy = Busy::start(&modern());
    let pid = busy.pid();
    place
        .dwell(&["start", "-i", "1ms", "-o", "it.jfr", &pid])
        .exits(0);
    std::fs::hard_link(place.path("it.jfr"), place.path("other.jfr")).unwrap();
    std::os::unix::fs::symlink("other.jfr", place.path("link.jfr")).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut before = 0;
    for command in ["dump", "stop"] {
        for output in ["other.jfr", "link.jfr", "it.jfr"] {
            let done = place.dwell(&[command, "-o", output, &pid]).exits(0);
            assert!(done.out.contains(&format!("which is {output}")), "{done:?}");
            let samples = place.samples("it.jfr");
            assert!(samples > 0 && samples >= before, "{samples}, {before}");
            before = samples;
            if command == "stop" {
                return;
            }
        }
    }
}

#[test]
fn recording_of_another_user_copied_onto_itself_stays_whole() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let place = Place::new("onto-anothers");
    std::fs::set_permissions(&place.dir, PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    command.arg(modern().java());
    let busy = Busy::elsewhere(command);
    let (pid, file) = (busy.pid(), place.path("it.jfr"));
    let path = file.to_str().unwrap();
    place.dwell(&["start", "-o", path, &pid]).exits(0);
    std::thread::sleep(std::time::Duration::from_secs(1));
    for command in ["dump", "stop"] {
        let done = place.dwell(&[command, "-o", path, &pid]).exits(0);
        assert!(done.out.contains("which is "), "{done:?}");
        assert!(place.samples("it.jfr") > 0);
        assert_eq!(mode(&file), 0o600);
    }
    // Without a name, it goes to a folder that only this user can write.
    let started = place.dwell(&["start", &pid]).exits(0);
    let begin = format!("/tmp/dwell-{pid}-");
    let at = started.out.find(&begin).expect("a folder of its own");
    let folder: String = started.out[at..].chars().take(begin.len() + 16).collect();
    let data = std::fs::metadata(&folder).unwrap();
    assert_eq!((data.uid(), data.mode() & 0o777), (65_534, 0o700));
    // Else the recording can end before its first sample.
    std::thread::sleep(std::time::Duration::from_secs(1));
    place.dwell(&["stop", "-o", "copy.jfr", &pid]).exits(0);
    assert!(place.samples("copy.jfr") > 0);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn recordings_without_an_agent_leave_others_alone() {
    let place = Place::new("locked");
    let busy = Busy::start(&modern());
    let pid = busy.pid();
    place.dwell(&["start", "-o", "it.jfr", &pid]).exits(0);
    let record = ["record", "--no-agent", "-d", "1", "-o", "it", &pid];
    let refused = place.dwell(&record).exits(1);
    assert!(
        refused.err.contains("is being written to it"),
        "{refused:?}"
    );
    place.dwell(&["stop", &pid]).exits(0);
    let report = place.dwell(&["report", "it.jfr", "--text"]).exits(0);
    assert!(!report.out.contains("could not be read"), "{report:?}");
    let first = place.dwell(&record);
    if first.err.contains("the kernel does not allow samples") {
        println!("not tried: two without an agent");
        return;
    }
    let mut longer =
        place.dwell_until(&["record", "--no-agent", "-o", "it", &pid], "recording JVM");
    let refused = place.dwell(&record).exits(1);
    assert!(
        refused.err.contains("is being written to it"),
        "{refused:?}"
    );
    crate::harness::signal(longer.id(), rustix::process::Signal::INT);
    assert!(longer.wait().unwrap().success());
    let report = place.dwell(&["report", "it.jfr", "--text"]).exits(0);
    assert!(!report.out.contains("could not be read"), "{report:?}");
}

#[test]
fn page_next_to_a_recording_replaces_a_link() {
    let place = Place::new("page-link");
    crate::harness::record_by_the_jdk(&place);
    let precious = place.path("precious");
    std::fs::write(&precious, "before").unwrap();
    for command in [&["report", "jdk.jfr"][..], &["view", "jdk.jfr"]] {
        let _ = std::fs::remove_file(place.path("jdk.html"));
        std::os::unix::fs::symlink(&precious, place.path("jdk.html")).unwrap();
        let mut view = place.command(command);
        view.env("BROWSER", "true");
        finish(view.spawn().unwrap()).exits(0);
        assert_eq!(std::fs::read(&precious).unwrap(), b"before");
        assert!(!place.path("jdk.html").is_symlink());
        assert_eq!(mode(&place.path("jdk.html")), 0o600);
    }
    // A name from the user may be a link, which is followed.
    std::fs::remove_file(place.path("jdk.html")).unwrap();
    std::os::unix::fs::symlink(&precious, place.path("mine.html")).unwrap();
    place
        .dwell(&["report", "jdk.jfr", "-o", "mine.html"])
        .exits(0);
    assert!(std::fs::read(&precious).unwrap().starts_with(b"<!"));
    assert!(place.path("mine.html").is_symlink());
}

/// A loaded, unused library is truncated, and then another one is loaded. At that, the agent reads
/// all libraries.
#[test]
fn never_does_a_truncated_library_end_the_jvm() {
    let source = "public class Loads { public static void main(String[] a) throws Exception { \
                  var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in)); \
                  System.out.println(\"ready\"); \
                  for (String line; (line = in.readLine()) != null;) { \
                  System.load(line); System.out.println(\"loaded\"); } } }";
    for jdk in jdks().into_iter().filter(|jdk| jdk.feature >= 11) {
        let place = Place::new(&format!("truncated-{}", jdk.feature));
        std::fs::write(place.path("Loads.java"), source).unwrap();
        // Without a soname: otherwise the loader itself reads the file again.
        for name in ["idle", "other"] {
            let code = place.path(&format!("{name}.c"));
            std::fs::write(&code, format!("int {name}(int x) {{ return x + 1; }}")).unwrap();
            let library = place.path(&format!("{name}.so"));
            let mut cc = Command::new("cc");
            cc.args(["-shared", "-fPIC", "-o"]).arg(library).arg(code);
            assert!(cc.status().unwrap().success());
        }
        let mut child = Command::new(jdk.java())
            .arg(place.path("Loads.java"))
            .env_remove("JAVA_TOOL_OPTIONS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        wait_for(&mut output, "ready");
        let mut load = |name: &str| {
            writeln!(input, "{}", place.path(name).display()).unwrap();
            wait_for(&mut output, "loaded");
        };
        load("idle.so");
        let pid = child.id().to_string();
        place
            .dwell(&["start", "-i", "1ms", "-o", "it.jfr", &pid])
            .exits(0);
        std::fs::File::create(place.path("idle.so")).unwrap();
        load("other.so");
        place.dwell(&["dump", &pid]).exits(0);
        std::thread::sleep(std::time::Duration::from_secs(2));
        place.dwell(&["stop", &pid]).exits(0);
        assert!(child.try_wait().unwrap().is_none(), "JDK {}", jdk.feature);
        assert!(place.samples("it.jfr") > 0);
        // The JVM's own exit would read the missing part.
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Values that must not appear, and values that must.
const SECRETS: [&str; 5] = [
    "hunter2secret",
    "s3kr1tToken",
    "us3rInUrl",
    "k3yInQuery",
    "asked4Text",
];
const TOLD: &str = "plain-and-told";

/// A program with secrets on its command line, which runs until it is killed.
struct Planted(Child);

impl Planted {
    fn options() -> Vec<String> {
        vec![
            format!("-Ddb.password={}", SECRETS[0]),
            format!("-Djdbc.url=jdbc:postgresql://u:{}@h/db", SECRETS[2]),
            format!("-Dapi=https://h/x?a=b&apiKey={}", SECRETS[3]),
            format!("-Dtenant={}", SECRETS[4]),
            format!("-Dcommon={TOLD}"),
        ]
    }

    fn start(place: &Place, more: &[&str]) -> Planted {
        let source = "public class Planted { public static void main(String[] a) { \
                      System.out.println(\"ready\"); double x = 1; \
                      for (long end = System.nanoTime() + 600_000_000_000L; \
                      System.nanoTime() < end;) { x = Math.sin(x) + 1; } \
                      System.out.println(x); } }";
        let file = place.path("Planted.java");
        std::fs::write(&file, source).unwrap();
        let mut child = Command::new(modern().java())
            .args(Planted::options())
            .args(more)
            .arg(&file)
            .args(["--token", SECRETS[1]])
            .env_remove("JAVA_TOOL_OPTIONS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.as_mut().unwrap();
        wait_for(&mut BufReader::new(output), "ready");
        Planted(child)
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The whole content of a file, with compressed parts of a page unpacked.
fn contents(path: &Path) -> String {
    let mut bytes = std::fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    const BLOCK: &str = "<script type=\"application/octet-stream;base64\">";
    let blocks: String = text
        .split(BLOCK)
        .skip(1)
        .filter_map(|rest| rest.split("</script>").next())
        .collect();
    if !blocks.is_empty() {
        let unpack = "base64 -d | gzip -dc";
        let mut child = Command::new("sh")
            .args(["-c", unpack])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(blocks.as_bytes()));
        let unpacked = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(unpacked.status.success() && !unpacked.stdout.is_empty());
        bytes.extend(unpacked.stdout);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The secrets in this recording and in the outputs that the commands make from it.
fn found(place: &Place, jfr: &str, more: &[&str]) -> Vec<&'static str> {
    let dwell = |args: &[&str]| place.dwell(&[args, more].concat()).exits(0).out;
    let mut all = vec![contents(&place.path(jfr))];
    all.push(dwell(&["report", jfr, "--text"]));
    for output in ["o.html", "o.jfr", "o.txt", "o.collapsed"] {
        dwell(&["convert", jfr, "-o", output]);
        all.push(contents(&place.path(output)));
    }
    dwell(&["diff", jfr, jfr, "-o", "d.html"]);
    all.push(contents(&place.path("d.html")));
    all.push(place.dwell(&["explain", jfr]).exits(0).out);
    let page = place.path(jfr).with_extension("html");
    if page.exists() {
        all.push(contents(&page));
    }
    assert!(all.iter().any(|text| text.contains(TOLD)), "{jfr}");
    let is_told = |secret: &&str| all.iter().any(|text| text.contains(*secret));
    SECRETS.into_iter().filter(is_told).collect()
}

#[test]
fn secrets_of_the_command_line_are_in_no_output() {
    let place = Place::new("secrets");
    let program = Planted::start(&place, &[]);
    let pid = program.0.id().to_string();
    let record = |more: &[&str]| {
        let args = [&["record", "-d", "1", "-i", "1ms"], more, &[&pid]].concat();
        place.dwell(&args).exits(0);
    };
    record(&["-o", "usual"]);
    assert_eq!(found(&place, "usual.jfr", &[]), [SECRETS[4]]);
    let page = ["convert", "usual.jfr", "-o", "o.html", "--redact", "TENANT"];
    place.dwell(&page).exits(0);
    assert!(!contents(&place.path("o.html")).contains(SECRETS[4]));
    record(&["-o", "asked", "--redact", "asked*text"]);
    assert!(found(&place, "asked.jfr", &[]).is_empty());
    assert!(found(&place, "asked.jfr", &["--no-redact"]).is_empty());
    // With --no-redact, they are there.
    record(&["-o", "shown", "--no-redact"]);
    assert_eq!(found(&place, "shown.jfr", &["--no-redact"]), SECRETS);
    place
        .dwell(&["start", "-o", "own.jfr", "--redact", SECRETS[4], &pid])
        .exits(0);
    std::thread::sleep(std::time::Duration::from_secs(1));
    place.dwell(&["stop", "-o", "copy.jfr", &pid]).exits(0);
    for name in ["own.jfr", "copy.jfr"] {
        assert!(found(&place, name, &[]).is_empty());
        assert_eq!(mode(&place.path(name)), 0o600);
    }
    for name in ["usual.jfr", "usual.html", "o.html", "o.jfr", "o.collapsed"] {
        assert_eq!(mode(&place.path(name)), 0o600);
    }
    let outside = ["record", "--no-agent", "-d", "1", "-o", "outside", &pid];
    match place.dwell(&outside) {
        done if done.err.contains("the kernel does not allow samples") => {
            println!("not tried: without an agent");
        }
        done => {
            done.exits(0);
            assert_eq!(found(&place, "outside.jfr", &[]), [SECRETS[4]]);
            assert_eq!(mode(&place.path("outside.jfr")), 0o600);
        }
    }
}

/// The JDK's own recorder includes them, up to JDK 26.
#[test]
fn secrets_of_a_jdk_recording_reach_no_output() {
    let place = Place::new("jdk-secrets");
    let mut program = Planted::start(&place, &["-XX:StartFlightRecording"]);
    let pid = program.0.id().to_string();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let jcmd = modern().java().with_file_name("jcmd");
    let dump = format!("filename={}", place.path("jdk.jfr").display());
    let done = Command::new(jcmd)
        // It may need longer than its default timeout.
        .arg("-J-Dsun.tools.attach.attachTimeout=120000")
        .args([&pid, "JFR.dump", &dump])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    program.0.kill().unwrap();
    let args = ["convert", "jdk.jfr", "-o", "o.html"];
    for (more, secrets) in [(&[][..], &SECRETS[4..]), (&["--no-redact"], &SECRETS)] {
        place.dwell(&[&args, more].concat()).exits(0);
        let page = contents(&place.path("o.html"));
        let text = place.dwell(&[&["report", "jdk.jfr", "--text"], more].concat());
        let all = page + &text.exits(0).out;
        let is_told = |secret: &&str| all.contains(*secret);
        let told: Vec<&str> = SECRETS.into_iter().filter(is_told).collect();
        assert_eq!(told, secrets);
        assert!(all.contains(TOLD));
    }
}

//! `dwell ship` against a receiver of this test: all samples arrive once, whatever the receiver
//! answers and whenever either side restarts.

use crate::harness::{Done, Place, begin_recording, finish, until};
use dwell_jfr::ThreadState;
use dwell_jfr::writer::{ChunkClock, ChunkWriter, Sample, ThreadInfo};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

const SECOND: u64 = 1_000_000_000;
const EPOCH: u64 = 1_700_000_000 * SECOND;
/// A generous limit for what takes a moment.
const LIMIT: Duration = Duration::from_secs(60);
const SECRET: &str = "planted5ecret";

/// A recording that is written second by second, and locked like by the agent.
struct Recorded {
    file: File,
    chunk: ChunkWriter,
    at: u64,
    second: u64,
}

fn clock(second: u64) -> ChunkClock {
    ChunkClock {
        epoch_ns: EPOCH + second * SECOND,
        start_ticks: second * SECOND,
        ticks_per_second: SECOND,
    }
}

impl Recorded {
    fn new(place: &Place, name: &str) -> Recorded {
        let file = File::create(place.path(name)).unwrap();
        file.lock().unwrap();
        let mut chunk = ChunkWriter::new(clock(0));
        begin_recording(&mut chunk, "", "shop.Main");
        Recorded {
            file,
            chunk,
            at: 0,
            second: 0,
        }
    }

    /// Writes so many seconds, each with a sample of its own weight by a thread of its own. A chunk
    /// has 50 seconds.
    fn seconds(&mut self, count: u64) {
        for _ in 0..count {
            if self.second > 0 && self.second.is_multiple_of(50) {
                self.at += self.chunk.len();
                self.chunk = self.chunk.following(clock(self.second));
                begin_recording(&mut self.chunk, "", "shop.Main");
            }
            let name = format!("thread {}", self.second);
            let thread = self.chunk.thread(
                self.second,
                &ThreadInfo {
                    os_name: &name,
                    os_tid: self.second as i64 + 1,
                    ..ThreadInfo::default()
                },
            );
            self.chunk.execution_sample(&Sample {
                ticks: self.second * SECOND,
                thread,
                state: ThreadState::Runnable,
                weight_ns: weight(self.second),
                ..Sample::default()
            });
            self.second += 1;
            let before = self.chunk.len();
            let bytes = self.chunk.flush(self.second * SECOND);
            self.file.write_all_at(&bytes, self.at + before).unwrap();
            let header = self.chunk.header();
            self.file.write_all_at(&header, self.at).unwrap();
        }
    }

    /// Ends it, some time ago.
    fn end(self) {
        let long_ago = SystemTime::now() - Duration::from_secs(100);
        self.file.set_modified(long_ago).unwrap();
    }
}

fn weight(second: u64) -> u64 {
    1_000_003 + 17 * second
}

fn weights(seconds: std::ops::Range<u64>) -> Vec<u64> {
    seconds.map(weight).collect()
}

/// A request.
#[derive(Clone)]
struct Request {
    head: String,
    body: Vec<u8>,
}

/// A server of one test. It answers with the codes in turn, and with the last one from then on.
struct Receiver {
    url: String,
    got: Arc<Mutex<Vec<(u16, Request)>>>,
    is_over: Arc<AtomicBool>,
    server: Option<std::thread::JoinHandle<()>>,
}

impl Receiver {
    fn start(codes: &'static [u16]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = listener.local_addr().unwrap().to_string();
        let got = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (all, over) = (Arc::clone(&got), Arc::clone(&is_over));
        let server = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => answer(stream, codes, &all),
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        Receiver {
            url,
            got,
            is_over,
            server: Some(server),
        }
    }

    /// The accepted requests.
    fn accepted(&self) -> Vec<Request> {
        let got = self.got.lock().unwrap();
        let accepted = got.iter().filter(|(code, _)| *code == 200);
        accepted.map(|(_, request)| request.clone()).collect()
    }

    /// The sorted weights of all samples in accepted profiles of OTLP.
    fn weights(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for request in self.accepted() {
            let mut bytes = Vec::new();
            let mut unzipped = flate2::read::GzDecoder::new(&request.body[..]);
            unzipped.read_to_end(&mut bytes).unwrap();
            let profile = dwell_export::imported(&bytes).unwrap().unwrap();
            all.extend(profile.samples().iter().map(|it| it.weight));
        }
        all.sort_unstable();
        all
    }

    /// Waits until it has this number of requests.
    fn wait_for(&self, count: usize) {
        let end = Instant::now() + LIMIT;
        while self.got.lock().unwrap().len() < count {
            assert!(
                Instant::now() < end,
                "only {}",
                self.got.lock().unwrap().len()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.server.take().map(std::thread::JoinHandle::join);
    }
}

/// Answers one request of a connection.
fn answer(mut stream: TcpStream, codes: &[u16], got: &Mutex<Vec<(u16, Request)>>) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    let request = loop {
        if let Some(request) = whole(&bytes) {
            break request;
        }
        match stream.read(&mut part) {
            Ok(len @ 1..) => bytes.extend_from_slice(&part[..len]),
            _ => return,
        }
    };
    let mut got = got.lock().unwrap();
    let code = codes[got.len().min(codes.len() - 1)];
    got.push((code, request));
    let wait = if code == 429 {
        "Retry-After: 0\r\n"
    } else {
        ""
    };
    let text = format!("HTTP/1.1 {code} x\r\n{wait}Connection: close\r\nContent-Length: 0\r\n\r\n");
    // A sender that was ended reads no answer.
    let _ = stream.write_all(text.as_bytes());
}

/// The request, once all of its bytes have come.
fn whole(bytes: &[u8]) -> Option<Request> {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let len = head.split("content-length: ").nth(1)?.lines().next()?;
    let body = &bytes[end + 4..];
    (body.len() >= len.parse().ok()?).then(|| Request {
        head,
        body: body.to_vec(),
    })
}

/// The command, whose state is in the directory of the test.
fn ship(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(&[&["ship"], args].concat());
    command.env("XDG_STATE_HOME", place.path("state"));
    for variable in [
        "DWELL_SHIP_TO",
        "DWELL_SHIP_AUTHORIZATION",
        "OTEL_SERVICE_NAME",
    ] {
        command.env_remove(variable);
    }
    command
}

fn shipped(place: &Place, args: &[&str]) -> Done {
    finish(ship(place, args).spawn().unwrap())
}

/// Asks a process to end.
fn end(child: &Child) {
    let pid = child.id().to_string();
    let kill = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(kill.unwrap().success());
}

#[test]
fn ship_sends_a_finished_recording_once_despite_failures() {
    let place = Place::new("ship-finished");
    let mut recorded = Recorded::new(&place, "app.jfr");
    recorded.seconds(130);
    recorded.end();
    let receiver = Receiver::start(&[503, 429, 200]);
    let to = format!("otlp+http://{}", receiver.url);
    let done = shipped(&place, &["--to", &to, "app.jfr"]).exits(0);
    assert!(done.err.contains("answered 503; trying again"), "{done:?}");
    assert!(done.err.contains("sent 3 bodies to http://"), "{done:?}");
    assert_eq!(receiver.weights(), weights(0..130));
    let first = &receiver.accepted()[0].head;
    assert!(first.starts_with("post /v1development/profiles http/1.1"));
    // Another run sends nothing again.
    let done = shipped(&place, &["--to", &to, "app.jfr"]).exits(0);
    assert!(done.err.contains("sent 0 bodies"), "{done:?}");
    assert_eq!(receiver.accepted().len(), 3);
}

#[test]
fn ship_continues_after_a_restart_without_loss() {
    let place = Place::new("ship-restart");
    let mut recorded = Recorded::new(&place, "app.jfr");
    recorded.seconds(100);
    recorded.end();
    let broken = Receiver::start(&[500]);
    let to = format!("otlp+http://{}", broken.url);
    let spool = ["--spool", "spool"];
    let args = [&["--to", &to, "app.jfr"], &spool[..]].concat();
    let child = ship(&place, &args).spawn().unwrap();
    broken.wait_for(1);
    // The first part is in the spool, and the process is killed.
    let pid = child.id().to_string();
    Command::new("kill").args(["-KILL", &pid]).status().unwrap();
    finish(child);
    let receiver = Receiver::start(&[200]);
    let to = format!("otlp+http://{}", receiver.url);
    let args = [&["--to", &to, "app.jfr"], &spool[..]].concat();
    shipped(&place, &args).exits(0);
    assert_eq!(receiver.weights(), weights(0..100));
}

#[test]
fn ship_follows_a_recording_until_its_end() {
    let place = Place::new("ship-follow");
    let mut recorded = Recorded::new(&place, "app.jfr");
    recorded.seconds(70);
    let receiver = Receiver::start(&[200]);
    let to = format!("otlp+http://{}", receiver.url);
    let child = ship(&place, &["--to", &to, "app.jfr"]).spawn().unwrap();
    receiver.wait_for(1);
    recorded.seconds(60);
    receiver.wait_for(2);
    assert_eq!(receiver.weights(), weights(0..120));
    // Ctrl-C sends what is left, and the next run continues there.
    end(&child);
    finish(child).exits(0);
    assert_eq!(receiver.weights(), weights(0..130));
    recorded.seconds(5);
    recorded.end();
    shipped(&place, &["--to", &to, "app.jfr"]).exits(0);
    assert_eq!(receiver.weights(), weights(0..135));
}

#[test]
fn ship_puts_files_that_are_recordings() {
    let place = Place::new("ship-put");
    for name in ["a.jfr", "b.jfr"] {
        let mut recorded = Recorded::new(&place, name);
        recorded.seconds(61);
        recorded.end();
    }
    let receiver = Receiver::start(&[200]);
    let to = format!("http://{}/f/", receiver.url);
    shipped(&place, &["--to", &to, "--once", "."]).exits(0);
    let mut all = Vec::new();
    let mut names = Vec::new();
    for (number, request) in receiver.accepted().iter().enumerate() {
        let name = format!("part{number}.jfr");
        std::fs::write(place.path(&name), &request.body).unwrap();
        names.push(request.head.split(' ').nth(1).unwrap().to_owned());
        let recording = dwell_jfr::reader::parse(&request.body).unwrap();
        all.extend(recording.samples.iter().map(|it| it.weight_ns.unwrap()));
    }
    all.sort_unstable();
    let mut expected = [weights(0..61), weights(0..61)].concat();
    expected.sort_unstable();
    assert_eq!(all, expected);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4);
    assert!(names[0].starts_with("/f/a-20231114t"), "{names:?}");
    // A URL of one file gets the whole recording.
    let one = format!("http://{}/one.jfr", receiver.url);
    shipped(&place, &["--to", &one, "a.jfr"]).exits(0);
    let last = receiver.accepted().pop().unwrap();
    assert_eq!(last.body, std::fs::read(place.path("a.jfr")).unwrap());
}

#[test]
fn ship_searches_a_directory_for_new_recordings() {
    let place = Place::new("ship-directory");
    let mut recorded = Recorded::new(&place, "app.jfr");
    recorded.seconds(61);
    recorded.end();
    std::fs::write(place.path("bad.jfr"), "no recording").unwrap();
    let bad = File::options().write(true).open(place.path("bad.jfr"));
    let long_ago = SystemTime::now() - Duration::from_secs(100);
    bad.unwrap().set_modified(long_ago).unwrap();
    let receiver = Receiver::start(&[200]);
    let to = format!("otlp+http://{}", receiver.url);
    let child = ship(&place, &["--to", &to, "."]).spawn().unwrap();
    receiver.wait_for(2);
    let mut more = Recorded::new(&place, "more.jfr");
    more.seconds(61);
    receiver.wait_for(3);
    end(&child);
    let done = finish(child).exits(1);
    assert!(done.err.contains("bad.jfr cannot be read"), "{done:?}");
    let mut expected = [weights(0..61), weights(0..61)].concat();
    expected.sort_unstable();
    assert_eq!(receiver.weights(), expected);
}

#[test]
fn ship_keeps_credentials_out_of_the_process_list() {
    let place = Place::new("ship-credentials");
    let mut recorded = Recorded::new(&place, "app.jfr");
    recorded.seconds(2);
    recorded.end();
    let file = place.path("headers.txt");
    std::fs::write(&file, format!("X-Key: {SECRET}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let receiver = Receiver::start(&[500, 200]);
    let url = format!("otlp+http://{}/x?token={SECRET}", receiver.url);
    let mut command = ship(&place, &["--header-file", "headers.txt", "app.jfr"]);
    command.env("DWELL_SHIP_TO", &url);
    command.env("DWELL_SHIP_AUTHORIZATION", format!("Bearer {SECRET}"));
    // It cannot end before it is answered.
    let unanswered = receiver.got.lock().unwrap();
    let child = command.spawn().unwrap();
    let words = || std::fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap();
    // The process is there before it has its own words.
    until("its command line", || words().contains("headers.txt"));
    assert!(!words().contains(SECRET));
    drop(unanswered);
    let done = finish(child).exits(0);
    assert!(done.err.contains("others can read headers.txt"), "{done:?}");
    assert!(!(done.err.contains(SECRET) || done.out.contains(SECRET)));
    let head = &receiver.accepted()[0].head;
    for line in [
        format!("post /x?token={SECRET} "),
        format!("x-key: {SECRET}"),
        format!("authorization: bearer {SECRET}"),
    ] {
        assert!(head.contains(&line), "{head}");
    }
    // On the command line they are refused.
    for url in [&url, &format!("http://me:{SECRET}@localhost/")] {
        let done = shipped(&place, &["--to", url, "app.jfr"]).exits(2);
        assert!(done.error().contains("process list"), "{done:?}");
        assert!(!done.err.contains(SECRET), "{done:?}");
    }
}

#[test]
fn ship_drops_a_refused_body_and_says_so() {
    let place = Place::new("ship-refused");
    let mut recorded = Recorded::new(&place, "app.jfr");
    recorded.seconds(130);
    recorded.end();
    let receiver = Receiver::start(&[200, 400, 200]);
    let to = format!("otlp+http://{}", receiver.url);
    let done = shipped(&place, &["--to", &to, "app.jfr"]).exits(1);
    assert!(
        done.err
            .contains("dropped a body: the receiver answered 400")
    );
    assert!(done.err.contains("dropped 1 body"), "{done:?}");
    let expected = [weights(0..60), weights(120..130)].concat();
    assert_eq!(receiver.weights(), expected);
}

#[test]
fn ship_refuses_bad_input_in_one_line() {
    let place = Place::new("ship-refuses");
    let to = ["--to", "otlp+http://127.0.0.1:9"];
    std::fs::create_dir(place.path("empty")).unwrap();
    std::fs::write(place.path("file"), "x").unwrap();
    std::fs::write(place.path("bad.txt"), "no header").unwrap();
    for (code, words, args) in [
        (2, "unknown scheme", vec!["--to", "grpc://a", "x.jfr"]),
        (2, "--to is missing", vec!["x.jfr"]),
        (2, "--every", [&to[..], &["--every", "0s"]].concat()),
        (2, "--format", [&to[..], &["--format", "jfr"]].concat()),
        (
            2,
            "--redact",
            vec!["--to", "http://127.0.0.1:9/", "--redact", "x", "a.jfr"],
        ),
        (
            2,
            "bad.txt: line 1",
            [&to[..], &["--header-file", "bad.txt"]].concat(),
        ),
        (
            2,
            "end it with /",
            vec!["--to", "http://127.0.0.1:9/x", "empty/.."],
        ),
        (1, "no such file", [&to[..], &["none.jfr"]].concat()),
        (1, "no recordings", [&to[..], &["empty"]].concat()),
        (
            1,
            "the spool file",
            [&to[..], &["--spool", "file"]].concat(),
        ),
        (1, "no JVM matches", [&to[..], &["NoSuchMain"]].concat()),
    ] {
        if words == "end it with /" {
            Recorded::new(&place, "a.jfr").end();
        }
        let done = shipped(&place, &args).exits(code);
        assert!(done.error().contains(words), "{words}: {done:?}");
    }
}

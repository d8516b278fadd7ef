//! `dwell view`: in a browser that the test provides, and served.

use crate::harness::{Place, finish, signal, wait_for};
use dwell_jfr::writer::{ChunkClock, ChunkWriter};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

fn recording() -> Vec<u8> {
    let clock = ChunkClock {
        epoch_ns: 1_700_000_000_000_000_000,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    };
    ChunkWriter::new(clock).flush(1_000_000_000)
}

#[test]
fn page_is_made_once_and_opened() {
    let place = Place::new("view");
    std::fs::write(place.path("a b.jfr"), recording()).unwrap();
    let browser = place.path("browser");
    std::fs::write(&browser, "#!/bin/sh\nprintf '%s\\n' \"$@\" >> opened\n").unwrap();
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).unwrap();
    let page = place.path("a b.html");
    let path = format!("{}\n", page.display());
    let view = |args: &[&str], browser: &str| {
        let mut command = place.command(args);
        command.env("BROWSER", browser).env_remove("DISPLAY");
        finish(command.env_remove("WAYLAND_DISPLAY").spawn().unwrap()).exits(0)
    };
    let opener = format!("none:{} --tab %s", browser.display());
    assert_eq!(view(&["view", "a b.jfr"], &opener).out, path);
    let made = page.metadata().unwrap().modified().unwrap();
    let done = view(&["view", "."], &opener);
    assert_eq!(done.out, path);
    assert!(
        done.err.contains("the newest recording: ./a b.jfr"),
        "{done:?}"
    );
    assert_eq!(
        page.metadata().unwrap().modified().unwrap(),
        made,
        "it is used again"
    );
    let opened = std::fs::read_to_string(place.path("opened")).unwrap();
    assert_eq!(opened, format!("--tab\n{path}--tab\n{path}"));
    let done = view(&["view", "a b.jfr"], "");
    assert_eq!(done.out, path);
    assert!(
        done.err.contains("no display") && done.err.contains("--serve a b.jfr"),
        "{done:?}"
    );
    std::fs::remove_file(place.path("a b.jfr")).unwrap();
    let done = place.dwell(&["view", "."]).exits(1);
    assert!(done.error().contains("has no recording"), "{done:?}");
}

#[test]
fn page_is_served_at_its_secret_address_only() {
    let place = Place::new("serve");
    std::fs::write(place.path("a.jfr"), recording()).unwrap();
    let mut child = place
        .command(&["view", "--serve", "a.jfr"])
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut url = String::new();
    stdout.read_line(&mut url).unwrap();
    let (host, path) = url
        .trim()
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    wait_for(&mut stderr, "Serving on localhost");
    let get = |path: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    // A silent connection does not block others.
    let _silent = TcpStream::connect(host).unwrap();
    let page = get(path);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{}", &page[..200]);
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    assert_eq!(length, Some(body.len().to_string().as_str()));
    assert!(body.contains("<!doctype html>") || body.contains("<!DOCTYPE html>"));
    for other in ["", "favicon.ico", path.split('/').next().unwrap()] {
        assert!(get(other).starts_with("HTTP/1.1 404 "), "{other}");
    }
    assert_eq!(place.files(), ["a.jfr"], "nothing is written");
    signal(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

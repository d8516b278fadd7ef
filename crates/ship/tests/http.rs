//! The transport against a server of this test, on the loopback device.

mod common;

use common::body;
use dwell_ship::{Answer, Body, Headers, Http, Method, Receiver, Transport};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// A short time in which a server on this machine does not answer.
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);
/// Bytes of a request that are read.
const REQUEST_MAX: usize = 1 << 20;

/// Takes one request and answers with these bytes; returns the request.
fn serve(answer: &'static str) -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let request = read_request(&mut stream);
        stream.write_all(answer.as_bytes()).unwrap();
        request
    });
    (url, server)
}

fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    while request.len() < REQUEST_MAX && !is_whole(&request) {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(len) => request.extend_from_slice(&part[..len]),
        }
    }
    request
}

/// Whether a request has all bytes that it announces.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let len = head.split("content-length: ").nth(1);
    let len = len.and_then(|rest| rest.lines().next()?.parse().ok());
    request.len() >= head.len() + 4 + len.unwrap_or(0)
}

fn http(url: &str, timeout: Duration) -> Http {
    Http::new(&Receiver::parse(url).unwrap(), Vec::new(), timeout).unwrap()
}

fn answered(answer: &'static str) -> Answer {
    let (url, server) = serve(answer);
    let answer = http(&url, LONG).send(&body("/x", 10));
    server.join().unwrap();
    answer
}

fn status(code: u16, retry_after: Option<u64>, text: &str) -> Answer {
    Answer::Status {
        code,
        retry_after: retry_after.map(Duration::from_secs),
        text: text.to_owned(),
    }
}

#[test]
fn request_has_target_headers_and_body() {
    let (url, server) = serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let receiver = Receiver::parse(&format!("{url}/f/")).unwrap();
    let headers = Headers::read(Some("Bearer abc"), None).unwrap();
    let mut http = Http::new(&receiver, headers.all, LONG).unwrap();
    assert!(
        !format!("{http:?}").contains("abc"),
        "not printed by accident"
    );
    let body = Body {
        method: Method::Put,
        target: receiver.target_of("a.jfr"),
        content_type: "a/b".to_owned(),
        is_gzip: true,
        bytes: b"\x1f\x8bxyz".to_vec(),
    };
    assert_eq!(http.send(&body), status(200, None, ""));
    let request = server.join().unwrap();
    let text = String::from_utf8_lossy(&request).to_lowercase();
    assert!(text.starts_with("put /f/a.jfr http/1.1\r\n"), "{text}");
    for header in [
        "content-type: a/b\r\n",
        "content-encoding: gzip\r\n",
        "content-length: 5\r\n",
        "authorization: bearer abc\r\n",
        "user-agent: dwell/",
    ] {
        assert!(text.contains(header), "{header}: {text}");
    }
    assert!(request.ends_with(b"\r\n\r\n\x1f\x8bxyz"));
}

#[test]
fn answers_have_code_wait_and_text() {
    assert_eq!(
        answered("HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\nbad\nthing"),
        status(400, None, "bad thing")
    );
    assert_eq!(
        answered("HTTP/1.1 429 Slow\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n"),
        status(429, Some(17), "")
    );
    assert_eq!(
        answered("HTTP/1.1 500 No\r\nRetry-After: soon\r\nConnection: close\r\n\r\n\x1b[31m!"),
        status(500, None, "[31m!")
    );
    assert_eq!(
        answered("HTTP/1.1 307 X\r\nLocation: http://b/\r\nContent-Length: 0\r\n\r\n"),
        status(307, None, "go to http://b/; send there")
    );
}

#[test]
fn no_answer_is_a_failure() {
    let failed = |answer: Answer| match answer {
        Answer::Failed(why) => why,
        other => panic!("{other:?}"),
    };
    failed(answered(""));
    failed(answered("HTTP/1.1 2"));
    failed(answered("SSH-2.0-x\r\n"));
    // A port without a listener, which no other program gets: that of a client.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(other.local_addr().unwrap()).unwrap();
    let free = client.local_addr().unwrap();
    let why = failed(http(&format!("http://{free}"), LONG).send(&body("/x", 10)));
    assert!(why.contains("cannot be reached"), "{why}");
    // A listener that does not accept the connection.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let why = failed(http(&url, SHORT).send(&body("/x", 10)));
    assert_eq!(why, "the receiver did not answer in time");
}

#[test]
fn connection_that_closes_amid_a_body_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1000]);
    });
    // More than the buffers of both ends hold.
    let answer = http(&url, LONG).send(&body("/x", 32 << 20));
    assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
    server.join().unwrap();
}

#[test]
fn server_without_tls_is_a_failure() {
    let roots = "/etc/ssl/certs/ca-certificates.crt";
    if !std::path::Path::new(roots).is_file() {
        println!("skipped: no root certificates at {roots}");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 4096]);
    });
    let answer = http(&url, LONG).send(&body("/x", 10));
    assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
    server.join().unwrap();
}

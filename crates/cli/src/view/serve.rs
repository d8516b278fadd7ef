//! Serves one page to browsers of this machine at a secret address, and nothing more. Bounded in
//! connections, bytes and time; ends with Ctrl-C.

use crate::sys;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of concurrent requests; others are refused.
const ANSWERED_MAX: usize = 16;
/// Maximum bytes of a request.
const REQUEST_MAX: usize = 16 << 10;
/// Time limit for a request, and for each part of the page.
const COMES: Duration = Duration::from_secs(10);
const GOES: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until Ctrl-C.
pub fn run(port: u16, name: &str, page: Vec<u8>) -> Result<()> {
    sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("port {port} cannot be used; choose another one: --serve=PORT"))?;
    listener.set_nonblocking(true).context("the socket")?;
    let port = listener.local_addr().context("the socket")?.port();
    let path = format!("/{}/{}.html", secret()?, harmless(name));
    crate::print(&format!("http://127.0.0.1:{port}{path}\n"))?;
    note!(
        "Serving on localhost until Ctrl-C. From another machine: \
         ssh -L {port}:127.0.0.1:{port} THIS-HOST"
    );
    let (page, path) = (Arc::new(page), Arc::new(path));
    let answered = Arc::new(AtomicUsize::new(0));
    while !sys::interrupted() {
        match listener.accept() {
            Ok((stream, _)) => {
                if answered.load(Ordering::Relaxed) >= ANSWERED_MAX {
                    continue;
                }
                answered.fetch_add(1, Ordering::Relaxed);
                let (page, path) = (Arc::clone(&page), Arc::clone(&path));
                let answered = Arc::clone(&answered);
                std::thread::spawn(move || {
                    // Errors of a client that has disconnected are ignored.
                    let _ = answer(stream, &path, &page);
                    answered.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            // A connection that broke in the queue.
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    Ok(())
}

/// 128 random bits.
fn secret() -> Result<String> {
    let mut bytes = [0; 16];
    let mut random = File::open("/dev/urandom").context("/dev/urandom")?;
    random.read_exact(&mut bytes).context("/dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A name that can be part of an address.
fn harmless(name: &str) -> String {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name = name.chars().take(80);
    let name: String = name.map(|c| if is_harmless(c) { c } else { '-' }).collect();
    match name.is_empty() {
        true => "recording".to_owned(),
        false => name,
    }
}

fn answer(mut stream: TcpStream, path: &str, page: &[u8]) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(GOES))?;
    let head = head(&mut stream)?;
    let (status, body) = match asked(&head, path) {
        Asked::Page => ("200 OK", Some(page)),
        Asked::Head => ("200 OK", None),
        Asked::Other => ("404 Not Found", Some(&b"not here\n"[..])),
        Asked::Wrong => ("400 Bad Request", Some(&b"not a request\n"[..])),
    };
    let length = body.map_or(page.len(), <[u8]>::len);
    let kind = match status {
        "200 OK" => "text/html; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let lines = [
        format!("HTTP/1.1 {status}"),
        format!("Content-Type: {kind}"),
        format!("Content-Length: {length}"),
        "Cache-Control: no-store".to_owned(),
        "Referrer-Policy: no-referrer".to_owned(),
        "X-Content-Type-Options: nosniff".to_owned(),
        "X-Frame-Options: DENY".to_owned(),
        "Connection: close".to_owned(),
    ];
    stream.write_all((lines.join("\r\n") + "\r\n\r\n").as_bytes())?;
    if let Some(body) = body {
        stream.write_all(body)?;
    }
    stream.flush()?;
    stream.shutdown(Shutdown::Write)
}

/// The request up to its empty line; less if it does not arrive in time.
fn head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut head, began) = (Vec::new(), Instant::now());
    let mut bytes = [0; 1024];
    while head.len() < REQUEST_MAX && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = COMES.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes)? {
            0 => break,
            count => head.extend_from_slice(bytes.get(..count).unwrap_or_default()),
        }
    }
    Ok(head)
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// The page.
    Page,
    /// Only the headers of the page.
    Head,
    /// Another path.
    Other,
    /// Not a request, or one from another site's page.
    Wrong,
}

/// Parses the needed part of a request. Pure.
fn asked(head: &[u8], path: &str) -> Asked {
    let Some(head) = std::str::from_utf8(head)
        .ok()
        .and_then(|head| head.split_once("\r\n\r\n"))
    else {
        return Asked::Wrong;
    };
    let mut lines = head.0.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or("").split(' ').collect();
    let [method, target, "HTTP/1.1" | "HTTP/1.0"] = words.as_slice() else {
        return Asked::Wrong;
    };
    // Another host name comes from another site's link.
    let host = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = host.map(|(_, value)| value.trim());
    let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    if !matches!(name, Some("127.0.0.1" | "localhost")) {
        return Asked::Wrong;
    }
    match (*method, *target == path) {
        ("GET", true) => Asked::Page,
        ("HEAD", true) => Asked::Head,
        _ => Asked::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn page_needs_its_secret_address() {
        let path = "/0123/app.html";
        let request = |line: &str, host: &str| {
            let text = format!("{line}\r\nAccept: *\r\nhost: {host}\r\n\r\n");
            asked(text.as_bytes(), path)
        };
        let get = "GET /0123/app.html HTTP/1.1";
        assert_eq!(request(get, "127.0.0.1:8080"), Asked::Page);
        assert_eq!(request(get, "localhost:1"), Asked::Page);
        assert_eq!(
            request("HEAD /0123/app.html HTTP/1.0", "localhost"),
            Asked::Head
        );
        for other in [
            "GET /",
            "GET /0123/",
            "GET /0123/app.html?x",
            "POST /0123/app.html",
        ] {
            let line = format!("{other} HTTP/1.1");
            assert_eq!(request(&line, "127.0.0.1"), Asked::Other, "{other}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:80", ""] {
            assert_eq!(request(get, host), Asked::Wrong, "{host}");
        }
        for wrong in ["", "GET", "GET  /0123/app.html HTTP/1.1", "GET / HTTP/2"] {
            assert_eq!(request(wrong, "localhost"), Asked::Wrong, "{wrong}");
        }
        let without_end = format!("{get}\r\nHost: localhost\r\n");
        assert_eq!(asked(without_end.as_bytes(), path), Asked::Wrong);
    }

    #[test]
    fn addresses_are_plain_and_differ() {
        assert_eq!(harmless("a b/../ü.1"), "a-b------1");
        assert_eq!(harmless(""), "recording");
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert!(one != other && one.len() == 32, "{one} {other}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = asked(&bytes, "/x");
        }
    }
}

//! The transport: HTTP/1.1, with TLS where the URL says so. Follows no redirects, because the
//! credentials are for one host only.

use crate::sender::{Answer, Transport};
use crate::{Body, Error, Header, Method, Receiver};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::Response;
use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Timeout};

/// Names a file of root certificates.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";
/// Where systems have them: Debian, Fedora, Alpine and others.
const ROOTS: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];
/// A request may take longer by this for each [`SLOW_BYTES`] of its body.
const SLOW: Duration = Duration::from_secs(1);
const SLOW_BYTES: usize = 256 << 10;
/// Bytes of an answer that are read, and characters of it that are shown.
const ANSWER_MAX: u64 = 4096;
const SHOWN_MAX: usize = 600;

/// Sends over HTTP.
#[derive(Debug)]
pub struct Http {
    agent: Agent,
    base: String,
    headers: Vec<Header>,
    timeout: Duration,
}

impl Http {
    /// For a receiver, with these headers in each request. A request takes at most `timeout`, or
    /// longer if its body is large.
    ///
    /// # Errors
    /// No root certificates for an encrypted connection, or an unreadable file of them.
    pub fn new(
        receiver: &Receiver,
        headers: Vec<Header>,
        timeout: Duration,
    ) -> Result<Http, Error> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("dwell/", env!("CARGO_PKG_VERSION")));
        if receiver.is_secure() {
            let provider = rustls::crypto::ring::default_provider();
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .root_certs(roots()?)
                .unversioned_rustls_crypto_provider(Arc::new(provider));
            config = config.tls_config(tls.build());
        }
        Ok(Http {
            agent: config.build().new_agent(),
            base: receiver.base().to_owned(),
            headers,
            timeout,
        })
    }

    /// Limits the time of the following requests.
    pub fn limit(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }
}

/// The root certificates of this system.
fn roots() -> Result<RootCerts, Error> {
    let named = std::env::var_os(ROOTS_VARIABLE).map(PathBuf::from);
    let file = match named {
        Some(file) => file,
        None => {
            let mut all = ROOTS.into_iter().map(PathBuf::from);
            all.find(|file| file.is_file()).ok_or(Error::NoRoots)?
        }
    };
    let bytes = std::fs::read(&file).map_err(|e| Error::File(file.display().to_string(), e))?;
    let certificates = parse_pem(&bytes).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    match certificates.is_empty() {
        true => Err(Error::NoRoots),
        false => Ok(RootCerts::from(certificates.into_iter())),
    }
}

impl Transport for Http {
    fn send(&mut self, body: &Body) -> Answer {
        let url = format!("{}{}", self.base, body.target);
        let mut request = match body.method {
            Method::Post => self.agent.post(&url),
            Method::Put => self.agent.put(&url),
        };
        request = request.header("Content-Type", &body.content_type);
        if body.is_gzip {
            request = request.header("Content-Encoding", "gzip");
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let parts = u32::try_from(body.bytes.len() / SLOW_BYTES).unwrap_or(u32::MAX);
        let timeout = self.timeout.saturating_add(SLOW.saturating_mul(parts));
        let request = request.config().timeout_global(Some(timeout)).build();
        match request.send(&body.bytes[..]) {
            Ok(response) => answer(response),
            Err(error) => Answer::Failed(words(&error)),
        }
    }
}

fn answer(response: Response<ureq::Body>) -> Answer {
    let code = response.status().as_u16();
    let header = |name| response.headers().get(name)?.to_str().ok();
    let seconds = header("Retry-After").and_then(|text| text.trim().parse().ok());
    let location = header("Location").map(str::to_owned);
    let mut text = Vec::new();
    if code >= 300 {
        // An error leaves the part that was read.
        let _ = (response.into_body().into_reader().take(ANSWER_MAX)).read_to_end(&mut text);
    }
    let text = match location {
        Some(location) => format!("go to {location}; send there"),
        None => String::from_utf8_lossy(&text).into_owned(),
    };
    Answer::Status {
        code,
        retry_after: seconds.map(Duration::from_secs),
        text: shown(&text),
    }
}

/// The beginning of a text in one line of harmless characters.
fn shown(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let harmless = text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
    harmless.take(SHOWN_MAX).collect()
}

/// Why there is no answer.
fn words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
            "the receiver cannot be reached in time".to_owned()
        }
        ureq::Error::Timeout(_) => "the receiver did not answer in time".to_owned(),
        ureq::Error::Io(error) => format!("the receiver cannot be reached: {error}"),
        other => other.to_string(),
    }
}

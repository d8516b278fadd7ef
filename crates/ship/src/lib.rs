//! Sends finished bodies to a receiver over HTTP. Bodies wait in a spool on disk until the receiver
//! has accepted them, so neither a restart nor an outage of either side loses one.
//!
//! [`Sender`] decides; time, randomness and the transport are its arguments. Only [`Http`] uses the
//! network. This crate knows no recordings: a body is bytes, and a position is numbers.

#![forbid(unsafe_code)]

mod http;
mod receiver;
mod request_headers;
mod sender;
mod spool;

pub use http::Http;
pub use receiver::{Kind, Receiver};
pub use request_headers::{Header, Headers};
pub use sender::{Answer, Sender, Step, Transport};
pub use spool::{Added, Body, Entry, Method, Position, Spool};

/// A failure, in one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the receiver cannot be used.
    #[error("{0}")]
    Url(String),
    /// A header or the file of headers cannot be used.
    #[error("{0}")]
    Header(String),
    /// No certificates, so no server can be verified.
    #[error(
        "no root certificates found; set SSL_CERT_FILE to a file in PEM format, or use http://"
    )]
    NoRoots,
    /// A file of the spool or of certificates.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// Another process uses the spool.
    #[error("{0}: another dwell sends from this spool; wait for it, or choose another --spool")]
    Busy(String),
}

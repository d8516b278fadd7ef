//! Headers with credentials: from the environment or a file, never from the command line. Must not
//! print a value.

use crate::Error;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use ureq::http::{HeaderName, HeaderValue};

/// Maximum bytes of a file of headers.
const FILE_MAX: u64 = 64 << 10;
/// Mode bits that let others read a file.
const OTHERS_READ: u32 = 0o044;

/// A header's name and value.
pub type Header = (HeaderName, HeaderValue);

/// Headers, and a note about their file.
#[derive(Debug, Default)]
pub struct Headers {
    /// The headers.
    pub all: Vec<Header>,
    /// A warning for the user, if others can read the file.
    pub warning: Option<String>,
}

impl Headers {
    /// Those of a value for `Authorization` and of a file with a line `Name: value` for each
    /// header. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// One line with the place of what cannot be used, without its value.
    pub fn read(authorization: Option<&str>, file: Option<&Path>) -> Result<Headers, Error> {
        let mut headers = Headers::default();
        if let Some(value) = authorization {
            let header = header("Authorization", value.trim());
            headers.all.push(header.ok_or_else(|| {
                Error::Header(
                    "DWELL_SHIP_AUTHORIZATION: cannot be a header; set it to a value like \
                     'Bearer TOKEN'"
                        .to_owned(),
                )
            })?);
        }
        let Some(file) = file else {
            return Ok(headers);
        };
        let shown = file.display().to_string();
        let fail = |error| Error::File(format!("--header-file {shown}"), error);
        let data = std::fs::metadata(file).map_err(fail)?;
        if data.len() > FILE_MAX {
            return Err(Error::Header(format!(
                "--header-file {shown}: too large; write a line 'Name: value' for each header"
            )));
        }
        if data.mode() & OTHERS_READ != 0 {
            headers.warning = Some(format!(
                "note: others can read {shown}; run: chmod 600 {shown}"
            ));
        }
        let text = std::fs::read_to_string(file).map_err(fail)?;
        for (place, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let pair = line.split_once(':');
            let header = pair.and_then(|(name, value)| header(name.trim(), value.trim()));
            headers.all.push(header.ok_or_else(|| {
                let line = place + 1;
                Error::Header(format!(
                    "--header-file {shown}: line {line} is no header; write 'Name: value'"
                ))
            })?);
        }
        Ok(headers)
    }
}

/// A header whose value is kept out of what is printed.
fn header(name: &str, value: &str) -> Option<Header> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

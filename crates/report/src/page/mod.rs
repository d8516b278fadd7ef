//! One HTML file: the viewer's bundle with the profile inside.
//!
//! The profile is binary columns, compressed, in base64, in `<script>` blocks whose type no browser
//! runs. So no name of the profiled program is ever part of the markup. The bytes before
//! compression: the magic `DWP1`, the header's length (u32, little endian), the header (JSON: who,
//! when, and the list of columns), then the columns in that order without gaps.

mod alive;
mod allocations;
mod blocks;
mod calls;
mod columns;
mod compare;
mod entries;
pub(crate) mod event_tables;
mod events;
mod header;
mod held;
mod locks;
mod requests;
mod spans;
mod wall;
mod zip;

use std::io::{self, Write};

use dwell_profile::Profile;
use flate2::Compression;
use serde_json::Value;

use self::blocks::Blocks;
pub use self::compare::compare_html;
use self::zip::Zip;

/// The viewer, as its own build wrote it.
const VIEWER: &[u8] = include!(concat!(env!("OUT_DIR"), "/viewer_bundle.rs"));
/// The place in the viewer where the data goes.
const MARKER: &[u8] = b"<!--dwell:data-->";
/// The first bytes of the data.
const MAGIC: &[u8; 4] = b"DWP1";

/// Content of a page in addition to the profile.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The page's title, e.g. the recording's file name.
    pub title: String,
    /// Findings shown first, the most costly one at the top.
    pub findings: Vec<Finding>,
    /// Whether all frames are in the page, also where there are very many stacks that differ.
    pub all_frames: bool,
}

/// Something that costs time, in words, and where the page shows it.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// The problem, in one sentence.
    pub what: String,
    /// How much it costs, e.g. `31 % of wall time`.
    pub share: String,
    /// The main observation.
    pub evidence: String,
    /// The change to make.
    pub remedy: String,
    /// How sure that is, in a word.
    pub sure: String,
    /// Which time shows it: `cpu`, `wall` or `safepoints`.
    pub measure: String,
    /// Causes; empty means all.
    pub causes: Vec<String>,
    /// The endpoint; `None` means all.
    pub endpoint: Option<String>,
    /// Of threads with such names; `None`: of all.
    pub threads: Option<String>,
    /// `method`, `lock` or `class`, and the name of its subject.
    pub focus: Option<(String, String)>,
    /// The time that is lost, or, where it is not about time, its share.
    pub cost: String,
    /// Cost relative to the most costly finding; `None` if they are not comparable.
    pub bar: Option<f64>,
}

/// Writes the page.
///
/// # Errors
///
/// Those of `out`, and one of kind `InvalidData` if the viewer was built without a place for the
/// data.
pub fn html(profile: &Profile, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let findings = || options.findings.clone();
    write_page(
        profile,
        &options.title,
        findings,
        (None, options.all_frames),
        out,
    )
}

/// Writes the page. A second thread finds additional findings to those in `options`.
///
/// # Errors
///
/// Those of [`html`].
pub fn html_with(
    profile: &Profile,
    options: &Options,
    findings: impl FnOnce() -> Vec<Finding> + Send,
    out: &mut impl Write,
) -> io::Result<()> {
    let all = || [options.findings.clone(), findings()].concat();
    write_page(
        profile,
        &options.title,
        all,
        (None, options.all_frames),
        out,
    )
}

/// Writes a page. `compare` describes two recordings, `all_frames` is as in [`Options`].
fn write_page(
    profile: &Profile,
    title: &str,
    findings: impl FnOnce() -> Vec<Finding> + Send,
    (compare, all_frames): (Option<Value>, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(at) = find(VIEWER, MARKER) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the viewer has no place for data",
        ));
    };
    let (before, after) = VIEWER.split_at(at);
    out.write_all(before)?;
    let mut zip = Zip::new(Blocks::new(&mut *out), Compression::default())?;
    write_data(profile, title, findings, (compare, all_frames), &mut zip)?;
    zip.finish()?.finish()?;
    out.write_all(after.get(MARKER.len()..).unwrap_or_default())
}

/// Writes the uncompressed data.
fn write_data(
    profile: &Profile,
    title: &str,
    findings: impl FnOnce() -> Vec<Finding> + Send,
    (compare, all_frames): (Option<Value>, bool),
    out: &mut impl Write,
) -> io::Result<()> {
    let ((columns, less), findings) = std::thread::scope(|scope| {
        let findings = scope.spawn(findings);
        let columns = columns::columns(profile, all_frames);
        // A panic there is one here.
        let findings = findings
            .join()
            .unwrap_or_else(|e| std::panic::resume_unwind(e));
        (columns, findings)
    });
    let options = Options {
        title: title.to_owned(),
        findings,
        all_frames,
    };
    let mut header = header::header(profile, &options, &columns, &less);
    if let (Some(compare), Some(header)) = (compare, header.as_object_mut()) {
        header.insert("compare".to_owned(), compare);
        // Of two recordings at once it says nothing.
        header.insert("selfCheck".to_owned(), Value::Null);
    }
    let header = header.to_string();
    let length = u32::try_from(header.len()).map_err(io::Error::other)?;
    out.write_all(MAGIC)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    columns.iter().try_for_each(|column| column.write(out))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::self_check::made_up::builder;
    use dwell_profile::text_art;

    #[test]
    fn the_viewer_has_one_place_for_data() {
        let first = find(VIEWER, MARKER).unwrap();
        assert_eq!(find(&VIEWER[first + 1..], MARKER), None);
    }

    #[test]
    fn names_never_reach_the_markup() {
        let name = "</script><script>alert(1)</script>";
        let mut builder = text_art::builder("a.A.x");
        builder.thread(name, 9, 9, false);
        builder.method(name, name, name);
        builder.info.jvm_name = name.to_owned();
        let mut page = Vec::new();
        html(
            &builder.finish(),
            &Options {
                title: name.to_owned(),
                findings: vec![Finding {
                    what: name.to_owned(),
                    ..Finding::default()
                }],
                ..Options::default()
            },
            &mut page,
        )
        .unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("alert(1)"));
        assert_eq!(
            page.matches("application/octet-stream;base64\">").count(),
            1
        );
    }

    #[test]
    fn self_check_is_of_one_recording_only() {
        let profile = builder(&[("GET /a\u{202e}", 440)]).finish();
        let header = |compare| -> Value {
            let mut data = Vec::new();
            write_data(&profile, "", Vec::new, (compare, false), &mut data).unwrap();
            let length = u32::from_le_bytes(data[4..8].try_into().unwrap()) as usize;
            serde_json::from_slice(&data[8..8 + length]).unwrap()
        };
        let check = &header(None)["selfCheck"];
        let row = &check["endpoints"][0];
        // The name by which the page finds it; the page makes it plain.
        assert_eq!(row["endpoint"], "GET /a\u{202e}");
        assert_eq!((&row["ratio"], &row["isOff"]), (&0.44.into(), &true.into()));
        assert_eq!(check["total"]["ratio"], 0.44);
        assert_eq!(header(Some(Value::Bool(true)))["selfCheck"], Value::Null);
    }

    #[test]
    fn header_has_a_note_only_for_derived_endpoints() {
        let spring = "org.springframework.web.method.support.InvocableHandlerMethod.doInvoke";
        let mut profile = text_art::profile(&format!("{spring}\napp.Orders.get"));
        let header = |profile: &Profile| -> Value {
            let mut data = Vec::new();
            write_data(profile, "", Vec::new, (None, false), &mut data).unwrap();
            let length = u32::from_le_bytes(data[4..8].try_into().unwrap()) as usize;
            serde_json::from_slice(&data[8..8 + length]).unwrap()
        };
        assert_eq!(header(&profile)["endpointsNote"], Value::Null);
        profile.derive_endpoints();
        let header = header(&profile);
        assert_eq!(header["endpoints"][0], "Orders.get (from stacks)");
        let note = header["endpointsNote"].as_str().unwrap();
        assert!(note.starts_with("Endpoints: from stacks;"), "{note}");
        assert_eq!(header["selfCheck"], Value::Null);
    }

    #[test]
    fn data_starts_with_magic_and_header() {
        let mut data = Vec::new();
        let profile = text_art::profile("a.A.x");
        write_data(&profile, "", Vec::new, (None, false), &mut data).unwrap();
        assert_eq!(&data[..4], MAGIC);
        let length = u32::from_le_bytes(data[4..8].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&data[8..8 + length]).unwrap();
        let columns = header["columns"].as_array().unwrap();
        let bytes: u64 = columns
            .iter()
            .map(|column| column["bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(8 + length + bytes as usize, data.len());
    }
}

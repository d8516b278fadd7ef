//! Makes the bodies of requests from a profile or a slice of a recording, for each kind of
//! receiver.

use crate::args::BodyForm;
use crate::convert::program;
use crate::tables_dir::{self, PrivateDir};
use anyhow::{Context, Result};
use dwell_export::{Encoding, TABLES};
use dwell_jfr::redact::Secrets;
use dwell_profile::Profile;
use dwell_ship::{Body, Kind, Method, Receiver};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const PROTOBUF: &str = "application/x-protobuf";
const BYTES: &str = "application/octet-stream";
/// Least distance of samples: a wrong value in a recording would create too many.
const INTERVAL_MIN_NS: u64 = 10_000;
/// Makes bodies for a receiver.
pub struct Maker {
    pub receiver: Receiver,
    pub form: BodyForm,
    pub secrets: Secrets,
}

/// The content of a body.
pub struct Content<'a> {
    /// Name of the recording's file, without its ending.
    pub name: &'a str,
    /// Begin and end in nanoseconds since the epoch.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Recordings of dwell are sent as they are where the receiver takes recordings.
    pub jfr: Option<&'a [u8]>,
}

impl Maker {
    /// The bodies of a part of a recording. There are several in Parquet and for Pyroscope. A part
    /// without samples has no body.
    pub fn bodies(&self, of: &Content<'_>, profile: &Profile) -> Result<Vec<Body>> {
        match (self.receiver.kind(), self.form) {
            (_, BodyForm::Parquet) => self.tables(of, profile),
            (Kind::Pyroscope, BodyForm::Jfr) => {
                let (rate, interval_ns) = sample_rate(profile);
                let mut bytes = Vec::new();
                dwell_report::interchange_jfr(profile, Some(interval_ns), &mut bytes)?;
                let format = format!("jfr&sampleRate={rate}");
                Ok(vec![self.ingested(of, profile, &format, bytes)])
            }
            (Kind::Pyroscope, _) => {
                let program = program(profile, &self.secrets);
                let profiles = dwell_export::pyroscope(profile, &program)?.into_iter();
                let bodies = profiles.map(|bytes| self.ingested(of, profile, "pprof", bytes));
                Ok(bodies.collect())
            }
            (Kind::Otlp, _) => {
                let otlp = self.otlp(profile)?;
                let body = otlp.map(|bytes| Body {
                    method: Method::Post,
                    target: self.receiver.target(""),
                    content_type: PROTOBUF.to_owned(),
                    is_gzip: true,
                    bytes,
                });
                Ok(body.into_iter().collect())
            }
            (Kind::Put, form) => Ok(self.file(of, profile, form)?.into_iter().collect()),
        }
    }

    /// A file for PUT.
    fn file(&self, of: &Content<'_>, profile: &Profile, form: BodyForm) -> Result<Option<Body>> {
        let file = match form {
            BodyForm::Otlp => self.otlp(profile)?.map(|bytes| ("otlp.gz", bytes)),
            BodyForm::Pprof => self.pprof(profile)?.map(|bytes| ("pb.gz", bytes)),
            _ => match of.jfr {
                Some(jfr) => Some(("jfr", jfr.to_vec())),
                None => {
                    let mut bytes = Vec::new();
                    dwell_report::interchange_jfr(profile, None, &mut bytes)?;
                    Some(("jfr", bytes))
                }
            },
        };
        Ok(file.map(|(ending, bytes)| self.put(&format!("{}.{ending}", file_name(of)), bytes)))
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Body {
        Body {
            method: Method::Put,
            target: self.receiver.target_of(name),
            content_type: BYTES.to_owned(),
            is_gzip: false,
            bytes,
        }
    }

    /// A body for each table.
    fn tables(&self, of: &Content<'_>, profile: &Profile) -> Result<Vec<Body>> {
        let dir = PrivateDir::create(&std::env::temp_dir()).context("writing tables")?;
        tables_dir::fill(profile, dir.path()).context("writing tables")?;
        let body = |table: &&str| {
            let bytes = std::fs::read(tables_dir::file_of(dir.path(), table))?;
            Ok(self.put(&format!("{}/{table}.parquet", file_name(of)), bytes))
        };
        TABLES.iter().map(body).collect()
    }

    fn otlp(&self, profile: &Profile) -> Result<Option<Vec<u8>>> {
        let program = program(profile, &self.secrets);
        let mut bytes = Vec::new();
        let count = dwell_export::otlp(profile, &program, Encoding::Protobuf, &mut bytes)?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&bytes)?;
        Ok((count > 0).then_some(packed.finish()?))
    }

    fn pprof(&self, profile: &Profile) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let count = dwell_export::pprof(profile, &program(profile, &self.secrets), &mut bytes)?;
        Ok((count > 0).then_some(bytes))
    }

    /// A body for Pyroscope.
    fn ingested(&self, of: &Content<'_>, profile: &Profile, format: &str, bytes: Vec<u8>) -> Body {
        let name = application(profile, &self.secrets);
        let query = Receiver::pyroscope_query(&name, format, of.from_ns, of.to_ns);
        Body {
            method: Method::Post,
            target: self.receiver.target(&query),
            content_type: BYTES.to_owned(),
            is_gzip: false,
            bytes,
        }
    }
}

/// The name of a part: that of its recording, and its beginning. So a part that is sent again has
/// the same name.
fn file_name(of: &Content<'_>) -> String {
    const SECOND: u64 = 1_000_000_000;
    let stamp = dwell_report::stamp(of.from_ns / SECOND);
    format!("{}-{stamp}-{:09}", of.name, of.from_ns % SECOND)
}

/// The rate of samples in Hz, and their distance. Pyroscope gets the rate, which is whole, and
/// derives the distance from it in the same way.
fn sample_rate(profile: &Profile) -> (u64, u64) {
    const SECOND: u64 = 1_000_000_000;
    let interval_ns = match profile.info().interval_ns {
        0 => SECOND / 100,
        interval_ns => interval_ns.max(INTERVAL_MIN_NS),
    };
    let rate = (SECOND / interval_ns).max(1);
    (rate, SECOND / rate)
}

/// Pyroscope's name of the program, with the attributes of the environment as labels.
fn application(profile: &Profile, secrets: &Secrets) -> String {
    let program = program(profile, secrets);
    let plain = |text: &str| -> String {
        let kept = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        text.chars()
            .map(|c| if kept(c) { c } else { '_' })
            .collect()
    };
    let label = |text: &str| plain(text).replace(['.', '-', '/'], "_");
    let (mut name, mut labels) = (plain(&program.name), Vec::new());
    for (key, value) in &program.resource {
        match key.as_str() {
            "service.name" => name = plain(value),
            key => labels.push(format!("{}={}", label(key), plain(value))),
        }
    }
    if name.is_empty() {
        name = "java".to_owned();
    }
    match labels.is_empty() {
        true => name,
        false => format!("{name}{{{}}}", labels.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn maker(url: &str, form: BodyForm) -> Maker {
        Maker {
            receiver: Receiver::parse(url).unwrap(),
            form,
            secrets: Secrets::default(),
        }
    }

    fn bodies(url: &str, form: BodyForm, jfr: Option<&[u8]>) -> Vec<Body> {
        let profile = dwell_profile::text_art::profile("weight: 10 20\na.A.x a.A.y");
        let content = Content {
            name: "app",
            from_ns: 1_700_000_000_000_000_005,
            to_ns: 1_700_000_060_000_000_005,
            jfr,
        };
        maker(url, form).bodies(&content, &profile).unwrap()
    }

    #[test]
    fn otlp_is_one_packed_message() {
        let all = bodies("otlp+http://a", BodyForm::Otlp, None);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].target, "/v1development/profiles");
        assert_eq!(
            (all[0].content_type.as_str(), all[0].is_gzip),
            (PROTOBUF, true)
        );
        let mut message = Vec::new();
        let mut unzipped = flate2::read::GzDecoder::new(&all[0].bytes[..]);
        unzipped.read_to_end(&mut message).unwrap();
        assert!(dwell_export::imported(&message).unwrap().is_some());
    }

    #[test]
    fn pyroscope_gets_pprof_with_times_in_the_query() {
        let all = bodies("pyroscope+http://a", BodyForm::Pprof, None);
        assert_eq!(all.len(), 1);
        let query = "/ingest?name=java&from=1700000000&until=1700000061&format=pprof&spyName=dwell";
        assert_eq!(all[0].target, query);
        assert_eq!(all[0].content_type, BYTES);
        let mut profile = Vec::new();
        let mut unzipped = flate2::read::GzDecoder::new(&all[0].bytes[..]);
        unzipped.read_to_end(&mut profile).unwrap();
        assert!(dwell_export::imported(&profile).unwrap().is_some());
    }

    #[test]
    fn pyroscope_gets_the_rate_of_samples_of_a_recording() {
        let jfr = bodies("pyroscope+http://a", BodyForm::Jfr, Some(b"ours"));
        let query = "&format=jfr&sampleRate=100&spyName=dwell";
        assert!(jfr[0].target.contains(query), "{}", jfr[0].target);
        assert!(
            jfr[0].bytes.starts_with(b"FLR\0"),
            "in the form of other tools"
        );
    }

    #[test]
    fn sample_rate_is_whole_and_gives_the_distance() {
        let of = |interval_ns| {
            let mut builder = dwell_profile::Builder::default();
            builder.info.interval_ns = interval_ns;
            sample_rate(&builder.finish())
        };
        assert_eq!(of(10_000_000), (100, 10_000_000));
        assert_eq!(of(3_000_000), (333, 3_003_003));
        assert_eq!(of(0), (100, 10_000_000));
        assert_eq!(of(1), (100_000, 10_000));
        assert_eq!(of(7_000_000_000), (1, 1_000_000_000));
    }

    #[test]
    fn files_have_names_that_stay_the_same() {
        let ours = bodies("http://a/f/", BodyForm::Jfr, Some(b"ours"));
        assert_eq!(ours[0].target, "/f/app-20231114T221320Z-000000005.jfr");
        assert_eq!(ours[0].bytes, b"ours");
        let foreign = bodies("http://a/f/", BodyForm::Jfr, None);
        assert!(foreign[0].bytes.starts_with(b"FLR\0"));
        let pprof = bodies("http://a/f/", BodyForm::Pprof, None);
        assert!(pprof[0].target.ends_with("-000000005.pb.gz"));
        let tables = bodies("http://a/f/", BodyForm::Parquet, None);
        assert_eq!(tables.len(), TABLES.len());
        assert!(tables.iter().all(|it| it.bytes.starts_with(b"PAR1")));
        assert!(tables[1].target.ends_with("-000000005/samples.parquet"));
    }
}

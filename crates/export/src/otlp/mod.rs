//! OTLP profiles (`opentelemetry.proto.profiles.v1development`), not compressed: one profile for
//! each type of value, with the time of each sample, and one dictionary for all of them.
//!
//! The messages are those of the crate `opentelemetry-proto`.

mod dictionary;
mod otlp_json;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Write};

use dwell_profile::{Measured, Profile, Seeds, Unit, plain};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as message;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use crate::Program;
use crate::typed_values::{Amount, Column, Key, Rounded, each};
use dictionary::Dictionary;

/// The values of one type by key, each with its time.
type Series<'p> = HashMap<Key<'p>, Vec<(u64, Amount)>, Seeds>;

/// An encoding of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Protobuf.
    Protobuf,
    /// JSON.
    Json,
}

/// The scope's name: in a file of ours, the innermost frames of objects and locks are classes. In a
/// file of another tool that was converted they are not.
pub(crate) const SCOPE: &str = "dwell";
const IMPORTED: &str = "dwell convert";

/// Writes a profile as OTLP. Returns its number of samples.
///
/// # Errors
///
/// Only those of `out`.
pub fn otlp(
    profile: &Profile,
    program: &Program,
    encoding: Encoding,
    out: &mut impl Write,
) -> io::Result<usize> {
    let (data, count) = data(profile, program);
    match encoding {
        Encoding::Protobuf => out.write_all(&data.encode_to_vec())?,
        Encoding::Json => otlp_json::write(&data, out)?,
    }
    Ok(count)
}

/// The whole message, and its number of samples.
fn data(profile: &Profile, program: &Program) -> (message::ProfilesData, usize) {
    let columns = Column::of(profile);
    // The other type has the times of the same samples, so numbers of samples are left out.
    let has_time = columns.contains(&Column::Measured);
    let columns = columns.into_iter();
    let columns = columns.filter(|column| *column != Column::Samples || !has_time);
    let mut dictionary = Dictionary::new(profile);
    let mut count = 0;
    let mut profiles = Vec::new();
    for column in columns {
        let samples = samples(profile, column, &mut dictionary);
        count += samples.len();
        profiles.push(one(profile, column, samples, &mut dictionary));
    }
    let scope = message::ScopeProfiles {
        scope: Some(InstrumentationScope {
            name: match profile.info().has_sums_only() {
                true => IMPORTED.to_owned(),
                false => SCOPE.to_owned(),
            },
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        }),
        profiles,
        ..message::ScopeProfiles::default()
    };
    let data = message::ProfilesData {
        resource_profiles: vec![message::ResourceProfiles {
            resource: Some(Resource {
                attributes: attributes(profile, program),
                ..Resource::default()
            }),
            scope_profiles: vec![scope],
            ..message::ResourceProfiles::default()
        }],
        dictionary: Some(dictionary.finish()),
    };
    (data, count)
}

/// The samples of one type, in a deterministic order.
fn samples<'p>(
    profile: &'p Profile,
    column: Column,
    dictionary: &mut Dictionary<'p>,
) -> Vec<message::Sample> {
    let mut series = Series::default();
    each(profile, |key, time_ns, of, amount| {
        let is_nothing = matches!(amount, Amount::Whole(0));
        if of == column && !is_nothing {
            series.entry(key).or_default().push((time_ns, amount));
        }
    });
    let mut series: Vec<_> = series.into_iter().collect();
    series.sort_unstable_by_key(|(key, _)| *key);
    let mut rounded = Rounded::default();
    let samples = series.into_iter().filter_map(|(key, mut points)| {
        points.sort_by_key(|(time_ns, _)| *time_ns);
        let points = points.into_iter();
        let points = points.map(|(time_ns, amount)| (time_ns, rounded.value(amount)));
        let (times, values): (Vec<u64>, Vec<i64>) = points.filter(|(_, value)| *value != 0).unzip();
        (!values.is_empty()).then(|| message::Sample {
            stack_index: dictionary.stack(key.node),
            attribute_indices: dictionary.attributes(&key),
            link_index: dictionary.link(&key),
            values,
            timestamps_unix_nano: times,
        })
    });
    samples.collect()
}

/// The profile of one type.
fn one(
    profile: &Profile,
    column: Column,
    samples: Vec<message::Sample>,
    dictionary: &mut Dictionary<'_>,
) -> message::Profile {
    let info = profile.info();
    let (name, unit) = column.words(&info.measured);
    let sample_type = dictionary.value_type(name, unit);
    // Objects and waits are not sampled at equal distances.
    let has_period = matches!(column, Column::Samples | Column::Measured);
    let is_cpu = info.measured == Measured::CpuTime && profile.unit() == Unit::Nanoseconds;
    message::Profile {
        sample_type: Some(sample_type),
        samples,
        time_unix_nano: info.start_ns,
        duration_nano: info.duration_ns,
        period_type: has_period.then_some(sample_type),
        period: match has_period && is_cpu {
            true => i64::try_from(info.interval_ns).unwrap_or(i64::MAX),
            false => i64::from(has_period),
        },
        ..message::Profile::default()
    }
}

/// The attributes of the process.
fn attributes(profile: &Profile, program: &Program) -> Vec<KeyValue> {
    let (info, given) = (profile.info(), &program.resource);
    // OpenTelemetry's name for an unknown service.
    let service = match program.name.as_str() {
        "" => "unknown_service:java",
        name => name,
    };
    let text = |text: &str| Value::StringValue(plain(text));
    let ours = [
        ("service.name", text(service)),
        ("process.pid", Value::IntValue(info.pid)),
        ("process.runtime.name", text(&info.jvm_name)),
        ("process.runtime.version", text(&info.jvm_version)),
        ("dwell.program", text(&info.java_arguments)),
        ("dwell.version", text(&info.profiler_version)),
    ];
    let is_known = |value: &Value| match value {
        Value::StringValue(text) => !text.is_empty(),
        Value::IntValue(number) => *number != 0,
        _ => true,
    };
    let is_given = |name: &str| given.iter().any(|(other, _)| other == name);
    let ours = ours
        .into_iter()
        .filter(|(name, value)| is_known(value) && !is_given(name));
    let given = given
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)));
    let attribute = |(name, value): (&str, Value)| KeyValue {
        key: plain(name),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    };
    ours.map(attribute).chain(given.map(attribute)).collect()
}

//! OTLP profiles as JSON, by protobuf's rules and OTLP's own: names in camel case, numbers of 64
//! bits as texts, ids in hexadecimal digits. Written piece by piece, because a whole document would
//! need many times the memory of the messages.

use std::io::{self, Write};

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as message;
use serde_json::{Value, json};

/// Writes the whole message.
pub fn write(data: &message::ProfilesData, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"resourceProfiles\":")?;
    list(&data.resource_profiles, out, resource)?;
    if let Some(tables) = &data.dictionary {
        out.write_all(b",\"dictionary\":")?;
        dictionary(tables, out)?;
    }
    out.write_all(b"}\n")
}

/// A list, whose elements write themselves.
fn list<T, W: Write>(
    items: &[T],
    out: &mut W,
    write: impl Fn(&T, &mut W) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    for (place, item) in items.iter().enumerate() {
        out.write_all(if place == 0 { b"" } else { b",\n" })?;
        write(item, out)?;
    }
    out.write_all(b"]")
}

/// A list of small elements.
fn values<T>(items: &[T], out: &mut impl Write, value: impl Fn(&T) -> Value) -> io::Result<()> {
    list(items, out, |item, out| put(&value(item), out))
}

fn put(value: &Value, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}

fn resource(it: &message::ResourceProfiles, out: &mut impl Write) -> io::Result<()> {
    let attributes = it.resource.as_ref().map(|it| it.attributes.as_slice());
    let attributes: Vec<Value> = attributes.unwrap_or(&[]).iter().map(attribute).collect();
    out.write_all(b"{\"resource\":")?;
    put(&json!({ "attributes": attributes }), out)?;
    out.write_all(b",\"scopeProfiles\":")?;
    list(&it.scope_profiles, out, |it, out| {
        let scope = it.scope.as_ref();
        let scope = scope.map(|it| json!({ "name": it.name, "version": it.version }));
        out.write_all(b"{\"scope\":")?;
        put(&scope.unwrap_or_else(|| json!({})), out)?;
        out.write_all(b",\"profiles\":")?;
        list(&it.profiles, out, |it, out| profile(it, out))?;
        out.write_all(b"}")
    })?;
    out.write_all(b"}")
}

fn profile(it: &message::Profile, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{")?;
    for (name, of) in [
        ("sampleType", it.sample_type),
        ("periodType", it.period_type),
    ] {
        if let Some(of) = of {
            write!(out, "\"{name}\":")?;
            let (of, unit) = (of.type_strindex, of.unit_strindex);
            put(&json!({ "typeStrindex": of, "unitStrindex": unit }), out)?;
            out.write_all(b",")?;
        }
    }
    let (time, duration, period) = (it.time_unix_nano, it.duration_nano, it.period);
    write!(
        out,
        "\"timeUnixNano\":\"{time}\",\"durationNano\":\"{duration}\","
    )?;
    write!(out, "\"period\":\"{period}\",\"samples\":")?;
    values(&it.samples, out, |it| {
        json!({
            "stackIndex": it.stack_index,
            "attributeIndices": it.attribute_indices,
            "linkIndex": it.link_index,
            "values": texts(&it.values),
            "timestampsUnixNano": texts(&it.timestamps_unix_nano),
        })
    })?;
    out.write_all(b"}")
}

fn dictionary(it: &message::ProfilesDictionary, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"stringTable\":")?;
    values(&it.string_table, out, |it| json!(it))?;
    out.write_all(b",\"mappingTable\":")?;
    values(
        &it.mapping_table,
        out,
        |it| json!({ "filenameStrindex": it.filename_strindex }),
    )?;
    out.write_all(b",\"functionTable\":")?;
    values(&it.function_table, out, |it| {
        json!({
            "nameStrindex": it.name_strindex,
            "systemNameStrindex": it.system_name_strindex,
        })
    })?;
    out.write_all(b",\"locationTable\":")?;
    values(&it.location_table, out, |it| {
        let line = |it: &message::Line| {
            let (function, line) = (it.function_index, it.line.to_string());
            json!({ "functionIndex": function, "line": line })
        };
        json!({
            "mappingIndex": it.mapping_index,
            "lines": it.lines.iter().map(line).collect::<Vec<Value>>(),
            "attributeIndices": it.attribute_indices,
        })
    })?;
    out.write_all(b",\"stackTable\":")?;
    values(
        &it.stack_table,
        out,
        |it| json!({ "locationIndices": it.location_indices }),
    )?;
    out.write_all(b",\"linkTable\":")?;
    values(
        &it.link_table,
        out,
        |it| json!({ "traceId": digits(&it.trace_id), "spanId": digits(&it.span_id) }),
    )?;
    out.write_all(b",\"attributeTable\":")?;
    values(
        &it.attribute_table,
        out,
        |it| json!({ "keyStrindex": it.key_strindex, "value": any(it.value.as_ref()) }),
    )?;
    out.write_all(b"}")
}

fn attribute(it: &KeyValue) -> Value {
    json!({ "key": it.key, "value": any(it.value.as_ref()) })
}

/// A value of one of the written kinds: text and number.
fn any(value: Option<&AnyValue>) -> Value {
    match value.and_then(|it| it.value.as_ref()) {
        Some(Any::StringValue(text)) => json!({ "stringValue": text }),
        Some(Any::IntValue(number)) => json!({ "intValue": number.to_string() }),
        _ => json!({}),
    }
}

fn texts<T: ToString>(numbers: &[T]) -> Vec<String> {
    numbers.iter().map(T::to_string).collect()
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

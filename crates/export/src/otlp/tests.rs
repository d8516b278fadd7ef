//! Tests of OTLP: decoded exports have the sums and names of the profile.

use super::*;
use crate::whole_profile::{drawn, hostile, whole};
use dwell_profile::text_art;
use proptest::prelude::*;

fn read(profile: &Profile, resource: &[(&str, &str)]) -> message::ProfilesData {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let program = Program {
        name: String::new(),
        resource: resource.iter().map(owned).collect(),
    };
    let mut bytes = Vec::new();
    let count = otlp(profile, &program, Encoding::Protobuf, &mut bytes).unwrap();
    let data = message::ProfilesData::decode(&bytes[..]).unwrap();
    let samples = profiles(&data).iter().map(|it| it.samples.len());
    assert_eq!(samples.sum::<usize>(), count);
    data
}

fn profiles(data: &message::ProfilesData) -> &[message::Profile] {
    &data.resource_profiles[0].scope_profiles[0].profiles
}

fn tables(data: &message::ProfilesData) -> &message::ProfilesDictionary {
    data.dictionary.as_ref().unwrap()
}

fn text(data: &message::ProfilesData, place: i32) -> &str {
    &tables(data).string_table[place as usize]
}

fn name<'d>(data: &'d message::ProfilesData, profile: &message::Profile) -> &'d str {
    text(data, profile.sample_type.unwrap().type_strindex)
}

fn found<'d>(data: &'d message::ProfilesData, of: &str) -> &'d message::Profile {
    let profile = profiles(data).iter().find(|it| name(data, it) == of);
    profile.unwrap_or_else(|| panic!("no {of}"))
}

fn sum(data: &message::ProfilesData, of: &str) -> i64 {
    let samples = found(data, of).samples.iter();
    samples.flat_map(|sample| &sample.values).sum()
}

fn shown(value: Option<&AnyValue>) -> String {
    match value.and_then(|it| it.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

fn facts(data: &message::ProfilesData, places: &[i32]) -> Vec<String> {
    let facts = places.iter().map(|place| {
        let it = &tables(data).attribute_table[*place as usize];
        format!(
            "{}={}",
            text(data, it.key_strindex),
            shown(it.value.as_ref())
        )
    });
    facts.collect()
}

fn stack(data: &message::ProfilesData, sample: &message::Sample) -> Vec<String> {
    let tables = tables(data);
    let stack = &tables.stack_table[sample.stack_index as usize];
    let names = stack.location_indices.iter().map(|location| {
        let location = &tables.location_table[*location as usize];
        let function = location.lines[0].function_index;
        let function = &tables.function_table[function as usize];
        text(data, function.name_strindex).to_owned()
    });
    names.collect()
}

#[test]
fn each_type_is_a_profile_with_the_sum_of_the_recording() {
    let profile = whole(100);
    let data = read(&profile, &[]);
    for (of, expected) in [
        ("cpu", profile.total().sum as i64),
        ("wall", profile.wall_totals().0.sum as i64),
        ("alloc_space", 10_000),
        ("alloc_objects", 417),
        ("inuse_space", 6600),
        ("inuse_objects", 275),
        ("delay", 900),
        ("contentions", 3),
    ] {
        assert_eq!(sum(&data, of), expected, "{of}");
    }
    assert_eq!(profiles(&data).len(), 8);
    // Every value has its time.
    for sample in profiles(&data).iter().flat_map(|it| &it.samples) {
        assert_eq!(sample.values.len(), sample.timestamps_unix_nano.len());
        assert!(sample.timestamps_unix_nano.is_sorted());
    }
    let ran = &found(&data, "cpu").samples;
    let ran = ran.iter().find(|it| it.values.len() == 2).unwrap();
    assert_eq!(
        (&ran.values[..], stack(&data, ran)),
        (&[10, 20][..], vec!["a.A.z".to_owned(), "a.A.x".to_owned()])
    );
    assert_eq!(
        ran.timestamps_unix_nano[1] - ran.timestamps_unix_nano[0],
        1_000_000
    );
}

#[test]
fn waits_have_their_request_cause_and_owner() {
    let data = read(&whole(0), &[]);
    let samples = &found(&data, "wall").samples;
    let wait = samples.iter().find(|it| it.link_index != 0).unwrap();
    assert_eq!(
        facts(&data, &wait.attribute_indices),
        [
            "thread.name=main",
            "thread.id=1",
            "dwell.cause=monitor",
            "dwell.detail=a.Lock",
            "dwell.owner=gc",
            "dwell.endpoint=GET /x",
            "http.request.method=GET",
            "http.route=/x",
            "tenant=acme",
            "cause=theirs",
            "label.dwell.cause=mine",
        ]
    );
    let link = &tables(&data).link_table[wait.link_index as usize];
    assert_eq!((link.trace_id.len(), link.trace_id[15]), (16, 0xab));
    assert_eq!((link.span_id.len(), link.span_id[7]), (8, 0xcd));
}

#[test]
fn dictionary_begins_empty_and_has_no_duplicates() {
    fn is_unique<T: PartialEq + Default>(table: &[T]) -> bool {
        let twice = |place: usize| table[..place].contains(&table[place]);
        table[0] == T::default() && !(1..table.len()).any(twice)
    }
    let data = read(&whole(9), &[]);
    let tables = tables(&data);
    assert!(is_unique(&tables.string_table) && is_unique(&tables.mapping_table));
    assert!(is_unique(&tables.location_table) && is_unique(&tables.function_table));
    assert!(is_unique(&tables.link_table) && is_unique(&tables.attribute_table));
    assert!(is_unique(&tables.stack_table) && tables.stack_table.len() > 3);
}

#[test]
fn resource_has_the_process_and_given_attributes() {
    let mut builder = text_art::builder("a.A.x");
    builder.info.java_arguments = "/opt/app.jar --password=[redacted]".to_owned();
    builder.info.pid = 7;
    let profile = builder.finish();
    let attributes = |given: &[(&str, &str)]| {
        let data = read(&profile, given);
        let resource = data.resource_profiles[0].resource.clone().unwrap();
        let attributes = resource.attributes.into_iter();
        let attributes = attributes.map(|it| format!("{}={}", it.key, shown(it.value.as_ref())));
        attributes.collect::<Vec<String>>()
    };
    assert_eq!(
        attributes(&[]),
        [
            "service.name=unknown_service:java",
            "process.pid=7",
            "dwell.program=/opt/app.jar --password=[redacted]"
        ]
    );
    let given = attributes(&[("service.name", "shop"), ("region", "eu")]);
    assert!(given.contains(&"service.name=shop".to_owned()), "{given:?}");
    assert!(given.contains(&"region=eu".to_owned()), "{given:?}");
    assert!(
        !given.contains(&"service.name=unknown_service:java".to_owned()),
        "{given:?}"
    );
}

#[test]
fn otlp_names_have_no_control_characters() {
    let data = read(&hostile(), &[("a\n", "b\u{1b}")]);
    let sample = &found(&data, "cpu").samples[0];
    assert_eq!(stack(&data, sample), ["a\u{fffd}b.c\u{fffd}d"]);
    let facts = facts(&data, &sample.attribute_indices);
    assert_eq!(facts[0], "thread.name=t\u{fffd}[31m\u{fffd}");
    let resource = data.resource_profiles[0].resource.as_ref().unwrap();
    let given = resource.attributes.last().unwrap();
    assert_eq!(
        (given.key.as_str(), shown(given.value.as_ref())),
        ("a\u{fffd}", "b\u{fffd}".to_owned())
    );
}

#[test]
fn samples_without_time_are_counted() {
    let mut builder = text_art::builder("a.A.x a.A.x");
    builder.unit = Unit::Samples;
    let data = read(&builder.finish(), &[]);
    assert_eq!((profiles(&data).len(), sum(&data, "samples")), (1, 2));
}

#[test]
fn json_has_ids_in_digits_and_long_numbers_as_texts() {
    let mut bytes = Vec::new();
    otlp(&whole(9), &Program::default(), Encoding::Json, &mut bytes).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let links = &json["dictionary"]["linkTable"];
    assert_eq!(links[1]["traceId"], "000000000000000000000000000000ab");
    assert_eq!(links[1]["spanId"], "00000000000000cd");
    let profiles = &json["resourceProfiles"][0]["scopeProfiles"][0]["profiles"];
    assert_eq!(profiles.as_array().unwrap().len(), 8);
    let samples = profiles[0]["samples"].as_array().unwrap();
    let values = samples
        .iter()
        .flat_map(|it| it["values"].as_array().unwrap());
    let values = values.map(|it| it.as_str().unwrap().parse::<u64>().unwrap());
    assert_eq!(values.sum::<u64>(), 35);
}

proptest! {
    /// Each distribution of samples over stacks and threads keeps the total time.
    #[test]
    fn sums_are_exact(samples in prop::collection::vec((0..4u32, 0..3u32, 0..1u64 << 40), 0..200)) {
        let profile = drawn(&samples);
        let data = read(&profile, &[]);
        prop_assert_eq!(sum(&data, "cpu") as u64, profile.total().sum);
        if profile.has_wall() {
            prop_assert_eq!(sum(&data, "wall") as u64, profile.wall_totals().0.sum);
        }
    }
}

//! A recording as the agent wrote it when the JDK's events had fields of ours at their end is read
//! as it was then.

use dwell_jfr::reader;
use dwell_profile::{Profile, Unit, WallFilter};

/// 20 ms of CPU time between samples, looks in between.
const RECORDING: &[u8] = include_bytes!("recordings/fields_in_samples.jfr");

#[test]
fn weights_in_the_samples_themselves_are_read() {
    let recording = reader::parse(RECORDING).unwrap();
    assert_eq!(recording.counts.get("dwell.SampleDetail"), None);
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.unit(), Unit::Nanoseconds);
    assert_eq!(profile.samples().len(), 5);
    let weight: u64 = profile.samples().iter().map(|sample| sample.weight).sum();
    assert_eq!(weight, 84_008_043);
    let all = WallFilter::default();
    let wall: u64 = profile.wall(&all).map(|wall| wall.weight.sum).sum();
    // Running included.
    assert_eq!(wall, 860_549_458);
}

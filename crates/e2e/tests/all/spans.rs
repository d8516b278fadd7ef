//! Spans inside of a request are recorded with their times, if they are long enough to matter.

use dwell_e2e::{Place, Starter, View, both, each, turn};
use dwell_jfr::reader::GenericEvent;
use dwell_profile::Profile;
use std::collections::BTreeMap;

/// `Dwell.SPAN_MIN_NANOS`.
const MIN_NS: i64 = 1_000_000;
const LONG_ONES: usize = 8;

fn id_of(event: &GenericEvent, field: &str) -> u64 {
    u64::from_str_radix(event.text(field).expect("an id"), 16).expect("a number")
}

/// Detects times of spans that are not those of the program's clock. Both clocks are read one
/// after the other. False alarm: not by chance on an idle machine.
#[test]
fn measured_spans_in_requests_have_true_times() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("spans");
        let file = place.path("spans.jfr");
        let mut program = Starter::new(jdk, &place, "Spans")
            .recorded("cpu=5ms", &file)
            .start();
        let truths = program.work();
        program.end();
        let view = View::read(&file);
        let spans: Vec<_> = view.recording.events_named("dwell.Span").collect();
        let mut told = BTreeMap::new();
        for span in &spans {
            assert_eq!(id_of(span, "localRootSpanId"), 0xa0);
            assert_eq!(
                span.text("traceId"),
                Some("0af7651916cd43dd8448eb211c80319c")
            );
            let duration = span.int("duration").expect("a duration");
            assert!(duration >= MIN_NS, "{span:?}");
            let before = told.insert(id_of(span, "spanId"), duration);
            assert_eq!(before, None, "told twice: {span:?}");
        }
        let infos = truths.info.iter().filter(|(name, _)| name == "span");
        let mut long_ones = 0;
        for (_, info) in infos {
            let words: Vec<&str> = info.split(',').collect();
            let [id, inside, around] = words[..] else {
                panic!("{info}");
            };
            let id = u64::from_str_radix(id, 16).expect("an id");
            let (inside, around): (i64, i64) = (inside.parse().unwrap(), around.parse().unwrap());
            let duration = told[&id];
            assert!((inside..=around).contains(&duration), "{info}: {duration}");
            long_ones += 1;
        }
        assert_eq!(long_ones, LONG_ONES, "{truths:?}");
        assert_eq!(told.get(&0xb0).copied(), Some(5_000_000));
        assert!(!told.contains_key(&0xb1));
        let profile = Profile::from_recording(view.recording.clone());
        assert_eq!(profile.spans().len(), spans.len());
        let request = profile.requests().first().expect("the request");
        // The end of both is the moment of their record.
        let end = request.time_ns + request.duration_ns;
        for id in 0xa1..=0xa0 + LONG_ONES as u64 {
            let span = profile.spans().iter().find(|span| span.span_id == id);
            let span = span.expect("a span");
            assert!(span.time_ns + span.duration_ns <= end, "{span:?}");
        }
    });
}

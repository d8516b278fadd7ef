//! The part of the text that compares the wall time seen with the latencies of requests.

use dwell_profile::Accounted;

use super::{COLUMNS, Report};
use crate::explanation::wrapped;
use crate::number::duration;
use crate::plain::shortened;
use crate::self_check::{mark, reasons, warnings};

/// Endpoints that are compared one by one.
const ENDPOINT_ROWS: usize = 15;
/// Width of the name of a thread.
const NAME: usize = 40;

impl Report<'_> {
    /// Wall time seen by endpoint, against the latencies.
    pub(super) fn self_check(&mut self) {
        let Some(check) = self.profile.self_check(None) else {
            return;
        };
        self.raw("");
        self.raw("Self-check: sampled wall time as a part of the latencies of the same requests");
        self.raw("       sampled   latencies  endpoint");
        let rows = check.endpoints.iter().take(ENDPOINT_ROWS);
        for endpoint in rows {
            self.compared(&endpoint.accounted, endpoint.name());
        }
        self.more(check.endpoints.len(), ENDPOINT_ROWS);
        if check.endpoints.len() > 1 {
            self.compared(&check.total, "all endpoints");
        }
        if let Some(ledger) = &check.threads {
            let told = format!(
                "threads: sampled wall time is {:.2} of the life of a thread, the median of {}; \
                 the farthest from 1 is {} ({})",
                ledger.median,
                ledger.threads,
                ledger.worst.accounted.shown(),
                shortened(&ledger.worst.name, NAME)
            );
            wrapped(&mut self.text, "  ", 2, &told);
        }
        for warning in warnings(&check) {
            wrapped(&mut self.text, "! ", 2, &warning);
        }
        for reason in reasons(&check) {
            wrapped(&mut self.text, "~ ", 2, &reason);
        }
    }

    fn compared(&mut self, accounted: &Accounted, name: &str) {
        let head = format!(
            "{:>14}{:1}{:>10}  ",
            accounted.shown(),
            mark(accounted.agreement),
            duration(accounted.latency_ns)
        );
        let name = shortened(name, COLUMNS.saturating_sub(head.len()));
        self.raw(&format!("{head}{name}"));
    }
}

#[cfg(test)]
mod tests {
    use crate::self_check::made_up::{MS, builder};

    #[test]
    fn ratios_have_marks_and_remedies() {
        let text = crate::text(&builder(&[("GET /a", 980), ("GET /b", 440)]).finish());
        for line in [
            "  0.98 +- 0.02     1.00 s  GET /a",
            "  0.44 +- 0.02!    1.00 s  GET /b",
            "  0.71 +- 0.01!    2.00 s  all endpoints",
            "! sampled wall time for GET /b is 0.44 +- 0.02 of its latencies: too few samples; \
             record with",
            "  --wall-budget 5%",
        ] {
            assert!(
                text.lines().any(|it| it == line),
                "no line {line:?} in\n{text}"
            );
        }
        assert_eq!(text.matches("! sampled wall time").count(), 1, "{text}");
    }

    #[test]
    fn names_are_inert_and_lines_fit() {
        let hostile = "a\u{1b}[2J\u{202e}</script> ".repeat(40);
        let profile = builder(&[(&hostile, 100), ("b", 1000)]).finish();
        let text = crate::text(&profile);
        assert!(text.contains("Self-check"), "{text}");
        let active = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(active), "{text:?}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }

    #[test]
    fn explanation_and_json_have_the_same_check() {
        let profile = builder(&[("GET /a", 980), ("GET /b", 440)]).finish();
        let options = dwell_explain::Options::default();
        let explanation = dwell_explain::explain(&profile, &options);
        let text = crate::explanation_text(&explanation);
        let all = "GET /a 0.98 +- 0.02, GET /b 0.44 +- 0.02!";
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(all), "{text}");
        assert!(
            words.contains("warning: sampled wall time for GET /b is 0.44"),
            "{text}"
        );
        let json = crate::explanation_json(&explanation, None);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let rows = &json["selfCheck"]["endpoints"];
        assert_eq!(
            (&rows[1]["endpoint"], &rows[1]["ratio"]),
            (&"GET /b".into(), &0.44.into())
        );
        assert_eq!(
            (&rows[0]["isOff"], &rows[1]["isOff"]),
            (&false.into(), &true.into())
        );
        assert_eq!(rows[1]["agreement"], "low");
        assert_eq!(json["selfCheck"]["total"]["latencyNs"], 2_000 * MS);
        // Of one endpoint alone, as the others.
        let endpoint = Some("*/a".to_owned());
        let explanation = dwell_explain::explain(&profile, &dwell_explain::Options { endpoint });
        let text = crate::explanation_text(&explanation);
        let line = "self-check: sampled wall time is 0.98 +- 0.02 of the latencies of GET /a";
        assert!(text.lines().any(|it| it == line), "{text}");
        assert!(!text.contains("warning"), "{text}");
    }

    #[test]
    fn without_requests_nothing_is_compared() {
        let text = crate::text(&builder(&[]).finish());
        assert!(!text.contains("Self-check"), "{text}");
    }
}

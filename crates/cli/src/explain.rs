//! `dwell explain`.

use crate::args::Explain;
use crate::long_work::{self, Step};
use crate::recording;
use anyhow::{Result, bail};

/// Prints the findings of the rules for a recording.
pub fn run(args: &Explain) -> Result<()> {
    let making = recording::making(&args.input);
    let profile = long_work::with_progress(&making, || recording::load(&args.input))?;
    if let Some(pattern) = &args.endpoint {
        let mut told = (0..profile.contexts().len() as u32).filter_map(|id| profile.endpoint(id));
        if !told.any(|endpoint| dwell_profile::matches(pattern, endpoint)) {
            let input = recording::shown(&args.input);
            bail!(
                "--endpoint {pattern}: no sample of {input} has such an endpoint; \
                 dwell report --text lists them"
            );
        }
    }
    let options = dwell_explain::Options {
        endpoint: args.endpoint.clone(),
    };
    let explain = || {
        long_work::begin(Step::Findings);
        dwell_explain::explain(&profile, &options)
    };
    let explanation = long_work::with_progress(&making, explain);
    crate::print(&match args.json {
        true => dwell_report::explanation_and_totals_json(&explanation, &profile),
        false => {
            let note = recording::unread_note(&profile, &args.input);
            let note = note.map_or(String::new(), |note| note + "\n\n");
            note + &dwell_report::explanation_text(&explanation)
        }
    })
}

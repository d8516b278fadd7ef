//! Options for how samples are taken: the source of signals, and where stacks are walked.

use super::{EngineChoice, OptionError, refuse, shown};
use dwell_signal::Vantage;

/// Which source of signals.
pub fn engine(value: &str) -> Result<EngineChoice, OptionError> {
    match value {
        "auto" => Ok(EngineChoice::Auto),
        "perf" => Ok(EngineChoice::Perf),
        "timer" => Ok(EngineChoice::Timer),
        "kernel" => Ok(EngineChoice::Kernel),
        _ => refuse(format!(
            "engine={}: auto, perf, timer or kernel",
            shown(value)
        )),
    }
}

/// From where stacks are walked.
pub fn vantage(value: &str) -> Result<Vantage, OptionError> {
    match value {
        "snapshot" => Ok(Vantage::Snapshot),
        "handler" => Ok(Vantage::Handler),
        "paused" => Ok(Vantage::Paused),
        _ => refuse(format!(
            "walk={}: snapshot, handler or paused",
            shown(value)
        )),
    }
}

/// Stacks that the kernel copies are walked as copies.
pub fn agree(engine: EngineChoice, walk: Vantage) -> Result<(), OptionError> {
    if engine == EngineChoice::Kernel && walk != Vantage::Snapshot {
        return refuse("engine=kernel: goes with walk=snapshot only; leave one out".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_copies_are_walked_where_the_kernel_makes_them() {
        let engine = engine("kernel").unwrap();
        assert!(agree(engine, vantage("snapshot").unwrap()).is_ok());
        let error = agree(engine, vantage("paused").unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("engine=kernel: "), "{error}");
        assert!(agree(EngineChoice::Auto, Vantage::Handler).is_ok());
    }
}

//! Any bytes as `/proc/PID/maps`: the mappings read are consistent, and modules have code.
#![no_main]

use dwell_native::maps;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let good = maps::parse(data).filter_map(|mapping| {
        let mapping = mapping.ok()?;
        assert!(mapping.contains(mapping.start) && !mapping.contains(mapping.end));
        assert!(mapping.path().len() <= mapping.raw_path.len());
        Some(mapping)
    });
    for module in maps::modules(good) {
        assert!(!module.executable.is_empty() && !module.path.is_empty());
    }
});

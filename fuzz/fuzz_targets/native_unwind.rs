//! Any bytes as `.eh_frame` and `.debug_frame`: the table is sorted, merged, ends in a gap, and is
//! no larger than the input allows.
#![no_main]

use dwell_native::unwind::{Input, Rule, Section, UnwindTable, eh_frame_svma};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, bool, &[u8])| {
    let (split, has_text, data) = input;
    let (eh, debug) = data.split_at(usize::from(split).min(data.len()));
    let section = |data| Section { data, svma: 0x1000 };
    let _ = eh_frame_svma(section(data));
    let text = [0x1000..0x9000, 0x10000..0x20000];
    let input = Input {
        base_svma: 0x1000,
        eh_frame: Some(section(eh)),
        debug_frame: Some(section(debug)),
        text: if has_text { &text } else { &[] },
    };
    let Ok(table) = UnwindTable::build(&input) else {
        return;
    };
    let rows = table.rows();
    assert!(rows.is_sorted_by(|a, b| a.offset < b.offset));
    assert!(rows.windows(2).all(|pair| pair[0].rule != pair[1].rule));
    assert!(rows.last().is_none_or(|row| row.rule == Rule::Gap.encode()));
    let stats = table.stats();
    assert!(rows.len() as u64 <= u64::from(stats.rows_raw) + u64::from(stats.fdes) + 1);
});

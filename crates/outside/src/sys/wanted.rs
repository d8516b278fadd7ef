//! A perf event that the agent in another process describes, as the bytes of the kernel's
//! structure. Only the agent's own kinds are opened: the clock and the switches of one thread.

use super::perf::open_event;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_IP,
    PERF_SAMPLE_READ, PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use std::io;
use std::os::fd::OwnedFd;

/// Length of a description.
pub const ATTR_BYTES: usize = size_of::<perf_event_attr>();

/// Parts of a sample that the agent uses. None of them is about another process.
const SAMPLE: u32 = PERF_SAMPLE_IP
    | PERF_SAMPLE_TID
    | PERF_SAMPLE_TIME
    | PERF_SAMPLE_READ
    | PERF_SAMPLE_CALLCHAIN
    | PERF_SAMPLE_REGS_USER
    | PERF_SAMPLE_STACK_USER;

/// The described event; `None` if it is of no kind that the agent uses.
fn checked(bytes: &[u8]) -> Option<perf_event_attr> {
    if bytes.len() != ATTR_BYTES {
        return None;
    }
    // SAFETY: the slice has as many bytes, and any bytes are a value of a structure of integers.
    let wanted: perf_event_attr =
        unsafe { bytes.as_ptr().cast::<perf_event_attr>().read_unaligned() };
    let mut attr = perf_event_attr {
        size: ATTR_BYTES as u32,
        type_: PERF_TYPE_SOFTWARE,
        config: wanted.config,
        sample_type: wanted.sample_type & u64::from(SAMPLE),
        sample_regs_user: wanted.sample_regs_user,
        sample_stack_user: wanted.sample_stack_user,
        sample_max_stack: wanted.sample_max_stack,
        clockid: wanted.clockid,
        __bindgen_anon_1: wanted.__bindgen_anon_1,
        __bindgen_anon_2: wanted.__bindgen_anon_2,
        ..Default::default()
    };
    attr.set_disabled(wanted.disabled());
    attr.set_watermark(wanted.watermark());
    attr.set_use_clockid(wanted.use_clockid());
    attr.set_context_switch(wanted.context_switch());
    attr.set_exclude_kernel(wanted.exclude_kernel());
    attr.set_exclude_hv(wanted.exclude_hv());
    attr.set_exclude_callchain_user(wanted.exclude_callchain_user());
    let is_known = [PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY]
        .map(u64::from)
        .contains(&wanted.config);
    // SAFETY: a structure of integers without padding, which lives through the comparison.
    let own = unsafe { std::slice::from_raw_parts((&raw const attr).cast::<u8>(), ATTR_BYTES) };
    (is_known && own == bytes).then_some(attr)
}

/// Opens the described event on thread `tid`, on any processor.
///
/// # Errors
/// `EINVAL` for another kind of event, or the kernel's: no such thread, or not permitted.
pub fn open(bytes: &[u8], tid: i32) -> io::Result<OwnedFd> {
    let Some(mut attr) = checked(bytes) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    open_event(&mut attr, tid, -1)
}

/// Whether we may open an event on thread `tid` that also counts in the kernel.
#[must_use]
pub fn is_permitted(tid: i32) -> bool {
    let mut attr = perf_event_attr {
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    attr.set_disabled(1);
    open_event(&mut attr, tid, -1).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(attr: &perf_event_attr) -> Vec<u8> {
        // SAFETY: a structure of integers without padding.
        unsafe { std::slice::from_raw_parts((&raw const *attr).cast::<u8>(), ATTR_BYTES) }.to_vec()
    }

    #[test]
    fn only_the_agents_events_are_known() {
        let clock = perf_event_attr {
            size: ATTR_BYTES as u32,
            type_: PERF_TYPE_SOFTWARE,
            config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
            sample_type: u64::from(SAMPLE),
            ..Default::default()
        };
        assert!(checked(&bytes_of(&clock)).is_some());
        assert!(checked(&bytes_of(&clock)[1..]).is_none());
        let changes: [fn(&mut perf_event_attr); 8] = [
            |it| it.type_ = 1 + PERF_TYPE_SOFTWARE,
            |it| it.config = 3,
            |it| it.size += 8,
            |it| it.sample_type |= 1 << 10,
            |it| it.sample_regs_intr = 1,
            |it| it.set_inherit(1),
            |it| it.set_mmap(1),
            |it| it.read_format = 1,
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut other = clock;
            change(&mut other);
            assert!(checked(&bytes_of(&other)).is_none(), "{at}");
        }
    }
}

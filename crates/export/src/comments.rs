//! Notes on a profile that its numbers depend on, one line each.

use dwell_profile::Profile;

/// How readers of our files know that there are classes among the frames.
pub const CLASSES: &str = "objects and locks: the innermost frame is the class";

/// The lines, mostly `name: value`.
pub fn comments(profile: &Profile) -> Vec<String> {
    let info = profile.info();
    let mut comments = vec![format!("dwell {}", env!("CARGO_PKG_VERSION"))];
    let recorded = [
        ("recorded by: ", &info.profiler_version),
        ("sampled by: ", &info.engine),
        ("JVM: ", &info.jvm_version),
        ("program: ", &info.java_arguments),
    ];
    let recorded = recorded.into_iter().filter(|(_, value)| !value.is_empty());
    comments.extend(recorded.map(|(name, value)| format!("{name}{value}")));
    let has_classes = profile.has_allocations() || profile.has_live() || profile.has_locks();
    if has_classes && !info.has_sums_only() {
        comments.push(CLASSES.to_owned());
    }
    let measured = info.measured.of();
    if !measured.is_empty() {
        comments.push(format!("samples are {measured}"));
    }
    comments.extend(profile.losses().iter().map(|it| {
        let (cause, samples, ns) = (&it.cause, it.samples, it.weight_ns);
        format!("lost: {cause}: samples {samples}, {ns} ns")
    }));
    let gaps = profile.gaps().iter();
    let gaps_ns = gaps.fold(0u64, |sum, gap| sum.saturating_add(gap.duration_ns));
    if gaps_ns > 0 {
        comments.push(format!("gaps: nothing was recorded for {gaps_ns} ns"));
    }
    comments.extend(profile.warnings().iter().cloned());
    if let Some(unread) = profile.unread() {
        let (chunks, bytes) = (unread.chunks, unread.bytes);
        comments.push(format!(
            "not read: {bytes} bytes of {chunks} damaged chunks"
        ));
    }
    comments
}

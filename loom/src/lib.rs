//! Shared by the tests under loom. Must not be used by the product.
#![forbid(unsafe_code)]

/// Tries a model, in all orders of its threads' steps with at most `preemptions` preemptions of
/// each run. Loom's authors find nearly all errors with 2 or 3.
pub fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

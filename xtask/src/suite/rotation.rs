//! Tests that take turns in the gate: of each group one is run, the next one with the next commit,
//! and all where everything is tried. Pure.
//!
//! The tests of a group take long and would usually fail together, as they test the same code in
//! different environments. A test with a unique subject is in no group.

use anyhow::{Result, bail};

/// The groups, by the names of the tests.
const GROUPS: &[&[&str]] = &[
    &[
        "e2e/alive: measured_live_bytes_equal_the_kept_bytes",
        "e2e/alive: measured_thinned_live_objects_stand_for_all",
    ],
    &[
        "e2e/collectors: never_does_serial_find_its_heap_broken",
        "e2e/collectors: never_does_parallel_find_its_heap_broken",
        "e2e/collectors: never_does_g1_find_its_heap_broken",
    ],
    &[
        "e2e/collectors: never_does_z_find_its_heap_broken",
        "e2e/collectors: never_does_shenandoah_find_its_heap_broken",
        "e2e/collectors: never_does_generational_shenandoah_find_its_heap_broken",
    ],
    &[
        "e2e/endings: jvm_ends_normally_while_snapshots_are_taken",
        "e2e/endings: jvm_ends_normally_while_handlers_walk",
        "e2e/endings: jvm_ends_normally_while_threads_wait_to_be_walked",
    ],
    &[
        "e2e/mono: another_profiler_may_sample_at_the_same_time",
        "e2e/mono: handlers_of_the_program_still_run",
        "e2e/mono: stops_and_samples_meet_in_each_others_handlers",
    ],
    &[
        "e2e/accuracy: measured_shares_are_true_without_an_agent",
        "e2e/accuracy: measured_c1_and_interpreter_frames_are_distinguished",
        "e2e/accuracy: measured_lines_misplaced_by_c2_are_corrected",
        "e2e/accuracy: measured_phases_in_step_with_the_interval_are_true",
    ],
    &[
        "e2e/examples: measured_loop_that_delays_safepoints_is_named",
        "e2e/examples: measured_culprit_thread_is_named_and_remedies_help",
    ],
    &[
        "e2e/limits: measured_attaching_makes_no_method_ids_of_all_classes",
        "e2e/limits: measured_attaching_with_20000_classes_adds_under_30_mb",
    ],
    &[
        "e2e/safepoints: measured_late_thread_in_array_copy_has_its_cause",
        "e2e/safepoints: measured_stops_at_safepoints_have_their_cause",
        "e2e/safepoints: measured_late_threads_without_processor_have_their_cause",
        "e2e/safepoints: measured_many_safepoints_are_summed_up",
        "e2e/safepoints: measured_safepoints_are_counted_without_symbols",
    ],
    &[
        "e2e/stacks: measured_reloaded_libraries_have_their_own_names",
        "e2e/stacks: measured_samples_of_unloaded_classes_keep_their_names",
    ],
    &[
        "e2e/teardown: measured_many_recordings_leave_nothing_behind",
        "e2e/teardown: measured_recordings_of_many_threads_leave_nothing_behind",
    ],
    &[
        "e2e/throttled: measured_quota_waits_equal_the_kernels_count",
        "e2e/throttled: measured_quota_waits_are_seen_from_outside",
    ],
    &[
        "e2e/vantages: measured_every_vantage_gives_the_same_stacks",
        "e2e/vantages: measured_waiting_threads_give_as_many_samples",
    ],
    &[
        "e2e/virtual_threads: \
         measured_virtual_threads_are_right_while_they_move",
        "e2e/virtual_threads: measured_threads_are_found_where_zgc_has_moved_them",
        "e2e/virtual_threads: measured_threads_in_scopes_have_their_time",
        "e2e/virtual_threads: measured_unmounted_virtual_threads_have_time_and_cause",
        "e2e/virtual_threads: \
         measured_unmounted_virtual_threads_are_seen_from_outside",
    ],
    &[
        "e2e/weights: measured_recording_from_jvm_start_adds_up",
        "e2e/weights: measured_weights_add_up_to_the_cpu_time_with_perf_events",
        "e2e/weights: measured_weights_add_up_to_the_cpu_time_with_timers",
        "e2e/weights: measured_threads_shorter_than_an_interval_are_there",
        "e2e/weights: measured_mostly_idle_threads_get_no_excess_weight",
    ],
    &[
        "e2e/allocations: \
         measured_allocations_are_true_while_the_interval_adapts",
        "e2e/allocations: measured_allocated_bytes_and_objects_are_true",
        "e2e/allocations: measured_virtual_threads_allocate_in_their_own_name",
    ],
    &[
        "e2e/locks: measured_virtual_threads_wait_in_their_own_name",
        "e2e/locks: measured_lock_waits_equal_the_programs",
        "e2e/locks: measured_rate_limited_waits_stand_for_all",
    ],
    &[
        "e2e/locks: measured_owners_are_where_they_had_the_monitor",
        "e2e/locks: measured_owners_of_some_waits_stand_for_those_of_all",
        "e2e/locks: measured_sampled_owners_still_have_the_monitor",
    ],
    &[
        "e2e/commands: measured_implicit_null_checks_are_counted_right",
        "e2e/commands: measured_samplers_of_the_jdk_work_during_recordings",
    ],
    &[
        "e2e/mono: measured_phases_have_their_shares_and_stacks_their_frames",
        "e2e/mono: measured_waiting_threads_get_no_signals_and_their_cause",
    ],
    &[
        "e2e/outside_records: measured_wall_samples_have_lock_owners_from_outside",
        "e2e/outside_records: measured_mounted_virtual_threads_have_names_from_outside",
        "e2e/outside_records: measured_the_kernels_frames_are_there_without_an_agent",
    ],
    &[
        "e2e/jmc: mission_control_reads_recording_of_several_chunks",
        "e2e/jmc: mission_control_sees_virtual_threads",
        "e2e/jmc: mission_control_sees_hostile_names",
    ],
    &[
        "e2e/libraries: jars_are_read_with_every_collector_and_reference_form",
        "e2e/libraries: classes_have_their_jars_on_every_jdk",
    ],
    &[
        "e2e/mono: thread_held_in_handler_inside_allocator_is_harmless",
        "e2e/mono: compilers_start_under_a_thousand_signals_a_second",
        "e2e/mono: the_heap_stays_right_under_all_suspend_modes",
    ],
    &[
        "e2e/teardown: stopped_recording_leaves_no_activity",
        "e2e/commands: stopped_recording_leaves_no_thread_descriptor_or_timer",
    ],
    &[
        "e2e/blocking: waits_of_java_end_when_they_are_over",
        "e2e/blocking: bare_system_calls_with_timers_are_not_interrupted",
    ],
    &[
        "jfr/jdk_tools: hostile_names_do_not_stop_the_tools",
        "jfr/jdk_tools: summary_and_print_show_every_event_after_every_flush",
        "jfr/jdk_tools: consumer_api_reads_written_file",
        "jfr/jdk_tools: chunks_in_a_row_and_clocks_of_any_rate_lose_nothing",
    ],
    &[
        "jfr/jmc: mission_control_reads_written_file",
        "jfr/jmc: hostile_names_do_not_stop_mission_control",
        "jfr/jmc: mission_control_reads_chunks_with_different_clocks",
    ],
    &[
        "signal/interrupted_timer: timers_interrupt_no_call",
        "signal/interrupted_perf_user: user_mode_perf_events_interrupt_no_call",
        "signal/interrupted_perf: perf_events_interrupt_calls_within_limits",
    ],
    &[
        "signal/anywhere_timer: a_thread_may_be_anywhere_when_a_timer_signals",
        "signal/anywhere_perf: a_thread_may_be_anywhere_when_a_perf_event_signals",
    ],
    &[
        "e2e/files: measured_kill_9_loses_the_last_second_only",
        "e2e/files: measured_chunks_change_without_losing_a_sample",
        "e2e/files: \
         measured_full_disk_is_reported_once_and_recording_resumes",
    ],
    &[
        "e2e/safepoints: measured_thread_that_delays_safepoints_has_its_stack",
        "e2e/safepoints: measured_safepoints_equal_the_jvms_log",
    ],
    &[
        "e2e/intervals: measured_busy_threads_run_or_wait_for_a_processor",
        "e2e/intervals: measured_pauses_equal_the_collectors_log",
    ],
    &[
        "e2e/stacks: measured_depth_limit_marks_cut_stacks",
        "e2e/stacks: measured_stacks_of_1200_frames_are_complete",
        "e2e/stacks: measured_virtual_threads_have_weights_and_carrier_stacks",
    ],
    &[
        "e2e/stubs: never_stub_loses_its_caller_by_default",
        "e2e/stubs: never_stub_loses_its_caller_in_c2_code",
        "e2e/stubs: never_stub_loses_its_caller_in_the_interpreter",
        "e2e/stubs: never_stub_loses_its_caller_where_all_is_compiled",
    ],
    &[
        "e2e/stubs: never_stub_loses_its_caller_with_frame_pointers",
        "e2e/stubs: never_stub_loses_its_caller_without_avx",
        "e2e/stubs: never_stub_loses_its_caller_without_sha_instructions",
    ],
    &[
        "e2e/stubs: never_stub_loses_its_caller_in_the_handler",
        "e2e/stubs: never_stub_loses_its_caller_without_an_agent",
    ],
    &[
        "e2e/wall: measured_only_threads_with_requests_are_sampled",
        "e2e/wall: measured_waits_for_memory_have_their_cause",
        "e2e/wall: measured_ten_thousand_threads_have_their_time",
        "e2e/wall: measured_busy_threads_are_sampled_among_many_idle_ones",
    ],
];

/// Those of `names` that are left to another turn.
///
/// # Errors
/// A group that names a test which is not there: it would never be run.
pub fn left_out(names: &[String], turn: u64) -> Result<Vec<&'static str>> {
    let mut left = Vec::new();
    for (place, group) in (0_u64..).zip(GROUPS) {
        if let Some(unknown) = group.iter().find(|test| names.iter().all(|n| n != **test)) {
            bail!("no test is called {unknown} (xtask/src/suite/rotation.rs)");
        }
        // Groups do not all begin with their first ones.
        let mine = (turn + place) % group.len() as u64;
        let others = (0_u64..).zip(*group).filter(|(at, _)| *at != mine);
        left.extend(others.map(|(_, test)| *test));
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all() -> Vec<String> {
        let names = GROUPS.iter().flat_map(|group| group.iter());
        names.map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn one_test_of_each_group_runs_in_turn() {
        let names = all();
        let mut ran = BTreeSet::new();
        for turn in 100..106 {
            let left = left_out(&names, turn).unwrap();
            let now: Vec<&String> = names
                .iter()
                .filter(|name| !left.contains(&name.as_str()))
                .collect();
            assert_eq!(now.len(), GROUPS.len());
            for group in GROUPS {
                let of_group = now.iter().filter(|name| group.contains(&name.as_str()));
                assert_eq!(of_group.count(), 1, "{group:?}");
            }
            ran.extend(now);
        }
        assert_eq!(ran.len(), names.len());
    }

    #[test]
    fn groups_are_disjoint_and_have_two_tests() {
        let names = all();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(GROUPS.iter().all(|group| group.len() > 1));
    }

    #[test]
    fn absent_test_of_a_group_is_reported() {
        let names = all();
        let error = left_out(&names[1..], 1).unwrap_err().to_string();
        assert!(error.contains(&names[0]), "{error}");
    }
}

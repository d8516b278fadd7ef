//! The header of a page's data: small things as JSON, and the list of the columns.

use dwell_profile::{FrameKind, Lack, Latencies, Profile, Role, Unit};
use serde_json::{Value, json};

use super::columns::{Column, Less, causes, endpoints, waited_for};
use crate::incomplete::incomplete;
use crate::self_check;

use super::{Finding, Options, alive, allocations, event_tables, events, locks, wall};

/// Maximum number of endpoints with latencies before the columns.
const LATENCIES_MAX: usize = 12;

/// The header.
pub(super) fn header(
    profile: &Profile,
    options: &Options,
    columns: &[Column],
    less: &Less,
) -> Value {
    let kinds: Vec<&str> = FrameKind::ALL
        .iter()
        .map(|kind| profile.kind_label(*kind))
        .collect();
    let roles: Vec<&str> = Role::ALL.iter().map(|role| role.label()).collect();
    let causes: Vec<&str> = causes(profile)
        .into_iter()
        .map(|cause| profile.names().text(cause))
        .collect();
    let columns: Vec<Value> = columns.iter().map(column).collect();
    json!({
        "version": 1,
        "title": options.title,
        "unit": match profile.unit() {
            Unit::Nanoseconds => "ns",
            Unit::Samples => "samples",
        },
        // What samples measure, as text.
        "measured": profile.info().measured.name(),
        "kinds": kinds,
        "roles": roles,
        "causes": causes,
        // Equal samples within this time are one; 0: no binning.
        "binNs": less.bin_ns,
        // Of stacks that few others share some frames are left out; null: of none.
        "leftOut": less.left_out,
        "info": info(profile),
        "host": host(profile),
        "cpuLimit": cpu_limit(profile),
        "machine": machine(profile),
        "findings": options.findings.iter().map(finding).collect::<Vec<_>>(),
        "losses": losses(profile),
        "lossNote": incomplete(profile),
        "gaps": gaps(profile),
        "endpoints": names(profile, &endpoints(profile)),
        // Limits of endpoints that dwell derived; null if the program named them.
        "endpointsNote": (profile.has_derived_endpoints())
            .then(|| format!("Endpoints: {}", crate::FROM_STACKS)),
        "waits": names(profile, &waited_for(profile)),
        // So that a page can say which endpoints are slow before it has read its columns.
        "latencies": latencies(profile),
        "samples": profile.total().samples,
        "cpuNs": profile.total().sum,
        "wall": wall::wall(profile),
        // The wall time of a unit of a sample's weight.
        "wallScale": profile.wall_scale(),
        "exactWaits": profile.info().event_waits.is_some(),
        "waitsNote": profile.info().event_waits.map_or_else(String::new, |it| it.in_words()),
        "eventTables": event_tables::tables(profile),
        // Wall time by endpoint against latencies; null: nothing to compare.
        "selfCheck": profile.self_check(None).map(|it| self_check::value(&it, str::to_owned)),
        "allocated": allocations::header(profile),
        "alive": alive::header(profile),
        "locked": locks::header(profile),
        // Reasons of late threads at safepoints, with remedies.
        "stretches": events::kinds(),
        "lateReasons": events::late_reasons(profile),
        "selfCost": self_cost(profile),
        "cpuUse": cpu_use(profile),
        "warnings": profile.warnings(),
        "unread": profile.unread().map(crate::unread_words),
        "columns": columns,
    })
}

/// The page compares it with all samples: in a part of a recording that would be wrong.
fn cpu_use(profile: &Profile) -> Option<Value> {
    let cpu = profile.cpu_use().filter(|cpu| cpu.since_ns == 0)?;
    Some(json!({
        "userNs": cpu.user_ns,
        "systemNs": cpu.system_ns,
    }))
}

fn finding(finding: &Finding) -> Value {
    json!({
        "what": finding.what,
        "share": finding.share,
        "evidence": finding.evidence,
        "remedy": finding.remedy,
        "sure": finding.sure,
        "measure": finding.measure,
        "causes": finding.causes,
        "endpoint": finding.endpoint,
        "threads": finding.threads,
        "focus": finding.focus.as_ref().map(|(sort, name)| json!({ "sort": sort, "name": name })),
        "cost": finding.cost,
        "bar": finding.bar,
    })
}

fn names<'p>(profile: &'p Profile, names: &[u32]) -> Vec<&'p str> {
    let texts = names.iter().map(|name| profile.names().text(*name));
    texts.collect()
}

/// Endpoints by how long their requests took, the slowest first.
fn latencies(profile: &Profile) -> Vec<Value> {
    let latencies = profile.latencies();
    let mut rows: Vec<_> = latencies
        .iter()
        .map(|(endpoint, all)| (all.percentile_ns(95.0), *endpoint, all))
        .collect();
    rows.sort_by_key(|(p95_ns, ..)| std::cmp::Reverse(*p95_ns));
    let row = |(p95_ns, endpoint, all): (u64, Option<&str>, &Latencies)| {
        json!({
            "endpoint": endpoint,
            "requests": all.requests,
            "p50Ns": all.percentile_ns(50.0),
            "p95Ns": p95_ns,
        })
    };
    rows.into_iter().take(LATENCIES_MAX).map(row).collect()
}

fn column(column: &Column) -> Value {
    json!({
        "name": column.name,
        "rows": column.rows,
        "width": column.width,
        "delta": column.delta,
        "bytes": column.bytes(),
    })
}

fn info(profile: &Profile) -> Value {
    let info = profile.info();
    json!({
        // Milliseconds: a double holds them exactly, nanoseconds since 1970 it does not.
        "startMs": info.start_ns / 1_000_000,
        "durationNs": info.duration_ns,
        "pid": info.pid,
        "profilerVersion": info.profiler_version,
        "mode": info.mode,
        "engine": info.engine,
        "engineReason": info.engine_reason,
        "intervalNs": info.interval_ns,
        "options": info.options,
        "jvmName": info.jvm_name,
        "jvm": info.jvm(),
        "javaArguments": info.java_arguments,
        "sampleEvent": info.sample_event,
        // How the program's classes begin, if it is a tool that comes with the platform.
        "tool": profile.tool(),
        // Remedy for missing wall time; it depends on the recorder.
        "wallRemedy": info.remedy(Lack::Wall),
        "otherEvents": info.other_events,
        "heldEvents": info.held_events,
    })
}

fn host(profile: &Profile) -> Value {
    let host = profile.host();
    json!({
        "jvmArguments": host.jvm_arguments,
        "jvmFlags": host.jvm_flags,
        "jvmStartMs": host.jvm_start_ms,
        "cpu": host.cpu,
        "hardwareThreads": host.hardware_threads,
        "os": host.os,
    })
}

fn cpu_limit(profile: &Profile) -> Option<Value> {
    profile.cpu_limit().map(|limit| {
        json!({
            "quotaNs": limit.quota_ns,
            "processors": limit.processors,
            "periods": limit.periods,
            "throttled": limit.throttled,
            "throttledNs": limit.throttled_ns,
        })
    })
}

fn machine(profile: &Profile) -> Option<Value> {
    profile.machine_sum().map(|sum| {
        json!({
            "durationNs": sum.duration_ns,
            "processors": sum.processors,
            "othersNs": sum.others_ns(),
            "idleNs": sum.idle_ns,
            "stolenNs": sum.stolen_ns,
        })
    })
}

fn losses(profile: &Profile) -> Vec<Value> {
    let loss = |loss: &dwell_profile::Loss| {
        json!({
            "cause": loss.cause,
            "samples": loss.samples,
            "weightNs": loss.weight_ns,
        })
    };
    profile.losses().iter().map(loss).collect()
}

fn gaps(profile: &Profile) -> Vec<Value> {
    let start_ns = profile.info().start_ns;
    let gap = |gap: &dwell_profile::Gap| {
        json!({
            "timeNs": gap.time_ns.saturating_sub(start_ns),
            "durationNs": gap.duration_ns,
            "cause": gap.cause,
            "samples": gap.samples,
            "weightNs": gap.weight_ns,
        })
    };
    profile.gaps().iter().map(gap).collect()
}

fn self_cost(profile: &Profile) -> Option<Value> {
    profile.self_cost().map(|cost| {
        json!({
            "samples": cost.samples,
            "walks": cost.walks,
            "dropped": cost.dropped,
            "bytes": cost.bytes,
            "agentCpuNs": cost.agent_cpu_ns,
            "handlers": cost.handlers,
            "handlerCpuNs": cost.handler_cpu_ns,
            "waitedNs": cost.waited_ns,
            "collectionsWaitedNs": cost.collections_waited_ns,
            "walkNs": cost.walk_ns,
            "copies": cost.copies,
            "copiedBytes": cost.copied_bytes,
            "handlerP50Ns": cost.handler_p50_ns,
            "handlerP90Ns": cost.handler_p90_ns,
            "handlerP99Ns": cost.handler_p99_ns,
            "handlerMaxNs": cost.handler_max_ns,
            "memoryBytes": cost.memory_bytes,
        })
    })
}

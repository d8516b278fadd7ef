// What was recorded, as rows of a table.
import { count, CPU_TIME, duration, percent, plural } from './format';
import { plain } from './plain';
import { platformOf } from './platform';
import type { Header, LeftOut, Machine, Profile } from './profile';

export type Row = [label: string, value: string];

export interface Sums {
  weight: number;
  samples: number;
  failed: number;
}

/** Maximum number of rows of one kind. */
const ROWS_MAX = 5;
/** Options of the JVM that change what a profile shows. */
const TELLING =
  /^-(?:Xm[sx]|Xss|Xint|Xcomp|Xbatch|XX:[+-]?(?:Use\w*GC|\w*Heap\w*|\w*RAMPercentage|MaxGCPause\w*|ActiveProcessorCount|ZGenerational|TieredCompilation|TieredStopAtLevel|MaxDirectMemorySize|\w*Metaspace\w*|ParallelGCThreads|ConcGCThreads|CICompilerCount|GuaranteedSafepointInterval|UseCountedLoopSafepoints|UseContainerSupport|ReservedCodeCacheSize|UseNUMA|UseTransparentHugePages|AlwaysPreTouch))/;

export function sumsOf(profile: Profile): Sums {
  const sums = { weight: 0, samples: 0, failed: 0 };
  const { weight, cause, count } = profile.samples;
  for (let i = 0; i < weight.length; i++) {
    sums.weight += weight[i]!;
    sums.samples += count[i]!;
    if (cause[i] !== 0) sums.failed += weight[i]!;
  }
  return sums;
}

/** The options of the JVM that matter to a reader of a profile. */
export function tellingFlags({ header }: Profile): string[] {
  const all = `${header.host.jvmFlags} ${header.host.jvmArguments}`.split(/\s+/);
  return [...new Set(all.filter((flag) => TELLING.test(flag)))];
}

/** The collector, by its options or the names of its threads; empty if unknown. */
export function collectorOf({ header, names, threads }: Profile): string {
  const flags = `${header.host.jvmFlags} ${header.host.jvmArguments}`;
  const chosen = /-XX:\+Use(Z|G1|Shenandoah|Parallel|Serial|Epsilon|ConcMarkSweep)GC/.exec(flags);
  if (chosen) return chosen[1]!;
  const signs: [string, RegExp][] = [
    ['G1', /^G1 /],
    ['Z', /^[ZX](?:Worker|Driver|Director|Stat)/],
    ['Shenandoah', /^Shenandoah/],
    ['Parallel', /^(?:ParGC Thread|GC task thread#)/],
  ];
  for (const id of new Set(threads.name)) {
    const name = names.text(id);
    const sign = signs.find(([, pattern]) => pattern.test(name));
    if (sign) return sign[0];
  }
  return '';
}

/** What ran, and on what. */
export function aboutProgram(profile: Profile): Row[] {
  const { info, host, cpuLimit, machine } = profile.header;
  const start = info.startMs > 0 ? new Date(info.startMs).toISOString().replace('T', ' ') : '';
  const up = host.jvmStartMs > 0 ? (info.startMs - host.jvmStartMs) * 1e6 : 0;
  const collector = collectorOf(profile);
  const platform = platformOf(info.jvmName);
  return filled([
    ['Program', info.javaArguments],
    [platform.name, info.jvm],
    ['Collector', collector === '' ? '' : `${collector} GC`],
    ['Relevant flags', tellingFlags(profile).join(' ')],
    ['CPUs', processors(profile)],
    ['CPU-throttled', cpuLimit ? heldBack(cpuLimit) : ''],
    ['Other load', machine ? othersOn(machine) : ''],
    ['System', host.os.split('\n', 1)[0] ?? ''],
    ['Process', info.pid > 0 ? String(info.pid) : ''],
    ['Started', start.replace(/\.\d+Z$/, ' UTC')],
    [`${platform.name} uptime at start`, up > 0 ? duration(up) : ''],
    ['Recorded for', info.durationNs > 0 ? duration(info.durationNs) : ''],
  ]);
}

function processors({ header: { host, cpuLimit } }: Profile): string {
  const parts: string[] = [];
  if (cpuLimit && cpuLimit.processors > 0) parts.push(`${count(cpuLimit.processors)} CPUs`);
  if (cpuLimit && cpuLimit.quotaNs > 0) {
    parts.push(`quota of ${(cpuLimit.quotaNs / 1e9).toFixed(2)} CPUs`);
  } else if (cpuLimit) parts.push('no quota');
  if (host.hardwareThreads > 0) parts.push(`machine with ${count(host.hardwareThreads)}`);
  if (host.cpu !== '') parts.push(host.cpu);
  return parts.join(', ');
}

function othersOn({ durationNs, processors, othersNs, idleNs, stolenNs }: Machine): string {
  const mean = (ns: number) => (ns / Math.max(1, durationNs)).toFixed(1);
  const parts = [`other processes used ${mean(othersNs)} of ${plural(processors, 'CPU')}`];
  if (stolenNs >= 0.05 * durationNs) parts.push(`the hypervisor had ${mean(stolenNs)}`);
  parts.push(`${mean(idleNs)} were idle`);
  return parts.join(', ');
}

function heldBack(limit: { periods: number; throttled: number; throttledNs: number }): string {
  if (limit.periods === 0) return '';
  const share = percent(limit.throttled / limit.periods);
  return `${duration(limit.throttledNs)}, in ${share} of ${plural(limit.periods, 'period')}`;
}

/** How it was recorded. */
export function aboutRecording(profile: Profile): Row[] {
  const { info } = profile.header;
  const others = info.otherEvents.map(([name, n]) => `${count(n)} of ${name}`);
  const from = info.profilerVersion === '' ? 'not by dwell' : `dwell ${info.profilerVersion}`;
  return filled([
    ['Profiler', from],
    ['Mode', info.mode],
    ['Engine', [info.engine, info.engineReason].filter(Boolean).join(': ')],
    ['Interval', info.intervalNs > 0 ? duration(info.intervalNs) : ''],
    ['Samples from', info.sampleEvent],
    ['Not shown', others.join(', ')],
    ['Options', info.options],
  ]);
}

function idleIn({ ns, busyNs }: NonNullable<Header['wall']>): string {
  return busyNs < ns ? `, of which ${percent((ns - busyNs) / ns)} idle` : '';
}

/** What a page lacks of a recording with very many different stacks. */
function leftOutWords({ below, nodes, kept, events, cut }: LeftOut): string {
  const few = below > 2 ? `fewer than ${count(below)} samples share` : 'one sample only has';
  const part = percent(cut / Math.max(events, 1));
  return (
    `frames that ${few}, but the innermost: [left out] in ` +
    `${part} of stacks, ${count(kept)} of ${count(nodes)} places kept (all: --all-frames)`
  );
}

/** Number of samples, and their reliability. */
export function aboutSamples(profile: Profile): Row[] {
  const { header } = profile;
  const sums = sumsOf(profile);
  const rows: Row[] = [['Samples', count(sums.samples)]];
  if (header.binNs > 0) rows.push(['Binned', `equal samples within ${duration(header.binNs)}`]);
  const { leftOut } = header;
  if (leftOut) rows.push(['Left out', leftOutWords(leftOut)]);
  const measured = header.measured ?? CPU_TIME;
  if (measured !== CPU_TIME) rows.push(['Samples measure', plain(measured)]);
  else if (header.unit === 'ns') rows.push(['CPU time sampled', duration(sums.weight)]);
  if (header.wall)
    rows.push([
      `Wall time of ${platformOf(header.info.jvmName).threads}`,
      duration(header.wall.ns) + idleIn(header.wall),
    ]);
  if (header.waitsNote) rows.push(['Waits', plain(header.waitsNote)]);
  const held = (header.info.heldEvents ?? []).map(([name, n]) => `${count(n)} ${plain(name)}`);
  rows.push(['Counted events', held.join(', ')]);
  const mode = header.info.mode.replace(/,(alloc|live|lock)/g, '');
  if (header.cpuUse && ['', 'cpu', 'cpu,wall'].includes(mode)) {
    const used = header.cpuUse.userNs + header.cpuUse.systemNs;
    const seen = used > 0 ? `, of which the samples weigh ${percent(sums.weight / used)}` : '';
    rows.push(['CPU time used', duration(used) + seen]);
  }
  const roles = sumBy(profile, profile.samples.role, header.roles.length);
  const shares = header.roles
    .map((role, i) => ({ role, share: roles[i]! / (sums.weight || 1) }))
    // Others sample Java threads only: no GC among them does not mean that there was none.
    .filter(({ share }) => share > 0 || header.info.profilerVersion !== '')
    .map(({ role, share }) => `${role} ${percent(share)}`);
  rows.push(['Spent by', shares.join(', ')]);
  const causes = sumBy(profile, profile.samples.cause, header.causes.length + 1);
  header.causes.slice(0, ROWS_MAX).forEach((cause, i) => {
    rows.push(['Failed', `${percent(causes[i + 1]! / (sums.weight || 1))} ${cause}`]);
  });
  for (const loss of header.losses) {
    const weight = loss.weightNs > 0 ? `, ${duration(loss.weightNs)}` : '';
    const lost = `${plural(loss.samples, 'sample')}${weight}: ${loss.cause}`;
    if (loss.samples > 0) rows.push(['Lost', lost]);
  }
  for (const gap of header.gaps.slice(0, ROWS_MAX)) {
    rows.push(['Gap', `${duration(gap.durationNs)} at ${duration(gap.timeNs)}: ${gap.cause}`]);
  }
  return filled(rows);
}

function sumBy(profile: Profile, group: ArrayLike<number>, groups: number): Float64Array {
  const sums = new Float64Array(groups);
  const { weight } = profile.samples;
  for (let i = 0; i < weight.length; i++) sums[group[i]!]! += weight[i]!;
  return sums;
}

/** What the profiler itself used. */
export function aboutCost({ header }: Profile): Row[] {
  const cost = header.selfCost;
  if (!cost) return [];
  const ns = (name: string) => duration(cost[name] ?? 0);
  const mib = (name: string) => `${((cost[name] ?? 0) / 2 ** 20).toFixed(1)} MiB`;
  // Recordings of earlier versions do not have them.
  const has = (name: string) => (cost[name] ?? 0) > 0;
  const share = header.info.durationNs > 0 ? (cost['agentCpuNs'] ?? 0) / header.info.durationNs : 0;
  return filled([
    ['Profiler’s CPU', `${ns('agentCpuNs')} (${percent(share)} of one CPU)`],
    [
      'In the handler',
      `median ${ns('handlerP50Ns')}, p99 ${ns('handlerP99Ns')}, longest ${ns('handlerMaxNs')}`,
    ],
    ['Stacks walked', count(cost['walks'] ?? 0) + (has('walkNs') ? `, ${ns('walkNs')}` : '')],
    ['Stacks copied', has('copies') ? `${count(cost['copies']!)}, ${mib('copiedBytes')}` : ''],
    ['Time until walked', has('waitedNs') ? ns('waitedNs') : ''],
    ['GCs delayed by walks', has('collectionsWaitedNs') ? ns('collectionsWaitedNs') : ''],
    ['Samples dropped', count(cost['dropped'] ?? 0)],
    ['Unwind tables and open chunk', mib('memoryBytes')],
  ]);
}

function filled(rows: Row[]): Row[] {
  return rows.filter(([, value]) => value !== '');
}

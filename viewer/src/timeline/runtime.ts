// What the lanes of the runtime show: stretches of time such as pauses, safepoints, compilers, the
// control group's limit. Pure: how it looks is in drawRuntime.ts.
import { duration, percent, plural } from '../data/format';
import type { Profile } from '../data/profile';
import { factsOf } from '../data/stretches';
import type { Told } from './describe';

/** A number is that of a kind of stretches. */
export type Runtime = number | Other;
type Other = 'safepoints' | 'jit' | 'throttled';

const NAMES: Readonly<Record<Other, string>> = {
  safepoints: 'Safepoints',
  jit: 'Compilers (JIT)',
  throttled: 'CPU-throttled',
};

/** The lanes that a recording has something for. */
export function runtimeLanes(profile: Profile): { what: Runtime; name: string }[] {
  const has: Record<Other, boolean> = {
    safepoints: profile.stops.time.length > 0,
    jit:
      profile.compiled.time.length > 0 ||
      profile.compilers.time.length > 0 ||
      compilersOf(profile).time.length > 0,
    throttled: profile.throttled.time.length > 0,
  };
  const told = profile.stretches.map(({ kind }, what) => ({ what, name: kind.lane }));
  const all: Other[] = ['safepoints', 'jit', 'throttled'];
  return [...told, ...all.filter((it) => has[it]).map((what) => ({ what, name: NAMES[what] }))];
}

/** CPU time of compilers: each sample stands for the time before it. */
export interface Compilers {
  /** In the order of time. */
  time: Float64Array;
  weight: Float64Array;
  /** The longest time that one stands for. */
  longest: number;
}

const found = new WeakMap<object, Compilers>();

export function compilersOf({ samples, header }: Profile): Compilers {
  let compilers = found.get(samples);
  if (!compilers) {
    const role = header.roles.indexOf('JIT');
    const chosen: number[] = [];
    for (let i = 0; i < samples.role.length; i++) {
      if (samples.role[i] === role && header.unit === 'ns') chosen.push(i);
    }
    chosen.sort((a, b) => samples.time[a]! - samples.time[b]!);
    compilers = {
      time: Float64Array.from(chosen, (i) => samples.time[i]!),
      weight: Float64Array.from(chosen, (i) => samples.weight[i]!),
      longest: chosen.reduce((most, i) => Math.max(most, samples.weight[i]!), 0),
    };
    found.set(samples, compilers);
  }
  return compilers;
}

/** What is said about a place of a lane of the runtime. */
export function toldRuntime(profile: Profile, what: Runtime, time: number): Told {
  if (typeof what === 'number') return toldStretch(profile, what, time);
  switch (what) {
    case 'safepoints':
      return toldStop(profile, time);
    case 'jit':
      return toldCompilation(profile, time);
    default:
      return toldThrottled(profile, time);
  }
}

function toldStretch(profile: Profile, what: number, time: number): Told {
  const stretches = profile.stretches[what]!;
  const { kind } = stretches;
  const i = nearest(stretches.time, time);
  if (i < 0) return { title: kind.title, kind: kind.what, facts: [] };
  const facts: [string, string][] = [
    ['At', duration(stretches.time[i]!)],
    ['Took', duration(stretches.duration[i]!)],
    ...(kind.allStand ? operationAt(profile, stretches.time[i]!, stretches.duration[i]!) : []),
    ...factsOf(profile, stretches, i),
  ];
  return { title: kind.title, kind: kind.what, facts };
}

/** The safepoint operation that a pause is in, by the longest overlap: why all threads stopped. */
function operationAt({ stops, names }: Profile, time: number, length: number): [string, string][] {
  let [best, most] = [-1, 0];
  for (let i = 0; i < stops.time.length; i++) {
    if (stops.known[i] !== 1) continue;
    const end = stops.time[i]! + stops.reaching[i]! + stops.operating[i]!;
    const overlap = Math.min(end, time + length) - Math.max(stops.time[i]!, time);
    if (overlap > most) [best, most] = [i, overlap];
  }
  const operation = best < 0 ? '' : names.text(stops.operation[best]!);
  return operation === '' ? [] : [['Safepoint', operation]];
}

/** The steps of a lane, for the keyboard; null: a lane without steps. */
export function stepsOf(
  profile: Profile,
  what: Runtime,
): { from: Float64Array; to: Float64Array; n: number } | null {
  const { stops } = profile;
  const stretches = typeof what === 'number' ? profile.stretches[what] : undefined;
  const from = what === 'safepoints' ? stops.time : stretches?.time;
  if (!from) return null;
  const lengthOf = (i: number) =>
    stretches ? stretches.duration[i]! : stops.reaching[i]! + stops.operating[i]!;
  return { from, to: from.map((time, i) => time + lengthOf(i)), n: from.length };
}

function toldStop({ stops, names }: Profile, time: number): Told {
  const i = nearest(stops.time, time);
  if (i < 0) return { title: 'Safepoints', kind: '', facts: [] };
  const operation = names.text(stops.operation[i]!) || '(unknown)';
  const facts: [string, string][] = [
    ['At', duration(stops.time[i]!)],
    ['Time to safepoint', duration(stops.reaching[i]!)],
    ['In safepoint', duration(stops.operating[i]!)],
  ];
  return { title: operation, kind: 'nearest safepoint', facts };
}

/** CPU time is averaged over this range around a place. */
const AROUND_NS = 5e8;

function toldCompilation(profile: Profile, time: number): Told {
  const { compiled, names } = profile;
  const compilers = compilersOf(profile);
  let used = 0;
  for (let i = 0; i < compilers.time.length; i++) {
    const at = compilers.time[i]!;
    if (Math.abs(at - time) <= AROUND_NS) used += compilers.weight[i]!;
  }
  const facts: [string, string][] = [['At', duration(time)]];
  if (compilers.time.length > 0) {
    facts.push(['CPU time within 1 s', `${duration(used)}, by samples`]);
  }
  const { compilers: counted } = profile;
  const second = counted.time.findIndex(
    (from, i) => from <= time && time < from + counted.duration[i]!,
  );
  if (second >= 0) {
    const [count, wasted] = [counted.count[second]!, counted.wasted[second]!];
    facts.push(
      ['Within', duration(counted.duration[second]!)],
      ['Compiled', wasted > 0 ? `${count}, ${wasted} of them discarded` : String(count)],
      ['For', `${duration(counted.compiling[second]!)}, of all compilers together`],
    );
  }
  const i = nearest(compiled.time, time);
  if (i < 0)
    return {
      title: 'Compilers',
      kind: 'by samples of their threads, and the JVM’s counters',
      facts,
    };
  facts.push(['Took', duration(compiled.duration[i]!)], ['From', duration(compiled.time[i]!)]);
  if (compiled.level[i]! > 0) facts.push(['Level', String(compiled.level[i])]);
  return { title: names.text(compiled.method[i]!) || '(unknown)', kind: 'compiled', facts };
}

function toldThrottled({ throttled, header }: Profile, time: number): Told {
  const { time: from, duration: length, held, periods, throttled: times } = throttled;
  const i = from.findIndex((at, i) => at <= time && time <= at + length[i]!);
  const title = 'CPU-throttled';
  const quota = (header.cpuLimit?.quotaNs ?? 0) / 1e9;
  const kind = quota > 0 ? `of ${quota.toFixed(2)} CPUs` : '';
  if (i < 0) return { title, kind, facts: [['At', `${duration(time)}: not throttled`]] };
  const facts: [string, string][] = [
    ['Within', `${duration(length[i]!)} from ${duration(from[i]!)} on`],
    ['Throttled', `${duration(held[i]!)}, of all threads together`],
    ['Used up in', shareOf(times[i]!, periods[i]!)],
  ];
  return { title, kind, facts };
}

function shareOf(times: number, periods: number): string {
  if (periods === 0) return plural(times, 'period');
  return `${percent(times / periods)} of ${plural(periods, 'period')}`;
}

function nearest(times: Float64Array, time: number): number {
  let best = -1;
  for (let i = 0; i < times.length; i++) {
    if (best < 0 || Math.abs(times[i]! - time) < Math.abs(times[best]! - time)) best = i;
  }
  return best;
}

// Wall time summed up: by cause, and by what else the caller asks for; and over time, in bins.
import { endpointNumber, idleNumber, type Part } from './measure';
import { orderOf } from './order';
import type { Profile, Samples, Span } from './profile';
import { partIn, shareBefore, shareIn } from './window';

/** Which wall time counts. */
export interface WallFilter extends Part {
  /** For every thread 1 if it counts. */
  threads: Uint8Array;
  /** Null: all, and what was done for none. */
  endpoint: string | null;
}

/** Causes of looks and samples: number 0 is running, the others are in the header. */
export function causesOf(profile: Profile): string[] {
  return ['running', ...profile.header.waits];
}

/** An entry of wall time. */
export interface Entry {
  /** A number in `causesOf`. */
  cause: number;
  of: Samples;
  i: number;
  /** Whether it is a look; else a sample of CPU time. */
  isLook: boolean;
  weight: number;
}

/** Calls back for all wall time that counts. The entry is the same object every time. */
export function eachWall(
  profile: Profile,
  filter: WallFilter,
  visit: (entry: Entry) => void,
): void {
  const { wall, samples } = profile;
  if (!wall) return;
  const { during } = filter;
  const endpoint = endpointNumber(profile.header, filter.endpoint);
  const go = (
    of: Samples,
    isLook: boolean,
    duration: Float64Array | null,
    scale: number,
    cause: (i: number) => number,
  ) => {
    const entry: Entry = { cause: 0, of, i: 0, isLook, weight: 0 };
    for (let i = 0; i < of.node.length; i++) {
      if (filter.threads[of.thread[i]!] !== 1) continue;
      if (endpoint >= 0 && of.endpoint[i] !== endpoint) continue;
      if (filter.request !== 0 && of.request[i] !== filter.request) continue;
      const number = cause(i);
      const [time, length] = [of.time[i]!, duration?.[i] ?? 0];
      if (number < 0 || shareIn(time, length, during) <= 0) continue;
      entry.cause = number;
      entry.i = i;
      entry.weight = partIn(of.weight[i]! * scale, time, length, during);
      visit(entry);
    }
  };
  const { running, looks } = wall;
  const scale = profile.header.wallScale ?? 1;
  go(samples, false, null, scale, (i) => (running[i] === 1 ? 0 : -1));
  const idle = filter.idle ? -1 : idleNumber(profile.header);
  go(looks, true, wall.duration, 1, (i) => (looks.wait[i] === idle ? -1 : looks.wait[i]!));
}

/** How much of the wall time was idle, and of how many threads. */
export interface Idle {
  weight: number;
  all: number;
  threads: number;
  allThreads: number;
}

/** Idle part of the wall time if idle time were included; null: there is no idle time. */
export function idleOf(profile: Profile, filter: WallFilter): Idle | null {
  const number = idleNumber(profile.header);
  if (number < 0) return null;
  const splits = splitBy(profile, { ...filter, idle: true }, ({ of, i }) => of.thread[i]!);
  const found: Idle = { weight: 0, all: 0, threads: 0, allThreads: splits.size };
  for (const split of splits.values()) {
    found.all += sum(split);
    found.weight += split[number]!;
    if (split[number]! > 0) found.threads += 1;
  }
  return found.threads > 0 ? found : null;
}

/** Weight by cause. */
export type Split = Float64Array;

/** Sums by cause of each key that `key` gives; keys below 0 do not count. */
export function splitBy(
  profile: Profile,
  filter: WallFilter,
  key: (entry: Entry) => number,
): Map<number, Split> {
  const causes = causesOf(profile).length;
  const rows = new Map<number, Split>();
  // Mostly the same as for the one before.
  let [last, row]: [number, Split | undefined] = [-1, undefined];
  eachWall(profile, filter, (entry) => {
    const at = key(entry);
    if (at < 0) return;
    if (at !== last || !row) {
      row = rows.get(at);
      if (!row) rows.set(at, (row = new Float64Array(causes)));
      last = at;
    }
    row[entry.cause]! += entry.weight;
  });
  return rows;
}

export function sum(split: ArrayLike<number>): number {
  let all = 0;
  for (let i = 0; i < split.length; i++) all += split[i]!;
  return all;
}

/** Values over time: for each series as many bins, of equal parts of the span. */
export interface Strip {
  span: Span;
  bins: number;
  /** By series. */
  values: Float64Array[];
}

export function emptyStrip(span: Span, series: number, bins: number): Strip {
  const values = Array.from({ length: series }, () => new Float64Array(bins));
  return { span, bins, values };
}

/** Adds a value to a series: each bin has its share by the rule of `window.ts`. */
export function spread(
  strip: Strip,
  series: number,
  from: number,
  to: number,
  value: number,
): void {
  const { span, bins } = strip;
  const row = strip.values[series];
  const bin = (span.to - span.from || 1) / bins;
  const begin = Math.max(0, Math.floor((from - span.from) / bin));
  const end = Math.min(bins - 1, Math.floor((to - span.from) / bin));
  if (!row) return;
  let before = shareBefore(from, to - from, span.from + begin * bin);
  for (let at = begin; at <= end; at++) {
    const next = shareBefore(from, to - from, span.from + (at + 1) * bin);
    row[at]! += value * (next - before);
    before = next;
  }
}

/** The time that the recording spans; never empty. */
export function wholeSpan(profile: Profile): Span {
  let to = profile.header.info.durationNs;
  if (to <= 0) for (const time of profile.samples.time) to = Math.max(to, time + 1);
  return { from: 0, to: Math.max(1, to) };
}

/** Maximum distance from a sample at which it is drawn. */
const BLUR_MAX_NS = 1e9;

/** Half of the time to the looks before and after each look of the same thread. */
interface Room {
  before: Float64Array;
  after: Float64Array;
}

const rooms = new WeakMap<object, Room>();

function roomOf({ wall, threads }: Profile): Room {
  const { looks, duration } = wall!;
  const known = rooms.get(wall!);
  if (known) return known;
  const before = new Float64Array(looks.time.length).fill(Infinity);
  const after = before.slice();
  /** By thread: the look that ends last so far, counted from 1, and its end. */
  const last = new Uint32Array(threads.name.length);
  const ends = new Float64Array(threads.name.length);
  for (const i of orderOf(looks.time)) {
    const thread = looks.thread[i]!;
    const [time, lasting] = [looks.time[i]!, last[thread]! - 1];
    const end = time + duration[i]!;
    if (lasting >= 0) {
      const room = Math.max(0, (time - ends[thread]!) / 2);
      before[i] = room;
      after[end < ends[thread]! ? i : lasting] = room;
      if (end < ends[thread]!) continue;
    }
    last[thread] = i + 1;
    ends[thread] = end;
  }
  const room = { before, after };
  rooms.set(wall!, room);
  return room;
}

/**
 * The time over which a look is drawn in bins. Its weight lies over its duration, but looks come in
 * ticks: bins that are as short as these would show the ticks and not the threads. So it is drawn
 * over the time that it weighs, around its duration: nothing is lost. It does not reach beyond the
 * recording or into other looks of its thread, because a thread is in one place at a time.
 */
export function lookSpan(profile: Profile, i: number, whole: Span): Span {
  const { looks, duration } = profile.wall!;
  const room = roomOf(profile);
  const from = looks.time[i]!;
  const to = from + duration[i]!;
  const pad = Math.max(0, Math.min(BLUR_MAX_NS, (looks.weight[i]! - duration[i]!) / 2));
  return {
    from: Math.min(from, Math.max(whole.from, from - Math.min(pad, room.before[i]!))),
    to: Math.max(to, Math.min(whole.to, to + Math.min(pad, room.after[i]!))),
  };
}

/** A sample is drawn over the CPU time before it, which it stands for. */
export function sampleSpan({ header }: Profile, time: number, weight: number): Span {
  const before = header.unit === 'ns' ? weight : 0;
  return { from: Math.min(time, Math.max(0, time - before)), to: time };
}

/** Adds an entry to its series of a strip. */
export function spreadEntry(
  profile: Profile,
  strip: Strip,
  { cause, of, i, isLook, weight }: Entry,
): void {
  const { from, to } = isLook
    ? lookSpan(profile, i, strip.span)
    : sampleSpan(profile, of.time[i]!, weight);
  spread(strip, cause, from, to, weight);
}

/** Wall time by cause, over all of the recording whatever the filter's part of it. */
export function wallStrip(profile: Profile, filter: WallFilter, bins: number): Strip {
  const strip = emptyStrip(wholeSpan(profile), causesOf(profile).length, bins);
  eachWall(profile, { ...filter, during: null }, (entry) => spreadEntry(profile, strip, entry));
  return strip;
}

/** CPU time by role. */
export function cpuStrip(profile: Profile, threads: Uint8Array, bins: number): Strip {
  const { samples, header } = profile;
  const strip = emptyStrip(wholeSpan(profile), header.roles.length, bins);
  for (let i = 0; i < samples.node.length; i++) {
    if (threads[samples.thread[i]!] !== 1) continue;
    const { from, to } = sampleSpan(profile, samples.time[i]!, samples.weight[i]!);
    spread(strip, samples.role[i]!, from, to, samples.weight[i]!);
  }
  return strip;
}

/** The part of the control group's periods in which the quota was used up, as time. */
export function throttledStrip(profile: Profile, bins: number): Strip {
  const strip = emptyStrip(wholeSpan(profile), 1, bins);
  const { time, duration, periods, throttled } = profile.throttled;
  for (let i = 0; i < time.length; i++) {
    const share = periods[i]! > 0 ? Math.min(1, throttled[i]! / periods[i]!) : 1;
    spread(strip, 0, time[i]!, time[i]! + duration[i]!, share * duration[i]!);
  }
  return strip;
}

/**
 * Time in which all threads were stopped: by kind of stretch, on the way to safepoints, and in
 * safepoints.
 */
export function stopStrip(profile: Profile, bins: number): Strip {
  const told = profile.stretches.filter(({ kind }) => kind.allStand);
  const strip = emptyStrip(wholeSpan(profile), told.length + 2, bins);
  const { stops } = profile;
  told.forEach(({ time, duration }, at) => {
    time.forEach((from, i) => spread(strip, at, from, from + duration[i]!, duration[i]!));
  });
  for (let i = 0; i < stops.time.length; i++) {
    const [from, reaching, operating] = [stops.time[i]!, stops.reaching[i]!, stops.operating[i]!];
    spread(strip, told.length, from, from + reaching, reaching);
    spread(strip, told.length + 1, from + reaching, from + reaching + operating, operating);
  }
  return strip;
}

// Waits for monitors by thread, from events: each from when it began to when it ended, however many
// there are. How much of a pixel they have is found by searching in their sums. Pure.
import type { Profile, Span } from '../data/profile';
import { orderOf } from '../data/order';
import { lowerBound } from './time';

/** Waits of one thread, by their beginnings; a thread waits for one monitor at a time. */
export interface WaitTrack {
  n: number;
  from: Float64Array;
  to: Float64Array;
  /** Entries of the table of waits. */
  ref: Uint32Array;
  /** How long those before each one lasted together; one more at the end: all. */
  before: Float64Array;
}

export class Waits {
  private readonly rows = new Map<number, number[]>();
  private readonly tracks = new Map<number, WaitTrack>();
  private readonly ofEndpoints = new Map<string, WaitTrack>();
  /** Waits of which only sums are known, as there are too many: they are on no lane. */
  readonly summed: number = 0;

  constructor(readonly profile: Profile) {
    const { locks } = profile;
    if (!locks) return;
    const { samples, look } = locks;
    for (let i = 0; i < samples.node.length; i++) {
      // Looks at locks of java.util.concurrent are steps of wall time.
      if (look[i] === 1) continue;
      if (samples.count[i]! > 1) {
        this.summed += samples.count[i]!;
        continue;
      }
      const thread = samples.thread[i]!;
      const rows = this.rows.get(thread);
      if (rows) rows.push(i);
      else this.rows.set(thread, [i]);
    }
  }

  /** Whether any thread has one. */
  get any(): boolean {
    return this.rows.size > 0;
  }

  has(thread: number): boolean {
    return this.rows.has(thread);
  }

  of(thread: number): WaitTrack {
    let track = this.tracks.get(thread);
    if (!track) {
      track = trackOf(this.profile, this.rows.get(thread) ?? []);
      this.tracks.set(thread, track);
    }
    return track;
  }

  /** Those of an endpoint, by its number; -1: all. */
  ofEndpoint(thread: number, endpoint: number): WaitTrack {
    if (endpoint < 0) return this.of(thread);
    const key = `${thread} ${endpoint}`;
    let track = this.ofEndpoints.get(key);
    if (!track) {
      const { samples } = this.profile.locks ?? {};
      const rows = this.rows.get(thread) ?? [];
      track = trackOf(
        this.profile,
        rows.filter((i) => samples?.endpoint[i] === endpoint),
      );
      this.ofEndpoints.set(key, track);
    }
    return track;
  }
}

function trackOf(profile: Profile, rows: readonly number[]): WaitTrack {
  const n = rows.length;
  const track: WaitTrack = {
    n,
    from: new Float64Array(n),
    to: new Float64Array(n),
    ref: new Uint32Array(n),
    before: new Float64Array(n + 1),
  };
  const { locks } = profile;
  if (!locks) return track;
  const begins = Float64Array.from(rows, (i) => locks.samples.time[i]!);
  let last = -Infinity;
  orderOf(begins).forEach((row, at) => {
    const i = rows[row]!;
    // One that began before the last one ended says so by mistake, and would count twice.
    const from = Math.max(last, locks.samples.time[i]!);
    last = Math.max(from, locks.samples.time[i]! + locks.longest[i]!);
    track.from[at] = from;
    track.to[at] = last;
    track.ref[at] = i;
    track.before[at + 1] = track.before[at]! + (last - from);
  });
  return track;
}

/** How long a thread had waited in all by a time. */
export function waitedUntil(track: WaitTrack, time: number): number {
  const next = lowerBound(track.from, time);
  if (next === 0) return 0;
  const last = Math.min(track.to[next - 1]!, time) - track.from[next - 1]!;
  return track.before[next - 1]! + last;
}

/** Fills `out` with the part of each pixel that waits have; a wait of no length has some. */
export function coverage(track: WaitTrack, span: Span, out: Float64Array): void {
  out.fill(0);
  const each = (span.to - span.from) / out.length;
  // The first that goes on beyond the beginning.
  let at = lowerBound(track.to, span.from);
  while (at < track.n && track.from[at]! < span.to) {
    const x = Math.max(0, Math.floor((track.from[at]! - span.from) / each));
    if (x >= out.length) break;
    const end = Math.min(out.length - 1, Math.floor((track.to[at]! - span.from) / each));
    for (let on = x; on <= end; on++) {
      const begin = span.from + on * each;
      const part = (waitedUntil(track, begin + each) - waitedUntil(track, begin)) / each;
      if (part > 0 || track.to[at] === track.from[at]) out[on] = clamp(part);
    }
    // Waits that end within the last pixel are counted already.
    at = Math.max(at + 1, lowerBound(track.to, span.from + (end + 1) * each));
  }
}

/** A wait of no length is still there. */
const LEAST = 1e-9;

function clamp(part: number): number {
  return Math.max(LEAST, Math.min(1, part));
}

/** The wait at a time, or the nearest one within the slack; -1 if there is no such wait. */
export function waitAt(track: WaitTrack, time: number, slack: number): number {
  const next = lowerBound(track.from, time);
  let [nearest, distance] = [-1, slack];
  for (const at of [next - 1, next]) {
    if (at < 0 || at >= track.n) continue;
    const off = Math.max(0, track.from[at]! - time, time - track.to[at]!);
    if (off > distance) continue;
    nearest = at;
    distance = off;
  }
  return nearest;
}

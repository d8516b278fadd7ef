// What each thread did in the order of time: steps of wall time, and samples of CPU time. Made for
// a thread when it is asked for.
import type { Profile } from '../data/profile';
import { type Bar, barAt, type Bars, makeBars } from './bars';
import { orderOf, orderOfBoth } from '../data/order';
import { causesOf } from '../data/wall';
import { lowerBound } from './time';
import { Waits } from './waits';

/** The steps of one thread, by their beginnings. */
export interface Track {
  n: number;
  from: Float64Array;
  to: Float64Array;
  /** A number in `causesOf`. */
  cause: Uint8Array;
  /** A look, or, below 0, -1 - a sample. */
  ref: Int32Array;
  /** The longest step: how far back one has to look for what reaches into a time. */
  longest: number;
  /** When samples of CPU time were taken, and which. */
  cpuAt: Float64Array;
  cpuRef: Int32Array;
}

function emptyTrack(n: number, samples: number): Track {
  return {
    n,
    from: new Float64Array(n),
    to: new Float64Array(n),
    cause: new Uint8Array(n),
    ref: new Int32Array(n),
    longest: 0,
    cpuAt: new Float64Array(samples),
    cpuRef: new Int32Array(samples),
  };
}

/**
 * A look describes the past, not the future: it is stretched by at most this many of its
 * weights.
 */
const STRETCH = 1.5;
/** A step that is so far away may still be taken for what a thread did. */
export const NEAR_NS = 10e6;

export class Tracks {
  /** Waits for monitors, from events. */
  readonly waits: Waits;
  private readonly samples: Groups;
  private readonly stops: StopEnds;
  private readonly looks: Groups | null;
  private readonly tracks: (Track | undefined)[] = [];
  private readonly ofRequests: (Bars | undefined)[] = [];
  /** For every request the thread that was seen at work for it, plus 1; -1: several; 0: none. */
  private readonly threadOf: Int32Array;
  /** By request: its place among the new bars; -1 without a bar. */
  private readonly placeOf: Int32Array;

  constructor(readonly profile: Profile) {
    const threads = profile.threads.name.length;
    this.waits = new Waits(profile);
    this.stops = new StopEnds(profile);
    this.samples = new Groups(profile.samples.thread, threads);
    this.looks = profile.wall && new Groups(profile.wall.looks.thread, threads);
    this.threadOf = new Int32Array(profile.requests.time.length + 1);
    this.placeOf = new Int32Array(this.threadOf.length).fill(-1);
    for (const of of [profile.samples, ...(profile.wall ? [profile.wall.looks] : [])]) {
      for (let i = 0; i < of.request.length; i++) {
        const request = of.request[i]!;
        const known = this.threadOf[request]!;
        if (request === 0 || known < 0) continue;
        const thread = of.thread[i]! + 1;
        this.threadOf[request] = known === 0 || known === thread ? thread : -1;
      }
    }
  }

  /** Whether anything is known of a thread. */
  has(thread: number): boolean {
    return this.steps(thread) > 0 || this.waits.has(thread);
  }

  steps(thread: number): number {
    return this.samples.size(thread) + (this.looks?.size(thread) ?? 0);
  }

  /** Whether a thread's steps have been put together. */
  isReady(thread: number): boolean {
    return this.tracks[thread] !== undefined && this.ofRequests[thread] !== undefined;
  }

  of(thread: number): Track {
    return (this.tracks[thread] ??= this.make(thread));
  }

  private make(thread: number): Track {
    const { samples, wall, header } = this.profile;
    const own = this.samples.of(thread);
    const looks = this.looks?.of(thread) ?? new Uint32Array(0);
    // A sample that only counts stands for no time.
    const timed = header.unit === 'ns' ? own.length : 0;
    const ran = new Float64Array(timed);
    for (let i = 0; i < timed; i++) ran[i] = samples.time[own[i]!]! - samples.weight[own[i]!]!;
    const seen = new Float64Array(looks.length);
    for (let i = 0; i < looks.length; i++) seen[i] = wall!.looks.time[looks[i]!]!;
    const order = orderOfBoth(ran, seen);
    const stopped = causesOf(this.profile).indexOf('safepoint');
    const n = order.length;
    const track = emptyTrack(n, own.length);
    let last = -Infinity;
    for (let at = 0; at < n; at++) {
      const i = order[at]!;
      track.ref[at] = i < timed ? -1 - own[i]! : looks[i - timed]!;
      // The order is coarser than the times: places are found by searching, and must not go back.
      last = Math.max(i < timed ? ran[i]! : seen[i - timed]!, last);
      track.from[at] = last;
    }
    for (let at = 0; at < n; at++) {
      const ref = track.ref[at]!;
      const cause = ref >= 0 ? wall!.looks.wait[ref]! : 0;
      const next = at + 1 < n ? track.from[at + 1]! : Infinity;
      track.cause[at] = cause;
      track.to[at] = this.endOf(ref, next, cause === stopped);
      track.longest = Math.max(track.longest, track.to[at]! - track.from[at]!);
    }
    const times = new Float64Array(own.length);
    for (let i = 0; i < own.length; i++) times[i] = samples.time[own[i]!]!;
    orderOf(times).forEach((i, at) => {
      track.cpuAt[at] = times[i]!;
      track.cpuRef[at] = own[i]!;
    });
    return track;
  }

  private endOf(ref: number, next: number, isStopped: boolean): number {
    const { samples, wall, header } = this.profile;
    if (ref < 0) return samples.time[-1 - ref]!;
    const { looks, duration } = wall!;
    const last = looks.time[ref]! + duration[ref]!;
    if (header.exactWaits) return last;
    const one = looks.weight[ref]! / Math.max(1, looks.count[ref]!);
    const end = Math.min(next, last + STRETCH * one);
    return Math.max(last, isStopped ? Math.min(end, this.stops.endAfter(last, end)) : end);
  }

  /** The sample of a thread at a time: a look, or, below 0, -1 - a sample; null: none. */
  seenAt(thread: number, time: number): number | null {
    const track = this.of(thread);
    const at = stepAt(track, time, NEAR_NS);
    return at < 0 ? null : track.ref[at]!;
  }

  /** Requests that a thread worked for, with times. */
  requests(thread: number): Bar[] {
    const bars = this.bars(thread);
    return Array.from({ length: bars.n }, (_, i) => barAt(bars, i));
  }

  bars(thread: number): Bars {
    return (this.ofRequests[thread] ??= this.makeBars(thread));
  }

  private makeBars(thread: number): Bars {
    const { samples, wall, requests } = this.profile;
    const track = this.of(thread);
    const found: Bar[] = [];
    const { placeOf } = this;
    for (let at = 0; at < track.n; at++) {
      const ref = track.ref[at]!;
      const request = ref >= 0 ? wall!.looks.request[ref]! : samples.request[-1 - ref]!;
      if (request === 0) continue;
      const bar = found[placeOf[request]!];
      if (bar) bar.to = Math.max(bar.to, track.to[at]!);
      else {
        placeOf[request] = found.length;
        found.push({ request, from: track.from[at]!, to: track.to[at]! });
      }
    }
    for (const bar of found) {
      placeOf[bar.request] = -1;
      // A thread that works alone for a request does so all its time, with or without samples.
      const from = requests.time[bar.request - 1]!;
      const length = requests.duration[bar.request - 1]!;
      const alone = this.threadOf[bar.request] === thread + 1;
      bar.from = alone ? from : Math.max(from, bar.from);
      bar.to = alone ? from + length : Math.min(from + length, Math.max(bar.to, bar.from));
    }
    return makeBars(found);
  }

  /** Whether a thread was seen at work for a request. */
  worksFor(thread: number, request: number): boolean {
    const only = this.threadOf[request] ?? 0;
    if (only >= 0) return only === thread + 1;
    return this.bars(thread).request.includes(request);
  }
}

/** The first step that can reach to a time or beyond. */
export function firstReaching(track: Track, time: number): number {
  return lowerBound(track.from, time - track.longest);
}

/** The last step at a time, or the nearest one within the slack; -1 if there is no such step. */
export function stepAt(track: Track, time: number, slack = 0): number {
  let nearest = -1;
  let distance = slack;
  for (let at = firstReaching(track, time - slack); at < track.n; at++) {
    const [from, to] = [track.from[at]!, track.to[at]!];
    if (from > time + slack) break;
    const off = from > time ? from - time : Math.max(0, time - to);
    if (off > distance) continue;
    nearest = at;
    distance = off;
  }
  return nearest;
}

/** When safepoints that are known one by one began and ended. */
class StopEnds {
  private readonly from: Float64Array;
  private readonly to: Float64Array;

  constructor({ stops }: Profile) {
    const { time, reaching, operating, count } = stops;
    const single = Array.from(time.keys()).filter((i) => count[i] === 1);
    single.sort((a, b) => time[a]! - time[b]!);
    this.from = Float64Array.from(single, (i) => time[i]!);
    this.to = Float64Array.from(single, (i) => time[i]! + reaching[i]! + operating[i]!);
  }

  /**
   * How far the first one that ends after a time, and begins before another, reaches beyond it;
   * at most for its own length. Without any, that time.
   */
  endAfter(time: number, before: number): number {
    const at = lowerBound(this.to, time);
    const [from, to] = [this.from[at] ?? Infinity, this.to[at] ?? Infinity];
    return from < before ? Math.min(to, time + to - from) : time;
  }
}

/** Numbers of rows by the thread that they are of. */
class Groups {
  private readonly starts: Uint32Array;
  private readonly order: Uint32Array;

  constructor(thread: Uint32Array, threads: number) {
    this.starts = new Uint32Array(threads + 1);
    for (const t of thread) if (t < threads) this.starts[t + 1]! += 1;
    for (let t = 0; t < threads; t++) this.starts[t + 1]! += this.starts[t]!;
    this.order = new Uint32Array(this.starts[threads] ?? 0);
    const free = this.starts.slice();
    for (let i = 0; i < thread.length; i++) {
      const t = thread[i]!;
      if (t < threads) this.order[free[t]!++] = i;
    }
  }

  size(thread: number): number {
    return (this.starts[thread + 1] ?? 0) - (this.starts[thread] ?? 0);
  }

  of(thread: number): Uint32Array {
    return this.order.subarray(this.starts[thread], this.starts[thread + 1]);
  }
}

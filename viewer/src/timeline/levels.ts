// A thread's steps on pixels. If there are far more steps than pixels, the part of each cause in a
// bin is computed once. Then moving along the time costs as much as the screen is wide.
import type { Span } from '../data/profile';
import { wholeSpan } from '../data/wall';
import { Crowd } from './crowd';
import { lowerBound } from './time';
import { firstReaching, type Track, type Tracks } from './tracks';

/** Steps in sight that are put onto pixels one by one where bins are too coarse. */
const STEPS_MAX = 20_000;
/** Bins over the whole time, coarse to fine: each twice as many as the one before. */
const BINS = [4096, 8192, 16_384, 32_768, 65_536] as const;
/** Up to this number, bins are made with a thread's steps; finer ones are made on demand. */
const BINS_PREPARED = 16_384;
/** Bins that a pixel is made of, at least, so that neighbours have about as many. */
const PER_PIXEL = 2;
/** A bin costs this part of what a step does. */
const BIN_COST = 1 / 2;

/** By pixel: number of the cause with the largest part, plus 1; 0: none. */
export type Pixels = Uint8Array;

/** Steps to dim: those of other endpoints. */
export interface Dimming {
  /** -1: nothing is. */
  endpoint: number;
}

/** Added to the number of a cause that is stepped back. */
export const DIMMED = 128;

export class Levels {
  private readonly made = new WeakMap<Track, Map<number, Crowd>>();
  private readonly whole: Span;
  private readonly acc = new Float64Array(256);
  private readonly seen = new Uint8Array(256);

  constructor(
    readonly tracks: Tracks,
    readonly dimming: Dimming,
  ) {
    this.whole = wholeSpan(tracks.profile);
  }

  /** Fills `out` with what a thread did in a span. */
  pixels(track: Track, span: Span, out: Pixels): void {
    out.fill(0);
    const first = firstReaching(track, span.from);
    const end = lowerBound(track.from, span.to);
    const bins = this.binsFor(end - first, span, out.length);
    if (bins === 0) this.exact(track, span, first, end, out);
    else this.crowd(track, bins).pixels(span, out);
  }

  /** Whether all that is needed to draw a thread's whole time is there. */
  isReady(thread: number): boolean {
    return this.tracks.isReady(thread);
  }

  /** Makes it. */
  prepare(thread: number): void {
    this.tracks.bars(thread);
    const track = this.tracks.of(thread);
    // The finest first: the others are made of it.
    const useful = (bins: number) => bins <= BINS_PREPARED && bins * BIN_COST < track.n;
    for (const bins of BINS.filter(useful).reverse()) this.crowd(track, bins);
  }

  /** Prepares some threads; a generator, so that the page stays responsive. */
  *prepareAll(threads: readonly number[]): Generator<void, void> {
    for (const thread of threads) {
      this.prepare(thread);
      yield;
    }
  }

  /** Into how many bins the whole is divided to draw steps of a span; 0: into none. */
  private binsFor(steps: number, span: Span, pixels: number): number {
    const share = (span.to - span.from) / (this.whole.to - this.whole.from);
    // Bins are taken if they are fine enough, and fewer than steps.
    const fit = BINS.find((bins) => bins * share >= PER_PIXEL * pixels) ?? 0;
    // Bins that must be computed now are more expensive.
    const cost = fit > BINS_PREPARED ? 1 : BIN_COST;
    if (fit > 0 && fit * share * cost < steps) return fit;
    return steps > STEPS_MAX ? BINS[BINS.length - 1]! : 0;
  }

  private crowd(track: Track, bins: number): Crowd {
    let crowds = this.made.get(track);
    if (!crowds) this.made.set(track, (crowds = new Map()));
    let crowd = crowds.get(bins);
    if (!crowd) crowds.set(bins, (crowd = crowds.get(2 * bins)?.halved() ?? this.put(track, bins)));
    return crowd;
  }

  private put(track: Track, bins: number): Crowd {
    const crowd = new Crowd(this.whole, bins);
    for (let at = 0; at < track.n; at++) {
      crowd.add(this.numberOf(track, at), track.from[at]!, track.to[at]!);
    }
    return crowd;
  }

  /** Puts steps onto pixels one by one: each pixel has the number that has most of it. */
  private exact(track: Track, span: Span, first: number, end: number, out: Pixels): void {
    const { acc, seen } = this;
    const { from: froms, to: tos, cause: causes } = track;
    const isPlain = this.dimming.endpoint < 0;
    const begin = span.from;
    const scale = out.length / (span.to - span.from);
    // The pixel at work: its best number, and how many numbers have some of it.
    let [pixel, best, count] = [-1, 0, 0];
    for (let at = first; at < end; at++) {
      const from = (froms[at]! - begin) * scale;
      const to = Math.max((tos[at]! - begin) * scale, from);
      if (to < 0 || from >= out.length) continue;
      const number = isPlain ? causes[at]! + 1 : this.numberOf(track, at);
      const left = from > 0 ? Math.floor(from) : 0;
      const right = Math.min(out.length - 1, Math.floor(to));
      // Mostly one pixel; else the first one, those between, and the last one.
      for (let on = left; ; on = right) {
        if (on !== pixel) {
          if (best !== 0) out[pixel] = best;
          while (count > 0) acc[seen[--count]!] = 0;
          pixel = on;
          best = out[on]!;
        }
        const part = Math.min(to, on + 1) - Math.max(from, on);
        if (acc[number] === 0) seen[count++] = number;
        acc[number]! += Math.max(part, 1e-9);
        if (best === 0 || acc[number]! > acc[best]!) best = number;
        if (on === right) break;
        if (right > left + 1) out.fill(number, left + 1, right);
        if (to === right) break;
      }
    }
    if (best !== 0) out[pixel] = best;
    while (count > 0) acc[seen[--count]!] = 0;
  }

  private numberOf(track: Track, at: number): number {
    const number = track.cause[at]! + 1;
    const { endpoint } = this.dimming;
    if (endpoint < 0) return number;
    const { samples, wall } = this.tracks.profile;
    const ref = track.ref[at]!;
    const own = ref >= 0 ? wall!.looks.endpoint[ref] : samples.endpoint[-1 - ref];
    return own === endpoint ? number : number + DIMMED;
  }
}

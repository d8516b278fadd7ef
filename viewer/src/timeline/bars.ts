// The requests that a thread worked for, as bars: which, from when, to when. A crowded lane has far
// more of them than pixels, so the next one that can be seen is found by searching. Pure.
import type { Span } from '../data/profile';
import { orderOf } from '../data/order';
import { lowerBound } from './time';

/** The time for which a thread works for a request. */
export interface Bar {
  request: number;
  from: number;
  to: number;
}

/** Bars by their beginnings. */
export interface Bars {
  n: number;
  request: Uint32Array;
  from: Float64Array;
  to: Float64Array;
  /** Where the bar that ends last of all so far ends: it never goes back. */
  reach: Float64Array;
}

export function makeBars(list: readonly Bar[]): Bars {
  const n = list.length;
  const begins = new Float64Array(n);
  for (let i = 0; i < n; i++) begins[i] = list[i]!.from;
  const bars: Bars = {
    n,
    request: new Uint32Array(n),
    from: new Float64Array(n),
    to: new Float64Array(n),
    reach: new Float64Array(n),
  };
  let reach = -Infinity;
  orderOf(begins).forEach((i, at) => {
    const { request, from, to } = list[i]!;
    reach = Math.max(reach, to);
    bars.request[at] = request;
    bars.from[at] = from;
    bars.to[at] = to;
    bars.reach[at] = reach;
  });
  return bars;
}

export function barAt(bars: Bars, i: number): Bar {
  return { request: bars.request[i]!, from: bars.from[i]!, to: bars.to[i]! };
}

/** The first bar from `i` on that ends after a time; `n` if no bar does. */
export function nextBeyond({ reach, n }: Bars, i: number, time: number): number {
  // Gallop: it is mostly near.
  let [low, high, step] = [i, i, 1];
  while (high < n && reach[high]! <= time) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = Math.min(high, n);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reach[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The request of the last bar at a time or within the slack; 0: no bar. */
export function requestAt(bars: Bars, time: number, slack: number): number {
  let found = 0;
  for (let i = lowerBound(bars.reach, time - slack); i < bars.n; i++) {
    if (bars.from[i]! > time + slack) break;
    if (bars.to[i]! >= time - slack) found = bars.request[i]!;
  }
  return found;
}

/** Those bars whose request is marked. */
export function markedBars(bars: Bars, marks: Uint8Array): Bars {
  const list: Bar[] = [];
  for (let i = 0; i < bars.n; i++) if (marks[bars.request[i]!] === 1) list.push(barAt(bars, i));
  return makeBars(list);
}

/**
 * Pixels of bars: calls back for runs of pixels that do not lie within the run before. If there is
 * room, a gap is left before the next bar.
 */
export function eachRun(
  bars: Bars,
  span: Span,
  width: number,
  paint: (left: number, right: number) => void,
): void {
  const scale = width / (span.to - span.from);
  let i = nextBeyond(bars, 0, span.from);
  // The first pixel that nothing has been on, and the first that is not coloured: it may be a gap.
  let [end, free] = [0, 0];
  while (i < bars.n && bars.from[i]! < span.to && end < width) {
    const from = (bars.from[i]! - span.from) * scale;
    const to = Math.min(width, (bars.to[i]! - span.from) * scale);
    const left = Math.min(width - 1, Math.max(free, Math.floor(from)));
    const right = Math.max(left + 1, end + 1, Math.floor(to));
    free = right - left > GAP_FROM_PX ? right - 1 : right;
    paint(left, free);
    end = right;
    // Bars that end earlier are inside of this one, or have no pixel of their own.
    i = nextBeyond(bars, i + 1, Math.max(bars.to[i]!, span.from + right / scale));
  }
}

/** Bars of more pixels leave a gap. */
const GAP_FROM_PX = 2;

// Places on a line of time: round ticks, and moving and zooming of what is in sight.
import type { Span } from '../data/profile';

/** Pixels between two ticks at least. */
const TICK_PX = 90;
/** Minimum of the visible range. */
export const SIGHT_MIN_NS = 1000;

/** Round times in a span, not closer than can be read. */
export function ticksOf(span: Span, width: number): number[] {
  const length = span.to - span.from;
  const most = Math.max(1, Math.floor(width / TICK_PX));
  let step = 10 ** Math.floor(Math.log10(Math.max(1, length / most)));
  while (length / step > most)
    step *= length / (step * 2) <= most ? 2 : length / (step * 5) <= most ? 5 : 10;
  const ticks: number[] = [];
  for (
    let at = Math.ceil(span.from / step) * step;
    at <= span.to && ticks.length < 200;
    at += step
  ) {
    ticks.push(at);
  }
  return ticks;
}

/** A part of the whole, moved inside of it if it sticks out. */
export function inside(span: Span, whole: Span): Span {
  const length = Math.min(Math.max(SIGHT_MIN_NS, span.to - span.from), whole.to - whole.from);
  const from = Math.max(whole.from, Math.min(whole.to - length, span.from));
  return { from, to: from + length };
}

/** Zooms by a factor about a time that stays where it is. */
export function zoomed(span: Span, factor: number, about: number, whole: Span): Span {
  const length = Math.max(SIGHT_MIN_NS, (span.to - span.from) * factor);
  const share = (about - span.from) / (span.to - span.from || 1);
  const from = about - share * length;
  return inside({ from, to: from + length }, whole);
}

export function moved(span: Span, by: number, whole: Span): Span {
  return inside({ from: span.from + by, to: span.to + by }, whole);
}

/** A span with a margin on both sides, as a part of its length. */
export function around(span: Span, margin: number, whole: Span): Span {
  const more = (span.to - span.from) * margin;
  return inside({ from: span.from - more, to: span.to + more }, whole);
}

/** The first place whose value is not below `value`. */
export function lowerBound(values: Float64Array, value: number): number {
  return between(values, value, 0, values.length);
}

/** The same from a place on; it is mostly near. */
export function nextFrom(values: Float64Array, from: number, value: number): number {
  let [low, high, step] = [from, from, 1];
  while (high < values.length && values[high]! < value) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  return between(values, value, low, Math.min(high, values.length));
}

function between(values: Float64Array, value: number, from: number, to: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

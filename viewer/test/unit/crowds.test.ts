// Crowded lanes of the timeline: searches and sums of bins give the same as a loop over all steps.
import { describe, expect, it } from 'vitest';
import type { Span } from '../../src/data/profile';
import { emptyStrip, spread } from '../../src/data/wall';
import { type Bar, eachRun, makeBars, markedBars, requestAt } from '../../src/timeline/bars';
import { Crowd } from '../../src/timeline/crowd';
import { Levels } from '../../src/timeline/levels';
import { orderOf, orderOfBoth } from '../../src/data/order';
import { Sums } from '../../src/timeline/sums';
import { type Track, Tracks } from '../../src/timeline/tracks';
import { randomOf } from './art';
import { lowerBound, nextFrom } from '../../src/timeline/time';
import { type LookRow, wallProfile } from './walls';

/** Bars that overlap and lie in each other, in any order. */
function randomBars(seed: number, count: number, longest: number): Bar[] {
  const random = randomOf(seed);
  return Array.from({ length: count }, (_, i) => {
    const from = random(10_000);
    const length = random(10) === 0 ? random(longest) : random(20);
    return { request: i + 1, from, to: from + length };
  });
}

const SPANS: readonly Span[] = [
  { from: 0, to: 10_000 },
  { from: 2_000, to: 7_000 },
  { from: 4_321, to: 4_400 },
];

describe('the order of times', () => {
  const sorted = (times: readonly number[]) =>
    times.map((time, i) => [time, i] as const).sort((a, b) => a[0] - b[0] || a[1] - b[1]);

  it('is found of times nearly in order, in none, and of two lists together', () => {
    const random = randomOf(3);
    const nearly = Array.from({ length: 3000 }, (_, i) => i * 10 + random(45));
    const none = Array.from({ length: 3000 }, () => random(20_000));
    const backwards = Array.from({ length: 3000 }, (_, i) => 3000 - i);
    for (const times of [nearly, none, backwards, [], [5], [2, 2, 1]]) {
      const order = orderOf(Float64Array.from(times));
      expect([...order]).toEqual(sorted(times).map(([, i]) => i));
    }
    const both = orderOfBoth(Float64Array.from(nearly), Float64Array.from(none));
    expect([...both]).toEqual(sorted([...nearly, ...none]).map(([, i]) => i));
  });
});

describe('bars of requests', () => {
  it('are on all pixels that they have, in no more runs than there are pixels', () => {
    for (const [seed, count, longest] of [
      [1, 5, 900],
      [2, 200, 900],
      [3, 5000, 900],
      [4, 8000, 1],
    ] as const) {
      const list = randomBars(seed, count, longest);
      const bars = makeBars(list);
      for (const span of SPANS) {
        const width = 300;
        const painted = new Uint8Array(width);
        let runs = 0;
        eachRun(bars, span, width, (left, right) => {
          expect(left).toBeGreaterThanOrEqual(0);
          expect(right).toBeLessThanOrEqual(width);
          expect(right).toBeGreaterThan(left);
          painted.fill(1, left, right);
          runs++;
        });
        expect(runs).toBeLessThanOrEqual(width);
        const scale = width / (span.to - span.from);
        const touched = new Uint8Array(width + 1);
        for (const { from, to } of list) {
          if (to <= span.from || from >= span.to) continue;
          const left = Math.max(0, Math.floor((from - span.from) * scale));
          const right = Math.min(width - 1, Math.floor((to - span.from) * scale));
          touched.fill(1, left, right + 1);
          // The last pixel of a bar may be the gap to the next one.
          for (let x = left; x < right - 1; x++) expect(painted[x], `${x}`).toBe(1);
          // A short one may lie in the end of a long one, where that has its gap.
          const near = painted.subarray(Math.max(0, left - 2), left + 1);
          expect(near.includes(1), `${left}`).toBe(true);
        }
        for (let x = 0; x < width; x++) if (painted[x] === 1) expect(touched[x], `${x}`).toBe(1);
      }
    }
  });

  it('leave a gap where there is room for one', () => {
    const bars = makeBars([
      { request: 1, from: 0, to: 40 },
      { request: 2, from: 40, to: 80 },
      { request: 3, from: 80, to: 81 },
    ]);
    const runs: [number, number][] = [];
    eachRun(bars, { from: 0, to: 100 }, 100, (left, right) => runs.push([left, right]));
    expect(runs).toEqual([
      [0, 39],
      [40, 79],
      [80, 81],
    ]);
  });

  it('are found by a time, and by a mark', () => {
    const list = randomBars(4, 3000, 400);
    const bars = makeBars(list);
    const sorted = [...list].sort((a, b) => a.from - b.from);
    const random = randomOf(8);
    for (let i = 0; i < 300; i++) {
      const [time, slack] = [random(10_500), random(4)];
      const at = sorted.filter(({ from, to }) => from - slack <= time && to + slack >= time);
      expect(requestAt(bars, time, slack)).toBe(at[at.length - 1]?.request ?? 0);
    }
    const marks = new Uint8Array(3001);
    marks[7] = marks[2999] = 1;
    expect([...markedBars(bars, marks).request].sort((a, b) => a - b)).toEqual([7, 2999]);
  });
});

/** The main cause of each pixel by the parts of all steps; -1 if two are about equal. */
function mostOf(track: Track, span: Span, pixels: number): number[] {
  const each = (span.to - span.from) / pixels;
  return Array.from({ length: pixels }, (_, x) => {
    const [from, to] = [span.from + x * each, span.from + (x + 1) * each];
    const sums = new Float64Array(256);
    for (let at = 0; at < track.n; at++) {
      const part = Math.min(to, track.to[at]!) - Math.max(from, track.from[at]!);
      if (part > 0) sums[track.cause[at]! + 1]! += part;
    }
    const [first, second] = [...sums].sort((a, b) => b - a) as [number, number];
    if (first === 0) return 0;
    return first - second < first * 1e-3 ? -1 : sums.indexOf(first);
  });
}

/** A thread that is looked at far more often than a lane has pixels. */
function crowded(seed: number, steps: number): { levels: Levels; track: Track } {
  const random = randomOf(seed);
  const looks: LookRow[] = [];
  let time = 0;
  for (let i = 0; i < steps; i++) {
    const cause = ['park', 'socket', 'sleep'][random(3)]!;
    looks.push({ thread: 0, time, cause, weight: 20 + random(60) });
    // Sometimes there is no sample for a while.
    time += random(500) === 0 ? 5000 : 20 + random(100);
  }
  const profile = wallProfile({ threads: ['a'], looks, durationNs: 8192 * Math.ceil(time / 8192) });
  const levels = new Levels(new Tracks(profile), { endpoint: -1 });
  return { levels, track: levels.tracks.of(0) };
}

describe('a crowd of steps', () => {
  it('is put onto pixels by what has most of each', () => {
    const { levels, track } = crowded(5, 9000);
    const whole = { from: 0, to: levels.tracks.profile.header.info.durationNs };
    const quarter = { from: whole.to / 4, to: whole.to / 2 };
    for (const [span, pixels] of [
      [whole, 128],
      [whole, 512],
      [quarter, 256],
    ] as const) {
      const out = new Uint8Array(pixels);
      levels.pixels(track, span, out);
      mostOf(track, span, pixels).forEach((expected, x) => {
        if (expected >= 0) expect(out[x], `${pixels} pixels, at ${x}`).toBe(expected);
      });
    }
  });

  it('keeps what takes no time, and leaves out what is outside', () => {
    const crowd = new Crowd({ from: 0, to: 100 }, 10);
    crowd.add(3, 55, 55);
    crowd.add(4, -50, -10);
    crowd.add(5, 95, 300);
    crowd.add(6, 200, 300);
    const out = new Uint8Array(10);
    crowd.pixels({ from: 0, to: 100 }, out);
    expect([...out]).toEqual([0, 0, 0, 0, 0, 3, 0, 0, 0, 5]);
  });
});

describe('a crowd in half as many bins', () => {
  it('has what those have that it is made of', () => {
    const random = randomOf(11);
    const whole = { from: 100, to: 1124 };
    const [fine, coarse] = [new Crowd(whole, 512), new Crowd(whole, 128)];
    for (let i = 0; i < 400; i++) {
      const from = random(1200);
      const [number, to] = [1 + random(5), from + random(60)];
      fine.add(number, from, to);
      coarse.add(number, from, to);
    }
    const halved = fine.halved().halved();
    for (const span of [whole, { from: 50, to: 400 }, { from: 700, to: 1300 }]) {
      const [out, wanted] = [new Uint8Array(40), new Uint8Array(40)];
      halved.pixels(span, out);
      coarse.pixels(span, wanted);
      const same = out.filter((number, x) => number === wanted[x]).length;
      // Two that have about as much of a pixel may change places by rounding.
      expect(same).toBeGreaterThanOrEqual(39);
      expect(Array.from(out, Boolean)).toEqual(Array.from(wanted, Boolean));
    }
  });
});

describe('searching from a place on', () => {
  it('finds what searching all finds', () => {
    const random = randomOf(12);
    const values = Float64Array.from({ length: 300 }, () => random(200)).sort();
    for (let i = 0; i < 500; i++) {
      const [from, value] = [random(300), random(220) - 10];
      expect(nextFrom(values, from, value)).toBe(Math.max(from, lowerBound(values, value)));
    }
    expect(nextFrom(values, 300, 5)).toBe(300);
  });
});

describe('threads at something', () => {
  it('are counted by pixel as if each step were spread over its pixels', () => {
    const { track } = crowded(6, 400);
    const sums = new Sums();
    const end = track.to[track.n - 1]!;
    for (const [from, to, width] of [
      [0, end, 50],
      [end / 3, end / 2, 200],
      [end / 2, end / 2 + 30, 70],
      [0, end, 50],
    ] as const) {
      const span = { from, to };
      sums.begin(width, 4);
      sums.addSteps(track, span);
      sums.addSteps(track, span);
      const found = sums.end();
      const strip = emptyStrip(span, 4, width);
      const pixel = (to - from) / width;
      for (let at = 0; at < track.n; at++) {
        const length = track.to[at]! - track.from[at]!;
        spread(strip, track.cause[at]!, track.from[at]!, track.to[at]!, (2 * length) / pixel);
      }
      strip.values.forEach((values, cause) => {
        for (let x = 0; x < width; x++) expect(found[cause]![x]).toBeCloseTo(values[x]!, 6);
      });
      // Where nothing was there is nothing, not nearly nothing.
      expect(found.every((row) => row.every((value) => value === 0 || value > 1e-6))).toBe(true);
    }
  });
});

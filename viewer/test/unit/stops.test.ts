// Threads that are late for safepoints.

import { describe, expect, it } from 'vitest';
import { countsOf, lastFor, operationsOf } from '../../src/data/stops';
import { profileOf } from './art';

describe('the last one of a safepoint', () => {
  const all = profileOf('main;a 1');
  const late = {
    ...all.late,
    time: Float64Array.of(1, 1, 1, 2),
    duration: Float64Array.of(90, 30, 40, 70),
    held: Float64Array.of(80, 10, 20, 70),
    stop: Uint32Array.of(1, 1, 1, 2),
    last: Uint8Array.of(0, 1, 1, 0),
  };

  it('is the last one, not the one with the longest delay', () => {
    expect(lastFor({ ...all, late }, 1)).toBe(2);
  });

  it('is absent if it is unknown', () => {
    expect(lastFor({ ...all, late }, 2)).toBeUndefined();
    expect(lastFor({ ...all, late }, 3)).toBeUndefined();
  });
});

describe('safepoints in a range of time', () => {
  const all = profileOf('main;a 1');
  const stops = {
    ...all.stops,
    time: Float64Array.of(0, 1000),
    operation: Uint32Array.of(1, 1),
    reaching: Float64Array.of(100, 0),
    operating: Float64Array.of(300, 900),
    count: Uint32Array.of(1, 3),
    known: Uint8Array.of(1, 0),
  };
  const profile = { ...all, stops };

  it('are counted there, recorded and only counted', () => {
    expect(countsOf(profile, null)).toEqual([1, 3]);
    expect(countsOf(profile, { from: 1000, to: 1300 })).toEqual([0, 1]);
  });

  it('that were only counted have a row of their own', () => {
    const rows = operationsOf(profile, null);
    expect(rows.map(({ operation, count }) => [operation, count])).toEqual([
      [-1, 3],
      [1, 1],
    ]);
  });

  it('have a longest one of the range', () => {
    expect(operationsOf(profile, null).at(-1)!.longest).toBe(400);
    const [row] = operationsOf(profile, { from: 250, to: 500 });
    expect([row!.operating, row!.longest]).toEqual([150, 150]);
  });
});

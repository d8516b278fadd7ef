// Requests and threads affected by safepoints.

import { describe, expect, it } from 'vitest';
import { payersOf, payingThreads } from '../../src/data/payers';
import { WHOLE } from '../../src/data/measure';
import { profileOf } from './art';
import { wallProfile } from './walls';

describe('requests that stood still', () => {
  const all = profileOf('main;a 1');
  const no = new Uint32Array(4);
  const profile = {
    ...all,
    header: { ...all.header, endpoints: ['GET /a', 'GET /b'] },
    stops: {
      ...all.stops,
      // The first two overlap; the last ones have no known time: a sum, and one only counted.
      time: Float64Array.of(100, 110, 200, 0, 0),
      reaching: Float64Array.of(10, 10, 5, 900, 0),
      operating: Float64Array.of(10, 10, 5, 900, 900),
      count: Uint32Array.of(1, 1, 1, 9, 1),
      known: Uint8Array.of(1, 1, 1, 1, 0),
    },
    requests: {
      ...all.requests,
      // Before all; in the first pair from its middle on; over everything, three times; between.
      time: Float64Array.of(0, 115, 90, 130),
      duration: Float64Array.of(50, 60, 200, 70),
      endpoint: Uint32Array.of(1, 1, 2, 1),
      count: Uint32Array.of(1, 1, 3, 1),
      trace: [no, no, no, no] as typeof all.requests.trace,
    },
  };

  it('lose what they share with safepoints, each time once', () => {
    expect(payersOf(profile, null)).toEqual([
      { endpoint: 2, requests: 3, stopped: 3, total: 600, lost: 120, most: 40 },
      { endpoint: 1, requests: 3, stopped: 1, total: 180, lost: 15, most: 15 },
    ]);
  });

  it('are those of the part of the time that is chosen', () => {
    expect(payersOf(profile, { from: 0, to: 60 })).toEqual([]);
    expect(payersOf(profile, { from: 0, to: 95 }).map((row) => row.endpoint)).toEqual([2]);
  });

  it('are none without safepoints', () => {
    expect(payersOf({ ...profile, stops: all.stops }, null)).toEqual([]);
  });
});

describe('threads at safepoints', () => {
  it('are told by group, with all their time', () => {
    const looks = [
      { thread: 0, time: 0, cause: 'safepoint', weight: 10 },
      { thread: 1, time: 0, cause: 'idle-pool', weight: 30 },
      { thread: 2, time: 0, cause: 'safepoint', weight: 20 },
      { thread: 3, time: 0, cause: 'park', weight: 70 },
    ];
    const profile = wallProfile({ threads: ['w-1', 'w-2', 'main', 'x'], looks });
    const filter = { ...WHOLE, threads: new Uint8Array(4).fill(1), endpoint: null };
    expect(payingThreads(profile, filter, [5, 5, 7, 8])).toEqual([
      { key: 7, lost: 20, total: 20 },
      { key: 5, lost: 10, total: 40 },
    ]);
    const none = wallProfile({ threads: ['w-1'], looks: [{ thread: 0, time: 0, cause: 'park' }] });
    expect(payingThreads(none, { ...filter, threads: Uint8Array.of(1) }, [0])).toEqual([]);
  });
});

// Threads that are late for safepoints.

import { describe, expect, it } from 'vitest';
import { lastFor } from '../../src/data/stops';
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

import { describe, expect, it } from 'vitest';
import { allocatedStrip, classRows } from '../../src/data/allocations';
import { size, weight } from '../../src/data/format';
import { measured, possible, textOf, timeOf, WHOLE } from '../../src/data/measure';
import type { Profile } from '../../src/data/profile';
import { ALL, entriesOf, recordingOf } from './art';

/** Three samples of two classes, the last one for an endpoint; names are those of the art. */
function profile(): Profile {
  const allocations = {
    samples: entriesOf({
      time: [0, 1e6, 2e6],
      node: [1, 1, 2],
      weight: [1000, 500, 800],
      endpoint: [0, 0, 1],
    }),
    class: Uint32Array.of(0, 1, 0),
    objects: Float64Array.of(10, 1, 8),
  };
  const allocated = {
    bytes: 2300,
    samples: 3,
    intervalBytes: 1024,
    rate: 0,
    lost: 0,
    lostBytes: 0,
  };
  return recordingOf(4e6, { allocations }, { endpoints: ['GET /a'], allocated });
}

describe('what was allocated', () => {
  it('is measured in bytes, of all, of an endpoint, of a part of the time', () => {
    const shown = measured(profile(), { time: 'alloc', endpoint: null });
    expect([...shown.samples.weight]).toEqual([1000, 500, 800]);
    expect(shown.header.unit).toBe('bytes');
    const one = measured(profile(), { time: 'alloc', endpoint: 'GET /a' });
    expect([...one.samples.weight]).toEqual([800]);
    const during = { from: 1e6, to: 2e6 };
    const part = measured(profile(), { time: 'alloc', endpoint: null }, { ...WHOLE, during });
    expect([...part.samples.weight]).toEqual([500]);
  });

  it('is possible where it was recorded only', () => {
    const { header } = profile();
    const wanted = { time: timeOf('alloc'), endpoint: null };
    expect(textOf(possible(header, wanted).time)).toBe('alloc');
    expect(possible({ ...header, allocated: null }, wanted).time).toBe('cpu');
    expect(measured({ ...profile(), allocations: null }, wanted).samples.node.length).toBe(0);
  });

  it('is what a recording without samples of time shows first', () => {
    const { header } = profile();
    const wanted = { time: timeOf('cpu'), endpoint: null };
    const none = { ...header, samples: 0, wall: null };
    expect(possible(none, wanted).time).toBe('alloc');
    expect(possible({ ...none, allocated: null }, wanted).time).toBe('cpu');
    expect(possible({ ...none, samples: 1 }, wanted).time).toBe('cpu');
  });

  it('has rows by class, the most bytes first, each as certain as its objects are small', () => {
    const rows = classRows(profile(), ALL);
    expect(
      rows.map(({ name, bytes, objects, samples }) => [name, bytes, objects, samples]),
    ).toEqual([
      [0, 1800, 18, 2],
      [1, 500, 1, 1],
    ]);
    // w (w - s) each: 1000 * 900 + 800 * 700; an object that stands for itself has no error.
    expect(rows[0]!.error).toBeCloseTo(Math.sqrt(1_460_000));
    expect(rows[1]!.error).toBe(0);
    const one = classRows(profile(), { ...ALL, endpoint: 'GET /a' });
    expect(one.map(({ bytes }) => bytes)).toEqual([800]);
    expect(classRows({ ...profile(), allocations: null }, ALL)).toEqual([]);
  });

  it('is spread over the time when it was', () => {
    const { values } = allocatedStrip(profile(), ALL, 4);
    expect([...values[0]!]).toEqual([1000, 500, 800, 0]);
  });
});

describe('numbers of bytes', () => {
  it('have three digits that matter', () => {
    const shown = [0, 1, 1023, 1024, 65_536, 1.5 * 2 ** 20, 2 ** 30, 5000 * 2 ** 40].map(size);
    expect(shown).toEqual([
      '0 bytes',
      '1 byte',
      '1,023 bytes',
      '1.00\u00a0KiB',
      '64.0\u00a0KiB',
      '1.50\u00a0MiB',
      '1.00\u00a0GiB',
      '5000\u00a0TiB',
    ]);
    expect(weight(2048, 'bytes')).toBe('2.00\u00a0KiB');
  });
});

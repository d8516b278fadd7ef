import { describe, expect, it } from 'vitest';
import { aliveRows } from '../../src/data/alive';
import { measured, possible, textOf, timeOf } from '../../src/data/measure';
import type { Profile } from '../../src/data/profile';
import { ALL, entriesOf, recordingOf } from './art';

/**
 * Two survivors, of the first and the last third, and one object not yet seen by a GC. Objects are
 * followed from `fromNs` on.
 */
function profile(fromNs = 0): Profile {
  const alive = {
    samples: entriesOf({ time: [fromNs, 29e6, 29e6], node: [1, 2, 2], weight: [1000, 500, 800] }),
    class: Uint32Array.of(0, 0, 1),
    objects: Float64Array.of(10, 1, 8),
    age: Float64Array.of(30e6, 1e6, 1e6),
    collections: Uint32Array.of(7, 1, 0),
  };
  const sums = { bytes: 1500, young: 800, intervalBytes: 1024, oneOf: 1, lost: 0 };
  const facts = { ...sums, fromNs, toNs: 30e6 };
  return recordingOf(30e6, { alive }, { alive: facts });
}

describe('what is alive', () => {
  it('is measured in bytes of what has survived', () => {
    const wanted = { time: timeOf('live'), endpoint: null };
    const shown = measured(profile(), wanted);
    expect([...shown.samples.weight]).toEqual([1000, 500]);
    expect(shown.header.unit).toBe('bytes');
    const { header } = profile();
    expect(textOf(possible(header, wanted).time)).toBe('live');
    expect(possible({ ...header, alive: null }, wanted).time).toBe('cpu');
    expect(measured({ ...profile(), alive: null }, wanted).samples.node.length).toBe(0);
  });

  it('has rows by class with ages, and what is young beside', () => {
    const rows = aliveRows(profile(), ALL);
    expect(rows.map(({ name, bytes, objects, young }) => [name, bytes, objects, young])).toEqual([
      [0, 1500, 11, 0],
      [1, 0, 0, 800],
    ]);
    expect(rows[0]!.parts).toEqual([1000, 0, 500]);
    expect(rows[0]!.oldest).toBe(30e6);
    expect(rows[0]!.error).toBeCloseTo(Math.sqrt(900_000));
    expect(aliveRows({ ...profile(), alive: null }, ALL)).toEqual([]);
  });

  it('has thirds of the time in which objects were followed', () => {
    // Twenty milliseconds are the last third of the recording, and the first of these.
    expect(aliveRows(profile(20e6), ALL)[0]!.parts).toEqual([1000, 0, 500]);
    expect(aliveRows(profile(28e6), ALL)[0]!.parts).toEqual([1000, 500, 0]);
  });
});

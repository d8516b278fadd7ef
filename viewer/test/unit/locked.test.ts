import { describe, expect, it } from 'vitest';
import { lockRows, lockStrip } from '../../src/data/locked';
import { measured, noSamples, possible, textOf, timeOf, WHOLE } from '../../src/data/measure';
import type { Profile } from '../../src/data/profile';
import type { WallFilter } from '../../src/data/wall';
import { profileOf } from './art';

/** Three waits for locks of two classes, the last one for an endpoint; names are those of the art. */
function profile(): Profile {
  const cpu = profileOf('a.A.x  a.A.y');
  const samples = noSamples(3);
  samples.time.set([0, 1e6, 2e6]);
  samples.node.set([1, 1, 2]);
  samples.weight.set([2e6, 5e5, 1e6]);
  samples.count.fill(1);
  samples.choices.set([4294967295, 1, 4]);
  samples.endpoint.set([0, 0, 1]);
  const locks = {
    samples,
    class: Uint32Array.of(0, 1, 0),
    waits: Float64Array.of(1, 10, 2),
    longest: Float64Array.of(2e6, 5e4, 5e5),
    owner: Uint32Array.of(1, 0, 2),
    look: Uint8Array.of(0, 0, 1),
  };
  const header = {
    ...cpu.header,
    info: { ...cpu.header.info, durationNs: 4e6 },
    endpoints: ['GET /a'],
    locked: { intervalNs: 1e6, waits: 13, blockedNs: 3e6, lost: 0, lostNs: 0 },
  };
  return { ...cpu, header, locks };
}

const all: WallFilter = {
  threads: Uint8Array.of(1, 1),
  endpoint: null,
  idle: false,
  during: null,
  request: 0,
};

describe('time in locks', () => {
  it('is measured of all, of an endpoint, of a part of the time', () => {
    const shown = measured(profile(), { time: 'locks', endpoint: null });
    expect([...shown.samples.weight]).toEqual([2e6, 5e5, 1e6]);
    expect(shown.header.unit).toBe('ns');
    const one = measured(profile(), { time: 'locks', endpoint: 'GET /a' });
    expect([...one.samples.weight]).toEqual([1e6]);
    const during = { from: 1e6, to: 2e6 };
    const part = measured(profile(), { time: 'locks', endpoint: null }, { ...WHOLE, during });
    expect([...part.samples.weight]).toEqual([5e5]);
  });

  it('is possible where it was recorded only', () => {
    const { header } = profile();
    const wanted = { time: timeOf('locks'), endpoint: null };
    expect(textOf(possible(header, wanted).time)).toBe('locks');
    expect(possible({ ...header, locked: null }, wanted).time).toBe('cpu');
    expect(measured({ ...profile(), locks: null }, wanted).samples.node.length).toBe(0);
  });

  it('has rows by class, the most time first, with who had the locks', () => {
    const rows = lockRows(profile(), all);
    expect(rows.map(({ name, ns, waits, longest }) => [name, ns, waits, longest])).toEqual([
      [0, 3e6, 3, 2e6],
      [1, 5e5, 10, 5e4],
    ]);
    expect(rows.map(({ owner, ownerNs }) => [owner, ownerNs])).toEqual([
      [0, 2e6],
      [-1, 0],
    ]);
    // What is told exactly adds nothing.
    expect(rows[0]!.error).toBeCloseTo(5e5, -2);
    expect(rows[1]!.error).toBeCloseTo(5e5);
    const one = lockRows(profile(), { ...all, endpoint: 'GET /a' });
    expect(one.map(({ ns }) => ns)).toEqual([1e6]);
    expect(lockRows({ ...profile(), locks: null }, all)).toEqual([]);
  });

  it('is spread over the time that it lasted', () => {
    const { values } = lockStrip(profile(), all, 4);
    expect([...values[0]!]).toEqual([1e6, 1.5e6, 1e6, 0]);
  });
});

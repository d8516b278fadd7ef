import { describe, expect, it } from 'vitest';
import { heldRows } from '../../src/data/held';
import { lockRows, lockStrip } from '../../src/data/locked';
import { measured, possible, textOf, timeOf, WHOLE } from '../../src/data/measure';
import type { Profile } from '../../src/data/profile';
import { ALL, entriesOf, recordingOf } from './art';

/** Three waits for locks of two classes, the last one for an endpoint; names are those of the art. */
function profile(): Profile {
  const samples = entriesOf({
    time: [0, 1e6, 2e6],
    node: [1, 1, 2],
    weight: [2e6, 5e5, 1e6],
    endpoint: [0, 0, 1],
  });
  samples.choices.set([4294967295, 1, 4]);
  const locks = {
    samples,
    class: Uint32Array.of(0, 1, 0),
    waits: Float64Array.of(1, 10, 2),
    longest: Float64Array.of(2e6, 5e4, 5e5),
    duration: Float64Array.of(2e6, 5e4, 5e5),
    owner: Uint32Array.of(1, 0, 2),
    look: Uint8Array.of(0, 0, 1),
  };
  const locked = { intervalNs: 1e6, waits: 13, blockedNs: 3e6, lost: 0, lostNs: 0 };
  return recordingOf(4e6, { locks }, { endpoints: ['GET /a'], locked });
}

describe('time in locks', () => {
  it('is measured of all, of an endpoint, of a part of the time', () => {
    const shown = measured(profile(), { time: 'locks', endpoint: null });
    expect([...shown.samples.weight]).toEqual([2e6, 5e5, 1e6]);
    expect(shown.header.unit).toBe('ns');
    const one = measured(profile(), { time: 'locks', endpoint: 'GET /a' });
    expect([...one.samples.weight]).toEqual([1e6]);
    const during = { from: 1e6, to: 2e6 };
    const part = measured(profile(), { time: 'locks', endpoint: null }, { ...WHOLE, during });
    // The second half of the first wait, and the second one.
    expect([...part.samples.weight]).toEqual([1e6, 5e5]);
  });

  it('is possible where it was recorded only', () => {
    const { header } = profile();
    const wanted = { time: timeOf('locks'), endpoint: null };
    expect(textOf(possible(header, wanted).time)).toBe('locks');
    expect(possible({ ...header, locked: null }, wanted).time).toBe('cpu');
    expect(measured({ ...profile(), locks: null }, wanted).samples.node.length).toBe(0);
  });

  it('has rows by class, the most time first, with holders', () => {
    const rows = lockRows(profile(), ALL);
    expect(rows.map(({ name, ns, waits, longest }) => [name, ns, waits, longest])).toEqual([
      [0, 3e6, 3, 2e6],
      [1, 5e5, 10, 5e4],
    ]);
    expect(rows.map(({ owner, ownerNs }) => [owner, ownerNs])).toEqual([
      [0, 2e6],
      [-1, 0],
    ]);
    // Exact values have no error.
    expect(rows[0]!.error).toBeCloseTo(5e5, -2);
    expect(rows[1]!.error).toBeCloseTo(5e5);
    const one = lockRows(profile(), { ...ALL, endpoint: 'GET /a' });
    expect(one.map(({ ns }) => ns)).toEqual([1e6]);
    expect(lockRows({ ...profile(), locks: null }, ALL)).toEqual([]);
  });

  it('is spread over the time that it lasted', () => {
    const { values } = lockStrip(profile(), ALL, 4);
    expect([...values[0]!]).toEqual([1e6, 1.5e6, 1e6, 0]);
  });
});

describe('owners of monitors', () => {
  const held = {
    time: Float64Array.of(0, 1e6, 2e6, 3e6),
    duration: Float64Array.of(2e6, 1e6, 5e5, 1e6),
    class: Uint32Array.of(0, 0, 1, 0),
    ns: Float64Array.of(2e6, 1e6, 5e5, 1e6),
    choices: Uint32Array.of(4, 1, 1, 1),
    owner: Uint32Array.of(1, 2, 0, 1),
    node: Uint32Array.of(2, 2, 0, 3),
    waiter: Uint32Array.of(2, 2, 1, 2),
    waiterNode: Uint32Array.of(3, 2, 2, 3),
  };
  const all = () => ({ ...profile(), held });

  it('are told by class and stack, the most time first', () => {
    const rows = heldRows(all(), ALL);
    expect(rows.map((row) => [row.class, row.node, row.ns, row.samples])).toEqual([
      [0, 1, 3e6, 2],
      [0, 2, 1e6, 1],
      [1, 0, 5e5, 1],
    ]);
    // 4e12 / 4 and 1e12.
    expect(rows[0]!.error).toBeCloseTo(Math.sqrt(2e12), 0);
    expect([...rows[0]!.waiterNodes]).toEqual([
      [2, 2e6],
      [1, 1e6],
    ]);
    expect([...rows[2]!.owners.keys()]).toEqual(['']);
  });

  it('are one row for all stacks of a method, with where most of the time was', () => {
    const art = all();
    const frames = { ...art.frames, method: art.frames.method.slice() };
    const methodAt = (node: number) => art.nodes.frame[node]!;
    frames.method[methodAt(2)] = frames.method[methodAt(1)]!;
    const rows = heldRows({ ...art, frames }, ALL);
    expect(rows.map((row) => [row.class, row.node, row.ns, row.samples])).toEqual([
      [0, 1, 4e6, 3],
      [1, 0, 5e5, 1],
    ]);
    expect([...rows[0]!.nodes]).toEqual([
      [1, 3e6],
      [2, 1e6],
    ]);
    // 4e12 / 4 and 1e12 and 1e12.
    expect(rows[0]!.error).toBeCloseTo(Math.sqrt(3e12), 0);
  });

  it('are those of the threads that waited, and of a part of the time', () => {
    const one = { ...ALL, threads: Uint8Array.of(1, 0) };
    expect(heldRows(all(), one).map(({ ns }) => ns)).toEqual([5e5]);
    const during = { from: 1e6, to: 3e6 };
    expect(heldRows(all(), { ...ALL, during }).map(({ ns }) => ns)).toEqual([2e6, 5e5]);
    expect(heldRows({ ...profile(), held: null }, ALL)).toEqual([]);
  });
});

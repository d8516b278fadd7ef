import { describe, expect, it } from 'vitest';
import { measured, possible, textOf, timeOf } from '../../src/data/measure';
import type { Profile } from '../../src/data/profile';
import { profileOf } from './art';

/** Two samples on a CPU, the second for an endpoint and of no Java thread; two runs of looks. */
function profile(): Profile {
  const cpu = profileOf(`
    weight: 10    20    300   400
            a.A.x a.A.y a.A.x a.A.z
  `);
  const { samples } = cpu;
  const cut = <T extends Float64Array | Uint32Array | Uint8Array>(
    column: T,
    from: number,
    to: number,
  ) => column.slice(from, to) as T;
  const part = (from: number, to: number) => ({
    time: cut(samples.time, from, to),
    thread: cut(samples.thread, from, to),
    node: cut(samples.node, from, to),
    weight: cut(samples.weight, from, to),
    count: cut(samples.count, from, to),
    cause: cut(samples.cause, from, to),
    role: cut(samples.role, from, to),
    endpoint: cut(samples.endpoint, from, to),
  });
  const first = part(0, 2);
  first.endpoint[1] = 1;
  const looks = part(2, 4);
  looks.count.set([3, 1]);
  looks.endpoint[1] = 1;
  const wall = { running: Uint8Array.of(1, 0), looks, waits: Uint8Array.of(1, 2) };
  const header = {
    ...cpu.header,
    endpoints: ['GET /a'],
    waits: ['monitor', 'park'],
    wall: { ns: 710, causes: [], endpoints: [], groups: [] },
  };
  return { ...cpu, header, samples: first, wall };
}

const weights = (shown: Profile) => [...shown.samples.weight];

describe('what is measured', () => {
  it('is CPU time, wall time, what waited, or one cause', () => {
    const all = profile();
    expect(measured(all, { time: 'cpu', endpoint: null })).toBe(all);
    expect(weights(measured(all, { time: 'wall', endpoint: null }))).toEqual([10, 300, 400]);
    expect(weights(measured(all, { time: 'off', endpoint: null }))).toEqual([300, 400]);
    const monitor = measured(all, { time: { cause: 'monitor' }, endpoint: null });
    expect(weights(monitor)).toEqual([300]);
    expect([...monitor.samples.count]).toEqual([3]);
    expect([...monitor.samples.node]).toEqual([...all.wall!.looks.node.subarray(0, 1)]);
  });

  it('can be that of an endpoint', () => {
    const all = profile();
    expect(weights(measured(all, { time: 'cpu', endpoint: 'GET /a' }))).toEqual([20]);
    expect(weights(measured(all, { time: 'wall', endpoint: 'GET /a' }))).toEqual([400]);
  });

  it('is what the profile has', () => {
    const { header } = profile();
    const none = { time: { cause: 'sleep' }, endpoint: 'GET /b' };
    expect(possible(header, none)).toEqual({ time: 'cpu', endpoint: null });
    const cpuOnly = { ...header, wall: null };
    expect(possible(cpuOnly, { time: 'wall', endpoint: null }).time).toBe('cpu');
  });

  it('has a text', () => {
    for (const time of ['cpu', 'wall', 'off', { cause: 'monitor' }] as const) {
      expect(timeOf(textOf(time))).toEqual(time);
    }
    expect(timeOf('nonsense')).toBe('cpu');
  });
});

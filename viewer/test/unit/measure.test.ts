import { describe, expect, it } from 'vitest';
import { measured, possible, textOf, timeOf, WHOLE } from '../../src/data/measure';
import type { Time } from '../../src/data/measure';
import type { Profile } from '../../src/data/profile';
import { splitBy } from '../../src/data/wall';
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
    choices: cut(samples.choices, from, to),
    cause: cut(samples.cause, from, to),
    role: cut(samples.role, from, to),
    endpoint: cut(samples.endpoint, from, to),
    request: cut(samples.request, from, to),
    wait: cut(samples.wait, from, to),
  });
  const first = part(0, 2);
  first.endpoint[1] = 1;
  const looks = part(2, 4);
  looks.count.set([3, 1]);
  looks.endpoint[1] = 1;
  looks.wait.set([1, 2]);
  looks.request[1] = 1;
  const wall = {
    running: Uint8Array.of(1, 0),
    looks,
    duration: Float64Array.of(2e6, 0),
    detail: new Uint32Array(2),
    owner: Uint32Array.of(1, 0),
    ownerNode: Uint32Array.of(2, 0),
  };
  const header = {
    ...cpu.header,
    endpoints: ['GET /a'],
    waits: ['monitor', 'park'],
    wall: { ns: 710, busyNs: 710, causes: [] },
  };
  return { ...cpu, header, samples: first, wall };
}

const weights = (shown: Profile) => [...shown.samples.weight];

describe('what is measured', () => {
  it('is time for waits of a recording whose samples are only counted', () => {
    const timed = profile();
    const header = { ...timed.header, unit: 'samples' as const, wallScale: 5 };
    const all = { ...timed, header };
    const wall = measured(all, { time: 'wall', endpoint: null });
    expect(weights(wall)).toEqual([50, 300, 400]);
    expect(wall.header.unit).toBe('ns');
    expect(measured(all, { time: 'cpu', endpoint: 'GET /a' }).header.unit).toBe('samples');
    const filter = { ...WHOLE, threads: Uint8Array.of(1, 1, 1, 1), endpoint: null };
    const sums = [...splitBy(all, filter, () => 0).get(0)!];
    expect(sums).toEqual([50, 300, 400]);
  });

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

  it('can be that of a part of the time, looks by what of them is in it', () => {
    const all = profile();
    // Looks begin at 2 ms and 3 ms; the first one lasts 2 ms.
    const during = { from: 3e6, to: 5e6 };
    const part = { ...WHOLE, during };
    expect(weights(measured(all, { time: 'off', endpoint: null }, part))).toEqual([150, 400]);
    expect(weights(measured(all, { time: 'cpu', endpoint: null }, part))).toEqual([]);
    const first = { ...WHOLE, during: { from: 0, to: 1e6 } };
    expect(weights(measured(all, { time: 'cpu', endpoint: null }, first))).toEqual([10]);
  });

  it('has no idle time unless that is wanted, or is all that is', () => {
    const all = profile();
    all.header.waits = ['monitor', 'idle-pool'];
    const of = (time: Time, part = WHOLE) => weights(measured(all, { time, endpoint: null }, part));
    expect(of('wall')).toEqual([10, 300]);
    expect(of('off')).toEqual([300]);
    expect(of({ cause: 'idle-pool' })).toEqual([400]);
    const idle = { ...WHOLE, idle: true };
    expect(of('wall', idle)).toEqual([10, 300, 400]);
    expect(of('off', idle)).toEqual([300, 400]);
    expect(of({ cause: 'monitor' }, idle)).toEqual([300]);
  });

  it('can be that of one request', () => {
    const all = profile();
    const part = { ...WHOLE, request: 1 };
    expect(weights(measured(all, { time: 'wall', endpoint: null }, part))).toEqual([400]);
  });

  it('can be that of owners, by how long others waited for them', () => {
    const shown = measured(profile(), { time: 'owners', endpoint: null });
    expect(weights(shown)).toEqual([300]);
    expect([...shown.samples.node]).toEqual([1]);
    expect([...shown.samples.thread]).toEqual([0]);
  });

  it('can be that of threads that were late for safepoints', () => {
    const all = profile();
    const late = {
      ...all.late,
      time: Float64Array.of(5, 6, 7),
      held: Float64Array.of(40, 50, 0),
      node: Uint32Array.of(3, 0, 3),
      thread: new Uint32Array(3),
    };
    const shown = measured({ ...all, late }, { time: 'late', endpoint: null });
    expect(weights(shown)).toEqual([40]);
    expect([...shown.samples.node]).toEqual([2]);
  });

  it('is what the profile has', () => {
    const { header } = profile();
    const none = { time: { cause: 'sleep' }, endpoint: 'GET /b' };
    expect(possible(header, none)).toEqual({ time: 'cpu', endpoint: null });
    const cpuOnly = { ...header, wall: null };
    expect(possible(cpuOnly, { time: 'wall', endpoint: null }).time).toBe('cpu');
  });

  it('has a text', () => {
    for (const time of ['cpu', 'wall', 'off', 'owners', 'late', { cause: 'monitor' }] as const) {
      expect(timeOf(textOf(time))).toEqual(time);
    }
    expect(timeOf('nonsense')).toBe('cpu');
  });
});

// The rule of all views by time: adjacent parts of the time add up to the whole.
import { describe, expect, it } from 'vitest';
import { classRows } from '../../src/data/allocations';
import { heldRows } from '../../src/data/held';
import { lockRows, lockStrip, monitorWaits } from '../../src/data/locked';
import { locksOf } from '../../src/data/locks';
import { measured, type Time, WHOLE } from '../../src/data/measure';
import type { Profile, Span } from '../../src/data/profile';
import { culpritsOf, operationsOf } from '../../src/data/stops';
import { cpuStrip, idleOf, splitBy, sum, wallStrip } from '../../src/data/wall';
import { hasInstant, partIn, rangeBetween, shareIn } from '../../src/data/window';
import { entriesOf } from './art';
import { everything, wallProfile } from './walls';

/** The end of the recording; the unit is 1 ns. */
const END = 10_000;
const THREADS = 4;

describe('an event', () => {
  it('has of a part of the time what its duration has of it', () => {
    const parts = Array.from({ length: 12 }, (_, at) =>
      partIn(5000, 1000, 10_000, { from: at * 1000, to: at * 1000 + 1000 }),
    );
    expect(parts).toEqual([0, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 0]);
    expect(partIn(7, 1000, 10_000, null)).toBe(7);
    expect(shareIn(1000, 10_000, { from: 3500, to: 3750 })).toBeCloseTo(0.025);
  });

  it('without a duration is where its beginning is', () => {
    const has = (from: number, to: number) => hasInstant(100, { from, to });
    expect([has(0, 100), has(100, 101), has(101, 900)]).toEqual([false, true, false]);
    expect(partIn(7, 100, 0, { from: 100, to: 101 })).toBe(7);
  });

  it('has each of its looks in the middle of its part', () => {
    const cuts = [0, 50, 100, 150, 251, 300];
    const parts = cuts.slice(1).map((to, at) => partIn(3, 0, 300, { from: cuts[at]!, to }));
    expect(parts).toEqual([1, 0, 1, 1, 0]);
  });
});

describe('a range that is typed', () => {
  it('has its ends in order and in the recording', () => {
    const whole = { from: 0, to: 20 };
    expect(rangeBetween(5, 3, whole)).toEqual({ from: 3, to: 5 });
    expect(rangeBetween(5, 50, whole)).toEqual({ from: 5, to: 20 });
    expect([rangeBetween(4, 4, whole), rangeBetween(30, 25, whole)]).toEqual([null, null]);
  });
});

/** Random numbers, always the same of a seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed + 0x9e3779b9;
  return (below) => {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    state ^= state >>> 16;
    return (state >>> 0) % below;
  };
}

/**
 * Threads that do one thing after the other, all the time; and waits for locks, owners, objects,
 * safepoints and late threads at random. `threads` is for how many each of them stands.
 */
function recording(random: (below: number) => number, threads: number): Profile {
  const looks = [];
  const ran = [];
  for (let thread = 0; thread < THREADS; thread++) {
    for (let time = 0; time < END;) {
      const duration = Math.min(END - time, 1 + random(random(4) === 0 ? END : 300));
      const weight = duration * threads;
      const cause = ['monitor', 'sleep', 'idle-pool'][random(3)]!;
      const count = random(50);
      looks.push({
        thread,
        time,
        duration,
        weight,
        count,
        cause,
        detail: 'app.L@1',
        owner: 0,
        ownerNode: 3,
      });
      time += duration;
    }
    for (let i = random(9); i > 0; i--) ran.push({ thread, time: random(END), weight: random(99) });
  }
  const names = Array.from({ length: THREADS }, (_, i) => `t-${i}`);
  const base = wallProfile({ threads: names, looks, ran, durationNs: END });
  const rows = Array.from({ length: 20 }, () => random(END));
  const node = rows.map(() => 1 + random(2));
  const u32 = (of: () => number) => Uint32Array.from(rows, of);
  const f64 = (of: () => number) => Float64Array.from(rows, of);
  const some = () => entriesOf({ time: rows, node, weight: rows.map(() => random(5000)) });
  const duration = f64(() => random(3) * random(2000));
  const locks = {
    samples: some(),
    ...{ class: u32(() => random(2)), waits: f64(() => random(9)), longest: duration, duration },
    ...{ owner: u32(() => random(3)), look: new Uint8Array(rows.length) },
  };
  const held = {
    ...{ time: Float64Array.from(rows), duration, class: u32(() => random(2)) },
    ...{ ns: f64(() => random(9000)), choices: u32(() => 1), owner: u32(() => random(3)) },
    ...{ node: u32(() => random(3)), waiter: u32(() => 1), waiterNode: u32(() => 1) },
  };
  const late = {
    ...base.late,
    ...{ time: Float64Array.from(rows), duration, held: f64(() => random(500)) },
    ...{ node: u32(() => random(3)), thread: u32(() => random(THREADS)), state: u32(() => 0) },
    reason: u32(() => 0),
  };
  const stops = {
    ...{ time: Float64Array.from(rows), reaching: f64(() => random(300)) },
    ...{ operating: f64(() => random(300)), operation: u32(() => random(2)) },
    ...{ threads: u32(() => 9), running: u32(() => 1), count: u32(() => 1 + random(3)) },
    known: Uint8Array.from(rows, () => 1),
  };
  const allocations = { samples: some(), class: u32(() => random(2)), objects: f64(() => 1) };
  return { ...base, locks, held, late, stops, allocations };
}

const add = (values: Iterable<number>) => sum([...values]);

/** Sums that views show of a part of the time. */
const VIEWS: Record<string, (profile: Profile, during: Span | null) => number> = {
  ...Object.fromEntries(
    (['cpu', 'wall', 'off', 'owners', 'late', 'alloc', 'locks', { cause: 'sleep' }] as Time[])
      .flatMap((time) => (['weight', 'count'] as const).map((of) => [time, of] as const))
      .map(([time, of]) => [
        `${typeof time === 'object' ? time.cause : time} by ${of}`,
        (profile, during) => {
          // The page knows by its header that it has them.
          const header = { ...profile.header, allocated: {}, locked: {} } as Profile['header'];
          const shown = measured(
            { ...profile, header },
            { time, endpoint: null },
            { ...WHOLE, during },
          );
          return add(shown.samples[of]);
        },
      ]),
  ),
  'wall time by cause': (profile, during) =>
    add([...splitBy(profile, { ...everything(profile), during }, () => 0).values()].map(sum)),
  'idle time': (profile, during) =>
    idleOf(profile, { ...everything(profile), during })?.weight ?? 0,
  'locks by looks': (profile, during) =>
    locksOf(profile, { ...everything(profile), during }, false).weight,
  'looks at locks': (profile, during) =>
    add(locksOf(profile, { ...everything(profile), during }, false).edges.map((it) => it.looks)),
  'locks by class': (profile, during) =>
    add(lockRows(profile, { ...everything(profile), during }).map(({ ns }) => ns)),
  'waits by class': (profile, during) =>
    add(lockRows(profile, { ...everything(profile), during }).map(({ waits }) => waits)),
  'waits for monitors': (profile, during) =>
    monitorWaits(profile, { ...everything(profile), during }, 0).ns,
  'owners of monitors': (profile, during) =>
    add(heldRows(profile, { ...everything(profile), during }).map(({ ns }) => ns)),
  safepoints: (profile, during) => add(operationsOf(profile, during).map(({ count }) => count)),
  'time at safepoints': (profile, during) =>
    add(operationsOf(profile, during).map((it) => it.reaching + it.operating)),
  'late threads': (profile, during) => add(culpritsOf(profile, during, 999).map((it) => it.held)),
  'bytes by class': (profile, during) =>
    add(classRows(profile, { ...everything(profile), during }).map(({ bytes }) => bytes)),
};

describe('views by time', () => {
  const seeds = [1, 2, 3, 4, 5, 6, 7, 8];

  it('have of adjacent parts of the time what they have of all', () => {
    for (const seed of seeds) {
      const random = randomOf(seed);
      const profile = recording(random, 1 + random(40));
      const cuts = Array.from({ length: 12 }, () => random(END)).sort((a, b) => a - b);
      const edges = [0, ...cuts, 4 * END];
      for (const [name, view] of Object.entries(VIEWS)) {
        const parts = edges.slice(1).map((to, at) => view(profile, { from: edges[at]!, to }));
        expect(view(profile, null), name).toBeGreaterThan(0);
        expect(add(parts), `${name} of ${seed}`).toBe(view(profile, null));
      }
    }
  });

  it('have of a part no more than its length of each thread', () => {
    for (const seed of seeds) {
      const random = randomOf(seed);
      const threads = 1 + random(40);
      const profile = recording(random, threads);
      for (let i = 0; i < 20; i++) {
        const [from, to] = [random(END), random(END)].sort((a, b) => a - b) as [number, number];
        const waited = { ...everything(profile), threads: Uint8Array.of(1, 1, 1, 1) };
        const split = splitBy(profile, { ...waited, during: { from, to } }, () => 0).get(0) ?? [];
        // The first cause is running.
        expect(sum([...split].slice(1))).toBe((to - from) * THREADS * threads);
      }
    }
  });

  it('have strips whose bins add up to all, and have no more than there are threads', () => {
    for (const seed of seeds) {
      const profile = recording(randomOf(seed), 1);
      const strip = wallStrip(profile, everything(profile), 50);
      const all = splitBy(profile, everything(profile), () => 0).get(0)!;
      strip.values.forEach((row, cause) => expect(sum(row)).toBeCloseTo(all[cause]!, 3));
      for (let bin = 0; bin < strip.bins; bin++) {
        const waited = sum(strip.values.slice(1).map((row) => row[bin]!));
        expect(waited).toBeCloseTo((THREADS * END) / strip.bins, 3);
      }
      const cpu = cpuStrip(profile, everything(profile).threads, 50);
      expect(sum(cpu.values.map(sum))).toBeCloseTo(sum(profile.samples.weight), 3);
      const locks = lockStrip(
        { ...profile, header: { ...profile.header } },
        everything(profile),
        50,
      );
      const inside = lockRows(profile, { ...everything(profile), during: { from: 0, to: END } });
      expect(Math.abs(sum(locks.values[0]!) - add(inside.map(({ ns }) => ns)))).toBeLessThan(20);
    }
  });

  it('draw a look over what it weighs, inside of the recording', () => {
    const looks = [
      { thread: 0, time: 0, weight: 400, cause: 'sleep' },
      { thread: 0, time: END - 10, weight: 400, cause: 'sleep' },
    ];
    const profile = wallProfile({ threads: ['a'], looks, durationNs: END });
    const strip = wallStrip(profile, everything(profile), 100);
    expect([...strip.values[1]!].slice(0, 3).map(Math.round)).toEqual([200, 200, 0]);
    expect(sum(strip.values[1]!)).toBeCloseTo(800, 6);
  });
});

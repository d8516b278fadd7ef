// The timeline's lanes, steps, pixels and times.
import { describe, expect, it } from 'vitest';
import { lanesOf, laneOfThread, poolsOf, VIRTUAL_MAX } from '../../src/timeline/lanes';
import { DIMMED, Levels } from '../../src/timeline/levels';
import { PoolLevels } from '../../src/timeline/poolLevels';
import { atOnce } from '../../src/tree/slices';
import { throttledStrip } from '../../src/data/wall';
import { compilersOf, runtimeLanes, toldRuntime } from '../../src/timeline/runtime';
import { around, inside, moved, ticksOf, zoomed } from '../../src/timeline/time';
import { stepAt, Tracks } from '../../src/timeline/tracks';
import { randomOf } from './art';
import { everything, type LookRow, wallProfile } from './walls';

const WHOLE = { from: 0, to: 1000 };

describe('times', () => {
  it('have round ticks that can be read', () => {
    expect(ticksOf({ from: 0, to: 1000 }, 500)).toEqual([0, 200, 400, 600, 800, 1000]);
    expect(ticksOf({ from: 130, to: 470 }, 400)).toEqual([200, 300, 400]);
    expect(ticksOf({ from: 5, to: 6 }, 10).length).toBeLessThan(3);
  });

  it('zoom about a place that stays, and never leave the recording', () => {
    const whole = { from: 0, to: 1e9 };
    expect(zoomed(whole, 0.5, 0.25e9, whole)).toEqual({ from: 0.125e9, to: 0.625e9 });
    expect(zoomed({ from: 0, to: 5e8 }, 100, 3, whole)).toEqual(whole);
    expect(moved({ from: 0, to: 5e8 }, 9e8, whole)).toEqual({ from: 5e8, to: 1e9 });
    expect(around({ from: 4e8, to: 5e8 }, 1, whole)).toEqual({ from: 3e8, to: 6e8 });
    const least = inside({ from: 7, to: 7 }, whole);
    expect(least.to - least.from).toBe(1000);
  });
});

describe('steps', () => {
  const profile = wallProfile({
    threads: ['a', 'b'],
    looks: [
      { thread: 0, time: 500, cause: 'park', weight: 20, request: 1 },
      { thread: 0, time: 100, duration: 200, count: 11, weight: 220, cause: 'socket', request: 1 },
      { thread: 1, time: 600, cause: 'park', request: 1 },
    ],
    ran: [{ thread: 0, time: 340, weight: 30, request: 1 }],
    requests: [{ time: 90, duration: 420, endpoint: 0 }],
  });
  const tracks = new Tracks(profile);

  it('are in the order of time, stretched to the next one as far as a look weighs', () => {
    const track = tracks.of(0);
    expect([...track.from]).toEqual([100, 310, 500]);
    // 300 + 1.5 x 20 would be 330, but the sample begins at 310.
    expect([...track.to]).toEqual([310, 340, 530]);
    expect([...track.cause]).toEqual([1 + ['park', 'socket'].indexOf('socket'), 0, 1]);
    expect([...track.cpuAt]).toEqual([340]);
  });

  it('at a safepoint end with it, and where none is known when they were last seen', () => {
    const cause = 'safepoint';
    const made = wallProfile({
      threads: ['a'],
      looks: [
        { thread: 0, time: 100, cause, weight: 20 },
        { thread: 0, time: 200, cause, weight: 20, duration: 5 },
        { thread: 0, time: 300, cause, weight: 20 },
        { thread: 0, time: 400, cause: 'park', weight: 20 },
      ],
    });
    // The first one begins after the last sample there, the last stands for many.
    const f64 = (...values: number[]) => Float64Array.from(values);
    const stops = {
      ...made.stops,
      time: f64(306, 95, 195),
      reaching: f64(1, 2, 1),
      operating: f64(2, 6, 30),
      count: Uint32Array.from([1, 1, 7]),
    };
    const { from, to } = new Tracks({ ...made, stops }).of(0);
    expect([...from]).toEqual([100, 200, 300, 400]);
    expect([...to]).toEqual([103, 205, 303, 430]);
  });

  it('that are events end when the recorder says so', () => {
    const made = wallProfile({
      threads: ['a'],
      looks: [{ thread: 0, time: 100, duration: 50, count: 2, weight: 50, cause: 'socket' }],
    });
    const endOf = (exactWaits: boolean) =>
      new Tracks({ ...made, header: { ...made.header, exactWaits } }).of(0).to[0];
    expect([endOf(true), endOf(false)]).toEqual([150, 187.5]);
  });

  it('are found by a time, near ones too', () => {
    const track = tracks.of(0);
    expect(stepAt(track, 200)).toBe(0);
    expect(stepAt(track, 320)).toBe(1);
    expect(stepAt(track, 400)).toBe(-1);
    expect(stepAt(track, 400, 70)).toBe(1);
    expect(stepAt(track, 480, 70)).toBe(2);
    const seen = tracks.seenAt(1, 605);
    expect(seen !== null && profile.wall!.looks.node[seen]).toBe(2);
  });

  it('give the times of requests, which end when the request does', () => {
    // Two threads were seen at it: each has the time in which it was.
    expect(tracks.requests(0)).toEqual([{ request: 1, from: 100, to: 510 }]);
    expect(tracks.worksFor(1, 1)).toBe(true);
    const alone = wallProfile({
      threads: ['a'],
      looks: [{ thread: 0, time: 200, cause: 'park', request: 1 }],
      requests: [{ time: 90, duration: 420, endpoint: 0 }],
    });
    expect(new Tracks(alone).requests(0)).toEqual([{ request: 1, from: 90, to: 510 }]);
    expect(new Tracks(alone).worksFor(0, 2)).toBe(false);
  });
});

describe('the lanes of the runtime', () => {
  const quiet = wallProfile({ threads: ['a'], looks: [] });

  it('are those that the recording has something for', () => {
    expect(runtimeLanes(quiet)).toEqual([]);
    const busy = wallProfile({
      threads: ['a', 'C2'],
      looks: [],
      ran: [
        { thread: 1, time: 90, weight: 10 },
        { thread: 1, time: 40, weight: 10 },
        { thread: 0, time: 50, weight: 10 },
      ],
    });
    busy.samples.role.set([2, 2, 0]);
    expect(runtimeLanes(busy).map(({ what }) => what)).toEqual(['jit']);
    expect([...compilersOf(busy).time]).toEqual([40, 90]);
  });

  it('tell when the quota held the process back, and when it did not', () => {
    const profile = {
      ...quiet,
      throttled: {
        time: Float64Array.of(1e9),
        duration: Float64Array.of(1e9),
        periods: Uint32Array.of(10),
        throttled: Uint32Array.of(4),
        held: Float64Array.of(3e8),
      },
    };
    expect(runtimeLanes(profile).map(({ what }) => what)).toEqual(['throttled']);
    const told = (time: number) => new Map(toldRuntime(profile, 'throttled', time).facts);
    expect(told(1.5e9).get('Used up in')).toBe('40.0\u00a0% of 10 periods');
    expect(told(5e8).get('At')).toContain('not throttled');
    const info = { ...profile.header.info, durationNs: 4e9 };
    const whole = { ...profile, header: { ...profile.header, info } };
    // Bins of a second: the second one has 0.4 of it.
    expect([...throttledStrip(whole, 4).values[0]!]).toEqual([0, 4e8, 0, 0]);
  });
});

describe('pixels', () => {
  /** What has most of each pixel, worked out the slow way. */
  function slowly(levels: Levels, thread: number, pixels: number): number[] {
    const track = levels.tracks.of(thread);
    return Array.from({ length: pixels }, (_, x) => {
      const [from, to] = [(x * 1000) / pixels, ((x + 1) * 1000) / pixels];
      const sums = new Map<number, number>();
      for (let at = 0; at < track.n; at++) {
        const part = Math.min(to, track.to[at]!) - Math.max(from, track.from[at]!);
        const cause = track.cause[at]! + 1;
        if (part > 0) sums.set(cause, (sums.get(cause) ?? 0) + part);
      }
      const most = Math.max(0, ...sums.values());
      const best = [...sums].filter(([, sum]) => sum > most - 1e-6).map(([cause]) => cause);
      return best.length === 1 ? best[0]! : best.length === 0 ? 0 : -1;
    });
  }

  it('show what has most of them', () => {
    const random = randomOf(7);
    const looks: LookRow[] = [];
    for (let time = 0; time < 980; time += 3 + random(20)) {
      const cause = ['park', 'socket', 'sleep'][random(3)]!;
      looks.push({ thread: 0, time, cause, weight: 1 + random(9) });
    }
    const profile = wallProfile({ threads: ['a'], looks });
    const levels = new Levels(new Tracks(profile), { endpoint: -1 });
    for (const pixels of [10, 37, 250]) {
      const out = new Uint8Array(pixels);
      levels.pixels(levels.tracks.of(0), WHOLE, out);
      slowly(levels, 0, pixels).forEach((expected, x) => {
        // Where two have the same either may be shown.
        if (expected >= 0) expect(out[x], `${pixels} pixels, at ${x}`).toBe(expected);
      });
    }
  });

  it('are the same, whether they come from bins or from single steps', () => {
    const looks: LookRow[] = [];
    // 25,000 steps of 40 ns: more than are put onto pixels one by one.
    for (let i = 0; i < 25_000; i++) {
      const cause = i % 5000 < 2500 ? 'park' : 'socket';
      looks.push({ thread: 0, time: i * 40, cause, weight: 40 });
    }
    const profile = wallProfile({ threads: ['a'], looks, durationNs: 1e6 });
    const levels = new Levels(new Tracks(profile), { endpoint: -1 });
    const out = new Uint8Array(100);
    levels.pixels(levels.tracks.of(0), { from: 0, to: 1e6 }, out);
    const expected = Array.from({ length: 100 }, (_, x) => (x % 20 < 10 ? 2 : 3));
    expect([...out]).toEqual(expected);
  });

  it('step back what is not for the endpoint', () => {
    const profile = wallProfile({
      threads: ['a'],
      endpoints: ['GET /a'],
      looks: [
        { thread: 0, time: 0, cause: 'park', weight: 400, endpoint: 1 },
        { thread: 0, time: 500, cause: 'park', weight: 400 },
      ],
    });
    const levels = new Levels(new Tracks(profile), { endpoint: 1 });
    const out = new Uint8Array(2);
    levels.pixels(levels.tracks.of(0), WHOLE, out);
    expect([...out]).toEqual([2, 2 + DIMMED]);
  });

  it('of a pool tell how many threads were at what', () => {
    const profile = wallProfile({
      threads: ['p-1', 'p-2'],
      looks: [
        { thread: 0, time: 0, duration: 999, weight: 999, count: 999, cause: 'park' },
        { thread: 1, time: 0, duration: 499, weight: 499, count: 499, cause: 'park' },
      ],
    });
    const tracks = new Tracks(profile);
    const { pools } = poolsOf(profile, tracks, everything(profile));
    const levels = new PoolLevels(profile, pools);
    expect(levels.isReady).toBe(false);
    atOnce(levels.fill());
    expect(levels.isReady).toBe(true);
    const key = pools[0]!.key;
    const whole = levels.shares(key, [0, 1], tracks, WHOLE, 2)[1]!;
    expect(whole[0]).toBeCloseTo(2, 1);
    expect(whole[1]).toBeCloseTo(1, 1);
    // Close by it is made of the steps themselves.
    const near = levels.shares(key, [0, 1], tracks, { from: 450, to: 550 }, 4)[1]!;
    expect(near[0]).toBeCloseTo(2, 1);
    expect(near[3]).toBeCloseTo(1, 1);
  });
});

describe('lanes', () => {
  const looks = (threads: number, cause: (thread: number) => string): LookRow[] =>
    Array.from({ length: threads }, (_, thread) => ({ thread, time: 10, cause: cause(thread) }));

  it('group threads by pool; idle ones are folded and come last', () => {
    const threads = ['idle-1', 'idle-2', 'busy-1', 'busy-2', 'main'];
    const profile = wallProfile({
      threads,
      looks: looks(5, (thread) => (thread < 2 ? 'idle-pool' : 'socket')),
    });
    const tracks = new Tracks(profile);
    const { pools, leftOut } = poolsOf(profile, tracks, everything(profile));
    expect(leftOut).toBe(0);
    const names = (turned: string[]) =>
      lanesOf(profile, pools, new Set(turned)).map(({ name }) => name);
    const open = ['busy-#', 'busy-1', 'busy-2', 'main'];
    expect(names([])).toEqual([...open, 'idle-#']);
    expect(names(['java:idle-#', 'java:busy-#'])).toEqual([
      'busy-#',
      'main',
      'idle-#',
      'idle-1',
      'idle-2',
    ]);
    const lanes = lanesOf(profile, pools, new Set());
    expect(laneOfThread(lanes, 4)).toBe(3);
    // Folded: the pool's lane stands for it.
    expect(laneOfThread(lanes, 1)).toBe(4);
    expect(laneOfThread(lanes, 99)).toBe(-1);
  });

  it('are there for a bounded number of virtual threads, and tell how many are left out', () => {
    const count = VIRTUAL_MAX + 50;
    const threads = Array.from({ length: count + 1 }, (_, i) => (i === count ? 'main' : ''));
    const profile = wallProfile({
      threads,
      virtual: Array.from({ length: count }, (_, i) => i),
      looks: looks(count + 1, () => 'park').map((row) => ({ ...row, weight: 1 + row.thread })),
    });
    const { pools, leftOut } = poolsOf(profile, new Tracks(profile), everything(profile));
    expect(leftOut).toBe(50);
    const virtual = pools.find(({ isVirtual }) => isVirtual)!;
    expect(virtual.threads.length).toBe(VIRTUAL_MAX);
    // Those that did most are kept.
    expect(Math.min(...virtual.threads)).toBe(50);
    expect(virtual.isFolded).toBe(true);
  });
});

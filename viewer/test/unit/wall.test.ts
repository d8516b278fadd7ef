// Wall time summed up, requests, locks, and what stands out.
import { describe, expect, it } from 'vitest';
import { chainsOf } from '../../src/data/chains';
import { comparedLocks, kindOf, locksOf } from '../../src/data/locks';
import { placesOf } from '../../src/data/places';
import { endpointRows, slowest } from '../../src/data/requests';
import { spansOf } from '../../src/data/spans';
import { commonOf, javaEnd, placeOf, shortName } from '../../src/data/stacks';
import { emptyStrip, idleOf, lookSpan, splitBy, spread, sum, wallStrip } from '../../src/data/wall';
import { profileOf } from './art';
import { Tracks } from '../../src/timeline/tracks';
import { everything, type LookRow, wallProfile } from './walls';

/** Two endpoints: the first one waits for a lock that the second thread has. */
function shop() {
  return wallProfile({
    threads: ['http-1', 'http-2', 'main'],
    endpoints: ['GET /slow', 'GET /fast'],
    looks: [
      {
        thread: 0,
        time: 100,
        duration: 300,
        weight: 300,
        count: 3,
        cause: 'monitor',
        endpoint: 1,
        request: 1,
        detail: 'app.Lock@7f01',
        owner: 1,
        ownerNode: 3,
      },
      { thread: 1, time: 500, weight: 100, cause: 'socket', endpoint: 2, request: 2 },
      { thread: 2, time: 0, duration: 900, weight: 900, cause: 'sleep' },
    ],
    ran: [{ thread: 0, time: 450, weight: 50, request: 1, endpoint: 1 }],
    requests: [
      { time: 100, duration: 360, endpoint: 1 },
      { time: 480, duration: 40, endpoint: 2, count: 99 },
      { time: 520, duration: 80, endpoint: 2 },
    ],
  });
}

describe('wall time', () => {
  it('is split by cause, of what counts', () => {
    const profile = shop();
    const all = everything(profile);
    const split = (filter: Partial<typeof all> & { endpoint?: string | null }) => [
      ...(splitBy(profile, { ...all, ...filter }, () => 0).get(0) ?? []),
    ];
    expect(split({})).toEqual([50, 300, 100, 900]);
    expect(split({ endpoint: 'GET /slow' as never })).toEqual([50, 300, 0, 0]);
    expect(split({ request: 2 })).toEqual([0, 0, 100, 0]);
    expect(split({ threads: Uint8Array.of(0, 0, 1) })).toEqual([0, 0, 0, 900]);
    // Half of the first run of looks, a third of the last one, no sample.
    const during = { from: 100, to: 250 };
    expect(split({ during: during as never })).toEqual([0, 150, 0, 150]);
  });

  it('excludes idle time, and has its sum', () => {
    const looks = [
      { thread: 0, time: 0, weight: 300, cause: 'socket' },
      { thread: 0, time: 500, weight: 100, cause: 'idle-pool' },
      { thread: 1, time: 0, weight: 600, cause: 'idle-pool' },
    ];
    const profile = wallProfile({ threads: ['a', 'b', 'c'], looks });
    const all = everything(profile);
    const busy = { ...all, idle: false };
    const split = (filter: typeof all) => [...splitBy(profile, filter, () => 0).get(0)!];
    expect(split(all)).toEqual([0, 300, 700]);
    expect(split(busy)).toEqual([0, 300, 0]);
    const expected = { weight: 700, all: 1000, threads: 2, allThreads: 2 };
    expect(idleOf(profile, busy)).toEqual(expected);
    expect(idleOf(profile, all)).toEqual(expected);
    const first = { ...busy, threads: Uint8Array.of(1, 0, 1) };
    expect(idleOf(profile, first)).toEqual({ weight: 100, all: 400, threads: 1, allThreads: 1 });
    // A range without idle time, and a recording without idle time.
    expect(idleOf(profile, { ...busy, threads: Uint8Array.of(0, 0, 1) })).toBe(null);
    expect(idleOf(shop(), busy)).toBe(null);
  });

  it('over time adds up to the same', () => {
    const profile = shop();
    const strip = wallStrip(profile, everything(profile), 10);
    // Samples are cut at the ends of the recording: the sleep loses half a look on both sides.
    const looks = [50, 300, 100, 0];
    for (let cause = 0; cause < 3; cause++) {
      expect(sum(strip.values[cause]!)).toBeCloseTo(looks[cause]!, 6);
    }
    // The sample stands for the time before it: from 400 to 450.
    expect([...strip.values[0]!].map((v) => Math.round(v))).toEqual([
      0, 0, 0, 0, 50, 0, 0, 0, 0, 0,
    ]);
  });

  it('is spread evenly, and nothing gets lost inside of the span', () => {
    const strip = emptyStrip({ from: 0, to: 100 }, 1, 10);
    spread(strip, 0, 5, 25, 20);
    expect([...strip.values[0]!].slice(0, 4)).toEqual([5, 10, 5, 0]);
    spread(strip, 0, 99, 99, 7);
    expect(strip.values[0]![9]).toBe(7);
    spread(strip, 0, -50, -1, 9);
    spread(strip, 0, 100, 200, 9);
    expect(sum(strip.values[0]!)).toBe(27);
    spread(strip, 0, -10, 10, 20);
    expect(strip.values[0]![0]).toBe(15);
  });
});

describe('requests', () => {
  it('are told by endpoint, the slowest first', () => {
    const profile = shop();
    const [slow, fast] = endpointRows(profile, everything(profile));
    expect([slow!.name, slow!.requests, slow!.p95]).toEqual(['GET /slow', 1, 360]);
    expect([fast!.name, fast!.requests, fast!.kept]).toEqual(['GET /fast', 100, 2]);
    // A request that stands for 99 counts as 99.
    expect([fast!.p50, fast!.p99, fast!.longest]).toEqual([40, 40, 80]);
    expect(fast!.total).toBe(99 * 40 + 80);
    expect([...slow!.split!]).toEqual([50, 300, 0, 0]);
    const late = { ...everything(profile), during: { from: 600, to: 700 } };
    expect(endpointRows(profile, late).map(({ name }) => name)).toEqual(['GET /fast']);
  });

  it('can be found by how long they took, with what their threads did', () => {
    const profile = shop();
    expect(slowest(profile, null, null, 2)).toEqual([1, 3]);
    expect(slowest(profile, 'GET /fast', null, 9)).toEqual([3, 2]);
    const [work, ...others] = spansOf(profile, 1)[0]!.work;
    expect(others).toEqual([]);
    expect(work!.thread).toBe(0);
    expect(work!.steps.map(({ cause }) => cause)).toEqual([1, 0]);
    expect(spansOf(profile, 3)[0]!.work).toEqual([]);
  });
});

describe('the strip of wall time', () => {
  /** 50 threads, each seen until, in and after a stop, with a little more weight than time. */
  const stopped = (): LookRow[] =>
    Array.from({ length: 50 }, (_, thread) => [
      { thread, time: 0, duration: 396, weight: 400, cause: 'sleep' },
      { thread, time: 400, duration: 396, weight: 400, cause: 'stopped' },
      { thread, time: 800, duration: 196, weight: 200, cause: 'sleep' },
    ]).flat();

  it('has as many threads at the edges of a stop as elsewhere', () => {
    const threads = Array.from({ length: 50 }, (_, i) => `t-${i}`);
    for (const looks of [stopped(), stopped().reverse()]) {
      // As wide as the looks weigh: nothing is left between them, and nothing is there twice.
      looks.forEach((look) => (look.weight! += look.time === 400 ? 40 : 0));
      const profile = wallProfile({ threads, looks, durationNs: 1000 });
      const strip = wallStrip(profile, everything(profile), 250);
      const all = Array.from({ length: 250 }, (_, at) => sum(strip.values.map((row) => row[at]!)));
      expect(sum(all)).toBeCloseTo(50 * 1040, 6);
      all.forEach((value, at) => {
        const isStopped = at >= 99 && at <= 200;
        const most = isStopped ? 440 / 400 : 1.01;
        expect(value / 4 / 50, `bin ${at}`).toBeLessThanOrEqual(most + 1e-9);
      });
      const causes = strip.values.filter((row) => row.some((value) => value > 0));
      expect(causes).toHaveLength(2);
      // One bin at each edge has both causes.
      const both = all.filter((_, at) => causes.every((row) => row[at]! > 0));
      expect(both.length).toBeLessThanOrEqual(2);
    }
  });

  it('draws a look up to the others of its thread, not into them', () => {
    const looks = [
      { thread: 0, time: 500, weight: 200, cause: 'sleep' },
      { thread: 0, time: 100, duration: 100, weight: 300, cause: 'sleep' },
      { thread: 0, time: 120, duration: 20, weight: 40, cause: 'monitor' },
      { thread: 0, time: 240, weight: 60, cause: 'sleep' },
      { thread: 1, time: 210, weight: 100, cause: 'sleep' },
    ];
    const profile = wallProfile({ threads: ['a', 'b'], looks });
    const whole = { from: 0, to: 1000 };
    const spans = looks.map((_, i) => lookSpan(profile, i, whole));
    expect(spans.map(({ from, to }) => [from, to])).toEqual([
      [400, 600],
      [0, 220],
      [120, 140],
      [220, 270],
      [160, 260],
    ]);
  });
});

describe('locks', () => {
  it('have waiters and holders', () => {
    const profile = shop();
    const { locks, edges, weight } = locksOf(profile, everything(profile), false);
    expect(locks.map(({ name, weight }) => [name, weight])).toEqual([['app.Lock', 300]]);
    expect([...locks[0]!.owners]).toEqual([[1, 300]]);
    expect([...locks[0]!.ownerNodes]).toEqual([[3, 300]]);
    expect(edges).toEqual([{ waiter: 'http-#', owner: 'http-#', weight: 300, looks: 3 }]);
    expect(weight).toBe(300);
    expect(locksOf(profile, everything(profile), true).locks[0]!.name).toBe('app.Lock@7f01');
    expect(kindOf('a.B@12ab')).toBe('a.B');
    expect(kindOf('a@b.C')).toBe('a@b.C');
  });

  it('are listed with those that are known first', () => {
    const looks = [
      { thread: 0, time: 100, cause: 'monitor', weight: 900 },
      { thread: 0, time: 200, cause: 'monitor', weight: 100, detail: 'app.Lock@1' },
    ];
    const profile = wallProfile({ threads: ['a'], looks });
    const { locks } = locksOf(profile, everything(profile), false);
    expect(locks.map(({ name }) => name)).toEqual(['app.Lock', 'unknown']);
  });

  it('of two ranges are rates of both, with the largest change first', () => {
    const second = 1e9;
    const wait = { thread: 0, cause: 'monitor', count: 1 };
    const looks = [
      // Both ranges have the same of it; B is twice as long.
      { ...wait, time: 0.5 * second, weight: 100, detail: 'app.Same@1' },
      { ...wait, time: 4 * second, weight: 200, detail: 'app.Same@1' },
      { ...wait, time: 0.6 * second, weight: 70, detail: 'app.Gone@1' },
      { ...wait, time: 4.5 * second, weight: 80, detail: 'app.New@1' },
      // Between the ranges.
      { ...wait, time: 2 * second, weight: 900, detail: 'app.Between@1' },
    ];
    const profile = wallProfile({ threads: ['a'], looks });
    const ranges = { a: { from: 0, to: second }, b: { from: 3 * second, to: 5 * second } };
    const rows = comparedLocks(profile, everything(profile), ranges, false);
    expect(rows.map(({ lock, a, b }) => [lock.name, a, b])).toEqual([
      ['app.Gone', 70, 0],
      ['app.New', 0, 40],
      ['app.Same', 100, 100],
    ]);
    // The stacks are those of B, or of A for a lock of A alone.
    expect(rows.map(({ lock }) => lock.weight)).toEqual([70, 80, 200]);
  });

  it('have owners where these were seen, if they did not wait', () => {
    const profile = shop();
    profile.wall!.ownerNode[0] = 0;
    const asked: [number, number][] = [];
    const { locks } = locksOf(profile, everything(profile), false, (thread, time) => {
      asked.push([thread, time]);
      return -1;
    });
    expect(asked).toEqual([[1, 250]]);
    expect([...locks[0]!.ownerNodes]).toEqual([[2, 300]]);
  });

  it('have only those samples of owners that are inside the lock', () => {
    const wait = { thread: 0, time: 100, cause: 'monitor', detail: 'app.Lock@1', owner: 1 };
    const own = { thread: 1, time: 110 };
    const cases: [Partial<LookRow>, number[]][] = [
      [{ cause: 'sleep', node: 2 }, [2]],
      // Another method, and of another class.
      [{ cause: 'sleep', node: 3 }, []],
      // It waits for the lock itself, or for another one while it holds this one.
      [{ cause: 'monitor', detail: 'app.Lock@1' }, []],
      [{ cause: 'monitor', detail: 'app.Lock@2' }, [2]],
      [{ cause: 'lock', detail: 'app.Lock@1' }, [2]],
    ];
    for (const [more, expected] of cases) {
      const looks = [wait, { cause: '', ...own, ...more }];
      const profile = wallProfile({ threads: ['a', 'b'], looks });
      const tracks = new Tracks(profile);
      const { locks } = locksOf(profile, everything(profile), true, (thread, time) =>
        tracks.seenAt(thread, time),
      );
      const lock = locks.find(({ owners }) => owners.has(1))!;
      expect([...lock.ownerNodes.keys()], JSON.stringify(more)).toEqual(expected);
    }
    const looks = [
      { ...wait, detail: 'app.C@1' },
      { ...own, cause: 'sleep', node: 3 },
    ];
    const ofClass = wallProfile({ threads: ['a', 'b'], looks });
    const { locks } = locksOf(ofClass, everything(ofClass), true, () => 1);
    expect([...locks[0]!.ownerNodes.keys()]).toEqual([3]);
  });
});

describe('chains of locks', () => {
  /** The first one waits for the second one, that for the third one, and that for a file. */
  const wait = { time: 100, duration: 100, weight: 100, cause: 'monitor' };
  const looks = [
    { ...wait, thread: 0, detail: 'app.A@1', owner: 1 },
    { ...wait, thread: 1, detail: 'app.B@2', owner: 2 },
    { ...wait, thread: 2, cause: 'file' },
  ];
  const chains = (rows: LookRow[]) => {
    const profile = wallProfile({ threads: ['web-1', 'cache-1', 'disk'], looks: rows });
    const tracks = new Tracks(profile);
    const seen = chainsOf(profile, everything(profile), (thread, time) =>
      tracks.seenAt(thread, time),
    );
    return seen.map(({ groups, locks, end, weight }) => [groups.join(), locks.join(), end, weight]);
  };

  it('lead to the thread that holds up all others', () => {
    expect(chains(looks)).toEqual([['web-#,cache-#,disk', 'app.A,app.B', 'file', 100]]);
  });

  it('end without a sample, and in a cycle', () => {
    expect(chains(looks.slice(0, 2))).toEqual([['web-#,cache-#,disk', 'app.A,app.B', '', 100]]);
    expect(chains([looks[0]!, { ...looks[1]!, owner: 0 }])).toEqual([]);
    expect(chains([looks[0]!, { ...looks[1]!, time: 900e6 }])).toEqual([]);
  });

  it('do not go on through an owner that waits for the same lock', () => {
    const queued = { ...looks[1]!, detail: 'app.A@1' };
    expect(chains([looks[0]!, queued, looks[2]!])).toEqual([]);
    const other = { ...looks[1]!, detail: 'app.A@2' };
    expect(chains([looks[0]!, other, looks[2]!])).toEqual([
      ['web-#,cache-#,disk', 'app.A,app.A', 'file', 100],
    ]);
  });
});

describe('a stack', () => {
  const profile = profileOf(`
    java.lang.Thread.run        libc.so.read[native]
    app.Shop.buy                -
    java.util.HashMap.get       -
    libjvm.so.wait[VM]          -
    libc.so.futex[native]       -`);
  const [java, native] = profile.samples.node;

  it('is named after the innermost frame of the program', () => {
    expect(shortName(profile, placeOf(profile, java!))).toBe('Shop.buy');
    expect(shortName(profile, placeOf(profile, native!))).toBe('libc.so.read');
    expect(shortName(profile, 0)).toBe('(no stack)');
    const generated = profileOf('a.Jobs$$Lambda$71+0x00007f.run');
    expect(shortName(generated, generated.samples.node[0]!)).toBe('Jobs (lambda).run');
  });

  it('can be shown without how the JVM waits', () => {
    const end = javaEnd(profile, java!);
    expect([shortName(profile, end.node), end.skipped]).toEqual(['HashMap.get', 2]);
    expect(javaEnd(profile, native!)).toEqual({ node: native, skipped: 0 });
  });
});

describe('stacks side by side', () => {
  it('share what they all go through', () => {
    const profile = profileOf(`
      a.A.run  a.A.run  a.A.run  b.B.run
      a.A.go   a.A.go   a.A.go   -
      a.A.x    a.A.y    -        -
    `);
    const [x, y, go, other] = profile.samples.node;
    expect(commonOf(profile, [x!, y!])).toBe(go);
    expect(commonOf(profile, [x!, go!])).toBe(go);
    expect(commonOf(profile, [x!, other!])).toBe(0);
    expect(commonOf(profile, [x!])).toBe(0);
  });
});

describe('places', () => {
  it('finds the heaviest place of a cause', () => {
    const profile = shop();
    const [place] = placesOf(profile, everything(profile), 1);
    expect([place!.node, place!.weight]).toEqual([2, 300]);
    expect(sum(placesOf(profile, everything(profile), -1).map(({ weight }) => weight))).toBe(1350);
  });
});

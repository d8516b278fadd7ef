// Differences: their statistics, which samples are on which side, the tree and the table of both.
import { describe, expect, it } from 'vitest';
import { buildDiff, onSides } from '../../src/diff/build';
import { diffColours, diffLook, stepOf } from '../../src/diff/colours';
import { diffFacts } from '../../src/diff/describe';
import { causeRows, diffRows, sortDiff } from '../../src/diff/rows';
import {
  sideOfRequest,
  sidesOfRecordings,
  sidesOfRequests,
  slowAndUsual,
} from '../../src/diff/sides';
import { baseOf, changeOf, significant, type Sum, twoSided } from '../../src/diff/statistics';
import { relative, sentence, signedRate } from '../../src/diff/words';
import { coloursOf, contrast } from '../../src/flame/colours';
import { measured, WHOLE } from '../../src/data/measure';
import type { Side } from '../../src/data/profile';
import { causesOf } from '../../src/data/wall';
import { makeKeys } from '../../src/tree/keys';
import { atOnce } from '../../src/tree/slices';
import { profileOf, randomOf, randomProfile } from './art';
import { ofRanges } from '../../src/diff/sides';
import type { Span } from '../../src/data/profile';
import { fromFragment } from '../../src/state/fragment';
import { Store } from '../../src/state/store';
import { ALL, built, PAIR, two } from './pairs';
import { wallProfile } from './walls';
import { distance, SIGHTS } from './sights';

describe('the statistics of differences', () => {
  it('have the probabilities of the normal distribution, as the command has', () => {
    for (const [z, p] of [
      [0, 1],
      [1, 0.3173105079],
      [1.959963985, 0.05],
      [2.8, 0.0051102607],
      [2.9, 0.0037316266],
      [-5, 5.7330314e-7],
    ] as const) {
      expect(Math.abs(twoSided(z) - p)).toBeLessThanOrEqual(1e-8 * Math.max(p, 1e-3));
    }
    expect(twoSided(40)).toBeLessThan(1e-300);
  });

  it('test a change against the noise of both sides', () => {
    const sum = (samples: number, weight: number): Sum => ({
      sum: samples * weight,
      squares: samples * weight ** 2,
      samples,
    });
    const [a, b] = [sum(100, 10), sum(50, 30)];
    const base = baseOf('second', 10, 20, a, b);
    const change = changeOf(base, a, b);
    // Rate (1000 + 1500) / 30; noise 10 / 10 + 30 / 20.
    expect(change.error).toBeCloseTo(Math.sqrt((2500 / 30) * (1 + 1.5)), 9);
    expect(change.z).toBeCloseTo((75 - 100) / change.error, 9);
    expect(changeOf(base, sum(4, 10), sum(5, 10)).isTested).toBe(false);
    const whole = baseOf('sample', 1000, 1500, a, b);
    expect(changeOf(whole, a, b).error).toBe(0);
    // 0.01 of 1000 that weigh 20 each, and 0.2 of 50 that weigh 1: of 50 and 50 together 10.5.
    const ofTwo = baseOf('sample', 1000, 50, sum(50, 20), sum(50, 1), false);
    const twoUnits = changeOf(ofTwo, { sum: 10, squares: 100, samples: 1 }, sum(10, 1));
    expect(twoUnits.error).toBeCloseTo(Math.sqrt(0.105 * 0.895 * (10 / 1000 + 1 / 50)), 9);
  });

  it('take shares of two units together by what each side is worth', () => {
    const same = two(PAIR, 1).header.compare!.sides;
    const [one, other] = [
      built(two(PAIR, 1), 'sample', 'both'),
      built(two(PAIR, 1, { isOneUnit: false, sides: same }), 'sample', 'both'),
    ];
    expect([one.sides.base.isOneUnit, other.sides.base.isOneUnit]).toEqual([true, false]);
    const errors = [one, other].map((it) => it.diff.total.at(it.node('m.M.gone')).error);
    expect(errors[0]).not.toBe(errors[1]);
  });

  it('limit false discoveries, not those of each', () => {
    // Thresholds of four tests: 0.0125, 0.025, 0.0375, 0.05.
    const z = [3, 2.3, 2.1, 0.1];
    expect([...significant(z, 4)]).toEqual([1, 1, 1, 0]);
    expect([...significant(z, 40)]).toEqual([0, 0, 0, 0]);
    // Equal programs: at most 5 % of the pairs have any finding. Binomial with 200 pairs: mean 10,
    // deviation 3.1; five of them.
    let alarms = 0;
    for (let pair = 1; pair <= 200; pair++) {
      const random = randomOf(pair * 7919);
      const draw = () => {
        const counts = new Array<number>(10).fill(0);
        for (let i = 0; i < 600; i++) counts[random(10)]! += 1;
        return counts;
      };
      const [a, b] = [draw(), draw()];
      const of = (samples: number): Sum => ({ sum: samples, squares: samples, samples });
      const base = baseOf('sample', 600, 600, of(600), of(600));
      const zs = a.map((count, i) => changeOf(base, of(count), of(b[i]!)).z);
      if (significant(zs, 10).some((mark) => mark === 1)) alarms++;
    }
    expect(alarms).toBeLessThanOrEqual(26);
  });
});

describe('the tree of two recordings', () => {
  it('is as wide as both together, or as one of them', () => {
    const profile = two(PAIR, 1);
    const both = built(profile, 'second', 'both');
    // A: 60 in 2 s, B: 40 in 1 s.
    expect(both.tree.total).toBeCloseTo((30 + 40) / 2, 9);
    const change = (label: string) => {
      const { a, b } = both.diff.total.at(both.node(label));
      return [a, b];
    };
    expect(change('m.M.x')).toEqual([30, 40]);
    expect(change('m.M.y')).toEqual([20, 30]);
    expect(change('m.M.gone')).toEqual([10, 0]);
    expect(change('m.M.new')).toEqual([0, 10]);
    expect(both.diff.own.at(both.node('m.M.x')).a).toBe(0);
    const own = built(profile, 'second', 'a');
    expect(own.tree.weight(own.node('m.M.new'))).toBe(0);
    expect(own.tree.weight(own.node('m.M.x'))).toBe(30);
    expect(own.diff.total.at(own.node('m.M.x')).b).toBe(40);
    const shares = built(profile, 'sample', 'b');
    expect(shares.tree.total).toBeCloseTo(1, 9);
    expect(shares.diff.total.at(shares.node('m.M.y')).a).toBeCloseTo(2 / 3, 9);
  });

  it('has sums that fit whatever the stacks, split or not', () => {
    for (const seed of [5, 6, 7]) {
      const random = randomProfile(seed, 200, 12, 9);
      const side = two('x', 1).header.compare!;
      const profile = { ...random, header: { ...random.header, compare: side } };
      const { tree, diff, sides } = built(profile, 'second', 'both');
      const sums = [0, 0, 0];
      profile.samples.weight.forEach((weight, i) => {
        sums[sides.side(profile.samples, i)]! += weight;
      });
      const root = diff.total.at(0);
      expect(root.a * 2).toBeCloseTo(sums[1]!, 6);
      expect(root.b).toBeCloseTo(sums[2]!, 6);
      for (let node = 0; node < tree.size; node++) {
        const { a, b } = diff.total.at(node);
        expect(tree.weight(node)).toBeCloseTo((a + b) / 2, 6);
      }
      const keys = makeKeys(profile, false);
      const request = { profile, keys, threads: ALL(profile), split: 'group' as const };
      const split = atOnce(buildDiff(request, sides, 'both'));
      expect(split.diff.total.at(0)).toMatchObject({ a: root.a, b: root.b });
    }
  });

  it('cannot be made where one has nothing of the base', () => {
    const none = two(PAIR, 1, { sides: two(PAIR, 1).header.compare!.sides });
    none.header.compare!.sides[0] = { ...none.header.compare!.sides[0], requests: 0 };
    expect(sidesOfRecordings(none, ALL(none), 'request', null)).toBeNull();
    expect(sidesOfRecordings(none, ALL(none), 'second', null)).not.toBeNull();
    expect(
      sidesOfRecordings(profileOf(PAIR), new Uint8Array(2).fill(1), 'second', null),
    ).toBeNull();
  });
});

describe('slow requests against usual ones', () => {
  /** Requests of 1 to 100 ns; the two slow ones that are beyond p95 and more wait for a lock. */
  const profile = wallProfile({
    threads: ['w'],
    endpoints: ['GET /', 'GET /other'],
    looks: [
      ...Array.from({ length: 100 }, (_, i) => ({
        thread: 0,
        time: i,
        cause: i >= 95 ? 'monitor' : 'park',
        weight: i + 1,
        endpoint: 1,
        request: i + 1,
      })),
      { thread: 0, time: 200, cause: 'park', weight: 77, endpoint: 2, request: 101 },
    ],
    requests: [
      ...Array.from({ length: 100 }, (_, i) => ({ time: i, duration: i + 1, endpoint: 1 })),
      { time: 200, duration: 500, endpoint: 2 },
    ],
  });

  it('are those beyond p95 and those around p50 of the same endpoint', () => {
    const found = slowAndUsual(profile, 'GET /', null)!;
    expect([found.slow, found.usual]).toEqual([5, 21]);
    expect([found.p95, found.from, found.to]).toEqual([95, 40, 60]);
    expect(found.side[96]).toBe(2);
    expect([found.side[40], found.side[60], found.side[61], found.side[101]]).toEqual([1, 1, 0, 0]);
    expect(slowAndUsual(profile, 'GET /other', null)).toBeNull();
    expect(slowAndUsual(profile, 'GET /none', null)).toBeNull();
  });

  it('are compared for each request, with the samples of no other', () => {
    const slow = slowAndUsual(profile, 'GET /', null)!;
    const all = measured(profile, { time: 'wall', endpoint: 'GET /' });
    const shown = onSides(all, sideOfRequest(slow));
    expect(shown.samples.node.length).toBe(26);
    const sides = sidesOfRequests(shown, ALL(profile), slow);
    const rows = causeRows(shown, ALL(profile), sides, ['running', ...profile.header.waits]);
    const of = (name: string) => rows.find((row) => row.name === name)!;
    expect([of('monitor').a, of('monitor').b]).toEqual([0, 98]);
    expect(of('monitor').isNew && of('park').isGone).toBe(true);
    expect(of('park').a).toBe(50);
    expect(sentence(sides)).toContain('5 requests longer than p95');
    expect(sentence(sides)).toContain('21 requests around p50');
  });
});

describe('the table of differences', () => {
  it('counts a method once a stack, and marks what is new or gone', () => {
    const profile = two(PAIR, 1);
    const keys = makeKeys(profile, false);
    const sides = sidesOfRecordings(profile, ALL(profile), 'second', null)!;
    const rows = (of: 'own' | 'total', by: 'method' | 'class' = 'method') =>
      diffRows(profile, keys, ALL(profile), sides, by, of);
    expect(rows('total', 'class')).toMatchObject([{ name: 'm.M', a: 30, b: 40 }]);
    const own = new Map(rows('own').map((row) => [row.name, row]));
    expect([own.get('m.M.y')!.a, own.get('m.M.y')!.b]).toEqual([20, 30]);
    expect(own.get('m.M.new')!.isNew && own.get('m.M.gone')!.isGone).toBe(true);
    expect(sortDiff(rows('own'), 'a')[0]!.name).toBe('m.M.y');
    expect(sortDiff(rows('own'), 'name')[0]!.name).toBe('m.M.gone');
  });
});

describe('wall time of two recordings by cause', () => {
  // The numbers are those of the command's test of the same (crates/report/src/diff.rs).
  it('is as uncertain where one has none of it as what was not idle there', () => {
    const side = (thread: number, busy: string, count: number) => [
      // Idle looks, and what they would have seen in between.
      { thread, time: 0, cause: 'idle-pool', weight: 1e6, count: 10, choices: 1e6 },
      { thread, time: 0, cause: busy, weight: 200 * count, count },
    ];
    const profile = wallProfile({
      threads: ['a', 'b'],
      looks: [...side(0, 'park', 20), ...side(1, 'jit-wait', 30)],
    });
    const { compare } = two(PAIR, 1).header;
    const sides = [compare!.sides[0], compare!.sides[1]].map((it) => ({ ...it, durationNs: 1e9 }));
    const both = { ...compare!, sides: sides as [Side, Side] };
    const named = { ...profile, header: { ...profile.header, compare: both } };
    for (const idle of [false, true]) {
      const shown = measured(named, { time: 'wall', endpoint: null }, { ...WHOLE, idle });
      const all = sidesOfRecordings(shown, ALL(shown), 'second', null)!;
      const rows = causeRows(shown, ALL(shown), all, causesOf(shown));
      const row = rows.find(({ name }) => name === 'jit-wait')!;
      // 6000 in the two seconds of both, and each look of either weighs 200.
      expect(row.error).toBeCloseTo(Math.sqrt(3000 * 400), 6);
    }
  });
});

describe('how a difference is told', () => {
  it('in words, with both values and its chance', () => {
    expect(signedRate(-2e6, 'second', 'ns')).toBe('−2.00\u00a0ms');
    expect(signedRate(0.015, 'sample', 'ns')).toBe('+1.5\u00a0%');
    const change = changeOf(
      baseOf(
        'second',
        1,
        1,
        { sum: 0, squares: 0, samples: 0 },
        { sum: 9, squares: 9, samples: 9 },
      ),
      { sum: 0, squares: 0, samples: 0 },
      { sum: 9, squares: 9, samples: 9 },
    );
    expect(relative(change)).toBe('new');
    const profile = two(PAIR, 1);
    const { diff, node } = built(profile, 'second', 'both');
    const facts = new Map(diffFacts(diff, node('m.M.y'), 'ns'));
    expect([...facts.keys()]).toEqual(['A', 'B', 'Change', 'Chance']);
    expect(facts.get('Change')).toBe('+10\u00a0ns  +50 %');
    expect(facts.get('Chance')).toContain('too few samples');
  });

  it('in colours by how much changed, and in none if it may be chance', () => {
    expect([stepOf(10, 10.1, true), stepOf(10, 13, true), stepOf(10, 5, true)]).toEqual([1, 1, -3]);
    expect([stepOf(0, 5, true), stepOf(5, 0, true), stepOf(5, 0, false)]).toEqual([4, -4, 0]);
    const { diff, node } = built(two(PAIR, 1), 'second', 'both');
    const look = diffLook(diff, diffColours('light', false), coloursOf('light'));
    expect(look.sign(node('m.M.new'))).toBe('✚ ');
    expect(look.sign(node('m.M.gone'))).toBe('✖ ');
    expect(look.paint(node('m.M.y'), false)).toEqual(diffColours('light', false).none);
  });

  it.each(['light', 'dark'] as const)('in colours that all can tell apart, %s', (theme) => {
    for (const strong of [false, true]) {
      const { none, more, less } = diffColours(theme, strong);
      for (const paint of [none, ...more, ...less]) {
        expect(contrast(paint.fill, paint.text), paint.fill).toBeGreaterThanOrEqual(4.5);
      }
      for (const sight of Object.values(SIGHTS)) {
        for (const step of [1, 2, 3]) {
          const [red, blue] = [more[step]!.fill, less[step]!.fill];
          expect(distance(red, blue, sight), `${red} ${blue}`).toBeGreaterThan(0.08);
          expect(distance(red, none.fill, sight), red).toBeGreaterThan(0.05);
          expect(distance(blue, none.fill, sight), blue).toBeGreaterThan(0.05);
        }
      }
    }
  });
});

describe('two ranges of one recording', () => {
  const art = profileOf(`
    a.A.x a.A.x a.A.x a.A.y a.A.y a.A.x
  `);
  const SECOND = 1e9;

  it('are compared for each second, and overlap nowhere', async () => {
    const time = Float64Array.of(0, 1, 2, 5, 6, 9).map((at) => at * SECOND);
    const profile = { ...art, samples: { ...art.samples, time } };
    const store = new Store(profile);
    store.start('');
    store.chooseRange({ from: 0, to: 4 * SECOND }, true);
    expect(store.sides.value).toBe(null);
    store.chooseRange({ from: 5 * SECOND, to: 7 * SECOND }, false);
    const sides = store.sides.value!;
    expect([sides.of, sides.base.a, sides.base.b]).toEqual(['ranges', 4, 2]);
    const { samples } = store.shown.value;
    const of = Array.from(samples.node, (_, i) => sides.side(samples, i));
    expect(of).toEqual([1, 1, 1, 2, 2]);
    for (let i = 0; i < 100 && store.busy.value; i++) await new Promise((done) => setTimeout(done));
    const [tree, keys] = [store.tree.value!, store.keys.value];
    const change = (label: string) => {
      const node = Array.from(tree.children(0)).find((at) => keys.label(tree.key(at)) === label)!;
      return store.diff.value!.total.at(node);
    };
    expect([change('a.A.x').a, change('a.A.x').b]).toEqual([0.75, 0]);
    expect([change('a.A.y').a, change('a.A.y').b]).toEqual([0, 1]);
    // The address has both, and ranges that overlap are not compared.
    expect(fromFragment(store.fragment, store.first).against).toEqual({ from: 0, to: 4 * SECOND });
    store.chooseRange({ from: 3 * SECOND, to: 7 * SECOND }, false);
    expect([store.ranges.value, store.sides.value]).toEqual([null, null]);
    store.stopComparing();
    expect(store.against.value).toBe(null);
    store.stop();
  });

  it('count what lasts longer with its part, where it begins', () => {
    const looks = [{ thread: 0, time: 0, cause: 'socket', weight: 10 * SECOND }];
    const waited = wallProfile({ threads: ['a'], looks });
    waited.wall!.duration[0] = 10 * SECOND;
    const ranges = { a: { from: 0, to: 2 * SECOND }, b: { from: 4 * SECOND, to: 9 * SECOND } };
    const of = (during: Span) =>
      measured(waited, { time: 'wall', endpoint: null }, { ...WHOLE, during });
    const { samples } = ofRanges(of, ranges);
    expect([...samples.weight]).toEqual([2 * SECOND, 5 * SECOND]);
    expect([...samples.time]).toEqual([0, 4 * SECOND]);
  });
});

// Comparisons from the inside out: the tree of callers of two sides, while it grows.
import { describe, expect, it } from 'vitest';
import type { Profile } from '../../src/data/profile';
import { buildDiff, type Width } from '../../src/diff/build';
import { diffRows } from '../../src/diff/rows';
import { type Sides, sidesOfRecordings } from '../../src/diff/sides';
import { changeOf, significant, TESTED_FROM } from '../../src/diff/statistics';
import type { TreeDiff } from '../../src/diff/sums';
import { Store } from '../../src/state/store';
import { type Keys, makeKeys, type SplitBy } from '../../src/tree/keys';
import type { ReverseTree } from '../../src/tree/reverse';
import { atOnce } from '../../src/tree/slices';
import type { FrameTree } from '../../src/tree/tree';
import { randomProfile } from './art';
import { ALL, PAIR, two } from './pairs';
import { wrongPlaces } from './trees';

interface Options {
  width?: Width;
  split?: SplitBy;
  causes?: number;
  per?: 'second' | 'sample';
}

function callersOf(profile: Profile, options: Options = {}) {
  const keys = makeKeys(profile, false);
  const threads = ALL(profile);
  const sides = sidesOfRecordings(profile, threads, options.per ?? 'second', null)!;
  const request = {
    profile,
    keys,
    threads,
    split: options.split ?? ('none' as const),
    causes: options.causes ?? 0,
  };
  const made = atOnce(buildDiff(request, sides, options.width ?? 'both', true));
  return { ...made, keys, sides };
}

function grown(tree: FrameTree, min = 0): void {
  atOnce(tree.grow!(0, tree.total, min));
}

/** Random stacks of three threads, the first of which is the first recording. */
function pairOf(seed: number, samples = 200): Profile {
  const random = randomProfile(seed, samples, 12, 9);
  return { ...random, header: { ...random.header, compare: two('x', 1).header.compare! } };
}

interface Both {
  total: number[];
  own: number[];
  samples: number[];
}

/** Sums of each path of callers on both sides, from every sample. */
function byPath(profile: Profile, keys: Keys, sides: Sides): Map<string, Both> {
  const found = new Map<string, Both>();
  const { samples, nodes } = profile;
  for (let i = 0; i < samples.node.length; i++) {
    const side = sides.side(samples, i) - 1;
    const rate = samples.weight[i]! / [sides.base.a, sides.base.b][side]!;
    const path = [''];
    for (let node = samples.node[i]!; node !== 0; node = nodes.parent[node]!) {
      path.push(`${path[path.length - 1]};${keys.label(keys.ofFrame[nodes.frame[node]!]!)}`);
    }
    path.forEach((name, at) => {
      const row = found.get(name) ?? { total: [0, 0], own: [0, 0], samples: [0, 0] };
      row.total[side]! += rate;
      row.samples[side]! += samples.count[i]!;
      if (at === path.length - 1) row.own[side]! += rate;
      found.set(name, row);
    });
  }
  return found;
}

function treeByPath(tree: FrameTree, keys: Keys, diff: TreeDiff): Map<string, Both> {
  const found = new Map<string, Both>();
  const visit = (node: number, path: string) => {
    const [total, own] = [diff.total.at(node), diff.own.at(node)];
    found.set(path, {
      total: [total.a, total.b],
      own: [own.a, own.b],
      samples: [total.samplesA, total.samplesB],
    });
    for (const child of Array.from(tree.children(node))) {
      visit(child, `${path};${keys.label(tree.key(child))}`);
    }
  };
  visit(0, '');
  return found;
}

function expectSame(found: Map<string, Both>, expected: Map<string, Both>): void {
  expect([...found.keys()].sort()).toEqual([...expected.keys()].sort());
  for (const [path, { total, own, samples }] of expected) {
    const row = found.get(path)!;
    expect(row.samples, path).toEqual(samples);
    for (const side of [0, 1]) {
      expect(row.total[side], path).toBeCloseTo(total[side]!, 6);
      expect(row.own[side], path).toBeCloseTo(own[side]!, 6);
    }
  }
}

describe('the callers of two recordings', () => {
  it('have both sides, from where the time was spent outwards', () => {
    const { tree, diff, keys } = callersOf(two(PAIR, 1));
    grown(tree);
    const rows = (node: number) =>
      Array.from(tree.children(node), (child): [string, readonly [number, number]] => [
        keys.label(tree.key(child)),
        diff.total.rates(child),
      ]);
    expect(rows(0)).toEqual([
      ['m.M.y', [20, 30]],
      ['m.M.gone', [10, 0]],
      ['m.M.new', [0, 10]],
    ]);
    const [y, gone, fresh] = Array.from(tree.children(0));
    expect(rows(y!)).toEqual([['m.M.x', [20, 30]]]);
    expect([diff.total.isGone(gone!), diff.total.isNew(fresh!)]).toEqual([true, true]);
    expect([diff.total.isGone(y!), diff.total.isNew(y!)]).toEqual([false, false]);
    expect(tree.weight(y!)).toBe(25);
    expect(diff.total.rates(0)).toEqual([30, 40]);
  });

  it('have sums that are those of the samples, however wide and split', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const profile = pairOf(seed);
      for (const [width, parts] of [
        ['both', [0.5, 0.5]],
        ['a', [1, 0]],
        ['b', [0, 1]],
      ] as const) {
        for (const causes of [0, 3]) {
          const { tree, diff, keys, sides } = callersOf(profile, { width, causes });
          grown(tree);
          expectSame(treeByPath(tree, keys, diff), byPath(profile, keys, sides));
          for (let node = 0; node < tree.size; node++) {
            const [a, b] = diff.total.rates(node);
            expect(tree.weight(node)).toBeCloseTo(a * parts[0] + b * parts[1], 6);
          }
          expect(wrongPlaces(tree)).toEqual([]);
        }
      }
      const whole = callersOf(profile).diff.total.at(0);
      const split = callersOf(profile, { split: 'group' });
      expect(split.diff.total.at(0)).toMatchObject({ samplesA: whole.samplesA });
      expect(split.diff.total.at(0).b).toBeCloseTo(whole.b, 6);
    }
  });

  it('begin with what the table says of methods by themselves', () => {
    const profile = pairOf(9);
    const { tree, diff, keys, sides } = callersOf(profile, { per: 'sample' });
    const rows = diffRows(profile, keys, ALL(profile), sides, 'method', 'own');
    const innermost = Array.from(tree.children(0));
    expect(innermost.length).toBe(rows.length);
    for (const node of innermost) {
      const row = rows.find(({ name }) => name === keys.methodLabel(tree.key(node)))!;
      const { a, b, error, samplesA, samplesB } = diff.total.at(node);
      expect([samplesA, samplesB]).toEqual([row.samplesA, row.samplesB]);
      expect(a).toBeCloseTo(row.a, 9);
      expect(b).toBeCloseTo(row.b, 9);
      expect(error).toBeCloseTo(row.error, 9);
    }
  });
});

describe('chance in a tree that grows', () => {
  /** The same frames on both sides, but one with another share. */
  function changed(): Profile {
    const profile = pairOf(3, 6000);
    const { samples, nodes, frames } = profile;
    const method = frames.method[nodes.frame[1]!]!;
    for (let i = 0; i < samples.node.length; i++) {
      const node = samples.node[i]!;
      const isIt = node !== 0 && frames.method[nodes.frame[node]!] === method;
      if (isIt && samples.thread[i] === 0) samples.weight[i]! *= 3;
    }
    return profile;
  }

  it('depends on the present nodes, in any order', () => {
    const profile = changed();
    const { tree, diff, sides } = callersOf(profile);
    let seen = 0;
    for (const min of [tree.total / 5, tree.total / 50, tree.total / 500, 0]) {
      grown(tree, min);
      expect(tree.size).toBeGreaterThan(seen);
      seen = tree.size;
      let tested = 0;
      const z = Array.from({ length: tree.size }, (_, node) => {
        const { total } = (tree as ReverseTree).both(node)!;
        const isTested = total[0].samples + total[1].samples >= TESTED_FROM;
        if (isTested) tested++;
        return isTested ? changeOf(sides.base, total[0], total[1]).z : 0;
      });
      const marks = significant(z, tested);
      const found = Array.from(marks, (_, node) => Number(diff.total.isSignificant(node)));
      expect(found).toEqual([...marks]);
      expect(diff.total.found).toBe(marks.reduce((sum, mark) => sum + mark, 0));
      expect(diff.total.found).toBeGreaterThan(0);
    }
  });
});

describe('a part of a view', () => {
  it('is brought to the same as the whole of it', async () => {
    const profile = pairOf(4);
    const name = 'c.C.m3';
    const outer = new Store(profile);
    const inner = new Store(profile, outer);
    for (const store of [outer, inner]) store.start('per=sample');
    inner.apply({
      ...outer.shared,
      reversed: true,
      transforms: [{ kind: 'callers', name }],
    });
    await expect.poll(() => inner.busy.value || outer.busy.value).toBe(false);
    // All calls of the method: a part of all that was sampled, on either side.
    const rows = diffRows(
      profile,
      outer.keys.value,
      ALL(profile),
      outer.sides.value!,
      'method',
      'total',
    );
    const row = rows.find((row) => row.name === name)!;
    const [a, b] = inner.diff.value!.total.rates(0);
    expect(a).toBeCloseTo(row.a, 9);
    expect(b).toBeCloseTo(row.b, 9);
    expect(a).toBeLessThan(0.9);
    for (const store of [outer, inner]) store.stop();
  });
});

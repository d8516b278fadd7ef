// The trees of callees and callers against adding up sample by sample.
import { describe, expect, it } from 'vitest';
import { pathTo } from '../../src/tree/tree';
import { profileOf, randomProfile } from './art';
import { forward, outline, reverse, treeByPath, weightsByPath, wrongPlaces } from './trees';

const ART = `
  thread: main      worker    main     main
  weight: 10        20        5        1
          a.A.run:1 a.A.run:2 a.A.run  b.B.x
          b.B.x[C1] b.B.x     -        -
          b.B.y     -         -        -`;

describe('the tree of callees', () => {
  it('merges lines and kinds of a method, heaviest first', () => {
    const { tree, keys } = forward(profileOf(ART));
    expect(outline(tree, keys)).toEqual([
      'all 36/0',
      '  a.A.run 35/5',
      '    b.B.x 30/20',
      '      b.B.y 10/10',
      '  b.B.x 1/1',
    ]);
    expect(wrongPlaces(tree)).toEqual([]);
  });

  it('keeps lines apart when asked to', () => {
    const { tree, keys } = forward(profileOf(ART), { byLine: true });
    expect(outline(tree, keys).slice(0, 4)).toEqual([
      'all 36/0',
      '  a.A.run:2 20/0',
      '    b.B.x 20/20',
      '  a.A.run:1 10/0',
    ]);
  });

  it('gives every thread a root when asked to', () => {
    const { tree, keys } = forward(profileOf(ART), { split: 'thread' });
    expect(outline(tree, keys)).toEqual([
      'all 36/0',
      '  worker 20/0',
      '    a.A.run 20/0',
      '      b.B.x 20/20',
      '  main 16/0',
      '    a.A.run 15/5',
      '      b.B.x 10/0',
      '        b.B.y 10/10',
      '    b.B.x 1/1',
    ]);
    expect(keys.isGroup(tree.key(1))).toBe(true);
    expect(keys.isGroup(tree.key(3))).toBe(false);
  });

  it('leaves out threads that are not chosen', () => {
    const { tree, keys } = forward(profileOf(ART), { threads: Uint8Array.of(0, 1) });
    expect(outline(tree, keys)).toEqual(['all 20/0', '  a.A.run 20/0', '    b.B.x 20/20']);
  });

  it('knows the kinds of a node by weight', () => {
    const { tree } = forward(profileOf(ART));
    const [run] = Array.from(tree.children(0));
    const [x] = Array.from(tree.children(run!));
    expect(tree.kind(x!)).toBe(2);
    expect(Array.from(tree.kinds(x!)).slice(0, 3)).toEqual([0, 10, 20]);
    expect(tree.samples(x!)).toBe(2);
  });

  it('is empty without samples', () => {
    const { tree } = forward(profileOf(ART), { threads: Uint8Array.of(0, 0) });
    expect([tree.size, tree.total, tree.levels.length]).toEqual([1, 0, 1]);
  });

  it('agrees with adding up sample by sample', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const profile = randomProfile(seed, 60, 5, 9);
      const { tree, keys } = forward(profile);
      expect(treeByPath(tree, keys)).toEqual(weightsByPath(profile, keys, false));
      expect(wrongPlaces(tree)).toEqual([]);
    }
  });

  it('takes ten thousand levels', () => {
    const art = Array.from({ length: 10_000 }, () => 'a.A.f').join('\n');
    const { tree } = forward(profileOf(art));
    expect(tree.levels.length).toBe(10_001);
    expect(pathTo(tree, tree.size - 1).length).toBe(10_001);
  });
});

describe('the tree of callers', () => {
  it('starts with what was running', () => {
    const { tree, keys } = reverse(profileOf(ART));
    expect(outline(tree, keys)).toEqual([
      'all 36/0',
      '  b.B.x 21/1',
      '    a.A.run 20/20',
      '  b.B.y 10/0',
      '    b.B.x 10/0',
      '      a.A.run 10/10',
      '  a.A.run 5/5',
    ]);
    expect(wrongPlaces(tree)).toEqual([]);
  });

  it('has a root for every thread when asked to', () => {
    const { tree, keys } = reverse(profileOf(ART), { split: 'thread' });
    expect(outline(tree, keys).slice(0, 4)).toEqual([
      'all 36/0',
      '  worker 20/0',
      '    b.B.x 20/0',
      '      a.A.run 20/20',
    ]);
  });

  it('agrees with adding up sample by sample', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const profile = randomProfile(seed, 60, 5, 9);
      const { tree, keys } = reverse(profile);
      expect(treeByPath(tree, keys)).toEqual(weightsByPath(profile, keys, true));
      expect(wrongPlaces(tree)).toEqual([]);
    }
  });

  it('grows only where something is wide enough', () => {
    const profile = randomProfile(3, 400, 12, 30);
    const all = reverse(profile).tree;
    const some = reverse(profile, {}, all.total / 20).tree;
    expect(some.size).toBeLessThan(all.size / 4);
    expect(wrongPlaces(some)).toEqual([]);
    const before = some.size;
    const min = all.total / 20;
    const ids = some.levels.flatMap((level) => Array.from(level.id));
    const narrow = ids.find((id) => some.weight(id) < min && some.hasChildren(id))!;
    expect(Array.from(some.children(narrow)).length).toBeGreaterThan(0);
    expect(some.size).toBeGreaterThan(before);
    expect(wrongPlaces(some)).toEqual([]);
  });

  it('ends up the same whatever order it grows in', () => {
    const profile = randomProfile(9, 200, 6, 12);
    const whole = reverse(profile);
    const stepwise = reverse(profile, {}, whole.tree.total / 3);
    const half = whole.tree.total / 2;
    for (const [from, to] of [
      [half, whole.tree.total],
      [0, half],
    ] as const) {
      const work = stepwise.tree.grow(from, to, 0);
      while (!work.next().done);
    }
    expect(treeByPath(stepwise.tree, stepwise.keys)).toEqual(treeByPath(whole.tree, whole.keys));
  });
});

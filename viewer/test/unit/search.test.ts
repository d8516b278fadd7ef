// Queries, the share that matches, and going from match to match.
import { describe, expect, it } from 'vitest';
import {
  matchedKeys,
  matchedWeight,
  matchLevels,
  nextMatch,
  parseQuery,
} from '../../src/search/search';
import { profileOf } from './art';
import { forward, request } from './trees';

const ART = `
  thread: main    main    worker
  weight: 10      20      70
          a.Run.x a.Run.x b.Other.y
          a.Run.x b.Q.z   -
          a.Run.x -       -`;

function matches(query: string, name: string): boolean {
  return parseQuery(query).query!.test(name);
}

function share(query: string, threads?: Uint8Array): number {
  const profile = profileOf(ART);
  const made = request(profile, threads ? { threads } : {});
  const matched = matchedKeys(made.keys, parseQuery(query).query!);
  const weight = matchedWeight(profile, made.keys, made.threads, matched);
  return weight.matched / weight.all;
}

describe('queries', () => {
  it('are parts of names; capitals make case matter', () => {
    expect([
      matches('run', 'a.Run.x'),
      matches('Run', 'a.Run.x'),
      matches('RUN', 'a.Run.x'),
    ]).toEqual([true, true, false]);
    expect(matches('.*', 'a.Run.x')).toBe(false);
  });

  it('are patterns between slashes', () => {
    expect([matches('/^a\\..*x$/', 'a.Run.x'), matches('/^run/', 'a.Run.x')]).toEqual([
      true,
      false,
    ]);
    expect(matches('/RUN/i', 'a.Run.x')).toBe(true);
    expect(matches('/', 'a/b')).toBe(true);
    expect(matches('//', 'a//b')).toBe(true);
  });

  it('say what is wrong with a pattern', () => {
    expect(parseQuery('/(/').query).toBeNull();
    expect(parseQuery('/(/').error).toMatch(/./);
    expect(parseQuery('')).toEqual({ query: null, error: '' });
  });
});

describe('the share that matches', () => {
  it('counts a stack once, however often it matches', () => {
    expect(share('run')).toBe(0.3);
    expect(share('/Run|Q/')).toBe(0.3);
    expect(share('b.')).toBe(0.9);
    expect(share('nothing')).toBe(0);
  });

  it('is of the chosen threads', () => {
    expect(share('q.z', Uint8Array.of(1, 0))).toBeCloseTo(20 / 30);
  });

  it('does not count threads’ names', () => {
    expect(share('worker')).toBe(0);
  });
});

describe('going from match to match', () => {
  it('goes level by level and comes round, both ways', () => {
    const { tree, keys } = forward(profileOf(ART));
    const matched = matchedKeys(keys, parseQuery('run').query!);
    const levels = matchLevels(tree, matched);
    expect(levels.map((level) => level.n)).toEqual([0, 1, 1, 1]);
    const seen: number[] = [];
    let node = 0;
    for (let i = 0; i < 4; i++) seen.push((node = nextMatch(tree, levels, node, 1)));
    expect(seen.map((to) => tree.depth(to))).toEqual([1, 2, 3, 1]);
    expect(seen[3]).toBe(seen[0]);
    expect(nextMatch(tree, levels, seen[0]!, -1)).toBe(seen[2]);
    expect(nextMatch(tree, levels, seen[1]!, -1)).toBe(seen[0]);
  });

  it('goes from left to right within a level', () => {
    const { tree, keys } = forward(profileOf('weight: 3 2 1\na.x a.y a.z'));
    const levels = matchLevels(tree, matchedKeys(keys, parseQuery('a.').query!));
    const first = nextMatch(tree, levels, 0, 1);
    const second = nextMatch(tree, levels, first, 1);
    expect([keys.label(tree.key(first)), keys.label(tree.key(second))]).toEqual(['a.x', 'a.y']);
    expect(nextMatch(tree, levels, second, -1)).toBe(first);
  });

  it('finds nothing where nothing matches', () => {
    const { tree, keys } = forward(profileOf(ART));
    const levels = matchLevels(tree, matchedKeys(keys, parseQuery('nothing').query!));
    expect(nextMatch(tree, levels, 0, 1)).toBe(-1);
  });
});

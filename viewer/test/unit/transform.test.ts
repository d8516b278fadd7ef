// Stacks cut, folded, merged or dropped; callers and callees; readable names.
import { describe, expect, it } from 'vitest';
import type { Profile } from '../../src/data/profile';
import { OTHERS_PAINT, PACKAGE_PAINTS, packagesOf } from '../../src/flame/packages';
import { buildForward } from '../../src/tree/forward';
import { makeKeys } from '../../src/tree/keys';
import { readable } from '../../src/tree/readable';
import { sandwich } from '../../src/tree/sandwich';
import { atOnce } from '../../src/tree/slices';
import { fromText, packageOf, toText, type Transform, transformed } from '../../src/tree/transform';
import { profileOf, randomProfile } from './art';

const PROFILE = profileOf(`
  thread: main  main  main  main
  weight: 1     2     4     8
          a.A.m a.A.m a.A.m j.J.run
          b.B.x b.B.x c.C.y b.B.x
          c.C.y b.D.z -     b.B.x
          -     b.B.x -     c.C.y
          -     -     -     -`);

/** Every stack of the tree that spends something itself, with what it spends. */
function stacks(profile: Profile): Record<string, number> {
  const keys = makeKeys(profile, false);
  const threads = new Uint8Array(profile.threads.name.length).fill(1);
  const tree = atOnce(buildForward({ profile, keys, threads, split: 'none' }));
  const found: Record<string, number> = {};
  for (let node = 0; node < tree.size; node++) {
    if (tree.own(node) <= 0) continue;
    const names: string[] = [];
    for (let at = node; at !== 0; at = tree.parent(at)) names.unshift(keys.label(tree.key(at)));
    found[names.join(' ')] = tree.own(node);
  }
  return found;
}

function after(...transforms: Transform[]): Record<string, number> {
  return stacks(transformed(PROFILE, makeKeys(PROFILE, false), transforms));
}

describe('stacks', () => {
  it('are as they were without transforms', () => {
    expect(transformed(PROFILE, makeKeys(PROFILE, false), [])).toBe(PROFILE);
    expect(stacks(PROFILE)).toEqual({
      'a.A.m b.B.x c.C.y': 1,
      'a.A.m b.B.x b.D.z b.B.x': 2,
      'a.A.m c.C.y': 4,
      'j.J.run b.B.x b.B.x c.C.y': 8,
    });
  });

  it('begin with a method, or end with it', () => {
    expect(after({ kind: 'focus', name: 'b.B.x' })).toEqual({
      'b.B.x c.C.y': 1,
      'b.B.x b.D.z b.B.x': 2,
      'b.B.x b.B.x c.C.y': 8,
    });
    expect(after({ kind: 'callers', name: 'b.B.x' })).toEqual({
      'a.A.m b.B.x': 3,
      'j.J.run b.B.x': 8,
    });
  });

  it('lose a method or a package, whose time stays with the callers', () => {
    expect(after({ kind: 'merge', name: 'b.B.x' })).toEqual({
      'a.A.m c.C.y': 5,
      'a.A.m b.D.z': 2,
      'j.J.run c.C.y': 8,
    });
    expect(after({ kind: 'merge-package', name: 'b' })).toEqual({
      'a.A.m c.C.y': 5,
      'a.A.m': 2,
      'j.J.run c.C.y': 8,
    });
    // A method without callers is merged into the root: no time is lost.
    expect(after({ kind: 'merge', name: 'a.A.m' })).toMatchObject({ 'c.C.y': 4 });
    expect(after({ kind: 'merge-package', name: 'a' }, { kind: 'merge', name: 'c.C.y' })).toEqual({
      'b.B.x': 1,
      'b.B.x b.D.z b.B.x': 2,
      '': 4,
      'j.J.run b.B.x b.B.x': 8,
    });
  });

  it('go away with a method or a package, and their time with them', () => {
    expect(after({ kind: 'drop', name: 'b.B.x' })).toEqual({ 'a.A.m c.C.y': 4 });
    expect(after({ kind: 'drop', name: 'b.D.z' })).toEqual({
      'a.A.m b.B.x c.C.y': 1,
      'a.A.m c.C.y': 4,
      'j.J.run b.B.x b.B.x c.C.y': 8,
    });
    expect(after({ kind: 'drop-package', name: 'j' })).toEqual({
      'a.A.m b.B.x c.C.y': 1,
      'a.A.m b.B.x b.D.z b.B.x': 2,
      'a.A.m c.C.y': 4,
    });
    expect(after({ kind: 'drop-package', name: 'nothing' })).toEqual(stacks(PROFILE));
  });

  it('are merged and dropped as by going through every stack', () => {
    for (const seed of [11, 12, 13]) {
      const profile = randomProfile(seed, 300, 9, 12);
      const keys = makeKeys(profile, false);
      const name = keys.methodLabel(seed % keys.methods);
      const merged: Record<string, number> = {};
      const dropped: Record<string, number> = {};
      for (const [stack, weight] of Object.entries(stacks(profile))) {
        const frames = stack.split(' ');
        const rest = frames.filter((frame) => frame !== name).join(' ');
        merged[rest] = (merged[rest] ?? 0) + weight;
        if (!frames.includes(name)) dropped[stack] = weight;
      }
      expect(merged, name).not.toEqual(stacks(profile));
      expect(stacks(transformed(profile, keys, [{ kind: 'merge', name }]))).toEqual(merged);
      expect(stacks(transformed(profile, keys, [{ kind: 'drop', name }]))).toEqual(dropped);
    }
  });

  it('are told in addresses, also in those that older pages wrote', () => {
    const list: Transform[] = [
      { kind: 'merge', name: 'a.A.m' },
      { kind: 'merge-package', name: 'b' },
      { kind: 'drop-package', name: 'c' },
    ];
    expect(fromText(toText(list))).toEqual(list);
    expect(fromText('[["hide","a.A.m"],["hide-package","b"]]')).toEqual(list.slice(0, 2));
    expect(fromText('[["constructor","x"]]')).toEqual([]);
  });

  it('are folded: a package to its outermost frame, a recursion to where it began', () => {
    expect(after({ kind: 'collapse', name: 'b' })).toEqual({
      'a.A.m b.B.x c.C.y': 1,
      'a.A.m b.B.x': 2,
      'a.A.m c.C.y': 4,
      'j.J.run b.B.x c.C.y': 8,
    });
    expect(after({ kind: 'recursion', name: '' })).toEqual({
      'a.A.m b.B.x c.C.y': 1,
      'a.A.m b.B.x': 2,
      'a.A.m c.C.y': 4,
      'j.J.run b.B.x c.C.y': 8,
    });
  });

  it('take one transform after the other', () => {
    const both = after({ kind: 'merge', name: 'b.D.z' }, { kind: 'focus', name: 'b.B.x' });
    expect(both).toEqual({ 'b.B.x c.C.y': 1, 'b.B.x b.B.x': 2, 'b.B.x b.B.x c.C.y': 8 });
    expect(after({ kind: 'drop', name: 'b.B.x' }, { kind: 'focus', name: 'b.B.x' })).toEqual({});
  });

  it('keep their weight whatever is folded or merged', () => {
    for (const seed of [3, 4, 5]) {
      const profile = randomProfile(seed, 300, 9, 12);
      const keys = makeKeys(profile, false);
      const sum = (of: Profile) => of.samples.weight.reduce((all, weight) => all + weight, 0);
      for (const transform of [
        { kind: 'recursion', name: '' },
        { kind: 'merge', name: 'c.C.m3' },
        { kind: 'collapse', name: 'c' },
      ] as const) {
        const made = transformed(profile, keys, [transform]);
        expect(sum(made)).toBe(sum(profile));
        const deepest = Object.keys(stacks(made)).map((stack) => stack.split(' '));
        if (transform.kind !== 'recursion') continue;
        for (const stack of deepest) expect(new Set(stack).size).toBe(stack.length);
      }
    }
  });

  it('know the package of a class, and that of a library', () => {
    expect([packageOf('a.b.C'), packageOf('libc.so.6'), packageOf('C')]).toEqual([
      'a.b',
      'libc.so.6',
      '',
    ]);
  });
});

describe('callers and callees', () => {
  it('are those of all calls of a method, each stack once', () => {
    const keys = makeKeys(PROFILE, false);
    const keyOf = (label: string) =>
      Array.from({ length: keys.methods }, (_, key) => key).find((k) => keys.label(k) === label)!;
    const named = (list: { key: number; weight: number }[]) =>
      list.map(({ key, weight }) => [key < 0 ? '' : keys.label(key), weight]);
    const found = sandwich(PROFILE, keys, Uint8Array.of(1), keyOf('b.B.x'));
    expect(found.total).toBe(11);
    expect(named(found.callers)).toEqual([
      ['j.J.run', 8],
      ['a.A.m', 3],
    ]);
    // What it calls at once; the call inside of b.D.z is b.D.z's.
    expect(named(found.callees)).toEqual([
      ['c.C.y', 9],
      ['b.D.z', 2],
    ]);
    expect(found.own).toBe(0);
    const top = sandwich(PROFILE, keys, Uint8Array.of(1), keyOf('a.A.m'));
    expect(named(top.callers)).toEqual([['', 7]]);
  });
});

describe('colours of packages', () => {
  it('are given to those that spend most themselves', () => {
    const keys = makeKeys(PROFILE, false);
    const { named, ofKey } = packagesOf(PROFILE, keys, Uint8Array.of(1));
    expect(named.map(({ name, share }) => [name, share])).toEqual([
      ['c', 13 / 15],
      ['b', 2 / 15],
    ]);
    const paint = (label: string) => {
      for (let key = 0; key < keys.methods; key++) if (keys.label(key) === label) return ofKey[key];
      return undefined;
    };
    expect([paint('c.C.y'), paint('b.D.z'), paint('b.B.x')]).toEqual([
      PACKAGE_PAINTS[0],
      PACKAGE_PAINTS[1],
      PACKAGE_PAINTS[1],
    ]);
    expect(paint('a.A.m')).toBe(OTHERS_PAINT);
  });
});

describe('names of generated classes', () => {
  it('lose what changes from run to run', () => {
    for (const [name, expected] of [
      ['a.B$$Lambda$71+0x00007f360400e668', 'a.B (lambda)'],
      ['a.B$$Lambda/0x00007f360400e668', 'a.B (lambda)'],
      ['a.B$$Lambda$14/1234567', 'a.B (lambda)'],
      ['a.B$$Lambda.0x0000000034046a28', 'a.B (lambda)'],
      ['a.B$$Lambda.1800031768', 'a.B (lambda)'],
      ['a.B$$Lambda$95+0x00007f54d4120a40.1611241809', 'a.B (lambda)'],
      ['java.lang.invoke.LambdaForm$MH.0x00ab', 'java.lang.invoke.LambdaForm$MH'],
      ['a.B$$Lambda', 'a.B (lambda)'],
      ['a.B$$EnhancerBySpringCGLIB$$3f2a', 'a.B (generated)'],
      ['a.B$$SpringCGLIB$$0', 'a.B (generated)'],
      ['a.B$ByteBuddy$AbC1', 'a.B (generated)'],
      [
        'jdk.internal.reflect.GeneratedMethodAccessor12',
        'jdk.internal.reflect.GeneratedMethodAccessor',
      ],
      ['com.sun.proxy.$Proxy3', 'com.sun.proxy.$Proxy'],
      ['java.lang.invoke.LambdaForm$DMH+0x00ab', 'java.lang.invoke.LambdaForm$DMH'],
      ['a.B$Inner', 'a.B$Inner'],
      ['a.B$1', 'a.B$1'],
      ['a.Base64', 'a.Base64'],
    ] as const) {
      expect(readable(name)).toBe(expected);
    }
  });

  it('make lambdas of one class one, or not, as is asked', () => {
    const profile = profileOf(`
      a.B$$Lambda$1+0x00ab.run a.B$$Lambda$2+0x00cd.run`);
    const folded = makeKeys(profile, false);
    expect([folded.methods, folded.label(0)]).toEqual([1, 'a.B (lambda).run']);
    expect(folded.originals(0)).toBe('a.B$$Lambda$1+0x00ab');
    const original = makeKeys(profile, false, true);
    expect([original.methods, original.originals(0)]).toEqual([2, '']);
  });
});

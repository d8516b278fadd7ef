// The sums and errors of the table.
import { describe, expect, it } from 'vitest';
import { shareError, shareErrorAlike, wholeOf } from '../../src/data/whole';
import { type GroupBy, sortRows, topTable } from '../../src/table/top';
import { libraryOf } from '../../src/tree/library';
import { profileOf, randomProfile } from './art';
import { matchedKeys, matchedWeight, parseQuery } from '../../src/search/search';
import { makeKeys } from '../../src/tree/keys';
import { transformed } from '../../src/tree/transform';
import { request } from './trees';

function rows(art: string, by: GroupBy) {
  const made = request(profileOf(art));
  const { rows } = topTable(made.profile, made.keys, made.threads, by);
  return sortRows(rows, 'own', true).map((row) => [row.name, row.own, row.total, row.samples]);
}

const ART = `
  thread: main      worker
  weight: 10        1
          a.b.C.f   a.b.C.f
          a.b.C.f   a.b.D.g
          a.b.C.f   libjvm.so.h[VM]`;

describe('the table', () => {
  it('counts total once a stack', () => {
    expect(rows(ART, 'method')).toEqual([
      ['a.b.C.f', 10, 11, 2],
      ['libjvm.so.h', 1, 1, 1],
      ['a.b.D.g', 0, 1, 1],
    ]);
  });

  it('puts classes, packages and threads together', () => {
    expect(rows(ART, 'class')).toEqual([
      ['a.b.C', 10, 11, 2],
      ['libjvm.so', 1, 1, 1],
      ['a.b.D', 0, 1, 1],
    ]);
    expect(rows(ART, 'package')).toEqual([
      ['a.b', 10, 11, 2],
      ['libjvm.so', 1, 1, 1],
    ]);
    expect(rows(ART, 'thread')).toEqual([
      ['main', 10, 10, 1],
      ['worker', 1, 1, 1],
    ]);
    const made = request(profileOf(ART));
    const threads = topTable(made.profile, made.keys, made.threads, 'thread').rows;
    expect(threads.map(({ name, thread }) => [name, thread])).toEqual([
      ['main', 0],
      ['worker', 1],
    ]);
  });

  it('puts libraries together as far as names tell', () => {
    expect(rows(ART, 'library')).toEqual([
      ['a.b', 10, 11, 2],
      ['libjvm.so', 1, 1, 1],
    ]);
    for (const [name, library] of [
      ['java.util.HashMap', 'JDK'],
      ['com.sun.proxy.$Proxy', 'JDK'],
      ['com.sunny.app.Main', 'com.sunny'],
      ['io.netty.channel.Loop', 'io.netty'],
      ['org.apache.tomcat.util.net.Poller', 'org.apache.tomcat'],
      ['Main', '(no package)'],
    ] as const) {
      expect(libraryOf(name), name).toBe(library);
    }
  });

  it('puts libraries together as the recording tells them, and keeps their classes apart', () => {
    const profile = profileOf(`
      weight: 1 2 4 8
      a.A.f   a.A.f  a.B.g  java.lang.X.y
      x.X.h   -      -      -
    `);
    const { names, methods } = profile;
    const texts = ['one.jar', 'two.jar'];
    const first = 1000;
    const named = Object.assign(Object.create(names), {
      text: (id: number) => texts[id - first] ?? names.text(id),
    });
    // x.X is unknown; a.A is in the first jar, a.B in the second.
    const jar = new Map([
      ['a.A', first + 1],
      ['a.B', first + 2],
    ]);
    const library = methods.library.map((_, m) => jar.get(names.text(methods.class[m]!)) ?? 0);
    const told = { ...profile, names: named, methods: { ...methods, library } };
    const keys = makeKeys(told, false);
    const all = new Uint8Array(told.threads.name.length).fill(1);
    const table = topTable(told, keys, all, 'library');
    const sorted = sortRows(table.rows, 'total', true).map((row) => [row.name, row.total]);
    expect(sorted).toEqual([
      ['JDK', 8],
      ['two.jar', 4],
      ['one.jar', 3],
      ['x', 1],
    ]);
    const found = matchedKeys(keys, parseQuery('one.jar').query!, 'one.jar');
    expect(matchedWeight(told, keys, all, found).matched).toBe(3);
    const dropped = transformed(told, keys, [{ kind: 'drop-library', name: 'one.jar' }]);
    expect(topTable(dropped, keys, all, 'library').all).toBe(12);
    // The same class in two jars is two.
    const twice = { ...told, methods: { ...told.methods, library: library.slice() } };
    twice.methods.class = twice.methods.class.fill(methods.class[0]!);
    twice.methods.name = twice.methods.name.fill(methods.name[0]!);
    twice.methods.library.set([first + 1, first + 2, first + 1, 0]);
    const names2 = makeKeys(twice, false);
    expect(Array.from({ length: names2.methods }, (_, key) => names2.library(key))).toEqual([
      'one.jar',
      'two.jar',
      'a',
    ]);
  });

  it('agrees with counting sample by sample', () => {
    for (let seed = 1; seed <= 10; seed++) {
      const made = request(randomProfile(seed, 80, 6, 10));
      const { profile, keys } = made;
      const totals = new Map<string, number>();
      for (let i = 0; i < profile.samples.node.length; i++) {
        const names = new Set<string>();
        for (let at = profile.samples.node[i]!; at !== 0; at = profile.nodes.parent[at]!) {
          names.add(keys.label(keys.ofFrame[profile.nodes.frame[at]!]!));
        }
        for (const name of names)
          totals.set(name, (totals.get(name) ?? 0) + profile.samples.weight[i]!);
      }
      const table = topTable(profile, keys, made.threads, 'method');
      expect(new Map(table.rows.map((row) => [row.name, row.total]))).toEqual(totals);
    }
  });

  it('has the binomial error for equal weights', () => {
    const all = { weight: 1000, squares: 1000 * 10, unseen: 0 };
    const binomial = Math.sqrt((0.25 * 0.75) / 100);
    expect(shareError(250, 250 * 10, all)).toBeCloseTo(binomial, 12);
    expect(shareErrorAlike(250, all)).toBeCloseTo(binomial, 12);
    expect(shareError(1000, 1000 * 10, all)).toBe(0);
    expect(shareError(0, 0, { weight: 0, squares: 0, unseen: 0 })).toBe(0);
    expect(shareErrorAlike(0, { weight: 0, squares: 0, unseen: 0 })).toBe(0);
  });

  it('counts looks that might have been seen, if they are not too few to matter', () => {
    const { profile, threads } = request(profileOf(ART));
    const { samples } = profile;
    expect(wholeOf(profile, threads)).toEqual({ weight: 11, squares: 101, unseen: 0 });
    samples.wait.fill(1);
    expect(wholeOf(profile, threads).unseen).toBe(150);
    samples.count.set([1000, 1]);
    samples.choices.set([1000, 1]);
    samples.weight.set([2000, 7]);
    // One look of 7 beside a thousand of 2 stands for less than a hundredth of the time.
    expect(wholeOf(profile, threads).unseen).toBe(6);
    samples.weight.set([2000, 30]);
    const all = wholeOf(profile, threads);
    expect(all.unseen).toBe(1350);
    // Share 2000 / 2030, squares 4000 inside and 900 outside.
    const share = 2000 / 2030;
    const variance = (1 - share) ** 2 * (4000 + 1350) + share ** 2 * (900 + 1350);
    expect(shareError(2000, 4000, all)).toBeCloseTo(Math.sqrt(variance) / 2030, 12);
    // Time between the looks has no squares, and keeps its weight.
    samples.choices.set([1_000_000_000, 1]);
    const known = wholeOf(profile, threads);
    expect(known.squares).toBeCloseTo(900.004, 6);
    expect(known.unseen).toBe(1350);
  });

  it('sorts by every column, both ways', () => {
    const made = request(profileOf(ART));
    const table = topTable(made.profile, made.keys, made.threads, 'method').rows;
    expect(sortRows(table, 'name', false).map((row) => row.name)).toEqual([
      'a.b.C.f',
      'a.b.D.g',
      'libjvm.so.h',
    ]);
    expect(sortRows(table, 'total', false).map((row) => row.total)).toEqual([1, 1, 11]);
    expect(sortRows(table, 'samples', true)[0]!.samples).toBe(2);
  });
});

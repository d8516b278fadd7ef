// The sums and errors of the table.
import { describe, expect, it } from 'vitest';
import { sortRows, shareError, topTable } from '../../src/table/top';
import { profileOf, randomProfile } from './art';
import { request } from './trees';

function rows(art: string, by: 'method' | 'class' | 'package' | 'thread') {
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
    const error = shareError(250, 250 * 10, { weight: 1000, squares: 1000 * 10 });
    expect(error).toBeCloseTo(Math.sqrt((0.25 * 0.75) / 100), 12);
    expect(shareError(0, 0, { weight: 0, squares: 0 })).toBe(0);
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

// The table of differences: methods, classes, packages or causes with the sums of both sides. Pure.
import type { Profile } from '../data/profile';
import type { Keys } from '../tree/keys';
import { groupsOf, type Place, walk } from '../table/top';
import type { Sides } from './sides';
import type { Change } from './statistics';
import { addSums, AllChanges, type BothSums, emptySums, sumsOfNodes, totalsOf } from './sums';

export interface DiffRow extends Change {
  name: string;
  isSignificant: boolean;
  isNew: boolean;
  isGone: boolean;
}

/** What a row counts: what its code spent itself, or with all it called. */
export type Of = 'own' | 'total';

/** One row a method, class, package or library; the largest differences first. */
export function diffRows(
  profile: Profile,
  keys: Keys,
  threads: Uint8Array,
  sides: Sides,
  by: Place,
  of: Of,
): DiffRow[] {
  const { ofKey, names } = groupsOf(keys, by);
  const own = sumsOfNodes(profile, threads, sides);
  const { parent, frame } = profile.nodes;
  const sums = emptySums(names.length);
  if (of === 'own') {
    for (let node = 1; node < parent.length; node++) {
      addBoth(sums, ofKey[keys.ofFrame[frame[node]!]!]!, own, node);
    }
  } else {
    const below = totalsOf(own, (node) => parent[node]!);
    walk(
      profile,
      (node, open) => {
        const group = ofKey[keys.ofFrame[frame[node]!]!]!;
        if (open[group] === 0) addBoth(sums, group, below, node);
        return group;
      },
      names.length,
    );
  }
  return rowsOf(new AllChanges(sides, sums), names);
}

/** One row for each of what threads did or waited for. */
export function causeRows(
  profile: Profile,
  threads: Uint8Array,
  sides: Sides,
  names: string[],
): DiffRow[] {
  const sums = emptySums(names.length);
  const { samples } = profile;
  for (let i = 0; i < samples.node.length; i++) {
    const to = threads[samples.thread[i]!] ? sums[sides.side(samples, i) - 1] : undefined;
    if (!to) continue;
    const cause = samples.wait[i]!;
    to.weight[cause]! += samples.weight[i]!;
    to.squares[cause]! += samples.weight[i]! ** 2 / samples.choices[i]!;
    to.samples[cause]! += samples.count[i]!;
  }
  return rowsOf(new AllChanges(sides, sums), names);
}

function addBoth(to: BothSums, at: number, from: BothSums, place: number): void {
  addSums(to[0], at, from[0], place);
  addSums(to[1], at, from[1], place);
}

function rowsOf(changes: AllChanges, names: string[]): DiffRow[] {
  const rows: DiffRow[] = [];
  names.forEach((name, at) => {
    const change = changes.at(at);
    if (change.samplesA + change.samplesB === 0) return;
    rows.push({
      ...change,
      name,
      isSignificant: changes.isSignificant(at),
      isNew: changes.isNew(at),
      isGone: changes.isGone(at),
    });
  });
  return rows.sort(
    (x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a) || (x.name < y.name ? -1 : 1),
  );
}

export type DiffSort = 'change' | 'a' | 'b' | 'z' | 'name';

export function sortDiff(rows: readonly DiffRow[], by: DiffSort): DiffRow[] {
  const size = (row: DiffRow) =>
    by === 'change'
      ? Math.abs(row.b - row.a)
      : by === 'z'
        ? Math.abs(row.z)
        : by === 'a'
          ? row.a
          : row.b;
  const byName = (x: DiffRow, y: DiffRow) => (x.name < y.name ? -1 : x.name > y.name ? 1 : 0);
  return [...rows].sort((x, y) =>
    by === 'name' ? byName(x, y) : size(y) - size(x) || byName(x, y),
  );
}

// The table of methods, classes or packages with self and total time.
import type { Profile } from '../data/profile';
import { shareError, type Whole, wholeOf } from '../data/whole';
import { Children } from '../tree/children';
import type { Keys } from '../tree/keys';

/** Groups of code. */
export type Place = 'method' | 'class' | 'package' | 'library';

export type GroupBy = Place | 'thread';

export interface TopRow {
  name: string;
  /** Its key, if it is a method; else -1. */
  key: number;
  /** Its number, if it is a thread; else -1. */
  thread: number;
  own: number;
  total: number;
  /** Standard errors of the shares own/all and total/all. */
  ownError: number;
  totalError: number;
  samples: number;
}

export interface TopTable {
  rows: TopRow[];
  all: number;
}

interface Sums {
  weight: Float64Array;
  squares: Float64Array;
  samples: Uint32Array;
}

/** Total time is counted once a stack, however often a group is on it. */
export function topTable(profile: Profile, keys: Keys, threads: Uint8Array, by: GroupBy): TopTable {
  const all = wholeOf(profile, threads);
  if (by === 'thread') return { rows: threadTable(profile, keys, threads, all), all: all.weight };
  const { ofKey, names, first } = groupsOf(keys, by);
  const own = nodeSums(profile, threads);
  const subtree = subtreeSums(profile, own);
  const ownBy = emptySums(names.length);
  const totalBy = emptySums(names.length);
  walk(
    profile,
    (node, open) => {
      const group = ofKey[keys.ofFrame[profile.nodes.frame[node]!]!]!;
      if (open[group] === 0) addSums(totalBy, group, subtree, node);
      addSums(ownBy, group, own, node);
      return group;
    },
    names.length,
  );
  const rows: TopRow[] = [];
  for (let group = 0; group < names.length; group++) {
    if (totalBy.samples[group] === 0) continue;
    const key = by === 'method' ? first[group]! : -1;
    rows.push({ ...rowOf(names[group]!, ownBy, totalBy, group, all), key });
  }
  return { rows, all: all.weight };
}

function rowOf(name: string, own: Sums, total: Sums, group: number, all: Whole): TopRow {
  return {
    name,
    key: -1,
    thread: -1,
    own: own.weight[group]!,
    total: total.weight[group]!,
    ownError: shareError(own.weight[group]!, own.squares[group]!, all),
    totalError: shareError(total.weight[group]!, total.squares[group]!, all),
    samples: total.samples[group]!,
  };
}

/** The group of each key; the groups' names, and one key of each. */
export function groupsOf(
  keys: Keys,
  by: Place,
): { ofKey: Uint32Array; names: string[]; first: number[] } {
  const ofKey = new Uint32Array(keys.count);
  const ids = new Map<string, number>();
  const first: number[] = [];
  for (let key = 0; key < keys.methods; key++) {
    const name = by === 'method' ? keys.label(key) : placeOf(keys, key, by);
    const id = ids.get(name) ?? ids.size;
    if (id === ids.size) first.push(key);
    ids.set(name, id);
    ofKey[key] = id;
  }
  return { ofKey, names: [...ids.keys()], first };
}

/** A library's file name is class and package at once. */
function placeOf(keys: Keys, key: number, by: Exclude<Place, 'method'>): string {
  const className = keys.className(key);
  if (className === '') return keys.label(key);
  if (by === 'class' || className.includes('.so') || className.startsWith('[')) return className;
  if (by === 'library') return keys.library(key);
  const dot = className.lastIndexOf('.');
  return dot < 0 ? '(no package)' : className.slice(0, dot);
}

function emptySums(n: number): Sums {
  return { weight: new Float64Array(n), squares: new Float64Array(n), samples: new Uint32Array(n) };
}

function addSums(to: Sums, at: number, from: Sums, place: number): void {
  to.weight[at]! += from.weight[place]!;
  to.squares[at]! += from.squares[place]!;
  to.samples[at]! += from.samples[place]!;
}

function nodeSums(profile: Profile, threads: Uint8Array): Sums {
  const sums = emptySums(profile.nodes.parent.length);
  const { thread, node, weight, count, choices } = profile.samples;
  for (let i = 0; i < node.length; i++) {
    if (!threads[thread[i]!]) continue;
    const at = node[i]!;
    sums.weight[at]! += weight[i]!;
    // Looks that saw the same are choices of their own, of about the same weight.
    sums.squares[at]! += weight[i]! ** 2 / choices[i]!;
    sums.samples[at]! += count[i]!;
  }
  return sums;
}

function subtreeSums(profile: Profile, own: Sums): Sums {
  const sums: Sums = {
    weight: own.weight.slice(),
    squares: own.squares.slice(),
    samples: own.samples.slice(),
  };
  for (let node = sums.weight.length - 1; node > 0; node--) {
    addSums(sums, profile.nodes.parent[node]!, sums, node);
  }
  return sums;
}

/** Visits all nodes depth first; `enter` gets how often each group is open on the stack above. */
export function walk(
  profile: Profile,
  enter: (node: number, open: Uint32Array) => number,
  groups: number,
): void {
  const n = profile.nodes.parent.length;
  const children = new Children(profile.nodes.parent, n);
  const open = new Uint32Array(groups);
  const groupOf = new Uint32Array(n);
  // A node is pushed to be entered, and pushed again as its complement to be left.
  const stack: number[] = [...children.of(0)];
  while (stack.length > 0) {
    const item = stack.pop()!;
    if (item < 0) {
      open[groupOf[~item]!]! -= 1;
      continue;
    }
    const group = enter(item, open);
    groupOf[item] = group;
    open[group]! += 1;
    stack.push(~item);
    const below = children.of(item);
    for (let i = below.length - 1; i >= 0; i--) stack.push(below[i]!);
  }
}

function threadTable(profile: Profile, keys: Keys, threads: Uint8Array, all: Whole): TopRow[] {
  const sums = emptySums(threads.length);
  const { thread, weight, count, choices } = profile.samples;
  for (let i = 0; i < weight.length; i++) {
    const at = thread[i]!;
    if (!threads[at]) continue;
    sums.weight[at]! += weight[i]!;
    // Looks that saw the same are choices of their own, of about the same weight.
    sums.squares[at]! += weight[i]! ** 2 / choices[i]!;
    sums.samples[at]! += count[i]!;
  }
  const rows: TopRow[] = [];
  for (let at = 0; at < threads.length; at++) {
    if (sums.samples[at] === 0) continue;
    rows.push({ ...rowOf(keys.label(keys.ofThread(at)), sums, sums, at, all), thread: at });
  }
  return rows;
}

export type SortBy = 'name' | 'own' | 'total' | 'samples';

export function sortRows(rows: readonly TopRow[], by: SortBy, descending: boolean): TopRow[] {
  const sign = descending ? -1 : 1;
  const byName = (a: TopRow, b: TopRow) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  return [...rows].sort((a, b) => {
    const order = by === 'name' ? byName(a, b) : a[by] - b[by];
    return order * sign || byName(a, b);
  });
}

// Sums of both sides by tree node, by method, class or package. Pure.
import type { Profile } from '../data/profile';
import type { FrameTree } from '../tree/tree';
import type { Sides } from './sides';
import { type Change, changeOf, significant, type Sum, TESTED_FROM } from './statistics';

/** Sums of a node on both sides: total and self. */
export interface NodeSums {
  total: readonly [Sum, Sum];
  own: readonly [Sum, Sum];
}

export function noSums(): NodeSums {
  const one = (): Sum => ({ sum: 0, squares: 0, samples: 0 });
  return { total: [one(), one()], own: [one(), one()] };
}

/** Parallel arrays: for each place the sums of one side. */
export interface SideSums {
  weight: Float64Array;
  squares: Float64Array;
  samples: Uint32Array;
}

export type BothSums = readonly [SideSums, SideSums];

export function emptySums(size: number): BothSums {
  const one = (): SideSums => ({
    weight: new Float64Array(size),
    squares: new Float64Array(size),
    samples: new Uint32Array(size),
  });
  return [one(), one()];
}

export function addSums(to: SideSums, at: number, from: SideSums, place: number): void {
  to.weight[at]! += from.weight[place]!;
  to.squares[at]! += from.squares[place]!;
  to.samples[at]! += from.samples[place]!;
}

function sumAt(sums: SideSums, at: number): Sum {
  return { sum: sums.weight[at]!, squares: sums.squares[at]!, samples: sums.samples[at]! };
}

/** What each stack of the profile ends in, by side. */
export function sumsOfNodes(profile: Profile, threads: Uint8Array, sides: Sides): BothSums {
  const sums = emptySums(profile.nodes.parent.length);
  addSamples(sums, profile, threads, sides, null);
  return sums;
}

/** Adds samples, all or those of a list, to the profile's nodes. */
export function addSamples(
  sums: BothSums,
  { samples }: Profile,
  threads: Uint8Array,
  sides: Sides,
  list: Uint32Array | null,
): void {
  const n = list?.length ?? samples.node.length;
  for (let at = 0; at < n; at++) {
    const i = list ? list[at]! : at;
    if (!threads[samples.thread[i]!]) continue;
    const to = sums[sides.side(samples, i) - 1];
    if (!to) continue;
    const node = samples.node[i]!;
    to.weight[node]! += samples.weight[i]!;
    to.squares[node]! += samples.weight[i]! ** 2 / samples.choices[i]!;
    to.samples[node]! += samples.count[i]!;
  }
}

/** The changes of some places, and which are more than chance. */
export interface Changes {
  readonly sides: Sides;
  /** How many of them are more than chance. */
  readonly found: number;
  at(place: number): Change;
  /** Values of a node of the base on both sides. */
  rates(place: number): readonly [number, number];
  isSignificant(place: number): boolean;
  isNew(place: number): boolean;
  isGone(place: number): boolean;
}

/** Those of places that are all known. */
export class AllChanges implements Changes {
  readonly found: number;
  private readonly marks: Uint8Array;

  constructor(
    readonly sides: Sides,
    private readonly sums: BothSums,
  ) {
    const n = sums[0].weight.length;
    const z = new Float64Array(n);
    let tested = 0;
    for (let at = 0; at < n; at++) {
      if (sums[0].samples[at]! + sums[1].samples[at]! < TESTED_FROM) continue;
      tested++;
      z[at] = this.at(at).z;
    }
    this.marks = significant(z, tested);
    this.found = this.marks.reduce((sum, mark) => sum + mark, 0);
  }

  at(place: number): Change {
    const [a, b] = this.sums;
    return changeOf(this.sides.base, sumAt(a, place), sumAt(b, place));
  }

  rates(place: number): [number, number] {
    const { base } = this.sides;
    return [this.sums[0].weight[place]! / base.a, this.sums[1].weight[place]! / base.b];
  }

  isSignificant = (place: number): boolean => this.marks[place] === 1;
  isNew = (place: number): boolean => this.sums[0].samples[place] === 0;
  isGone = (place: number): boolean => this.sums[1].samples[place] === 0;
}

/** Sums of a tree's nodes on both sides: total and self. */
export interface TreeDiff {
  sides: Sides;
  total: Changes;
  own: Changes;
}

/** Sums up from children to parents; a parent's number is smaller than its children's. */
export function totalsOf(own: BothSums, parent: (node: number) => number): BothSums {
  const copy = (of: SideSums): SideSums => ({
    weight: of.weight.slice(),
    squares: of.squares.slice(),
    samples: of.samples.slice(),
  });
  const totals: BothSums = [copy(own[0]), copy(own[1])];
  for (let node = own[0].weight.length - 1; node > 0; node--) {
    addSums(totals[0], parent(node), totals[0], node);
    addSums(totals[1], parent(node), totals[1], node);
  }
  return totals;
}

export function treeDiff(sides: Sides, tree: FrameTree, own: BothSums): TreeDiff {
  return {
    sides,
    total: new AllChanges(sides, totalsOf(own, tree.parent)),
    own: new AllChanges(sides, own),
  };
}

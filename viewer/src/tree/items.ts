// Where stacks go on in the tree of callers: "this much weight goes on at that node of the
// profile's tree", a row each. Rows that meet are merged. Of a comparison a row has the sums of
// both sides as well. Pure.
import { addSums, type BothSums, emptySums } from '../diff/sums';

export interface Items {
  /** Nodes of the profile's tree whose frames are to be grouped next. */
  node: Uint32Array;
  weight: Float64Array;
  samples: Uint32Array;
  /** The cause, if items are split by cause; else 0. */
  wait: Uint8Array;
  /** The sums of both sides; null: nothing is compared. */
  both: BothSums | null;
}

export function emptyItems(size: number, isCompared: boolean): Items {
  return {
    node: new Uint32Array(size),
    weight: new Float64Array(size),
    samples: new Uint32Array(size),
    wait: new Uint8Array(size),
    both: isCompared ? emptySums(size) : null,
  };
}

/** Adds a row of other items to one of these, which is of the same node and cause. */
export function addItem(to: Items, at: number, from: Items, item: number): void {
  to.weight[at]! += from.weight[item]!;
  to.samples[at]! += from.samples[item]!;
  if (!to.both || !from.both) return;
  addSums(to.both[0], at, from.both[0], item);
  addSums(to.both[1], at, from.both[1], item);
}

/** Room for twice as many rows. */
export function enlarge(items: Items): void {
  const grown = emptyItems(items.node.length * 2, items.both !== null);
  eachColumn(items, grown, (from, to) => to.set(from));
  Object.assign(items, grown);
}

/** The first `n` rows, without keeping a much larger buffer alive. */
export function cut(items: Items, n: number): Items {
  const { node, weight, samples, wait, both } = items;
  const part = <T extends Column>(array: T) =>
    (n * 2 < array.length ? array.slice(0, n) : array.subarray(0, n)) as T;
  const side = ({ weight, squares, samples }: BothSums[0]) => ({
    weight: part(weight),
    squares: part(squares),
    samples: part(samples),
  });
  return {
    node: part(node),
    weight: part(weight),
    samples: part(samples),
    wait: part(wait),
    both: both && [side(both[0]), side(both[1])],
  };
}

type Column = Float64Array | Uint32Array | Uint8Array;

function eachColumn(a: Items, b: Items, visit: (of: Column, other: Column) => void): void {
  for (const name of ['node', 'weight', 'samples', 'wait'] as const) visit(a[name], b[name]);
  for (const side of [0, 1] as const) {
    const [one, other] = [a.both?.[side], b.both?.[side]];
    if (!one || !other) continue;
    for (const name of ['weight', 'squares', 'samples'] as const) visit(one[name], other[name]);
  }
}

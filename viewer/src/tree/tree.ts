// What every view of a call tree offers: nodes by number, and levels sorted from left to right.
//
// A node's place is [x, x + total) in units of weight. Children lie inside their parent, heaviest
// first. The room to the right of the children is the parent's self time.

/** One level: parallel arrays, sorted by x, not overlapping. */
export interface Level {
  readonly n: number;
  readonly x: Float64Array;
  readonly w: Float64Array;
  readonly id: Uint32Array;
}

export interface FrameTree {
  /** The whole weight; the root is node 0 and spans it. */
  readonly total: number;
  readonly levels: readonly Level[];
  readonly size: number;
  parent(node: number): number;
  /** The frame's key, see Keys; the root has no key. */
  key(node: number): number;
  depth(node: number): number;
  x(node: number): number;
  weight(node: number): number;
  /** What the node spent itself. In a tree of callers: what began here. */
  own(node: number): number;
  samples(node: number): number;
  /** The kind of code that most of the node's weight ran as. */
  kind(node: number): number;
  /** The main cause of the node's weight, in a tree that was made with causes. */
  cause?(node: number): number;
  /** Weight by cause, in such a tree; empty where it is not known. */
  causes?(node: number): ArrayLike<number>;
  /** Weight by kind. */
  kinds(node: number): ArrayLike<number>;
  /** The children from left to right. Grows a lazy tree by one level if it must. */
  children(node: number): ArrayLike<number>;
  /** Whether there are children, without growing the tree. */
  hasChildren(node: number): boolean;
  /** Makes everything exist that is wider than `min` between two places; lazy trees only. */
  grow?(from: number, to: number, min: number): Generator<void, boolean>;
}

/** Kinds of code, and classes. */
export const KINDS = 11;

/** The first place in the level with a right end beyond `at`, or n. */
export function firstEndingAfter(level: Level, at: number): number {
  let low = 0;
  let high = level.n;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (level.x[middle]! + level.w[middle]! > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first place from `from` on that starts at or after `at`, or n. */
export function firstStartingAt(level: Level, at: number, from: number): number {
  // Gallop: the answer is mostly near.
  let step = 1;
  let low = from;
  let high = from;
  while (high < level.n && level.x[high]! < at) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = Math.min(high, level.n);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (level.x[middle]! < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The node of a level at a place, or -1. */
export function nodeAt(level: Level, at: number): number {
  const place = firstEndingAfter(level, at);
  return place < level.n && level.x[place]! <= at ? level.id[place]! : -1;
}

/** The chain from the root to a node, both included. */
export function pathTo(tree: FrameTree, node: number): number[] {
  const path = [node];
  for (let at = node; at !== 0;) {
    at = tree.parent(at);
    path.push(at);
  }
  return path.reverse();
}

/** The kind, or cause, with the greatest weight; `start` is where its weights begin. */
export function mainKind(weights: ArrayLike<number>, start: number, count = KINDS): number {
  let best = 0;
  for (let kind = 1; kind < count; kind++) {
    if (weights[start + kind]! > weights[start + best]!) best = kind;
  }
  return best;
}

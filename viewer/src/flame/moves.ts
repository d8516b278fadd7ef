// Where the keyboard's focus goes, and what must be zoomed to for a frame to be seen.
import { firstEndingAfter, type FrameTree } from '../tree/tree';
import type { Range } from './layout';

export type Move = 'in' | 'out' | 'before' | 'after' | 'first' | 'last';

/** Frames narrower than this are zoomed to when the focus comes to them. */
const SEEN_PX = 4;
/** How wide they are made at least. */
const REVEALED_PX = 32;

/** The node that a move leads to; the same one where there is no other. */
export function moved(tree: FrameTree, node: number, move: Move): number {
  if (move === 'in') return tree.children(node)[0] ?? node;
  if (move === 'out') return tree.parent(node);
  const level = tree.levels[tree.depth(node)];
  if (!level) return node;
  if (move === 'first') return level.id[0] ?? node;
  if (move === 'last') return level.id[level.n - 1] ?? node;
  const place = placeIn(level.id, firstEndingAfter(level, tree.x(node)), node);
  return level.id[place + (move === 'after' ? 1 : -1)] ?? node;
}

/** Nodes without weight share their place with others: look on from where the search ended. */
function placeIn(ids: Uint32Array, from: number, node: number): number {
  const near = ids.indexOf(node, Math.max(0, from - 1));
  return near >= 0 ? near : ids.indexOf(node);
}

/** The node to zoom to so that `node` can be seen; -1 if it can be seen already. */
export function revealing(tree: FrameTree, node: number, range: Range, width: number): number {
  const weight = tree.weight(node);
  const x = tree.x(node);
  const shown = x >= range.from && x + weight <= range.to;
  const covers = x <= range.from && x + weight >= range.to;
  if (covers) return -1;
  if (shown && (weight / (range.to - range.from)) * width >= SEEN_PX) return -1;
  let best = node;
  for (let at = node; at !== 0;) {
    at = tree.parent(at);
    if ((weight / tree.weight(at)) * width < REVEALED_PX) break;
    best = at;
  }
  return best;
}

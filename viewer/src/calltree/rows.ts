// The rows of the call tree: the open nodes in reading order.
import type { FrameTree } from '../tree/tree';

export interface TreeRow {
  node: number;
  level: number;
  place: number;
  siblings: number;
}

/** Maximum number of levels opened at once. A child with a large part of its parent is no fork. */
const OPENED_MAX = 256;
const KEEPS = 0.8;
/** Maximum number of rows. With fewer open nodes, all rows are shown. */
export const ROWS_MAX = 200_000;

export function treeRows(tree: FrameTree, root: number, open: ReadonlySet<number>): TreeRow[] {
  const rows: TreeRow[] = [];
  const stack: TreeRow[] = [{ node: root, level: 1, place: 1, siblings: 1 }];
  while (stack.length > 0 && rows.length < ROWS_MAX) {
    const row = stack.pop()!;
    rows.push(row);
    if (!open.has(row.node)) continue;
    const children = tree.children(row.node);
    for (let i = children.length - 1; i >= 0; i--) {
      const node = children[i]!;
      stack.push({ node, level: row.level + 1, place: i + 1, siblings: children.length });
    }
  }
  return rows;
}

/** Opens a node, and below it the heaviest child down to the first fork. */
export function opened(tree: FrameTree, node: number, open: ReadonlySet<number>): Set<number> {
  const out = new Set(open);
  let at = node;
  for (let steps = 0; steps < OPENED_MAX; steps++) {
    out.add(at);
    const child = tree.children(at)[0];
    if (child === undefined || tree.weight(child) < tree.weight(at) * KEEPS) break;
    at = child;
  }
  return out;
}

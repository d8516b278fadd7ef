// Which rectangles of a level are to be drawn: pure numbers, no canvas.
//
// Frames narrower than a pixel are merged with their neighbours into one rectangle of a pixel, and
// found by searching, not by walking: the work per level depends on the width of the screen alone.
import { firstEndingAfter, firstStartingAt, type Level } from '../tree/tree';

/** The part of the tree's width that is shown, in units of weight. */
export interface Range {
  from: number;
  to: number;
}

/** Rectangles of one level; filled again and again. */
export class Rects {
  n = 0;
  left = new Float32Array(256);
  right = new Float32Array(256);
  /** The node, or the first of several merged ones. */
  node = new Uint32Array(256);
  /** How many frames the rectangle stands for. */
  count = new Uint32Array(256);

  add(left: number, right: number, node: number, count: number): void {
    if (this.n === this.left.length) this.enlarge();
    this.left[this.n] = left;
    this.right[this.n] = right;
    this.node[this.n] = node;
    this.count[this.n] = count;
    this.n++;
  }

  private enlarge(): void {
    const size = this.n * 2;
    const { left, right, node, count } = this;
    (this.left = new Float32Array(size)).set(left);
    (this.right = new Float32Array(size)).set(right);
    (this.node = new Uint32Array(size)).set(node);
    (this.count = new Uint32Array(size)).set(count);
  }
}

/** Fills `out` with what is to be drawn of `level` on `width` pixels. */
export function layoutLevel(level: Level, range: Range, width: number, out: Rects): void {
  out.n = 0;
  const span = range.to - range.from;
  if (span <= 0 || width <= 0) return;
  const scale = width / span;
  let i = firstEndingAfter(level, range.from);
  while (i < level.n && level.x[i]! < range.to) {
    const left = (level.x[i]! - range.from) * scale;
    const right = left + level.w[i]! * scale;
    if (right - left >= 1) {
      out.add(Math.max(0, left), Math.min(width, right), level.id[i]!, 1);
      i++;
      continue;
    }
    const pixel = Math.floor(left);
    // At least one further, whatever rounding does.
    let next = Math.max(i + 1, firstStartingAt(level, range.from + (pixel + 1) / scale, i + 1));
    // Only the last one that starts in the pixel can reach out of it; if it is wide, it is its own.
    if (next - 1 > i && level.w[next - 1]! * scale >= 1) next--;
    out.add(Math.max(0, pixel), Math.min(width, pixel + 1), level.id[i]!, next - i);
    i = next;
  }
}

/** How many levels have anything in a range. */
export function depthIn(levels: readonly Level[], range: Range): number {
  // Children lie inside their parents: an empty level has only empty ones behind it.
  let low = 0;
  let high = levels.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const level = levels[middle]!;
    const first = firstEndingAfter(level, range.from);
    if (first < level.n && level.x[first]! < range.to) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where levels are on the screen. The root is at the bottom of a flame and on top of an icicle. */
export interface Stack {
  icicle: boolean;
  levels: number;
  rowHeight: number;
  viewportHeight: number;
  scrollTop: number;
}

export function contentHeight(stack: Stack): number {
  return Math.max(stack.levels * stack.rowHeight, stack.viewportHeight);
}

/** The top of a level, relative to the viewport. */
export function topOf(level: number, stack: Stack): number {
  const y = stack.icicle
    ? level * stack.rowHeight
    : contentHeight(stack) - (level + 1) * stack.rowHeight;
  return y - stack.scrollTop;
}

/** The level at a place in the viewport; may be outside the levels there are. */
export function levelAt(y: number, stack: Stack): number {
  const content = y + stack.scrollTop;
  const fromRoot = stack.icicle ? content : contentHeight(stack) - content;
  // In a flame a row's lower edge belongs to the row below.
  return stack.icicle
    ? Math.floor(fromRoot / stack.rowHeight)
    : Math.ceil(fromRoot / stack.rowHeight) - 1;
}

/** The levels that are at least partly in the viewport. */
export function visibleLevels(stack: Stack): { first: number; last: number } {
  const a = levelAt(0, stack);
  const b = levelAt(stack.viewportHeight - 0.001, stack);
  return {
    first: Math.max(0, Math.min(a, b)),
    last: Math.min(stack.levels - 1, Math.max(a, b)),
  };
}

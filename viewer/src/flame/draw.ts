// Draws the visible part of a tree on a canvas of the viewport's size.
import type { FrameTree, Level } from '../tree/tree';
import type { DiffLook } from '../diff/colours';
import type { Keys } from '../tree/keys';
import type { CausePaints } from './causes';
import { type Colours, KIND_FAILED, type Paint } from './colours';
import type { Labels } from './labels';
import { layoutLevel, type Range, Rects, type Stack, topOf, visibleLevels } from './layout';
import { pixelOf, Raster } from './raster';

export const ROW = 19;
export const FONT = '12px system-ui, sans-serif';

export interface Scene {
  tree: FrameTree;
  keys: Keys;
  range: Range;
  stack: Stack;
  width: number;
  /** Device pixels per pixel. */
  ratio: number;
  /** The level of the frame that is zoomed to. */
  zoomLevel: number;
  colours: Colours;
  labels: Labels;
  /** For every key 1 if it matches the search; null without a search. */
  matched: Uint8Array | null;
  /** The matching nodes by level, for those too narrow to be seen otherwise. */
  matches: readonly Level[] | null;
  /** For a comparison: colours and signs by change; else null. */
  diff: DiffLook | null;
  /** By key: its place in the palette; null: colours show kinds of code. */
  packages: Uint8Array | null;
  /** Colours of causes, in the order of their numbers; null: colours show something else. */
  causes: CausePaints | null;
  /** Whether any code is known to be the application's. */
  hasOwn: boolean;
  /** Kinds that are switched off. */
  off: ReadonlySet<number>;
  hovered: number;
  focused: number;
  /** Whether the focused frame is to be marked. */
  showFocus: boolean;
}

const rects = new Rects();
const raster = new Raster();

/** Frames at least this wide are set off from their neighbour by a line. */
const LINE_FROM_PX = 3;
/** Frames narrower than this have no text. */
const TEXT_FROM_PX = 26;

/** Room for a character of a sign before a name. */
const SIGN_PX = 8;

interface Text {
  text: string;
  x: number;
  y: number;
  colour: string;
}

/** An empty graph. An opaque canvas that nothing was drawn on is black. */
export function blank(context: CanvasRenderingContext2D, colours: Colours): void {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colours.background;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
}

/** Draws the scene; returns how many rectangles that took. */
export function draw(context: CanvasRenderingContext2D, scene: Scene): number {
  const { stack, colours, width, ratio } = scene;
  const { first, last } = visibleLevels(stack);
  const rows = Math.max(0, Math.min(last, scene.tree.levels.length - 1) - first + 1);
  blank(context, colours);
  if (rows === 0) return 0;
  const texts: Text[] = [];
  const hatched: Hatched[] = [];
  let drawn = 0;
  raster.begin(Math.max(1, Math.round(width * ratio)), rows, pixelOf(colours.background));
  for (let row = 0; row < rows; row++) {
    const level = first + row;
    layoutLevel(scene.tree.levels[level]!, scene.range, width, rects);
    fillRow(scene, row, level);
    writeRow(scene, level, texts, hatched);
    drawn += rects.n;
    const matches = scene.matches?.[level];
    if (matches && matches.n > 0) {
      layoutLevel(matches, scene.range, width, rects);
      fillNarrow(scene, row);
    }
  }
  const height = Math.round(ROW * ratio) - Math.max(1, Math.round(ratio));
  raster.put(context, rows, height, (row) => Math.round(topOf(first + row, stack) * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (const place of hatched) hatch(context, place, colours.background);
  context.font = FONT;
  context.textBaseline = 'middle';
  for (const { text, x, y, colour } of texts) {
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }
  outline(context, scene, scene.hovered, 1);
  if (scene.showFocus) outline(context, scene, scene.focused, 2.5);
  return drawn;
}

function paintOf(scene: Scene, node: number, level: number): Paint {
  const { tree, keys, colours, matched, off } = scene;
  const key = tree.key(node);
  if (matched && node !== 0 && matched[key] === 1) return colours.match;
  // Frames outside of the zoom are only a way back.
  const back = matched !== null || level < scene.zoomLevel;
  if (scene.diff) return scene.diff.paint(node, back);
  if (node === 0 || keys.isGroup(key)) return back ? colours.neutralDimmed : colours.neutral;
  if (scene.causes && tree.cause) {
    const { strong, pale, back: weak } = scene.causes;
    const of = keys.own[key] === 1 || !scene.hasOwn ? strong : pale;
    return (back ? weak : of)[tree.cause(node)] ?? colours.neutral;
  }
  const kind = tree.kind(node);
  if (scene.packages) {
    return (back ? colours.dimmed : colours.kinds)[scene.packages[key]!] ?? colours.neutral;
  }
  const paints = back || off.has(kind) ? colours.dimmed : colours.kinds;
  return paints[kind] ?? colours.neutral;
}

function fillRow(scene: Scene, row: number, level: number): void {
  const { ratio } = scene;
  const line = Math.max(1, Math.round(ratio));
  for (let i = 0; i < rects.n; i++) {
    const { pixel } = paintOf(scene, rects.node[i]!, level);
    const left = rects.left[i]!;
    const right = rects.right[i]!;
    const gap = right - left > LINE_FROM_PX ? line : 0;
    raster.fill(row, Math.round(left * ratio), Math.round(right * ratio) - gap, pixel);
  }
}

/** Collects what is to be written on a row. */
function writeRow(scene: Scene, level: number, texts: Text[], hatched: Hatched[]): void {
  const { tree, keys, labels } = scene;
  const top = topOf(level, scene.stack);
  for (let i = 0; i < rects.n; i++) {
    const left = rects.left[i]!;
    const width = rects.right[i]! - left;
    if (width < LINE_FROM_PX || rects.count[i]! > 1) continue;
    const node = rects.node[i]!;
    const isCode = !scene.diff && node !== 0 && !keys.isGroup(tree.key(node));
    if (isCode && tree.kind(node) === KIND_FAILED) hatched.push({ left, top, width: width - 1 });
    if (width < TEXT_FROM_PX) continue;
    const sign = scene.diff?.sign(node) ?? '';
    const room = width - 8 - sign.length * SIGN_PX;
    const name = node === 0 ? 'all' : labels.fit(tree.key(node), room);
    const text = name === '' ? '' : sign + name;
    const colour = paintOf(scene, node, level).text;
    if (text !== '') texts.push({ text, x: left + 3, y: top + ROW / 2, colour });
  }
}

interface Hatched {
  left: number;
  top: number;
  width: number;
}

/** Marks at the right end, so that a failure is visible without colour. */
function hatch(context: CanvasRenderingContext2D, place: Hatched, colour: string): void {
  const height = ROW - 1;
  const room = Math.min(place.width, 24);
  const right = place.left + place.width;
  context.save();
  context.beginPath();
  context.rect(right - room, place.top, room, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let x = right - room - height; x < right; x += 6) {
    context.moveTo(x, place.top + height);
    context.lineTo(x + height, place.top);
  }
  context.stroke();
  context.restore();
}

/** Matches narrower than a pixel, on top of what they were merged into. */
function fillNarrow(scene: Scene, row: number): void {
  const { ratio } = scene;
  for (let i = 0; i < rects.n; i++) {
    const left = rects.left[i]!;
    const right = rects.right[i]!;
    if (right - left > 1.5) continue;
    const { pixel } = scene.colours.match;
    raster.fill(row, Math.round(left * ratio), Math.round(right * ratio), pixel);
  }
}

function outline(
  context: CanvasRenderingContext2D,
  scene: Scene,
  node: number,
  lineWidth: number,
): void {
  if (node < 0 || node >= scene.tree.size) return;
  const { left, right, top } = placeOf(scene, node);
  if (right < 0 || left > scene.width) return;
  const inset = lineWidth / 2;
  const from = Math.max(0, left);
  const width = Math.max(3, Math.min(scene.width, right) - from - 1);
  context.lineWidth = lineWidth;
  context.strokeStyle = scene.colours.focus;
  context.strokeRect(from + inset, top + inset, width - lineWidth, ROW - 1 - lineWidth);
  if (lineWidth > 2) {
    // A second ring inside, so that the focus is seen on dark and light fills alike.
    context.lineWidth = 1;
    context.strokeStyle = scene.colours.background;
    context.strokeRect(from + 3, top + 3, Math.max(0, width - 6), ROW - 7);
  }
}

/** Where a node is, in pixels of the viewport. */
export function placeOf(
  scene: Pick<Scene, 'tree' | 'range' | 'stack' | 'width'>,
  node: number,
): { left: number; right: number; top: number } {
  const { tree, range, stack, width } = scene;
  const scale = width / (range.to - range.from);
  const left = (tree.x(node) - range.from) * scale;
  return { left, right: left + tree.weight(node) * scale, top: topOf(tree.depth(node), stack) };
}

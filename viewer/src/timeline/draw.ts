// Draws the lanes that are in sight on a canvas of the viewport's size.
import { duration } from '../data/format';
import { idleNumber } from '../data/measure';
import type { Profile, Span } from '../data/profile';
import { causesOf } from '../data/wall';
import { causeColour } from '../flame/causes';
import { type Colours, mix } from '../flame/colours';
import type { Theme } from '../flame/colours';
import { pixelOf, Raster } from '../flame/raster';
import { type Bars, eachRun, markedBars } from './bars';
import type { Lane } from './lanes';
import { drawRuntime } from './drawRuntime';
import { DIMMED, type Levels } from './levels';
import type { PoolLevels } from './poolLevels';
import { lowerBound, nextFrom, ticksOf } from './time';
import type { Tracks } from './tracks';
import { coverage, type WaitTrack } from './waits';

export const AXIS = 22;
export const LANE = 26;
/** Parts of a lane, from its top. */
export const BAR_TOP = 1;
export const BAR_HEIGHT = 5;
const WALL_TOP = 7;
const WALL_HEIGHT = 12;
/** Waits for monitors take a part of the room for wall time, where there are any. */
export const WAIT_TOP = 15;
export const WAIT_HEIGHT = 4;
const CPU_TOP = 20;
const CPU_HEIGHT = 5;
const POOL_TOP = 3;
const POOL_ROWS = 20;
const ROWS = 4;
/** How far what is not for the endpoint is stepped back. */
const BACK = 0.8;
/** How far bars of requests that are not slow are stepped back. */
const BAR_BACK = 0.55;

/** A highlighted step of a thread, and the holder of its lock. */
export interface Pinned {
  thread: number;
  from: number;
  to: number;
  /** When the arrow is drawn. */
  at: number;
  /** -1: no holder. */
  owner: number;
}

export interface Scene {
  profile: Profile;
  tracks: Tracks;
  levels: Levels;
  pools: PoolLevels;
  lanes: readonly Lane[];
  sight: Span;
  during: Span | null;
  /** The range that it is compared with. */
  against: Span | null;
  width: number;
  height: number;
  scrollTop: number;
  ratio: number;
  theme: Theme;
  colours: Colours;
  text: string;
  line: string;
  accent: string;
  pinned: Pinned | null;
  /** The lanes of the pinned thread and of its owner; -1: none. */
  pinnedLanes: readonly [number, number];
  /** The chosen request; 0: none. */
  request: number;
  /** For every request 1 if it is among the slowest of its endpoint. */
  slow: Uint8Array;
  /** Where the keyboard is; null: it is not used. */
  cursor: { lane: number; time: number } | null;
  /** When drawing should end: lanes that are not put together then are left for the next time. */
  until: number;
}

const raster = new Raster();

/** Colours by the numbers of `Levels`. */
function palette(scene: Scene): Uint32Array {
  const causes = causesOf(scene.profile);
  const pixels = new Uint32Array(256).fill(pixelOf(scene.colours.background));
  causes.forEach((cause, i) => {
    const colour = causeColour(cause, scene.theme);
    pixels[i + 1] = pixelOf(colour);
    const back = pixelOf(mix(colour, scene.colours.background, BACK));
    if (i + 1 + DIMMED < 256) pixels[i + 1 + DIMMED] = back;
  });
  return pixels;
}

/** Puts the steps of threads together while there is time; whether those of all are. */
function made({ levels, until }: Scene, threads: readonly number[]): boolean {
  return threads.every((thread) => {
    if (levels.isReady(thread)) return true;
    // At least one each time, so that it comes to an end.
    if (madeNow > 0 && performance.now() > until) return false;
    levels.prepare(thread);
    madeNow++;
    return true;
  });
}

/** Threads that were put together in this drawing. */
let madeNow = 0;

/** Draws the scene; returns how many lanes are in sight, and how many of them were left out. */
export function draw(
  context: CanvasRenderingContext2D,
  scene: Scene,
): { lanes: number; left: number } {
  const { ratio, width, height, scrollTop, lanes, colours } = scene;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colours.background;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  const first = Math.max(0, Math.floor(scrollTop / LANE));
  const last = Math.min(lanes.length, Math.ceil((scrollTop + height - AXIS) / LANE));
  const shown = lanes.slice(first, last);
  const topOf = (lane: number) => AXIS + lane * LANE - scrollTop;
  const pixels = Math.max(1, Math.round(width * ratio));
  const rows = shown.reduce((sum, lane) => sum + (lane.kind === 'pool' ? POOL_ROWS : ROWS), 0);
  const colour = palette(scene);
  raster.begin(pixels, Math.max(1, rows), pixelOf(colours.background));
  let row = 0;
  const left = new Set<Lane>();
  madeNow = 0;
  const blocks: [row: number, rows: number, top: number, height: number][] = [];
  shown.forEach((lane, i) => {
    const top = topOf(first + i);
    if (lane.kind === 'pool') {
      // The pools are drawn when they have been summed up.
      const isMade = scene.pools.needsSteps(scene.sight) ? made(scene, lane.threads) : true;
      if (!isMade) left.add(lane);
      else if (scene.pools.isReady) fillPool(scene, lane, row, pixels, colour);
      blocks.push([row, POOL_ROWS, top + POOL_TOP, POOL_ROWS]);
      row += POOL_ROWS;
    } else if (lane.kind === 'thread') {
      if (made(scene, [lane.thread])) {
        fillThread(scene, lane.thread, row, pixels, colour);
        fillRequests(scene, lane.thread, row + 2, pixels);
        fillWaits(scene, lane.thread, row + 3, pixels);
      } else left.add(lane);
      const wall = scene.tracks.waits.any ? WAIT_TOP - WALL_TOP : WALL_HEIGHT;
      blocks.push([row, 1, top + WALL_TOP, wall]);
      if (scene.tracks.waits.any) blocks.push([row + 3, 1, top + WAIT_TOP, WAIT_HEIGHT]);
      blocks.push([row + 1, 1, top + CPU_TOP, CPU_HEIGHT]);
      blocks.push([row + 2, 1, top + BAR_TOP, BAR_HEIGHT]);
      row += ROWS;
    } else row += ROWS;
  });
  raster.flush(context);
  for (const [from, count, top, tall] of blocks) {
    raster.putRows(context, from, count, Math.round(top * ratio), Math.round(tall * ratio));
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  shown.forEach((lane, i) => {
    const top = topOf(first + i);
    context.fillStyle = scene.line;
    context.fillRect(0, top + LANE - 1, width, 0.5);
    if (lane.kind === 'runtime') drawRuntime(context, scene, lane.what, top);
    if (lane.kind === 'thread' && !left.has(lane)) drawRequest(context, scene, lane.thread, top);
  });
  drawDuring(context, scene);
  drawPinned(context, scene, topOf);
  drawCursor(context, scene, topOf);
  drawAxis(context, scene);
  return { lanes: shown.length, left: left.size };
}

const scratch = { pixels: new Uint8Array(0), parts: new Float64Array(0) };

function fillThread(
  scene: Scene,
  thread: number,
  row: number,
  width: number,
  colour: Uint32Array,
): void {
  if (scratch.pixels.length !== width) scratch.pixels = new Uint8Array(width);
  const { pixels } = scratch;
  const { sight } = scene;
  const track = scene.tracks.of(thread);
  scene.levels.pixels(track, sight, pixels);
  raster.setRow(row, pixels, colour);
  // Samples of CPU time have a row of their own, one mark each.
  const mark = pixelOf(scene.text);
  const scale = width / (sight.to - sight.from);
  let last = -1;
  for (let at = lowerBound(track.cpuAt, sight.from); at < track.cpuAt.length; at++) {
    const x = Math.floor((track.cpuAt[at]! - sight.from) * scale);
    if (x >= width) break;
    if (x === last) continue;
    raster.set(row + 1, x, mark);
    last = x;
    // The next one that can be seen is found by searching: it is mostly near.
    const next = sight.from + (x + 1) / scale;
    if (track.cpuAt[at + 1]! < next) at = nextFrom(track.cpuAt, at + 1, next) - 1;
  }
}

/** A pool: how many of its threads were at what, as a stack; all of them are the whole height. */
function fillPool(
  scene: Scene,
  pool: Lane & { kind: 'pool' },
  row: number,
  width: number,
  colour: Uint32Array,
): void {
  const { key, threads } = pool;
  const shares = scene.pools.shares(key, threads, scene.tracks, scene.sight, width);
  // Idle time is on top, so that all other parts share the bottom line.
  const idle = idleNumber(scene.profile.header);
  const order = shares
    .map((values, cause) => ({ values, cause, colour: colour[cause + 1]! }))
    .filter(({ values }) => values.some((value) => value > 0))
    .sort((a, b) => Number(a.cause === idle) - Number(b.cause === idle) || a.cause - b.cause);
  for (let x = 0; x < width; x++) {
    let filled = 0;
    let exact = 0;
    for (const { values, colour } of order) {
      if (values[x] === 0) continue;
      exact += (values[x]! / threads.length) * POOL_ROWS;
      const to = Math.min(POOL_ROWS, Math.round(exact));
      for (; filled < to; filled++) raster.set(row + POOL_ROWS - 1 - filled, x, colour);
    }
    // Something is never nothing.
    if (filled === 0 && exact > 0) {
      const some = order.find(({ values }) => values[x]! > 0)!;
      raster.set(row + POOL_ROWS - 1, x, some.colour);
    }
  }
}

/** A thread's waits for monitors, paler where they have a part of a pixel only. */
function fillWaits(scene: Scene, thread: number, row: number, width: number): void {
  const { waits } = scene.tracks;
  if (!waits.has(thread)) return;
  if (scratch.parts.length !== width) scratch.parts = new Float64Array(width);
  const { parts } = scratch;
  const { background } = scene.colours;
  const full = causeColour('monitor', scene.theme);
  const paint = (track: WaitTrack, colour: string) => {
    const shades = shadesOf(colour, background);
    coverage(track, scene.sight, parts);
    for (let x = 0; x < width; x++) {
      if (parts[x]! > 0) raster.set(row, x, shades[Math.round(parts[x]! * (shades.length - 1))]!);
    }
  };
  const { endpoint } = scene.levels.dimming;
  // Waits of other endpoints are dimmed, as steps are.
  if (endpoint >= 0) paint(waits.of(thread), mix(full, background, BACK));
  paint(waits.ofEndpoint(thread, endpoint), full);
}

/** Shades by coverage of a pixel: from almost nothing, which is still visible, to full. */
function shadesOf(colour: string, background: string): Uint32Array {
  const key = colour + background;
  let shades = shadesMade.get(key);
  if (!shades) {
    shades = Uint32Array.from({ length: SHADES }, (_, i) =>
      pixelOf(mix(colour, background, PALEST * (1 - i / (SHADES - 1)))),
    );
    shadesMade.set(key, shades);
  }
  return shades;
}

const SHADES = 16;
/** How much of the background the palest one has. */
const PALEST = 0.4;
const shadesMade = new Map<string, Uint32Array>();

/** The bars of a thread's requests; slow ones last, so that they are seen in any crowd. */
function fillRequests(scene: Scene, thread: number, row: number, width: number): void {
  const { sight, slow, accent, text, colours } = scene;
  const bars = scene.tracks.bars(thread);
  const weak = pixelOf(mix(accent, colours.background, BAR_BACK));
  eachRun(bars, sight, width, (left, right) => raster.fill(row, left, right, weak));
  let dark = slowBars.get(bars);
  if (!dark) slowBars.set(bars, (dark = markedBars(bars, slow)));
  const strong = pixelOf(text);
  eachRun(dark, sight, width, (left, right) => raster.fill(row, left, right, strong));
}

/** The slow ones of a thread's bars; which requests are slow never changes. */
const slowBars = new WeakMap<Bars, Bars>();

/** Draws the chosen request. */
function drawRequest(
  context: CanvasRenderingContext2D,
  scene: Scene,
  thread: number,
  top: number,
): void {
  const { sight, width, accent, text } = scene;
  if (scene.request === 0) return;
  const bars = scene.tracks.bars(thread);
  const i = bars.request.indexOf(scene.request);
  if (i < 0 || bars.to[i]! < sight.from || bars.from[i]! > sight.to) return;
  const scale = width / (sight.to - sight.from);
  const left = Math.max(0, (bars.from[i]! - sight.from) * scale);
  const right = Math.min(width, (bars.to[i]! - sight.from) * scale);
  context.fillStyle = scene.slow[scene.request] === 1 ? text : accent;
  context.fillRect(left, top + BAR_TOP, Math.max(1, right - left - 1), BAR_HEIGHT);
  context.strokeStyle = text;
  context.lineWidth = 1.5;
  context.strokeRect(left, top + 1, Math.max(2, right - left), LANE - 3);
}

function drawDuring(context: CanvasRenderingContext2D, scene: Scene): void {
  const { during, against, sight, width, height } = scene;
  const scale = width / (sight.to - sight.from);
  if (against) {
    // Neither range is more than the other: nothing is dimmed.
    drawFrame(context, scene, against, 'A');
    if (during) drawFrame(context, scene, during, 'B');
    return;
  }
  if (!during) return;
  const left = (during.from - sight.from) * scale;
  const right = (during.to - sight.from) * scale;
  context.globalAlpha = 0.65;
  context.fillStyle = scene.colours.background;
  context.fillRect(0, AXIS, Math.max(0, Math.min(width, left)), height);
  context.fillRect(Math.max(0, right), AXIS, Math.max(0, width - right), height);
  context.globalAlpha = 1;
  context.fillStyle = scene.accent;
  if (left >= 0 && left <= width) context.fillRect(left - 1, 0, 2, height);
  if (right >= 0 && right <= width) context.fillRect(right - 1, 0, 2, height);
}

/** The frame of one of two ranges, with its letter. */
function drawFrame(
  context: CanvasRenderingContext2D,
  { sight, width, height, accent, text }: Scene,
  { from, to }: Span,
  letter: 'A' | 'B',
): void {
  const scale = width / (sight.to - sight.from);
  const [left, right] = [(from - sight.from) * scale, (to - sight.from) * scale];
  if (right < 0 || left > width) return;
  context.strokeStyle = context.fillStyle = letter === 'A' ? text : accent;
  context.lineWidth = 2;
  context.setLineDash(letter === 'A' ? [5, 4] : []);
  context.strokeRect(left, AXIS + 1, Math.max(2, right - left), height - AXIS - 2);
  context.setLineDash([]);
  context.font = 'bold 12px system-ui, sans-serif';
  context.textBaseline = 'top';
  context.fillText(letter, Math.max(0, left) + 4, AXIS + 4);
}

function drawPinned(
  context: CanvasRenderingContext2D,
  scene: Scene,
  topOf: (lane: number) => number,
): void {
  const { pinned, pinnedLanes, sight, width, height } = scene;
  const [lane, owner] = pinnedLanes;
  if (!pinned || lane < 0) return;
  const scale = width / (sight.to - sight.from);
  const left = (pinned.from - sight.from) * scale;
  const right = (pinned.to - sight.from) * scale;
  const top = topOf(lane);
  context.strokeStyle = scene.text;
  context.lineWidth = 2;
  context.strokeRect(left - 1, top + WALL_TOP - 1, Math.max(3, right - left) + 2, WALL_HEIGHT + 2);
  if (owner < 0 || owner === lane) return;
  const x = Math.max(6, Math.min(width - 6, (pinned.at - sight.from) * scale));
  const down = owner > lane;
  const from = top + (down ? WALL_TOP + WALL_HEIGHT : WALL_TOP);
  const ownerTop = topOf(owner) + (down ? WALL_TOP : WALL_TOP + WALL_HEIGHT);
  const to = Math.max(AXIS + 8, Math.min(height - 4, ownerTop));
  const back = down ? -1 : 1;
  const shape = () => {
    context.beginPath();
    context.moveTo(x, from);
    context.lineTo(x, to);
    context.moveTo(x - 6, to + 9 * back);
    context.lineTo(x, to);
    context.lineTo(x + 6, to + 9 * back);
    context.stroke();
  };
  context.lineCap = 'round';
  // A rim, so that it is seen on every colour.
  context.strokeStyle = scene.colours.background;
  context.lineWidth = 5;
  shape();
  context.strokeStyle = scene.text;
  context.lineWidth = 2.5;
  shape();
}

function drawCursor(
  context: CanvasRenderingContext2D,
  scene: Scene,
  topOf: (lane: number) => number,
): void {
  const { cursor, sight, width } = scene;
  if (!cursor) return;
  const x = ((cursor.time - sight.from) / (sight.to - sight.from)) * width;
  context.strokeStyle = scene.accent;
  context.lineWidth = 2;
  context.strokeRect(1, topOf(cursor.lane) + 1, width - 2, LANE - 2);
  context.fillStyle = scene.accent;
  context.fillRect(x - 1, topOf(cursor.lane), 2, LANE);
}

function drawAxis(context: CanvasRenderingContext2D, scene: Scene): void {
  const { sight, width, height } = scene;
  context.fillStyle = scene.colours.background;
  context.fillRect(0, 0, width, AXIS - 1);
  context.fillStyle = scene.line;
  context.fillRect(0, AXIS - 1, width, 1);
  const scale = width / (sight.to - sight.from);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  for (const time of ticksOf(sight, width)) {
    const x = (time - sight.from) * scale;
    context.fillStyle = scene.line;
    context.globalAlpha = 0.6;
    context.fillRect(Math.round(x), AXIS - 5, 1, height);
    context.globalAlpha = 1;
    context.fillStyle = scene.text;
    const label = labelOf(time, sight);
    const room = context.measureText(label).width;
    context.fillText(label, Math.max(0, Math.min(width - room, x - room / 2)), AXIS / 2 - 1);
  }
}

/** A time with enough digits to distinguish two ticks. */
function labelOf(time: number, sight: Span): string {
  if (time === 0) return '0';
  const length = sight.to - sight.from;
  if (length >= time / 50) return duration(time);
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(length / 1e9) + 1)));
  return `${(time / 1e9).toFixed(digits)}\u00a0s`;
}

// Draws the lanes of the runtime.
import { causeColour, RUNTIME_COLOURS, STOP_COLOURS } from '../flame/causes';
import { LANE, type Scene } from './draw';
import { compilersOf, type Runtime } from './runtime';
import { lowerBound } from './time';

export function drawRuntime(
  context: CanvasRenderingContext2D,
  scene: Scene,
  what: Runtime,
  top: number,
): void {
  if (typeof what === 'number') drawStretches(context, scene, what, top);
  else if (what === 'jit') drawCompilers(context, scene, top);
  else if (what === 'throttled') drawThrottled(context, scene, top);
  else drawStops(context, scene, top);
}

/** Room of a lane between the lines. */
const ROOM = LANE - 6;

/** CPU time of the compilers: as high as the part of a processor. Above it what was compiled, as bars. */
function drawCompilers(context: CanvasRenderingContext2D, scene: Scene, top: number): void {
  const { sight, width, profile } = scene;
  const { time, weight, longest } = compilersOf(profile);
  const scale = width / (sight.to - sight.from);
  // Columns as wide as a sample stands for, so that one alone is not a spike.
  const columns = Math.max(1, Math.round(width / COLUMN_PX));
  const each = (sight.to - sight.from) / columns;
  const used = new Float64Array(columns);
  for (let i = lowerBound(time, sight.from); i < time.length; i++) {
    const to = Math.min(sight.to, time[i]!);
    if (time[i]! - longest >= sight.to) break;
    const from = time[i]! - weight[i]!;
    if (from >= sight.to) continue;
    let at = Math.max(0, Math.floor((from - sight.from) / each));
    for (; at < columns; at++) {
      const [left, right] = [sight.from + at * each, sight.from + (at + 1) * each];
      const part = Math.min(to, right) - Math.max(from, left);
      if (part <= 0) break;
      used[at]! += part;
    }
  }
  context.fillStyle = RUNTIME_COLOURS.jit;
  used.forEach((ns, at) => {
    if (ns === 0) return;
    const tall = Math.max(2, Math.min(1, ns / each / PROCESSORS_MAX) * ROOM);
    const left = (at * width) / columns;
    context.fillRect(left, top + LANE - 3 - tall, width / columns, tall);
  });
  drawCounted(context, scene, top);
  const { compiled } = profile;
  context.fillStyle = scene.text;
  for (let i = 0; i < compiled.time.length; i++) {
    const from = (compiled.time[i]! - sight.from) * scale;
    const to = from + compiled.duration[i]! * scale;
    if (to < 0 || from > width) continue;
    context.fillRect(Math.max(0, from), top + 2, Math.max(1, Math.min(width, to) - from), 4);
  }
}

/** How long the JVM's compilers were at work by its own counters, as a line: full height is one. */
function drawCounted(context: CanvasRenderingContext2D, scene: Scene, top: number): void {
  const { sight, width } = scene;
  const { time, duration, compiling } = scene.profile.compilers;
  const scale = width / (sight.to - sight.from);
  context.fillStyle = scene.text;
  for (let i = 0; i < time.length; i++) {
    const from = Math.max(0, (time[i]! - sight.from) * scale);
    const to = Math.min(width, (time[i]! + duration[i]! - sight.from) * scale);
    if (to < 0 || from > width || to < from) continue;
    const share = compiling[i]! / Math.max(1, duration[i]!) / PROCESSORS_MAX;
    const tall = Math.min(1, share) * ROOM;
    context.fillRect(from, top + LANE - 4 - tall, Math.max(1, to - from), 1.5);
  }
}

const COLUMN_PX = 4;
/** Compilers that use more processors fill the lane, too. */
const PROCESSORS_MAX = 1;

/** As high as the part of periods in which the quota was used up. */
function drawThrottled(context: CanvasRenderingContext2D, scene: Scene, top: number): void {
  const { sight, width, profile } = scene;
  const { time, duration, periods, throttled } = profile.throttled;
  const scale = width / (sight.to - sight.from);
  context.fillStyle = RUNTIME_COLOURS.throttled;
  for (let i = 0; i < time.length; i++) {
    const from = Math.max(0, (time[i]! - sight.from) * scale);
    const to = Math.min(width, (time[i]! + duration[i]! - sight.from) * scale);
    if (to < 0 || from > width) continue;
    const share = periods[i]! > 0 ? Math.min(1, throttled[i]! / periods[i]!) : 1;
    const tall = Math.max(3, share * ROOM);
    context.fillRect(from, top + LANE - 3 - tall, Math.max(1, to - from), tall);
  }
}

/** Bars from one time to another; one a pixel is enough. */
function barsOf(context: CanvasRenderingContext2D, { sight, width, ratio }: Scene) {
  const scale = width / (sight.to - sight.from);
  const place = (time: number) => (time - sight.from) * scale;
  let last = -1;
  return {
    isSeen(from: number, to: number): boolean {
      if (to < sight.from || from > sight.to) return false;
      const x = Math.floor(place(to));
      if (x === last && place(to) - place(from) < 1) return false;
      last = x;
      return true;
    },
    draw(from: number, to: number, colour: string, y: number, tall: number): void {
      const [left, right] = [Math.max(0, place(from)), Math.min(width, place(to))];
      context.fillStyle = colour;
      // On whole pixels of the screen: the part of one would be a paler colour, which is another's.
      const start = Math.floor(left * ratio) / ratio;
      context.fillRect(start, y, Math.max(1, Math.round((right - start) * ratio) / ratio), tall);
    },
  };
}

function drawStretches(
  context: CanvasRenderingContext2D,
  scene: Scene,
  what: number,
  top: number,
): void {
  const { kind, time, duration } = scene.profile.stretches[what]!;
  const colour = causeColour(kind.cause, scene.theme);
  const bars = barsOf(context, scene);
  for (let i = 0; i < time.length; i++) {
    const [from, to] = [time[i]!, time[i]! + duration[i]!];
    if (bars.isSeen(from, to)) bars.draw(from, to, colour, top + 4, LANE - 9);
  }
}

function drawStops(context: CanvasRenderingContext2D, scene: Scene, top: number): void {
  const { stops } = scene.profile;
  const onePixel = (scene.sight.to - scene.sight.from) / Math.max(1, scene.width);
  const bars = barsOf(context, scene);
  for (let i = 0; i < stops.time.length; i++) {
    // Sums of many that were only counted are no bar at any time.
    if (stops.count[i]! > 1) continue;
    const from = stops.time[i]!;
    const stopped = from + stops.reaching[i]!;
    const to = stopped + stops.operating[i]!;
    if (!bars.isSeen(from, to)) continue;
    // In one pixel the longer part is shown, rather than the way to it over all safepoints.
    const isNarrow = to - from < onePixel;
    const isWay = stopped - from > to - stopped;
    if (!isNarrow || !isWay) bars.draw(stopped, to, STOP_COLOURS[1], top + 8, LANE - 13);
    if (stopped > from && (!isNarrow || isWay))
      bars.draw(from, stopped, STOP_COLOURS[0], top + 4, LANE - 9);
  }
}

// The timeline with the keyboard alone: a cursor that is a lane and a time in it.
import type { TimelineController } from './controller';
import { spoken, tell } from './describe';
import { stepsOf } from './runtime';
import { lowerBound } from './time';
import { firstReaching } from './tracks';

/** How much of what is in sight one press moves along. */
const PAN = 0.2;

export function onKey(controller: TimelineController, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target !== event.currentTarget) return;
  if (!act(controller, event)) return;
  event.preventDefault();
  event.stopPropagation();
}

function act(controller: TimelineController, event: KeyboardEvent): boolean {
  const { store } = controller;
  switch (event.key) {
    case 'ArrowUp':
    case 'ArrowDown':
      toLane(controller, event.key === 'ArrowUp' ? -1 : 1);
      return true;
    case 'ArrowLeft':
    case 'ArrowRight': {
      const step = event.key === 'ArrowLeft' ? -1 : 1;
      if (event.shiftKey) controller.pan(step * PAN);
      else toStep(controller, step);
      return true;
    }
    case '+':
    case '=':
      controller.zoom(1);
      return true;
    case '-':
      controller.zoom(-1);
      return true;
    case '0':
      store.sight.value = null;
      return true;
    case 'Backspace':
      store.during.value = null;
      return true;
    case 'Escape':
      if (controller.chosen.value) controller.choose(null);
      else store.during.value = null;
      return true;
    case 'Enter':
    case ' ':
      enter(controller);
      return true;
    default:
      return false;
  }
}

function toLane(controller: TimelineController, step: number): void {
  const { lanes, cursor, sight } = controller;
  const last = lanes.value.length - 1;
  if (last < 0) return;
  const before = cursor.value;
  const lane = before ? Math.max(0, Math.min(last, before.lane + step)) : 0;
  const time = before?.time ?? (sight.value.from + sight.value.to) / 2;
  cursor.value = { lane, time };
  controller.showLane(lane);
  say(controller);
}

/** To the step before or after; in a lane without steps along the time. */
function toStep(controller: TimelineController, step: 1 | -1): void {
  const { cursor, sight, lanes } = controller;
  if (!cursor.value) toLane(controller, 1);
  const at = cursor.value;
  if (!at) return;
  const lane = lanes.value[at.lane];
  const { from, to } = sight.value;
  let time = at.time + (step * (to - from)) / 50;
  if (lane?.kind === 'thread') {
    const { tracks } = controller.store;
    const track = tracks.value.of(lane.thread);
    const waits = tracks.value.waits.of(lane.thread);
    const near = [
      nextMiddle(track, firstReaching(track, at.time), at.time, step),
      nextMiddle(waits, lowerBound(waits.to, at.time), at.time, step),
    ].filter((middle) => middle !== null);
    if (near.length > 0) time = step > 0 ? Math.min(...near) : Math.max(...near);
  }
  const steps = lane?.kind === 'runtime' ? stepsOf(controller.store.profile, lane.what) : null;
  const next = steps && nextMiddle(steps, lowerBound(steps.to, at.time), at.time, step);
  if (next !== null) time = next;
  time = Math.max(controller.whole.from, Math.min(controller.whole.to, time));
  cursor.value = { lane: at.lane, time };
  if (time < from || time > to) {
    const half = (to - from) / 2;
    controller.set({ from: time - half, to: time + half });
  }
  say(controller);
}

/** The middle of the step before or after a time, or null. */
function nextMiddle(
  { from, to, n }: { from: Float64Array; to: Float64Array; n: number },
  reaching: number,
  time: number,
  step: 1 | -1,
): number | null {
  const middle = (i: number) => (from[i]! + to[i]!) / 2;
  if (step > 0) {
    let next = lowerBound(from, time);
    while (next < n && middle(next) <= time) next++;
    return next < n ? middle(next) : null;
  }
  let found: number | null = null;
  for (let i = Math.max(0, reaching - 2); i < n && middle(i) < time; i++) found = middle(i);
  return found;
}

export function hitAtCursor(controller: TimelineController) {
  const at = controller.cursor.value;
  const lane = at && controller.lanes.value[at.lane];
  if (!at || !lane) return null;
  // The event of a wait is shown: samples within it have less data.
  const step =
    lane.kind === 'thread'
      ? (controller.waitOf(lane.thread, at.time, 0) ?? controller.stepOf(lane.thread, at.time, 0))
      : null;
  return { lane, time: at.time, step, request: 0 };
}

function enter(controller: TimelineController): void {
  const hit = hitAtCursor(controller);
  if (hit?.lane.kind === 'pool') controller.toggle(hit.lane.key);
  else if (hit) controller.choose(hit.step);
}

function say(controller: TimelineController): void {
  const hit = hitAtCursor(controller);
  if (hit) controller.store.said.value = spoken(tell(controller.store.profile, hit));
}

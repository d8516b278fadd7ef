// Keeps the timeline's canvas, its size, the scroll position and the pointer in step. A new size is
// drawn immediately, other changes at most once per screen frame.
import { computed, effect, signal } from '@preact/signals';
import { endpointNumber } from '../data/measure';
import type { Span } from '../data/profile';
import { byEndpoint, latencies } from '../data/requests';
import { wholeSpan } from '../data/wall';
import { coloursOf } from '../flame/colours';
import type { Store } from '../state/store';
import { inSlices } from '../tree/slices';
import { contrastful, theme } from '../state/theme';
import { requestAt } from './bars';
import {
  AXIS,
  BAR_HEIGHT,
  BAR_TOP,
  draw,
  LANE,
  type Pinned,
  type Scene,
  WAIT_HEIGHT,
  WAIT_TOP,
} from './draw';
import { type Lane, laneOfThread, lanesOf, poolsOf } from './lanes';
import { Levels } from './levels';
import { PoolLevels } from './poolLevels';
import { inside, moved, zoomed } from './time';
import { stepAt } from './tracks';
import { waitAt } from './waits';

/** Pixels to both sides of the pointer in which a step is still hit. */
const SLACK_PX = 3;
/**
 * How long drawing may take while lanes are put together that were never shown. One lane more may take
 * some milliseconds, and a frame of the screen is there for the browser, too.
 */
const BUDGET_MS = 4;
/** How much one press of a key, or one notch of a wheel, zooms. */
const ZOOM = 1.6;

/** A chosen step: a look, or below 0 the sample -1 - ref; or a wait for a monitor. */
export interface Chosen {
  thread: number;
  ref: number;
  /** An entry of the table of waits, which `ref` is none of; -1: it is a step. */
  wait: number;
  /** When it was pointed at. */
  at: number;
}

/** What is at a place of the canvas. */
export interface Hit {
  lane: Lane;
  time: number;
  /** The step of a thread, or null. */
  step: Chosen | null;
  /** A request's number; 0: no request. */
  request: number;
}

export class TimelineController {
  readonly chosen = signal<Chosen | null>(null);
  readonly pointed = signal<{ hit: Hit; x: number; y: number } | null>(null);
  readonly turned = signal<ReadonlySet<string>>(new Set());
  readonly cursor = signal<{ lane: number; time: number } | null>(null);
  /** The range that is being dragged out. */
  readonly dragged = signal<Span | null>(null);
  readonly scrollTop = signal(0);
  readonly height = signal(0);
  readonly width = signal(0);
  /** Milliseconds that the last drawing took, how many lanes, and how many were left: for measuring. */
  lastDraw = { ms: 0, lanes: 0, left: 0 };

  readonly whole: Span;
  private readonly pools = computed(() =>
    poolsOf(this.store.profile, this.store.tracks.value, this.store.filter.value),
  );
  readonly lanes = computed(() =>
    lanesOf(this.store.profile, this.pools.value.pools, this.turned.value),
  );
  readonly leftOut = computed(() => this.pools.value.leftOut);
  readonly sight = computed(() => inside(this.store.sight.value ?? this.whole, this.whole));
  readonly pinned = computed(() => this.pinnedOf(this.chosen.value));
  private readonly levels = computed(() => {
    const { endpoint } = this.store.measure.value;
    const number = endpointNumber(this.store.profile.header, endpoint);
    return new Levels(this.store.tracks.value, { endpoint: number });
  });
  private readonly poolLevels = computed(
    () => new PoolLevels(this.store.profile, this.pools.value.pools),
  );
  private readonly slow: Uint8Array;
  private readonly context: CanvasRenderingContext2D;
  private readonly disposers: (() => void)[] = [];
  private frame = 0;

  constructor(
    readonly store: Store,
    readonly scroller: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
  ) {
    this.whole = wholeSpan(store.profile);
    this.slow = slowRequests(store);
    this.context = canvas.getContext('2d', { alpha: false })!;
    const observer = new ResizeObserver(() => this.measure());
    observer.observe(scroller);
    const onScroll = () => (this.scrollTop.value = scroller.scrollTop);
    scroller.addEventListener('scroll', onScroll, { passive: true });
    const onWheel = (event: WheelEvent) => this.wheel(event);
    // Not passive: zooming must not scroll or zoom the page, too.
    canvas.addEventListener('wheel', onWheel, { passive: false });
    this.disposers.push(
      () => observer.disconnect(),
      () => scroller.removeEventListener('scroll', onScroll),
      () => canvas.removeEventListener('wheel', onWheel),
      effect(() => this.observe()),
      effect(() => this.fillPools()),
    );
    this.measure();
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    for (const dispose of this.disposers) dispose();
  }

  private measure(): void {
    const ratio = window.devicePixelRatio || 1;
    const height = this.scroller.clientHeight;
    this.canvas.style.height = `${height}px`;
    const width = this.canvas.clientWidth;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.width.value = width;
    this.height.value = height;
    this.reveal();
    cancelAnimationFrame(this.frame);
    this.drawNow();
  }

  private observe(): void {
    void [this.lanes.value, this.sight.value, this.pinned.value, this.cursor.value];
    void [this.dragged.value, this.scrollTop.value, this.levels.value, this.poolLevels.value];
    void [
      this.store.against.value,
      this.store.during.value,
      this.store.request.value,
      theme.value,
      contrastful.value,
    ];
    this.redraw();
  }

  drawNow(): void {
    this.frame = 0;
    if (this.width.peek() === 0) return;
    const started = performance.now();
    const { lanes, left } = draw(this.context, this.scene());
    this.lastDraw = { ms: performance.now() - started, lanes, left };
    if (left > 0) this.redraw();
  }

  private redraw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  /** Sums up pools, and draws them when that is done; then all steps, before they are asked for. */
  private fillPools(): () => void {
    const levels = this.poolLevels.value;
    const [steps, { pools }] = [this.levels.value, this.pools.value];
    const abort = new AbortController();
    const ahead = async () => {
      if (!levels.isReady) {
        await inSlices(levels.fill(), abort.signal);
        if (!abort.signal.aborted) this.redraw();
      }
      await inSlices(steps.prepareAll(pools.flatMap(({ threads }) => threads)), abort.signal);
    };
    void ahead();
    return () => abort.abort();
  }

  private scene(): Scene {
    const { store } = this;
    const style = getComputedStyle(this.canvas);
    const pinned = this.pinned.peek();
    const lanes = this.lanes.peek();
    return {
      profile: store.profile,
      tracks: store.tracks.peek(),
      levels: this.levels.peek(),
      pools: this.poolLevels.peek(),
      lanes,
      sight: this.sight.peek(),
      during: this.dragged.peek() ?? store.during.peek(),
      against: store.profile.header.compare ? null : store.against.peek(),
      width: this.width.peek(),
      height: this.height.peek(),
      scrollTop: this.scrollTop.peek(),
      ratio: window.devicePixelRatio || 1,
      theme: theme.peek(),
      colours: coloursOf(theme.peek()),
      text: style.getPropertyValue('--text').trim(),
      line: style.getPropertyValue('--line').trim(),
      accent: style.getPropertyValue('--accent').trim(),
      pinned,
      pinnedLanes: pinned
        ? [
            laneOfThread(lanes, pinned.thread),
            pinned.owner < 0 ? -1 : laneOfThread(lanes, pinned.owner),
          ]
        : [-1, -1],
      request: store.request.peek(),
      slow: this.slow,
      cursor: this.cursor.peek(),
      until: performance.now() + BUDGET_MS,
    };
  }

  /** Where a place of a lane is in the window. */
  cursorPlace({ lane, time }: { lane: number; time: number }): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    const { from, to } = this.sight.value;
    const x = box.left + ((time - from) / (to - from)) * this.width.value;
    return { x, y: box.top + AXIS + (lane + 1) * LANE - this.scrollTop.value };
  }

  private pinnedOf(chosen: Chosen | null): Pinned | null {
    if (!chosen) return null;
    if (chosen.wait >= 0) return this.pinnedWait(chosen);
    const track = this.store.tracks.value.of(chosen.thread);
    const at = track.ref.indexOf(chosen.ref);
    if (at < 0) return null;
    const { wall } = this.store.profile;
    const owner = chosen.ref >= 0 && wall ? wall.owner[chosen.ref]! - 1 : -1;
    const [from, to] = [track.from[at]!, track.to[at]!];
    return { thread: chosen.thread, from, to, at: chosen.at, owner };
  }

  private pinnedWait({ thread, wait, at }: Chosen): Pinned | null {
    const { locks } = this.store.profile;
    if (!locks) return null;
    const from = locks.samples.time[wait]!;
    return { thread, from, to: from + locks.longest[wait]!, at, owner: locks.owner[wait]! - 1 };
  }

  timeAt(clientX: number): number {
    const box = this.canvas.getBoundingClientRect();
    const { from, to } = this.sight.peek();
    const share = (clientX - box.left) / Math.max(1, this.width.peek());
    return from + Math.max(0, Math.min(1, share)) * (to - from);
  }

  /** Where a time is in the window. */
  placeOf(time: number): number {
    const box = this.canvas.getBoundingClientRect();
    const { from, to } = this.sight.peek();
    return box.left + ((time - from) / (to - from)) * this.width.peek();
  }

  isAxis(clientY: number): boolean {
    return clientY - this.canvas.getBoundingClientRect().top < AXIS;
  }

  /** What is at a place in the window. */
  hitAt(clientX: number, clientY: number): Hit | null {
    const y = clientY - this.canvas.getBoundingClientRect().top;
    if (y < AXIS) return null;
    const inLanes = y - AXIS + this.scrollTop.peek();
    const lane = this.lanes.peek()[Math.floor(inLanes / LANE)];
    if (!lane) return null;
    const time = this.timeAt(clientX);
    const { from, to } = this.sight.peek();
    const slack = ((to - from) / Math.max(1, this.width.peek())) * SLACK_PX;
    const inLane = inLanes % LANE;
    const isBar = inLane < BAR_TOP + BAR_HEIGHT + 1;
    if (lane.kind !== 'thread') return { lane, time, step: null, request: 0 };
    const bars = this.store.tracks.peek().bars(lane.thread);
    const request = isBar ? requestAt(bars, time, slack) : 0;
    // On the row of waits these come first, elsewhere they are additional facts.
    const isWait = inLane >= WAIT_TOP && inLane < WAIT_TOP + WAIT_HEIGHT + 1;
    const ways = [
      () => this.stepOf(lane.thread, time, slack),
      () => this.waitOf(lane.thread, time, slack),
    ];
    const [first, second] = isWait ? ways.reverse() : ways;
    return { lane, time, step: first!() ?? second!(), request };
  }

  stepOf(thread: number, time: number, slack: number): Chosen | null {
    const track = this.store.tracks.peek().of(thread);
    const at = stepAt(track, time, slack);
    return at < 0 ? null : { thread, ref: track.ref[at]!, wait: -1, at: time };
  }

  /** The wait for a monitor that a thread was in at a time. */
  waitOf(thread: number, time: number, slack: number): Chosen | null {
    const track = this.store.tracks.peek().waits.of(thread);
    const at = waitAt(track, time, slack);
    return at < 0 ? null : { thread, ref: 0, wait: track.ref[at]!, at: time };
  }

  /** Chooses a step, and unfolds the lanes of its thread and of the owner. */
  choose(step: Chosen | null): void {
    this.chosen.value = step;
    const pinned = this.pinned.value;
    if (pinned && pinned.owner >= 0) this.unfold(pinned.owner);
    this.reveal();
  }

  /** Scrolls so that the chosen step is in sight, and, if they fit, the owner's lane with it. */
  private reveal(): void {
    const pinned = this.pinned.peek();
    if (!pinned) return;
    const lanes = this.lanes.peek();
    if (pinned.owner >= 0) this.showLane(laneOfThread(lanes, pinned.owner));
    this.showLane(laneOfThread(lanes, pinned.thread));
  }

  /** Makes a thread have a lane of its own. */
  unfold(thread: number): void {
    const lane = this.lanes.peek()[laneOfThread(this.lanes.peek(), thread)];
    if (lane?.kind === 'pool' && !lane.open) this.toggle(lane.key);
  }

  toggle(pool: string): void {
    const turned = new Set(this.turned.peek());
    if (!turned.delete(pool)) turned.add(pool);
    this.turned.value = turned;
  }

  /** Scrolls a lane into sight. */
  showLane(lane: number): void {
    if (lane < 0) return;
    const top = lane * LANE;
    const room = this.height.peek() - AXIS - LANE;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
  }

  set(sight: Span): void {
    const { from, to } = inside(sight, this.whole);
    const isWhole = from <= this.whole.from && to >= this.whole.to;
    this.store.sight.value = isWhole ? null : { from, to };
  }

  zoom(steps: number, about?: number): void {
    const sight = this.sight.peek();
    const at = about ?? this.cursor.peek()?.time ?? (sight.from + sight.to) / 2;
    this.set(zoomed(sight, ZOOM ** -steps, at, this.whole));
  }

  pan(share: number): void {
    const sight = this.sight.peek();
    this.set(moved(sight, share * (sight.to - sight.from), this.whole));
  }

  private wheel(event: WheelEvent): void {
    const isAcross = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey || event.altKey) {
      this.zoom(-event.deltaY / 100, this.timeAt(event.clientX));
    } else if (isAcross || event.shiftKey) {
      const by = isAcross ? event.deltaX : event.deltaY;
      this.pan(by / Math.max(1, this.width.peek()));
    } else return;
    event.preventDefault();
  }
}

/** For every request 1 if it took at least as long as 95 % of those of its endpoint. */
function slowRequests({ profile }: Store): Uint8Array {
  const { duration, endpoint } = profile.requests;
  const slow = new Uint8Array(duration.length + 1);
  const limits = new Map<number, number>();
  for (const [number, list] of byEndpoint(profile, null)) {
    limits.set(number, latencies(profile, list).p95);
  }
  for (let i = 0; i < duration.length; i++) {
    if (duration[i]! >= (limits.get(endpoint[i]!) ?? Infinity)) slow[i + 1] = 1;
  }
  return slow;
}

// Keeps the canvas, its size, the scroll position and the pointer in step. A new size is drawn
// immediately, other changes at most once per screen frame.
import { effect, signal } from '@preact/signals';
import { diffColours, diffLook, type DiffLook } from '../diff/colours';
import type { TreeDiff } from '../diff/sums';
import { contrastful, theme } from '../state/theme';
import type { Store } from '../state/store';
import { hasMine } from '../tree/frames';
import { nodeAt } from '../tree/tree';
import { causesOf } from '../data/wall';
import { type CausePaints, causePaints } from './causes';
import { coloursOf, type Theme } from './colours';
import { blank, draw, FONT, placeOf, ROW, type Scene } from './draw';
import { Labels } from './labels';
import { HEIGHT_MAX } from './picture';
import { contentHeight, depthIn, levelAt, type Stack } from './layout';

/** Rows kept between the edge and a frame that is scrolled to. */
const MARGIN_ROWS = 3;

export interface Pointed {
  node: number;
  x: number;
  y: number;
}

/** The graphs on show, in the order of their making: one, or callers and callees. */
export const controllers = new Set<FlameController>();

export class FlameController {
  readonly pointed = signal<Pointed | null>(null);
  /** Whether the graph has the keyboard's focus, and it was the keyboard that was used last. */
  readonly byKey = signal(false);
  /** Milliseconds that the last drawing took, and what it drew: for measuring. */
  lastDraw = { ms: 0, rects: 0 };

  private readonly height = signal(0);
  private readonly context: CanvasRenderingContext2D;
  private readonly disposers: (() => void)[] = [];
  private made: { diff: TreeDiff; shade: Theme; strong: boolean; look: DiffLook } | null = null;
  private paints: { shade: Theme; paints: CausePaints } | null = null;
  private readonly hasOwn: boolean;
  private frame = 0;
  /** Distance of the view from the root's end, in pixels: outlives a change of the height. */
  private fromRoot = 0;
  private stack: Stack = {
    icicle: false,
    levels: 1,
    rowHeight: ROW,
    viewportHeight: 0,
    scrollTop: 0,
  };
  private labels: { keys: unknown; labels: Labels } | null = null;

  constructor(
    readonly store: Store,
    private readonly scroller: HTMLElement,
    private readonly spacer: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
  ) {
    this.hasOwn = hasMine(store.profile);
    this.context = canvas.getContext('2d', { alpha: false })!;
    const observer = new ResizeObserver(() => this.measure());
    observer.observe(scroller);
    const onScroll = () => this.scrolled();
    scroller.addEventListener('scroll', onScroll, { passive: true });
    this.disposers.push(
      () => observer.disconnect(),
      () => scroller.removeEventListener('scroll', onScroll),
      watchPixelRatio(() => this.measure()),
      effect(() => this.place()),
      effect(() => this.toRoot()),
      effect(() => this.showFocused()),
      effect(() => this.observe()),
    );
    this.measure();
    controllers.add(this);
  }

  dispose(): void {
    controllers.delete(this);
    cancelAnimationFrame(this.frame);
    for (const dispose of this.disposers) dispose();
  }

  private measure(): void {
    const { clientWidth, clientHeight } = this.scroller;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.canvas.style.height = `${clientHeight}px`;
    this.store.width.value = clientWidth;
    this.height.value = clientHeight;
    // Another size has made the canvas black, and it would be shown so until the next frame.
    cancelAnimationFrame(this.frame);
    this.drawNow();
  }

  /** Gives the content its height and keeps the view where it was, seen from the root. */
  private place(): void {
    const { store } = this;
    void store.growth.value;
    const tree = store.tree.value;
    this.stack = {
      icicle: store.icicle.value,
      levels: tree ? depthIn(tree.levels, store.range.value) : 1,
      rowHeight: ROW,
      viewportHeight: this.height.value,
      scrollTop: 0,
    };
    this.spacer.style.height = `${contentHeight(this.stack)}px`;
    this.scrollTo(this.fromRoot);
  }

  private scrollTo(fromRoot: number): void {
    const max = contentHeight(this.stack) - this.stack.viewportHeight;
    const clamped = Math.max(0, Math.min(max, fromRoot));
    this.scroller.scrollTop = this.stack.icicle ? clamped : max - clamped;
    this.stack.scrollTop = this.scroller.scrollTop;
    this.redraw();
  }

  private scrolled(): void {
    const { scrollTop, clientHeight } = this.scroller;
    // A new height may have moved the content. The view returns to its place as soon as the height
    // is known.
    if (clientHeight !== this.height.peek()) return;
    const max = contentHeight(this.stack) - this.stack.viewportHeight;
    this.stack.scrollTop = scrollTop;
    this.fromRoot = this.stack.icicle ? scrollTop : max - scrollTop;
    this.pointed.value = null;
    this.redraw();
  }

  /** Another tree, or the other direction, starts at the root. */
  private toRoot(): void {
    void this.store.tree.value;
    void this.store.icicle.value;
    this.fromRoot = 0;
    this.scrollTo(0);
  }

  private showFocused(): void {
    const { store } = this;
    const [tree, node] = [store.tree.value, store.focused.value];
    void store.range.value;
    if (!tree || node >= tree.size) return;
    const at = tree.depth(node) * ROW;
    const margin = MARGIN_ROWS * ROW;
    const height = this.height.value;
    if (height === 0) return;
    if (at - margin < this.fromRoot) this.fromRoot = Math.max(0, at - margin);
    else if (at + ROW + margin > this.fromRoot + height) this.fromRoot = at + ROW + margin - height;
    else return;
    this.scrollTo(this.fromRoot);
  }

  /** Reads all that a drawing depends on. */
  private observe(): void {
    const { store } = this;
    void [store.growth.value, store.tree.value, store.range.value, store.keys.value];
    void [store.matches.value, store.off.value, store.focused.value, theme.value];
    void [this.pointed.value, this.byKey.value, this.store.diff.value, contrastful.value];
    void [store.colouring.value === 'package' && store.packages.value];
    this.redraw();
  }

  redraw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  drawNow(): void {
    this.frame = 0;
    const scene = this.scene();
    if (!scene) {
      blank(this.context, coloursOf(theme.peek()));
      return;
    }
    const started = performance.now();
    const rects = draw(this.context, scene);
    this.lastDraw = { ms: performance.now() - started, rects };
  }

  /** All levels of the graph on a canvas of their own; `left` are those that had no room. */
  picture(): { canvas: HTMLCanvasElement; left: number } | null {
    const scene = this.scene();
    if (!scene) return null;
    const { ratio } = scene;
    const all = this.stack.levels;
    const levels = Math.min(all, Math.floor(HEIGHT_MAX / ratio / ROW));
    const canvas = document.createElement('canvas');
    canvas.width = this.canvas.width;
    canvas.height = Math.round(levels * ROW * ratio);
    draw(canvas.getContext('2d', { alpha: false })!, {
      ...scene,
      stack: { ...this.stack, levels, viewportHeight: levels * ROW, scrollTop: 0 },
      hovered: -1,
      showFocus: false,
    });
    return { canvas, left: all - levels };
  }

  private scene(): Scene | null {
    const { store } = this;
    const tree = store.tree.peek();
    if (!tree || this.height.peek() === 0) return null;
    const keys = store.keys.peek();
    if (this.labels?.keys !== keys) {
      this.context.font = FONT;
      const measure = (text: string) => this.context.measureText(text).width;
      this.labels = { keys, labels: new Labels(measure, keys) };
    }
    return {
      tree,
      keys,
      range: store.range.peek(),
      stack: this.stack,
      width: store.width.peek(),
      ratio: window.devicePixelRatio || 1,
      zoomLevel: tree.depth(store.zoom.peek()),
      colours: coloursOf(theme.peek()),
      labels: this.labels.labels,
      matched: store.matched.peek(),
      matches: store.matches.peek(),
      diff: this.look(),
      packages: store.colouring.peek() === 'package' ? store.packages.peek().ofKey : null,
      causes: store.colouring.peek() === 'cause' ? this.causePaints() : null,
      hasOwn: this.hasOwn,
      off: store.off.peek(),
      hovered: this.pointed.peek()?.node ?? -1,
      focused: store.focused.peek(),
      showFocus: this.byKey.peek(),
    };
  }

  private causePaints(): CausePaints {
    const shade = theme.peek();
    const made = this.paints;
    if (made?.shade === shade) return made.paints;
    const paints = causePaints(causesOf(this.store.profile), shade);
    this.paints = { shade, paints };
    return paints;
  }

  /** Appearance of a comparison's frames; computed again only after a change. */
  private look(): DiffLook | null {
    const diff = this.store.diff.peek();
    if (!diff) return null;
    const [shade, strong] = [theme.peek(), contrastful.peek()];
    const made = this.made;
    if (made?.diff === diff && made.shade === shade && made.strong === strong) return made.look;
    const look = diffLook(diff, diffColours(shade, strong), coloursOf(shade));
    this.made = { diff, shade, strong, look };
    return look;
  }

  /** The node at a place in the window, or -1. */
  nodeAt(clientX: number, clientY: number): number {
    const tree = this.store.tree.peek();
    if (!tree) return -1;
    const box = this.canvas.getBoundingClientRect();
    const level = tree.levels[levelAt(clientY - box.top, this.stack)];
    if (!level) return -1;
    const { from, to } = this.store.range.peek();
    const at = from + ((clientX - box.left) / this.store.width.peek()) * (to - from);
    return at < from || at >= to ? -1 : nodeAt(level, at);
  }

  /** Where the focused frame is in the window. */
  focusedPlace(): { x: number; y: number } | null {
    const place = this.placeInWindow(this.store.focused.peek());
    return place && { x: Math.max(0, place.left), y: place.top + ROW };
  }

  /** The visible part of a frame, in pixels of the window; null if it is not visible. */
  placeInWindow(node: number): { left: number; right: number; top: number } | null {
    const tree = this.store.tree.peek();
    if (!tree || node >= tree.size) return null;
    const width = this.store.width.peek();
    const place = placeOf({ tree, range: this.store.range.peek(), stack: this.stack, width }, node);
    if (place.right < 0 || place.left > width) return null;
    const box = this.canvas.getBoundingClientRect();
    const left = box.left + Math.max(0, place.left);
    return { left, right: box.left + Math.min(width, place.right), top: box.top + place.top };
  }
}

/** Calls back when the window moves to a screen of another density, or is zoomed. */
function watchPixelRatio(changed: () => void): () => void {
  let query: MediaQueryList;
  const listen = () => {
    query = window.matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`);
    query.addEventListener('change', onChange, { once: true });
  };
  const onChange = () => {
    listen();
    changed();
  };
  listen();
  return () => query.removeEventListener('change', onChange);
}

// The state of the page: what was chosen (signals), what follows from it (computed), and the tree
// that is built from it in slices.
import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { CPU, type Measure, measured, possible } from '../data/measure';
import type { Profile } from '../data/profile';
import type { Range } from '../flame/layout';
import { revealing } from '../flame/moves';
import { matchedKeys, matchedWeight, matchLevels, nextMatch, parseQuery } from '../search/search';
import { buildForward } from '../tree/forward';
import { makeKeys } from '../tree/keys';
import type { TreeRequest } from '../tree/request';
import { ReverseTree } from '../tree/reverse';
import { ALL_THREADS, chosenThreads, type ThreadChoice, threadRows } from '../tree/select';
import { inSlices } from '../tree/slices';
import { type FrameTree, pathTo } from '../tree/tree';
import { fromFragment, type Shared, toFragment, type View, ZOOM_MAX } from './fragment';

/** Zooms remembered for going back. */
const HISTORY_MAX = 100;

export class Store {
  readonly view = signal<View>('flame');
  readonly icicle = signal(false);
  readonly reversed = signal(false);
  readonly split = signal(false);
  readonly byLine = signal(false);
  readonly choice = signal<ThreadChoice>(ALL_THREADS);
  readonly measure = signal<Measure>(CPU);
  readonly query = signal('');
  /** Kinds of code that are stepped back. */
  readonly off = signal<ReadonlySet<number>>(new Set());

  /** The tree on show; null until the first one is built. */
  readonly tree = signal<FrameTree | null>(null);
  /** Counts up when the tree on show has grown. */
  readonly growth = signal(0);
  readonly busy = signal(true);
  readonly zoom = signal(0);
  readonly focused = signal(0);
  /** Width of the graph in pixels, set by it. */
  readonly width = signal(1000);
  /** What a screen reader is told. */
  readonly said = signal('');

  /** The profile of what is measured. */
  readonly shown = computed(() => measured(this.profile, this.measure.value));
  readonly threadRows = computed(() => threadRows(this.shown.value));
  readonly keys = computed(() => makeKeys(this.profile, this.byLine.value));
  readonly threads = computed(() => chosenThreads(this.profile, this.choice.value));
  readonly parsed = computed(() => parseQuery(this.query.value));
  readonly matched = computed(() => {
    const { query } = this.parsed.value;
    return query ? matchedKeys(this.keys.value, query) : null;
  });
  readonly matchedWeight = computed(() => {
    const matched = this.matched.value;
    return matched
      ? matchedWeight(this.shown.value, this.keys.value, this.threads.value, matched)
      : null;
  });
  /** The matching nodes of the tree on show. */
  readonly matches = computed(() => {
    void this.growth.value;
    const [tree, matched] = [this.tree.value, this.matched.value];
    return tree && matched ? matchLevels(tree, matched) : null;
  });
  readonly range = computed<Range>(() => {
    const [tree, zoom] = [this.tree.value, this.zoom.value];
    if (!tree || zoom >= tree.size) return { from: 0, to: tree?.total ?? 1 };
    return { from: tree.x(zoom), to: tree.x(zoom) + tree.weight(zoom) };
  });

  private readonly history: number[] = [];
  private readonly disposers: (() => void)[] = [];
  /** A zoom from the address, until there is a tree to apply it to. */
  private wanted: number[] = [];

  constructor(readonly profile: Profile) {}

  /** Takes the state from an address, and begins to build. */
  start(fragment: string): void {
    this.apply(fromFragment(fragment));
    this.disposers.push(
      effect(() => this.build()),
      effect(() => this.growTree()),
    );
  }

  stop(): void {
    for (const dispose of this.disposers.splice(0)) dispose();
  }

  apply(shared: Shared): void {
    const { reversed, split, byLine, choice } = this;
    const measure = possible(this.profile.header, shared.measure);
    const sameMeasure = JSON.stringify(measure) === JSON.stringify(this.measure.value);
    const sameThreads = JSON.stringify(shared.threads) === JSON.stringify(choice.value);
    const sameTree =
      shared.reversed === reversed.value &&
      shared.split === split.value &&
      shared.byLine === byLine.value &&
      sameMeasure &&
      sameThreads;
    batch(() => {
      this.view.value = shared.view;
      this.icicle.value = shared.icicle;
      reversed.value = shared.reversed;
      split.value = shared.split;
      byLine.value = shared.byLine;
      if (!sameThreads) choice.value = shared.threads;
      if (!sameMeasure) this.measure.value = measure;
      this.query.value = shared.query;
      const tree = this.tree.value;
      if (tree && sameTree) this.zoomTo(nodeOf(tree, shared.zoom), false);
      else this.wanted = shared.zoom;
    });
  }

  get fragment(): string {
    return toFragment({
      view: this.view.value,
      icicle: this.icicle.value,
      reversed: this.reversed.value,
      split: this.split.value,
      byLine: this.byLine.value,
      threads: this.choice.value,
      measure: this.measure.value,
      query: this.query.value,
      zoom: this.zoomPath(),
    });
  }

  private zoomPath(): number[] {
    const [tree, zoom] = [this.tree.value, this.zoom.value];
    if (!tree || zoom === 0) return this.busy.value ? this.wanted : [];
    if (!(tree instanceof ReverseTree)) return [zoom];
    if (tree.depth(zoom) > ZOOM_MAX) return [];
    return pathTo(tree, zoom)
      .slice(1)
      .map((node) => tree.key(node));
  }

  private build(): () => void {
    const abort = new AbortController();
    const request = {
      profile: this.shown.value,
      keys: this.keys.value,
      threads: this.threads.value,
      split: this.split.value,
    };
    const reversed = this.reversed.value;
    this.busy.value = true;
    const work = reversed ? newReverse(request) : buildForward(request);
    void inSlices(work, abort.signal).then((tree) => {
      if (!tree) return;
      batch(() => {
        this.history.length = 0;
        this.tree.value = tree;
        this.growth.value = untracked(() => this.growth.value) + 1;
        const node = nodeOf(tree, this.wanted);
        this.wanted = [];
        this.zoom.value = node;
        this.focused.value = node;
        this.busy.value = false;
      });
    });
    return () => abort.abort();
  }

  /** Lets a lazy tree grow where it is looked at. */
  private growTree(): (() => void) | undefined {
    const [tree, range, width] = [this.tree.value, this.range.value, this.width.value];
    if (!tree?.grow) return undefined;
    const abort = new AbortController();
    const again = () => {
      this.growth.value = untracked(() => this.growth.value) + 1;
    };
    const min = (range.to - range.from) / Math.max(1, width);
    void inSlices(tree.grow(range.from, range.to, min), abort.signal, again).then((grown) => {
      if (grown) again();
    });
    return () => abort.abort();
  }

  zoomTo(node: number, remember = true): void {
    const tree = this.tree.value;
    if (!tree || node < 0 || node >= tree.size || tree.weight(node) <= 0) return;
    if (remember && node !== this.zoom.value) {
      this.history.push(this.zoom.value);
      if (this.history.length > HISTORY_MAX) this.history.shift();
    }
    batch(() => {
      this.zoom.value = node;
      this.focused.value = node;
    });
  }

  /** Back to where the last zoom was made, else all the way out. False if there is no zoom. */
  zoomOut(): boolean {
    if (this.zoom.value === 0) return false;
    const from = this.zoom.value;
    this.zoomTo(this.history.pop() ?? 0, false);
    this.focused.value = from;
    return true;
  }

  resetZoom(): void {
    this.zoomTo(0);
  }

  /** Moves the focus to a node, and zooms if it could not be seen. */
  focus(node: number): void {
    const tree = this.tree.value;
    if (!tree || node < 0 || node >= tree.size) return;
    const to = revealing(tree, node, this.range.value, this.width.value);
    if (to >= 0) this.zoomTo(to);
    this.focused.value = node;
  }

  nextMatch(step: 1 | -1): void {
    const [tree, matches] = [this.tree.value, this.matches.value];
    if (!tree || !matches) return;
    const node = nextMatch(tree, matches, this.focused.value, step);
    if (node >= 0) this.focus(node);
  }

  toggleKind(kind: number): void {
    const off = new Set(this.off.value);
    if (!off.delete(kind)) off.add(kind);
    this.off.value = off;
  }
}

/** The node that an address asks for; the root if there is none such. */
function nodeOf(tree: FrameTree, path: readonly number[]): number {
  if (!(tree instanceof ReverseTree)) {
    const [node] = path;
    return path.length === 1 && node !== undefined && node < tree.size ? node : 0;
  }
  let node = 0;
  for (const key of path) {
    const child = Array.from(tree.children(node)).find((to) => tree.key(to) === key);
    if (child === undefined) break;
    node = child;
  }
  return node;
}

// The tree of callers is ready at once; it grows later.
function* newReverse(request: TreeRequest): Generator<void, FrameTree> {
  return new ReverseTree(request);
}

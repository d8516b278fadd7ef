// The state of the page: choices (signals), derived values (computed), and the tree that is built
// from them in slices.
import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { allocatedStrip } from '../data/allocations';
import { lockStrip } from '../data/locked';
import type { Place } from '../data/findings';
import { type Holders, holdersOf } from '../data/locks';
import { CPU, type Measure, measured, possible } from '../data/measure';
import type { Profile, Span } from '../data/profile';
import { endpointRows } from '../data/requests';
import { roleLabel } from '../data/standIns';
import { cpuStrip, stopStrip, throttledStrip, type WallFilter, wallStrip } from '../data/wall';
import { wholeOf } from '../data/whole';
import { buildDiff, onSides, type Width } from '../diff/build';
import {
  sideOfRequest,
  ofRanges,
  rangesOf,
  type Sides,
  sidesOfRanges,
  sidesOfRecordings,
  sidesOfRequests,
  slowAndUsual,
} from '../diff/sides';
import type { Per } from '../diff/statistics';
import type { TreeDiff } from '../diff/sums';
import { Tracks } from '../timeline/tracks';
import type { Range } from '../flame/layout';
import { packagesOf } from '../flame/packages';
import { revealing } from '../flame/moves';
import { matchedKeys, matchedWeight, matchLevels, nextMatch, parseQuery } from '../search/search';
import { buildForward } from '../tree/forward';
import { type Frames, hasMine, keysWithGaps, withFrames } from '../tree/frames';
import { type Keys, makeKeys, type SplitBy } from '../tree/keys';
import type { TreeRequest } from '../tree/request';
import { ReverseTree } from '../tree/reverse';
import {
  ALL_THREADS,
  chosenThreads,
  type ThreadChoice,
  threadRows,
  threadsOfRole,
} from '../tree/select';
import { inSlices } from '../tree/slices';
import { toText, type Transform, transformed } from '../tree/transform';
import { type FrameTree, pathTo } from '../tree/tree';
import {
  type Colouring,
  DEFAULTS,
  firstState,
  fromFragment,
  ofTwo,
  type Shared,
  toFragment,
  type View,
  viewsOf,
  ZOOM_MAX,
} from './fragment';

/** Zooms remembered for going back. */
const HISTORY_MAX = 100;
/** How long the page says something. */
const TOLD_MS = 2500;
const NO_FRAME = 'Select a frame or a method first.';
/** Bins of the strips over time. */
const BINS = 200;

export class Store {
  readonly view = signal<View>(DEFAULTS.view);
  readonly icicle = signal(false);
  readonly reversed = signal(false);
  readonly split = signal<SplitBy>('none');
  readonly byLine = signal(false);
  readonly choice = signal<ThreadChoice>(ALL_THREADS);
  readonly measure = signal<Measure>(CPU);
  /** Whether time in which threads had nothing to do is part of wall time. */
  readonly idle = signal(false);
  /** The part of the time that everything is made of; null: all. */
  readonly during = signal<Span | null>(null);
  /** The part of the time that it is compared with; null: none is. */
  readonly against = signal<Span | null>(null);
  /** The part of the time that the timeline shows; null: all. */
  readonly sight = signal<Span | null>(null);
  /** The chosen request; 0: none. */
  readonly request = signal(0);
  /** Whether everything is made of that request alone. */
  readonly onlyRequest = signal(false);
  /** Whether the strip of wall time is that of requests alone. */
  readonly requestsOnly = signal(true);
  /** Whether the slow requests of the endpoint are compared with its usual ones. */
  readonly versus = signal(false);
  /** Scale of two recordings; null: the default of the page. */
  readonly per = signal<Per | null>(null);
  /** Of a comparison: whose frames are as wide as they weigh. */
  readonly wide = signal<Width>('both');
  /** What is done to the stacks, in this order. */
  readonly transforms = signal<readonly Transform[]>([]);
  /** Whether generated classes have the names that the recording gives them. */
  readonly original = signal(false);
  /** Meaning of frame colours. */
  readonly colour = signal<Colouring>('auto');
  readonly frames = signal<Frames>('all');
  /** The method whose callers and callees are shown; empty: all stacks are. */
  readonly around = signal('');
  /** The chosen lock; empty: the first one. */
  readonly lock = signal('');
  readonly query = signal('');
  /** Kinds of code that are stepped back. */
  readonly off = signal<ReadonlySet<number>>(new Set());

  /** The tree on show; null until the first one is built. */
  readonly tree = signal<FrameTree | null>(null);
  /** For a comparison: values of the visible tree's nodes on both sides. */
  readonly diff = signal<TreeDiff | null>(null);
  /** Counts up when the tree on show has grown. */
  readonly growth = signal(0);
  readonly busy = signal(true);
  readonly zoom = signal(0);
  readonly focused = signal(0);
  /** The key of the selected row in the table or the tree; -1: it is no code. */
  readonly row = signal(-1);
  /** Width of the graph in pixels, set by it. */
  readonly width = signal(1000);
  /** A short message of the page. */
  readonly told = signal('');
  /** Text for screen readers. */
  readonly said = signal('');

  /** The profile of what is measured. */
  readonly shown = computed(() => {
    const of = (during: Span | null) =>
      measured(this.profile, this.measure.value, {
        idle: this.idle.value,
        during,
        request: this.onlyRequest.value ? this.request.value : 0,
      });
    const ranges = this.ranges.value;
    const all = ranges ? ofRanges(of, ranges) : of(this.during.value);
    const slow = this.slow.value;
    const some = slow ? onSides(all, sideOfRequest(slow)) : all;
    const keys = this.keys.value;
    return withFrames(transformed(some, keys, this.transforms.value), keys, this.frames.value);
  });
  /** Keys of frames that native frames are missing after. */
  readonly gaps = computed(() => keysWithGaps(this.profile, this.keys.value));
  /** Meaning of frame colours, with the default resolved. */
  readonly colouring = computed(() => {
    const colour = this.colour.value;
    if (colour !== 'auto') return colour;
    const { time } = this.measure.value;
    const isWall = time === 'wall' || time === 'off' || typeof time === 'object';
    return this.profile.wall && isWall ? 'cause' : 'kind';
  });
  /** The ranges of the time that are compared; null: none are. */
  readonly ranges = computed(() =>
    this.profile.header.compare ? null : rangesOf(this.against.value, this.during.value),
  );
  /** The slow and the usual requests, if they are compared and there are such. */
  readonly slow = computed(() => {
    const { endpoint } = this.measure.value;
    if (!this.versus.value || endpoint === null || this.ranges.value) return null;
    return slowAndUsual(this.profile, endpoint, this.during.value);
  });
  /**
   * Sides of the comparison; null: there is no comparison. A part of a view has those of the
   * whole.
   */
  readonly sides = computed((): Sides | null => {
    if (this.outer) return this.outer.sides.value;
    const [shown, threads, slow] = [this.shown.value, this.threads.value, this.slow.value];
    const { compare } = this.profile.header;
    const ranges = this.ranges.value;
    if (ranges) return sidesOfRanges(shown, threads, ranges);
    if (slow) return sidesOfRequests(shown, threads, slow);
    if (!compare) return null;
    const { endpoint } = this.measure.value;
    return sidesOfRecordings(shown, threads, this.per.value ?? compare.per, endpoint);
  });
  readonly threadRows = computed(() => threadRows(this.shown.value));
  readonly keys = computed(() => makeKeys(this.profile, this.byLine.value, this.original.value));
  readonly threads = computed(() => chosenThreads(this.profile, this.choice.value));
  /** Base of shares, and their errors. */
  readonly whole = computed(() => wholeOf(this.shown.value, this.threads.value));
  /** Which wall time the other views are made of. */
  readonly filter = computed<WallFilter>(() => ({
    threads: this.threads.value,
    endpoint: this.measure.value.endpoint,
    idle: this.idle.value,
    during: this.during.value,
    request: this.onlyRequest.value ? this.request.value : 0,
  }));
  /** Of the waiting for locks the part with a stack of the holder; filters by thread are of holders. */
  readonly holders = computed<Holders>(() => {
    const threads = new Uint8Array(this.profile.threads.name.length).fill(1);
    return holdersOf(this.profile, { ...this.filter.value, threads });
  });
  readonly endpointRows = computed(() => endpointRows(this.profile, this.filter.value));
  readonly wallStrip = computed(() => wallStrip(this.profile, this.filter.value, BINS));
  readonly cpuStrip = computed(() => cpuStrip(this.profile, this.threads.value, BINS));
  readonly throttledStrip = computed(() => throttledStrip(this.profile, BINS));
  readonly allocatedStrip = computed(() => allocatedStrip(this.profile, this.filter.value, BINS));
  readonly lockStrip = computed(() => lockStrip(this.profile, this.filter.value, BINS));
  readonly stopStrip = computed(() => stopStrip(this.profile, BINS));
  /** What each thread did, in the order of time. */
  readonly tracks = computed(() => new Tracks(this.profile));
  readonly packages = computed(() =>
    packagesOf(this.shown.value, this.keys.value, this.threads.value),
  );
  readonly parsed = computed(() => parseQuery(this.query.value));
  readonly matched = computed(() => {
    const { query } = this.parsed.value;
    return query ? matchedKeys(this.keys.value, query, this.query.value) : null;
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

  /** Of a view of several graphs the one whose frame had the focus last; null: there is one. */
  part: Store | null = null;

  private readonly history: number[] = [];
  private readonly disposers: (() => void)[] = [];
  /** A zoom from the address, until there is a tree to apply it to. */
  private wanted: number[] = [];
  /** Zoom target for the next tree; empty: none. */
  private sought = '';
  private toldTimer: ReturnType<typeof setTimeout> | undefined;

  /** State before any choice. */
  readonly first: Shared;

  /** `outer` is the state of the view that this one shows a part of. */
  constructor(
    readonly profile: Profile,
    private readonly outer: Store | null = null,
  ) {
    this.first = firstState(profile);
  }

  /** Takes the state from an address, and begins to build. */
  start(fragment: string): void {
    this.apply(fromFragment(fragment, this.first));
    this.disposers.push(
      effect(() => this.build()),
      effect(() => this.growTree()),
    );
  }

  stop(): void {
    for (const dispose of this.disposers.splice(0)) dispose();
  }

  apply(wanted: Shared): void {
    const { compare } = this.profile.header;
    const shared = compare ? ofTwo(wanted, compare.possible) : wanted;
    const { reversed, split, byLine, choice } = this;
    const measure = possible(this.profile.header, shared.measure);
    const sameMeasure = JSON.stringify(measure) === JSON.stringify(this.measure.value);
    const sameThreads = JSON.stringify(shared.threads) === JSON.stringify(choice.value);
    const sameTransforms = toText(shared.transforms) === toText(this.transforms.value);
    const samePart =
      shared.idle === this.idle.value &&
      sameSpan(shared.during, this.during.value) &&
      sameSpan(shared.against, this.against.value) &&
      shared.onlyRequest === this.onlyRequest.value &&
      (!shared.onlyRequest || shared.request === this.request.value);
    const sameTree =
      samePart &&
      shared.reversed === reversed.value &&
      shared.split === split.value &&
      shared.byLine === byLine.value &&
      shared.versus === this.versus.value &&
      shared.per === this.per.value &&
      shared.wide === this.wide.value &&
      shared.original === this.original.value &&
      shared.colour === this.colour.value &&
      shared.frames === this.frames.value &&
      sameTransforms &&
      sameMeasure &&
      sameThreads;
    batch(() => {
      this.view.value = viewsOf(this.profile).includes(shared.view) ? shared.view : DEFAULTS.view;
      this.icicle.value = shared.icicle;
      reversed.value = shared.reversed;
      split.value = shared.split;
      byLine.value = shared.byLine;
      if (!sameThreads) choice.value = shared.threads;
      if (!sameMeasure) this.measure.value = measure;
      if (!sameSpan(shared.during, this.during.value)) this.during.value = shared.during;
      if (!sameSpan(shared.against, this.against.value)) this.against.value = shared.against;
      if (!sameSpan(shared.sight, this.sight.value)) this.sight.value = shared.sight;
      this.idle.value = shared.idle;
      this.request.value = shared.request;
      this.onlyRequest.value = shared.onlyRequest;
      this.versus.value = shared.versus;
      this.per.value = shared.per;
      this.wide.value = shared.wide;
      this.original.value = shared.original;
      this.colour.value = shared.colour;
      this.frames.value = shared.frames;
      this.around.value = shared.around;
      this.lock.value = shared.lock;
      if (!sameTransforms) this.transforms.value = shared.transforms;
      this.query.value = shared.query;
      const tree = this.tree.value;
      if (tree && sameTree) this.zoomTo(nodeOf(tree, shared.zoom), false);
      else this.wanted = shared.zoom;
      // Set immediately, so that the old tree's zoom is not applied to the new state.
      if (tree && !sameTree) this.busy.value = true;
    });
  }

  get shared(): Shared {
    return {
      view: this.view.value,
      icicle: this.icicle.value,
      reversed: this.reversed.value,
      split: this.split.value,
      byLine: this.byLine.value,
      threads: this.choice.value,
      measure: this.measure.value,
      idle: this.idle.value,
      query: this.query.value,
      zoom: this.zoomPath(),
      during: this.during.value,
      against: this.against.value,
      sight: this.sight.value,
      request: this.request.value,
      onlyRequest: this.onlyRequest.value,
      versus: this.versus.value,
      per: this.per.value,
      wide: this.wide.value,
      transforms: this.transforms.value,
      original: this.original.value,
      colour: this.colour.value,
      frames: this.frames.value,
      around: this.around.value,
      lock: this.lock.value,
    };
  }

  get fragment(): string {
    return toFragment(this.shared, this.first);
  }

  /** Shows other colours. Frames that need their causes are merged again. */
  colourBy(colour: Colouring): void {
    this.apply({ ...this.shared, colour });
  }

  /** The next colours: kinds of code, packages, what was waited for. */
  nextColour(): void {
    const all: Colouring[] = ['kind', 'package', ...(this.profile.wall ? ['cause' as const] : [])];
    this.colourBy(all[(all.indexOf(this.colouring.value) + 1) % all.length]!);
  }

  /** The application's frames or all of them. */
  flipFrames(): void {
    if (!hasMine(this.profile)) return;
    this.apply({ ...this.shared, zoom: [], frames: this.frames.value === 'mine' ? 'all' : 'mine' });
  }

  /** The key of the frame that has the focus, or of the selected row; -1 if that is no code. */
  focusedKey(): number {
    if (this.part) return this.part.focusedKey();
    if (this.view.peek() !== 'flame') return this.row.peek();
    const [tree, node, keys] = [this.tree.peek(), this.focused.peek(), this.keys.peek()];
    if (!tree || node === 0 || node >= tree.size || keys.isGroup(tree.key(node))) return -1;
    return tree.key(node);
  }

  /** The method of the frame that has the focus; empty if that is no code. */
  focusedMethod(): string {
    const key = this.focusedKey();
    return key < 0 ? '' : this.keys.peek().methodLabel(key);
  }

  /** Callers and callees of the method that has the focus, in one view; or all stacks again. */
  flipAround(): void {
    const around = this.focusedMethod();
    if (this.view.value === 'flame' && this.around.value !== '') this.around.value = '';
    else if (around === '') this.tell(NO_FRAME);
    else this.go('flame', { around });
  }

  /** Does one more thing to the stacks, or takes one back that has no name. */
  transform(transform: Transform): void {
    const { transforms } = this;
    const { kind, name } = transform;
    const known = transforms.value.findIndex((it) => it.kind === kind && it.name === name);
    if (known >= 0) transforms.value = transforms.value.filter((_, at) => at !== known);
    else transforms.value = [...transforms.value, transform];
  }

  /** Merges the method of the frame that has the focus, or drops its stacks. */
  transformFocused(kind: 'merge' | 'drop'): void {
    const name = this.focusedMethod();
    if (name === '') this.tell(NO_FRAME);
    else this.transform({ kind, name });
  }

  /** Goes to a view with other choices; what is not named stays. */
  go(view: View, change: Partial<Shared> = {}): void {
    this.apply({ ...this.shared, zoom: [], ...change, view });
  }

  /** Goes to a place. A graph there is searched for what it is about, and zoomed to it. */
  show({ view, change, seek, role }: Place): void {
    // Threads of a role have one frame among those of the application.
    const isOfRole = role !== '' && hasMine(this.profile);
    const wanted = isOfRole ? roleLabel(role) : seek;
    const key = wanted === '' ? -1 : keyNamed(this.keys.value, wanted);
    const query = key < 0 ? '' : this.keys.value.methodLabel(key);
    // Frames that are otherwise folded become visible.
    const isFolded = key >= 0 && this.keys.value.own[key] !== 1;
    const frames = isOfRole ? 'mine' : isFolded ? 'all' : this.frames.value;
    const threads = role === '' || isOfRole ? {} : { threads: threadsOfRole(this.profile, role) };
    this.go(view, { ...change, ...threads, query, frames });
    this.sought = key < 0 ? '' : query;
    if (!this.busy.value) this.seek();
  }

  /** Searches the graph for a method or a text, and goes there. */
  find(name: string): void {
    this.query.value = name;
    this.view.value = 'flame';
  }

  /** Says something to all: on the page for a moment, and to screen readers. */
  tell(text: string): void {
    this.said.value = text;
    this.told.value = text;
    clearTimeout(this.toldTimer);
    this.toldTimer = setTimeout(() => (this.told.value = ''), TOLD_MS);
  }

  /** Zooms to the widest frame of what is sought. */
  private seek(): void {
    const [tree, keys, wanted] = [this.tree.value, this.keys.value, this.sought];
    this.sought = '';
    if (!tree || wanted === '') return;
    // A tree of callers has what is innermost below its root.
    const all = tree.grow ? tree.children(0) : Array.from({ length: tree.size }, (_, node) => node);
    let widest = 0;
    for (const node of Array.from(all)) {
      if (node === 0 || keys.methodLabel(tree.key(node)) !== wanted) continue;
      if (widest === 0 || tree.weight(node) > tree.weight(widest)) widest = node;
    }
    if (widest !== 0) this.zoomTo(widest);
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
      causes: this.colouring.value === 'cause' ? 1 + this.profile.header.waits.length : 0,
    };
    const [reversed, sides, wide] = [this.reversed.value, this.sides.value, this.wide.value];
    this.busy.value = true;
    const work = sides
      ? buildDiff(compared(request), sides, wide, reversed)
      : alone(reversed ? newReverse(request) : buildForward(request));
    void inSlices(work, abort.signal).then((built) => {
      if (!built) return;
      const { tree, diff } = built;
      batch(() => {
        this.history.length = 0;
        this.tree.value = tree;
        this.diff.value = diff;
        this.growth.value = untracked(() => this.growth.value) + 1;
        const node = nodeOf(tree, this.wanted);
        this.wanted = [];
        this.zoom.value = node;
        this.focused.value = node;
        this.busy.value = false;
        this.seek();
      });
    });
    return () => abort.abort();
  }

  /** Lets a lazy tree grow in its visible part. */
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

  /** Chooses a range of the time, or the one that it is compared with. */
  chooseRange(span: Span | null, isBase: boolean): void {
    if (isBase) this.against.value = span;
    else this.during.value = span;
    if (this.against.value && !this.during.value) {
      this.tell('Now drag, without Ctrl, across the range to compare with it.');
    } else if (this.against.value && !this.ranges.value) {
      this.tell('The ranges overlap: choose two that do not.');
    }
  }

  stopComparing(): void {
    this.versus.value = false;
    this.against.value = null;
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

/** The key of a method or class, by its name in the recording; -1 if it is absent. */
function keyNamed(keys: Keys, name: string): number {
  for (let key = 0; key < keys.methods; key++) {
    const original = keys.originals(key);
    if (keys.methodLabel(key) === name) return key;
    if (original !== '' && `${original}.${keys.methodName(key)}` === name) return key;
  }
  return -1;
}

function sameSpan(a: Span | null, b: Span | null): boolean {
  return a === b || (a !== null && b !== null && a.from === b.from && a.to === b.to);
}

/** The node that an address names; the root if it is absent. */
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

/** Threads of two recordings are not the same: groups of them are. */
function compared(request: TreeRequest): TreeRequest {
  return request.split === 'thread' ? { ...request, split: 'group' } : request;
}

function* alone(
  work: Generator<void, FrameTree>,
): Generator<void, { tree: FrameTree; diff: TreeDiff | null }> {
  return { tree: yield* work, diff: null };
}

// The tree of callers is ready at once; it grows later.
function* newReverse(request: TreeRequest): Generator<void, FrameTree> {
  return new ReverseTree(request);
}

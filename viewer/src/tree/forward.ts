// The tree of callees: every stack from its root, frames of one key merged, thread by thread or all
// threads together. It is built completely, because it is not larger than the profile's own tree;
// as a generator, so that the page stays responsive.
import type { Profile } from '../data/profile';
import { Children } from './children';
import { groupSamples, type TreeRequest } from './request';
import { type FrameTree, KINDS, type Level, mainKind } from './tree';

/** Steps between two looks at the clock. */
const SLICE = 1 << 15;
const NONE = 0xffffffff;

/** Nodes in the order in which they were found: parents before children. */
class Draft {
  n = 1;
  parent = new Uint32Array(1024);
  key = new Uint32Array(1024);
  own = new Float64Array(1024);
  samples = new Uint32Array(1024);
  kinds = new Float32Array(1024 * KINDS);
  /** Self time by node and cause, if requested. */
  byCause: Float32Array;
  private slots = new Uint32Array(4096);

  constructor(readonly causes: number) {
    this.key[0] = NONE;
    this.byCause = new Float32Array(1024 * causes);
  }

  /** The child of a node with a key, new or known. */
  child(parent: number, key: number): number {
    const mask = this.slots.length - 1;
    let slot = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(key + 1, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const node = this.slots[slot]!;
      if (node === 0) break;
      if (this.parent[node] === parent && this.key[node] === key) return node;
      slot = (slot + 1) & mask;
    }
    if (this.n === this.parent.length) this.enlarge();
    const node = this.n++;
    this.parent[node] = parent;
    this.key[node] = key;
    this.slots[slot] = node;
    if (this.n * 2 > this.slots.length) this.rehash();
    return node;
  }

  private enlarge(): void {
    const size = this.n * 2;
    const grown = <T extends Uint32Array | Float64Array | Float32Array>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    this.parent = grown(new Uint32Array(size), this.parent);
    this.key = grown(new Uint32Array(size), this.key);
    this.own = grown(new Float64Array(size), this.own);
    this.samples = grown(new Uint32Array(size), this.samples);
    this.kinds = grown(new Float32Array(size * KINDS), this.kinds);
    this.byCause = grown(new Float32Array(size * this.causes), this.byCause);
  }

  private rehash(): void {
    const size = this.slots.length * 4;
    this.slots = new Uint32Array(size);
    for (let node = 1; node < this.n; node++) {
      const key = this.key[node]!;
      let slot = (Math.imul(this.parent[node]!, 0x9e3779b1) ^ Math.imul(key + 1, 0x85ebca6b)) >>> 0;
      slot = (slot ^ (slot >>> 15)) & (size - 1);
      while (this.slots[slot] !== 0) slot = (slot + 1) & (size - 1);
      this.slots[slot] = node;
    }
  }
}

/** Builds the tree. Yields now and then. */
export function* buildForward(request: TreeRequest): Generator<void, FrameTree> {
  const draft = new Draft(request.causes ?? 0);
  const groups = groupSamples(request);
  const scratch = new Scratch(request.profile.nodes.parent.length);
  for (const group of groups) {
    const top = group.key < 0 ? 0 : draft.child(0, group.key);
    yield* addGroup(request, draft, scratch, group.samples, top);
  }
  return yield* finish(draft);
}

/** Per node of the profile's tree; only the entries of the group at work mean anything. */
class Scratch {
  readonly group: Int32Array;
  readonly weight: Float64Array;
  readonly own: Float64Array;
  readonly samples: Uint32Array;
  readonly to: Uint32Array;
  number = 0;

  constructor(nodes: number) {
    this.group = new Int32Array(nodes);
    this.weight = new Float64Array(nodes);
    this.own = new Float64Array(nodes);
    this.samples = new Uint32Array(nodes);
    this.to = new Uint32Array(nodes);
  }
}

function* addGroup(
  request: TreeRequest,
  draft: Draft,
  scratch: Scratch,
  samples: Uint32Array,
  top: number,
): Generator<void, void> {
  const { profile, keys } = request;
  const { parent, frame } = profile.nodes;
  const { weight, count } = profile.samples;
  const visited = visit(profile, scratch, samples);
  yield;
  for (let i = 0; i < samples.length; i++) {
    const node = profile.samples.node[samples[i]!]!;
    scratch.own[node]! += weight[samples[i]!]!;
    scratch.samples[node]! += count[samples[i]!]!;
  }
  // Backwards: children before parents.
  for (let i = visited.length - 1; i >= 0; i--) {
    const node = visited[i]!;
    scratch.weight[node]! += scratch.own[node]!;
    if (node !== 0) scratch.weight[parent[node]!]! += scratch.weight[node]!;
  }
  yield;
  for (let i = 0; i < visited.length; i++) {
    const node = visited[i]!;
    let to = top;
    if (node !== 0) {
      const kind = profile.frames.kind[frame[node]!]!;
      to = draft.child(scratch.to[parent[node]!]!, keys.ofFrame[frame[node]!]!);
      draft.kinds[to * KINDS + Math.min(kind, KINDS - 1)]! += scratch.weight[node]!;
    }
    scratch.to[node] = to;
    draft.own[to]! += scratch.own[node]!;
    draft.samples[to]! += scratch.samples[node]!;
    if (i % SLICE === SLICE - 1) yield;
  }
  if (draft.causes === 0) return;
  for (let i = 0; i < samples.length; i++) {
    const sample = samples[i]!;
    const to = scratch.to[profile.samples.node[sample]!]!;
    draft.byCause[to * draft.causes + profile.samples.wait[sample]!]! += weight[sample]!;
  }
}

/** The nodes on the samples' stacks in ascending order, with the root. Clears their entries. */
function visit(profile: Profile, scratch: Scratch, samples: Uint32Array): Uint32Array {
  const { parent } = profile.nodes;
  const number = ++scratch.number;
  let list = new Uint32Array(1024);
  let n = 0;
  for (let i = 0; i < samples.length; i++) {
    let node = profile.samples.node[samples[i]!]!;
    while (scratch.group[node] !== number) {
      scratch.group[node] = number;
      scratch.weight[node] = 0;
      scratch.own[node] = 0;
      scratch.samples[node] = 0;
      if (n === list.length) {
        const longer = new Uint32Array(n * 2);
        longer.set(list);
        list = longer;
      }
      list[n++] = node;
      node = parent[node]!;
    }
  }
  return list.subarray(0, n).sort();
}

/** The finished nodes, numbered level by level and from left to right. */
interface Nodes {
  parent: Uint32Array;
  key: Uint32Array;
  x: Float64Array;
  weight: Float64Array;
  own: Float64Array;
  samples: Uint32Array;
  kind: Uint8Array;
  kinds: Float32Array;
  /** Children of node i: firstChild[i] up to firstChild[i + 1]. */
  firstChild: Uint32Array;
  /** The main cause; empty without causes. */
  cause: Uint8Array;
  /** Weight by node and cause; empty without causes. */
  byCause: Float32Array;
  /** Each number, for parts of it to be handed out. */
  id: Uint32Array;
  /** Where each level starts, and the end. */
  starts: Uint32Array;
}

function* finish(draft: Draft): Generator<void, FrameTree> {
  const n = draft.n;
  const weight = draft.own.slice(0, n);
  const samples = draft.samples.slice(0, n);
  for (let node = n - 1; node > 0; node--) {
    weight[draft.parent[node]!]! += weight[node]!;
    samples[draft.parent[node]!]! += samples[node]!;
  }
  yield;
  const { causes, byCause } = draft;
  for (let node = n - 1; causes > 0 && node > 0; node--) {
    const to = draft.parent[node]! * causes;
    for (let i = 0; i < causes; i++) byCause[to + i]! += byCause[node * causes + i]!;
  }
  const { order, nodes } = yield* arrange(draft, weight);
  if (causes > 0) {
    nodes.cause = new Uint8Array(n);
    nodes.byCause = new Float32Array(n * causes);
  }
  for (let at = 0; at < n; at++) {
    const node = order[at]!;
    nodes.key[at] = draft.key[node]!;
    nodes.weight[at] = weight[node]!;
    nodes.own[at] = draft.own[node]!;
    nodes.samples[at] = samples[node]!;
    for (let kind = 0; kind < KINDS; kind++) {
      nodes.kinds[at * KINDS + kind] = draft.kinds[node * KINDS + kind]!;
    }
    nodes.kind[at] = mainKind(nodes.kinds, at * KINDS);
    if (causes > 0) {
      nodes.cause[at] = mainKind(byCause, node * causes, causes);
      for (let i = 0; i < causes; i++) nodes.byCause[at * causes + i] = byCause[node * causes + i]!;
    }
    if (at % SLICE === SLICE - 1) yield;
  }
  return new ForwardTree(nodes);
}

/** Gives every node its new number and its place. */
function* arrange(
  draft: Draft,
  weight: Float64Array,
): Generator<void, { order: Uint32Array; nodes: Nodes }> {
  const n = draft.n;
  const children = new Children(draft.parent, n);
  const nodes = emptyNodes(n);
  // order[new number] = number in the draft.
  const order = new Uint32Array(n);
  const starts = [0, 1];
  let found = 1;
  for (let at = 0; at < n; at++) {
    nodes.id[at] = at;
    if (at === starts[starts.length - 1]) starts.push(found);
    nodes.firstChild[at] = found;
    const sorted = children.sorted(order[at]!, weight);
    let x = nodes.x[at]!;
    for (let i = 0; i < sorted.length; i++) {
      order[found] = sorted[i]!;
      nodes.parent[found] = at;
      nodes.x[found] = x;
      x += weight[sorted[i]!]!;
      found++;
    }
    if (at % SLICE === SLICE - 1) yield;
  }
  nodes.firstChild[n] = n;
  nodes.starts = Uint32Array.from(starts);
  return { order, nodes };
}

function emptyNodes(n: number): Nodes {
  return {
    parent: new Uint32Array(n),
    key: new Uint32Array(n),
    x: new Float64Array(n),
    weight: new Float64Array(n),
    own: new Float64Array(n),
    samples: new Uint32Array(n),
    kind: new Uint8Array(n),
    kinds: new Float32Array(n * KINDS),
    firstChild: new Uint32Array(n + 1),
    cause: new Uint8Array(0),
    byCause: new Float32Array(0),
    id: new Uint32Array(n),
    starts: new Uint32Array(0),
  };
}

class ForwardTree implements FrameTree {
  readonly total: number;
  readonly size: number;
  readonly levels: Level[] = [];

  constructor(private readonly nodes: Nodes) {
    this.total = nodes.weight[0]!;
    this.size = nodes.weight.length;
    for (let depth = 0; depth + 1 < nodes.starts.length; depth++) {
      const [from, to] = [nodes.starts[depth]!, nodes.starts[depth + 1]!];
      const part = <T extends Float64Array | Uint32Array>(array: T) =>
        array.subarray(from, to) as T;
      this.levels.push({
        n: to - from,
        x: part(nodes.x),
        w: part(nodes.weight),
        id: part(nodes.id),
      });
    }
  }

  parent = (node: number) => this.nodes.parent[node]!;
  key = (node: number) => this.nodes.key[node]!;
  x = (node: number) => this.nodes.x[node]!;
  weight = (node: number) => this.nodes.weight[node]!;
  own = (node: number) => this.nodes.own[node]!;
  samples = (node: number) => this.nodes.samples[node]!;
  kind = (node: number) => this.nodes.kind[node]!;
  cause = (node: number) => this.nodes.cause[node] ?? 0;
  causes = (node: number) => {
    const each = this.nodes.byCause.length / this.size;
    return this.nodes.byCause.subarray(node * each, (node + 1) * each);
  };
  kinds = (node: number) => this.nodes.kinds.subarray(node * KINDS, (node + 1) * KINDS);

  children(node: number): Uint32Array {
    return this.nodes.id.subarray(this.nodes.firstChild[node], this.nodes.firstChild[node + 1]);
  }

  hasChildren(node: number): boolean {
    return this.nodes.firstChild[node + 1]! > this.nodes.firstChild[node]!;
  }

  depth(node: number): number {
    // The last level that starts at or before the node.
    const { starts } = this.nodes;
    let low = 0;
    let high = this.levels.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (starts[middle]! <= node) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

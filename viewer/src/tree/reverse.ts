// The tree of callers: from the innermost frame outwards. Whole, it would have a node for every
// frame of every stack, so it grows where somebody looks: only nodes wide enough to be seen are
// expanded.
//
// A node keeps items until it is expanded: "this much weight goes on at that node of the
// profile's tree". Items that meet on the way out are merged, so the outer levels get cheaper and
// cheaper.
import { groupSamples, type TreeRequest } from './request';
import { type FrameTree, KINDS, type Level, mainKind } from './tree';

/** Items handled between two looks at the clock, and between two updates of the levels. */
const SLICE = 1 << 16;
const REFRESH = 1 << 20;

interface Items {
  /** Nodes of the profile's tree whose frames are to be grouped next. */
  node: Uint32Array;
  weight: Float64Array;
  samples: Uint32Array;
}

interface Node {
  parent: number;
  key: number;
  depth: number;
  x: number;
  weight: number;
  own: number;
  samples: number;
  kind: number;
  kinds: Float64Array;
  children: number[];
  /** What the node becomes when it is expanded; null once it is. */
  items: Items | null;
}

export class ReverseTree implements FrameTree {
  levels: Level[] = [];
  private readonly nodes: Node[] = [];
  private readonly groupOfKey: Int32Array;
  private readonly placeOfNode: Int32Array;

  constructor(private readonly request: TreeRequest) {
    const { profile, keys } = request;
    this.groupOfKey = new Int32Array(keys.count).fill(-1);
    this.placeOfNode = new Int32Array(profile.nodes.parent.length).fill(-1);
    const root = { ...emptyNode(), key: 0xffffffff };
    this.nodes.push(root);
    const found: Node[] = [];
    for (const group of groupSamples(request)) {
      const node = group.thread < 0 ? root : { ...emptyNode(), key: keys.ofThread(group.thread) };
      const items = this.itemsOf(group.samples);
      node.weight = sum(items.weight);
      node.samples = sum(items.samples);
      this.setItems(node, items);
      if (node !== root) found.push(node);
    }
    if (request.split) {
      root.weight = found.reduce((weight, node) => weight + node.weight, 0);
      root.samples = found.reduce((samples, node) => samples + node.samples, 0);
      this.adopt(0, found);
    }
    this.refresh();
  }

  /** Samples put together by the node they end in. */
  private itemsOf(samples: Uint32Array): Items {
    const { node, weight, count } = this.request.profile.samples;
    const place = this.placeOfNode;
    const out: Items = emptyItems(64);
    let n = 0;
    for (let i = 0; i < samples.length; i++) {
      const sample = samples[i]!;
      const at = node[sample]!;
      if (place[at]! < 0) {
        place[at] = n;
        if (n === out.node.length) enlarge(out);
        out.node[n++] = at;
      }
      out.weight[place[at]!]! += weight[sample]!;
      out.samples[place[at]!]! += count[sample]!;
    }
    for (let i = 0; i < n; i++) place[out.node[i]!] = -1;
    return cut(out, n);
  }

  /** Items that have reached the root of the profile's tree are where a stack began. */
  private setItems(node: Node, items: Items): void {
    for (let i = 0; i < items.node.length; i++) {
      if (items.node[i] === 0) node.own += items.weight[i]!;
    }
    node.items = items;
  }

  private adopt(parent: number, children: Node[]): void {
    children.sort((a, b) => b.weight - a.weight || a.key - b.key);
    const owner = this.nodes[parent]!;
    let x = owner.x;
    for (const child of children) {
      child.parent = parent;
      child.depth = owner.depth + 1;
      child.x = x;
      x += child.weight;
      owner.children.push(this.nodes.length);
      this.nodes.push(child);
    }
    owner.items = null;
  }

  /** Makes the children of a node; returns how much work that was. */
  private expand(id: number): number {
    const items = this.nodes[id]!.items;
    if (!items) return 0;
    const { profile, keys } = this.request;
    const { frame } = profile.nodes;
    const groups: Node[] = [];
    const sizes: number[] = [];
    const group = this.groupOfKey;
    for (let i = 0; i < items.node.length; i++) {
      const node = items.node[i]!;
      if (node === 0) continue;
      const key = keys.ofFrame[frame[node]!]!;
      if (group[key]! < 0) {
        group[key] = groups.length;
        groups.push({ ...emptyNode(), key, kinds: new Float64Array(KINDS) });
        sizes.push(0);
      }
      const to = groups[group[key]!]!;
      to.weight += items.weight[i]!;
      to.samples += items.samples[i]!;
      to.kinds[Math.min(profile.frames.kind[frame[node]!]!, KINDS - 1)]! += items.weight[i]!;
      sizes[group[key]!]! += 1;
    }
    this.stepOut(items, groups, sizes);
    for (const node of groups) {
      group[node.key] = -1;
      node.kind = mainKind(node.kinds, 0);
    }
    this.adopt(id, groups);
    return items.node.length;
  }

  /** Moves every item to its caller and merges those that meet there, group by group. */
  private stepOut(items: Items, groups: Node[], sizes: number[]): void {
    const { parent, frame } = this.request.profile.nodes;
    const { ofFrame } = this.request.keys;
    const starts = new Uint32Array(groups.length + 1);
    for (let g = 0; g < groups.length; g++) starts[g + 1] = starts[g]! + sizes[g]!;
    const order = new Uint32Array(starts[groups.length]!);
    const free = starts.slice();
    for (let i = 0; i < items.node.length; i++) {
      const node = items.node[i]!;
      if (node !== 0) order[free[this.groupOfKey[ofFrame[frame[node]!]!]!]!++] = i;
    }
    const place = this.placeOfNode;
    for (let g = 0; g < groups.length; g++) {
      const out = emptyItems(sizes[g]!);
      let n = 0;
      for (let at = starts[g]!; at < starts[g + 1]!; at++) {
        const item = order[at]!;
        const caller = parent[items.node[item]!]!;
        if (place[caller]! < 0) {
          place[caller] = n;
          out.node[n++] = caller;
        }
        out.weight[place[caller]!]! += items.weight[item]!;
        out.samples[place[caller]!]! += items.samples[item]!;
      }
      for (let i = 0; i < n; i++) place[out.node[i]!] = -1;
      this.setItems(groups[g]!, cut(out, n));
    }
  }

  *grow(from: number, to: number, min: number): Generator<void, boolean> {
    let [work, sinceYield, changed] = [0, 0, false];
    let wave = [0];
    while (wave.length > 0) {
      const next: number[] = [];
      for (const id of wave) {
        const node = this.nodes[id]!;
        if (node.items) {
          const done = this.expand(id) + 16;
          changed = true;
          work += done;
          sinceYield += done;
        }
        for (const child of node.children) {
          const { x, weight } = this.nodes[child]!;
          if (weight >= min && x < to && x + weight > from) next.push(child);
        }
        if (work > REFRESH) {
          this.refresh();
          work = 0;
        }
        if (sinceYield > SLICE) {
          sinceYield = 0;
          yield;
        }
      }
      wave = next;
    }
    if (changed) this.refresh();
    return changed;
  }

  /** Makes the levels again. */
  private refresh(): void {
    const levels: Level[] = [];
    let wave = [0];
    while (wave.length > 0) {
      const level = {
        n: wave.length,
        x: Float64Array.from(wave, (id) => this.nodes[id]!.x),
        w: Float64Array.from(wave, (id) => this.nodes[id]!.weight),
        id: Uint32Array.from(wave),
      };
      levels.push(level);
      const next: number[] = [];
      for (const id of wave) for (const child of this.nodes[id]!.children) next.push(child);
      wave = next;
    }
    this.levels = levels;
  }

  get total(): number {
    return this.nodes[0]!.weight;
  }
  get size(): number {
    return this.nodes.length;
  }
  parent = (node: number) => this.nodes[node]!.parent;
  key = (node: number) => this.nodes[node]!.key;
  depth = (node: number) => this.nodes[node]!.depth;
  x = (node: number) => this.nodes[node]!.x;
  weight = (node: number) => this.nodes[node]!.weight;
  own = (node: number) => this.nodes[node]!.own;
  samples = (node: number) => this.nodes[node]!.samples;
  kind = (node: number) => this.nodes[node]!.kind;
  kinds = (node: number) => this.nodes[node]!.kinds;

  children(node: number): number[] {
    if (this.expand(node) > 0) this.refresh();
    return this.nodes[node]!.children;
  }

  hasChildren(node: number): boolean {
    const { items, children } = this.nodes[node]!;
    return items ? items.node.some((to) => to !== 0) : children.length > 0;
  }
}

function emptyNode(): Node {
  return {
    parent: 0,
    key: 0,
    depth: 0,
    x: 0,
    weight: 0,
    own: 0,
    samples: 0,
    kind: 0,
    kinds: new Float64Array(KINDS),
    children: [],
    items: null,
  };
}

function emptyItems(size: number): Items {
  return {
    node: new Uint32Array(size),
    weight: new Float64Array(size),
    samples: new Uint32Array(size),
  };
}

function enlarge(items: Items): void {
  const size = items.node.length * 2;
  const { node, weight, samples } = items;
  (items.node = new Uint32Array(size)).set(node);
  (items.weight = new Float64Array(size)).set(weight);
  (items.samples = new Uint32Array(size)).set(samples);
}

/** The first `n` items, without keeping a much larger buffer alive. */
function cut(items: Items, n: number): Items {
  const part = <T extends Float64Array | Uint32Array>(array: T) =>
    (n * 2 < array.length ? array.slice(0, n) : array.subarray(0, n)) as T;
  return { node: part(items.node), weight: part(items.weight), samples: part(items.samples) };
}

function sum(values: Float64Array | Uint32Array): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

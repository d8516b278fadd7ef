// The tree of callers: from the innermost frame outwards. The complete tree would have a node for
// every frame of every stack, so it grows on demand: only visible nodes are expanded.
//
// A node keeps items until it is expanded: "this much weight goes on at that node of the
// profile's tree". Items that meet on the way out are merged, so the outer levels get cheaper and
// cheaper.
import type { Sides } from '../diff/sides';
import { type NodeSums, noSums } from '../diff/sums';
import type { Sum } from '../diff/statistics';
import { addItem, cut, emptyItems, enlarge, type Items } from './items';
import { groupSamples, type TreeRequest } from './request';
import { type FrameTree, KINDS, type Level, mainKind } from './tree';

/** Items handled between two looks at the clock, and between two updates of the levels. */
const SLICE = 1 << 16;
const REFRESH = 1 << 20;

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
  cause: number;
  /** Weight by cause; empty without causes. */
  causes: Float64Array;
  children: number[];
  /** Items of a node that is not expanded yet; null after expansion. */
  items: Items | null;
  /** Of a comparison the sums of both sides. */
  both: NodeSums | null;
}

/** A comparison: the tree has the width of the request's weights, and the sums of these. */
export interface Compared {
  weight: Float64Array;
  side: Sides['side'];
}

export class ReverseTree implements FrameTree {
  levels: Level[] = [];
  private readonly nodes: Node[] = [];
  private readonly groupOfKey: Int32Array;
  private readonly placeOfNode: Int32Array;
  /** Number of causes by which items of a node are split; 1: no split. */
  private readonly causeCount: number;

  constructor(
    private readonly request: TreeRequest,
    private readonly compared: Compared | null = null,
  ) {
    const { profile, keys } = request;
    this.groupOfKey = new Int32Array(keys.count).fill(-1);
    this.causeCount = Math.max(1, request.causes ?? 0);
    this.placeOfNode = new Int32Array(profile.nodes.parent.length * this.causeCount).fill(-1);
    const root = { ...emptyNode(), key: 0xffffffff };
    this.nodes.push(root);
    const found: Node[] = [];
    for (const group of groupSamples(request)) {
      const node = group.key < 0 ? root : { ...emptyNode(), key: group.key };
      const items = this.itemsOf(group.samples);
      node.weight = sum(items.weight);
      node.samples = sum(items.samples);
      this.setItems(node, items);
      if (node !== root) found.push(node);
    }
    if (request.split !== 'none') {
      root.weight = found.reduce((weight, node) => weight + node.weight, 0);
      root.samples = found.reduce((samples, node) => samples + node.samples, 0);
      if (this.compared) root.both = found.reduce(addTotals, noSums());
      this.adopt(0, found);
    }
    this.refresh();
  }

  /** Samples put together by the node they end in. */
  private itemsOf(samples: Uint32Array): Items {
    const { node, weight, count, wait } = this.request.profile.samples;
    const [place, causes] = [this.placeOfNode, this.causeCount];
    const out = emptyItems(64, this.compared !== null);
    let n = 0;
    for (let i = 0; i < samples.length; i++) {
      const sample = samples[i]!;
      const cause = causes === 1 ? 0 : wait[sample]!;
      const at = node[sample]! * causes + cause;
      if (place[at]! < 0) {
        place[at] = n;
        if (n === out.node.length) enlarge(out);
        out.wait[n] = cause;
        out.node[n++] = node[sample]!;
      }
      out.weight[place[at]!]! += weight[sample]!;
      out.samples[place[at]!]! += count[sample]!;
      this.addSample(out, place[at]!, sample);
    }
    for (let i = 0; i < n; i++) place[out.node[i]! * causes + out.wait[i]!] = -1;
    return cut(out, n);
  }

  /** Adds what a sample is on its side. */
  private addSample(to: Items, at: number, sample: number): void {
    if (!this.compared || !to.both) return;
    const { samples } = this.request.profile;
    const sums = to.both[this.compared.side(samples, sample) - 1];
    if (!sums) return;
    const [weight, choices] = [this.compared.weight[sample]!, samples.choices[sample]!];
    sums.weight[at]! += weight;
    sums.squares[at]! += weight ** 2 / choices;
    sums.samples[at]! += samples.count[sample]!;
  }

  /** Items that have reached the root of the profile's tree are where a stack began. */
  private setItems(node: Node, items: Items): void {
    const both = items.both && noSums();
    for (let i = 0; i < items.node.length; i++) {
      const isEnd = items.node[i] === 0;
      if (isEnd) node.own += items.weight[i]!;
      if (both) addItemSums(both, items, i, isEnd);
    }
    node.both = both;
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
    const byCause: Float64Array[] = [];
    const group = this.groupOfKey;
    for (let i = 0; i < items.node.length; i++) {
      const node = items.node[i]!;
      if (node === 0) continue;
      const key = keys.ofFrame[frame[node]!]!;
      if (group[key]! < 0) {
        group[key] = groups.length;
        groups.push({ ...emptyNode(), key, kinds: new Float64Array(KINDS) });
        sizes.push(0);
        byCause.push(new Float64Array(this.causeCount));
      }
      const to = groups[group[key]!]!;
      to.weight += items.weight[i]!;
      to.samples += items.samples[i]!;
      to.kinds[Math.min(profile.frames.kind[frame[node]!]!, KINDS - 1)]! += items.weight[i]!;
      byCause[group[key]!]![items.wait[i]!]! += items.weight[i]!;
      sizes[group[key]!]! += 1;
    }
    this.stepOut(items, groups, sizes);
    groups.forEach((node, i) => {
      group[node.key] = -1;
      node.kind = mainKind(node.kinds, 0);
      node.cause = mainKind(byCause[i]!, 0, this.causeCount);
      if (this.causeCount > 1) node.causes = byCause[i]!;
    });
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
    const [place, causes] = [this.placeOfNode, this.causeCount];
    for (let g = 0; g < groups.length; g++) {
      const out = emptyItems(sizes[g]!, items.both !== null);
      let n = 0;
      for (let i = starts[g]!; i < starts[g + 1]!; i++) {
        const item = order[i]!;
        const caller = parent[items.node[item]!]!;
        const wait = items.wait[item]!;
        const at = caller * causes + wait;
        if (place[at]! < 0) {
          place[at] = n;
          out.wait[n] = wait;
          out.node[n++] = caller;
        }
        addItem(out, place[at]!, items, item);
      }
      for (let i = 0; i < n; i++) place[out.node[i]! * causes + out.wait[i]!] = -1;
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
  cause = (node: number) => this.nodes[node]!.cause;
  causes = (node: number) => this.nodes[node]!.causes;
  kinds = (node: number) => this.nodes[node]!.kinds;
  /** Of a comparison the sums of both sides: with all that goes on, and of what began here. */
  both = (node: number) => this.nodes[node]!.both;

  children(node: number): number[] {
    if (this.expand(node) > 0) this.refresh();
    return this.nodes[node]!.children;
  }

  hasChildren(node: number): boolean {
    const { items, children } = this.nodes[node]!;
    return items ? items.node.some((to) => to !== 0) : children.length > 0;
  }
}

const NO_CAUSES = new Float64Array(0);

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
    cause: 0,
    causes: NO_CAUSES,
    children: [],
    items: null,
    both: null,
  };
}

/** Adds a row's sums to what goes on at a node, and to what began there. */
function addItemSums(to: NodeSums, { both }: Items, i: number, isEnd: boolean): void {
  for (const side of [0, 1] as const) {
    const { weight, squares, samples } = both![side];
    const row = { sum: weight[i]!, squares: squares[i]!, samples: samples[i]! };
    addSum(to.total[side], row);
    if (isEnd) addSum(to.own[side], row);
  }
}

function addTotals(to: NodeSums, { both }: Node): NodeSums {
  for (const side of [0, 1] as const) if (both) addSum(to.total[side], both.total[side]);
  return to;
}

function addSum(to: Sum, of: Sum): void {
  to.sum += of.sum;
  to.squares += of.squares;
  to.samples += of.samples;
}

function sum(values: Float64Array | Uint32Array): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

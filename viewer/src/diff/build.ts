// Trees of two sides, of callees and of callers: as wide as one side or as both together, with the
// sums of each side by node. A generator, so that the page stays responsive.
import { noSamples } from '../data/measure';
import type { Profile, Samples } from '../data/profile';
import { buildForward } from '../tree/forward';
import { groupSamples, type TreeRequest } from '../tree/request';
import { ReverseTree } from '../tree/reverse';
import type { FrameTree } from '../tree/tree';
import { growingDiff } from './growing';
import type { Sides } from './sides';
import { addSamples, addSums, type BothSums, emptySums, treeDiff, type TreeDiff } from './sums';

/** Width of a frame: the first side's rate, the second's, or the mean of both. */
export type Width = 'both' | 'a' | 'b';

/** Steps between two looks at the clock. */
const SLICE = 1 << 14;

export function* buildDiff(
  request: TreeRequest,
  sides: Sides,
  width: Width,
  reversed = false,
): Generator<void, { tree: FrameTree; diff: TreeDiff }> {
  const scaled = { ...request, profile: scaledTo(request.profile, sides, width) };
  yield;
  if (reversed) {
    const { weight } = request.profile.samples;
    const tree = new ReverseTree(scaled, { weight, side: sides.side });
    return { tree, diff: growingDiff(sides, tree) };
  }
  const tree = yield* buildForward(scaled);
  const own = yield* sumsOfTree(scaled, tree, request.profile, sides);
  return { tree, diff: treeDiff(sides, tree, own) };
}

/** The profile with those samples alone that are on a side. */
export function onSides(profile: Profile, side: Sides['side']): Profile {
  const { samples } = profile;
  const chosen: number[] = [];
  for (let i = 0; i < samples.node.length; i++) if (side(samples, i) !== 0) chosen.push(i);
  const kept = noSamples(chosen.length);
  for (const column of Object.keys(kept) as (keyof Samples)[]) {
    const [to, from] = [kept[column], samples[column]];
    chosen.forEach((i, at) => (to[at] = from[i]!));
  }
  return { ...profile, samples: kept };
}

/** The profile with weights by the base. */
function scaledTo(profile: Profile, sides: Sides, width: Width): Profile {
  const { samples } = profile;
  const part = { both: [0.5, 0.5], a: [1, 0], b: [0, 1] }[width];
  const factor = [0, part[0]! / sides.base.a, part[1]! / sides.base.b];
  const weight = new Float64Array(samples.weight.length);
  for (let i = 0; i < weight.length; i++) {
    weight[i] = samples.weight[i]! * factor[sides.side(samples, i)]!;
  }
  return { ...profile, samples: { ...samples, weight } };
}

/** Finds the tree's node of every stack, and adds what both sides spent there. */
function* sumsOfTree(
  scaled: TreeRequest,
  tree: FrameTree,
  profile: Profile,
  sides: Sides,
): Generator<void, BothSums> {
  const { keys, threads } = scaled;
  const { parent, frame } = profile.nodes;
  const child = childrenByKey(tree, keys.count);
  yield;
  const sums = emptySums(tree.size);
  const nodes = emptySums(parent.length);
  const to = new Int32Array(parent.length);
  for (const group of groupSamples(scaled)) {
    const top = group.key < 0 ? 0 : (child(0, group.key) ?? 0);
    addSamples(nodes, profile, threads, sides, group.samples);
    to[0] = top;
    for (let node = 0; node < parent.length; node++) {
      // A parent's number is smaller than its children's.
      if (node > 0) {
        const above = to[parent[node]!]!;
        to[node] = above < 0 ? -1 : (child(above, keys.ofFrame[frame[node]!]!) ?? -1);
      }
      for (const side of [0, 1] as const) {
        if (nodes[side].samples[node] === 0) continue;
        if (to[node]! >= 0) addSums(sums[side], to[node]!, nodes[side], node);
        nodes[side].weight[node] = 0;
        nodes[side].squares[node] = 0;
        nodes[side].samples[node] = 0;
      }
      if (node % SLICE === SLICE - 1) yield;
    }
  }
  return sums;
}

/** Looks up the child of a node with a key. */
function childrenByKey(
  tree: FrameTree,
  keys: number,
): (node: number, key: number) => number | undefined {
  const ids = new Map<number, number>();
  for (let node = 1; node < tree.size; node++) {
    ids.set(tree.parent(node) * keys + tree.key(node), node);
  }
  return (node, key) => ids.get(node * keys + key);
}

// Trees as text and as sums by path, for comparing.
import type { Profile } from '../../src/data/profile';
import { buildForward } from '../../src/tree/forward';
import { type Keys, makeKeys, type SplitBy } from '../../src/tree/keys';
import { ReverseTree } from '../../src/tree/reverse';
import { ALL_THREADS, chosenThreads } from '../../src/tree/select';
import { atOnce } from '../../src/tree/slices';
import type { FrameTree } from '../../src/tree/tree';

export interface Options {
  split?: SplitBy;
  byLine?: boolean;
  threads?: Uint8Array;
}

export function request(profile: Profile, options: Options = {}) {
  return {
    profile,
    keys: makeKeys(profile, options.byLine ?? false),
    threads: options.threads ?? chosenThreads(profile, ALL_THREADS),
    split: options.split ?? ('none' as const),
  };
}

export function forward(profile: Profile, options: Options = {}): { tree: FrameTree; keys: Keys } {
  const made = request(profile, options);
  return { tree: atOnce(buildForward(made)), keys: made.keys };
}

/** The tree of callers; with `min` grown down to that weight. */
export function reverse(
  profile: Profile,
  options: Options = {},
  min = 0,
): { tree: ReverseTree; keys: Keys } {
  const made = request(profile, options);
  const tree = new ReverseTree(made);
  atOnce(tree.grow(0, tree.total, min));
  return { tree, keys: made.keys };
}

/** `name weight/own` of every node, children indented. */
export function outline(tree: FrameTree, keys: Keys): string[] {
  const lines: string[] = [];
  const visit = (node: number, depth: number) => {
    const name = node === 0 ? 'all' : keys.label(tree.key(node));
    lines.push(`${'  '.repeat(depth)}${name} ${tree.weight(node)}/${tree.own(node)}`);
    for (const child of Array.from(tree.children(node))) visit(child, depth + 1);
  };
  visit(0, 0);
  return lines;
}

/** The weight by path of names, by looking at every sample. */
export function weightsByPath(
  profile: Profile,
  keys: Keys,
  reversed: boolean,
): Map<string, number> {
  const sums = new Map<string, number>();
  for (let i = 0; i < profile.samples.node.length; i++) {
    const path: string[] = [];
    for (let node = profile.samples.node[i]!; node !== 0; node = profile.nodes.parent[node]!) {
      path.push(keys.label(keys.ofFrame[profile.nodes.frame[node]!]!));
    }
    if (!reversed) path.reverse();
    for (let end = 0; end <= path.length; end++) {
      const name = path.slice(0, end).join(';');
      sums.set(name, (sums.get(name) ?? 0) + profile.samples.weight[i]!);
    }
  }
  return sums;
}

/** The weight by path of names, from a tree. */
export function treeByPath(tree: FrameTree, keys: Keys): Map<string, number> {
  const sums = new Map<string, number>();
  const visit = (node: number, path: string[]) => {
    sums.set(path.join(';'), tree.weight(node));
    for (const child of Array.from(tree.children(node))) {
      visit(child, [...path, keys.label(tree.key(child))]);
    }
  };
  visit(0, []);
  return sums;
}

/** Checks the places of a tree, and returns violations. */
export function wrongPlaces(tree: FrameTree): string[] {
  const wrong: string[] = [];
  tree.levels.forEach((level, depth) => {
    for (let i = 0; i < level.n; i++) {
      const node = level.id[i]!;
      if (tree.depth(node) !== depth) wrong.push(`depth of ${node}`);
      if (level.x[i] !== tree.x(node) || level.w[i] !== tree.weight(node))
        wrong.push(`level of ${node}`);
      if (i > 0 && level.x[i - 1]! + level.w[i - 1]! > level.x[i]! + 1e-6)
        wrong.push(`overlap at ${node}`);
      if (depth === 0) continue;
      const parent = tree.parent(node);
      const inside =
        tree.x(node) >= tree.x(parent) - 1e-6 &&
        tree.x(node) + tree.weight(node) <= tree.x(parent) + tree.weight(parent) + 1e-6;
      if (!inside) wrong.push(`${node} outside of its parent`);
    }
  });
  return wrong;
}

// Search: a text or a /pattern/ against frames' names, and how much of the profile matches.
import type { Profile } from '../data/profile';
import type { Keys } from '../tree/keys';
import type { FrameTree, Level } from '../tree/tree';

export interface Query {
  test(text: string): boolean;
}

export type Parsed = { query: Query | null; error: string };

/**
 * `/pattern/` and `/pattern/i` are regular expressions, everything else is a part of the name. Case
 * matters only if the text has a capital in it.
 */
export function parseQuery(text: string): Parsed {
  if (text === '') return { query: null, error: '' };
  const pattern = /^\/(.+)\/(i?)$/su.exec(text);
  if (!pattern) {
    const plain = text.toLowerCase();
    if (plain === text)
      return { query: { test: (name) => name.toLowerCase().includes(plain) }, error: '' };
    return { query: { test: (name) => name.includes(text) }, error: '' };
  }
  try {
    const expression = new RegExp(pattern[1]!, pattern[2]);
    return { query: { test: (name) => expression.test(name) }, error: '' };
  } catch (error) {
    return { query: null, error: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * For every key 1 if its name matches, or if `text` is all of its library's name: a part of that is
 * in too many names. Threads are chosen, not searched for.
 */
export function matchedKeys(keys: Keys, query: Query, text = ''): Uint8Array {
  const matched = new Uint8Array(keys.count);
  for (let key = 0; key < keys.methods; key++) {
    const matches = query.test(keys.label(key)) || (text !== '' && keys.library(key) === text);
    if (matches) matched[key] = 1;
  }
  return matched;
}

/** The weight of the stacks that have a match, each stack once, and of all. */
export function matchedWeight(
  profile: Profile,
  keys: Keys,
  threads: Uint8Array,
  matched: Uint8Array,
): { matched: number; all: number } {
  const { parent, frame } = profile.nodes;
  const has = new Uint8Array(parent.length);
  for (let node = 1; node < parent.length; node++) {
    has[node] = has[parent[node]!]! | matched[keys.ofFrame[frame[node]!]!]!;
  }
  let [sum, all] = [0, 0];
  const { thread, node, weight } = profile.samples;
  for (let i = 0; i < node.length; i++) {
    if (!threads[thread[i]!]) continue;
    all += weight[i]!;
    if (has[node[i]!]) sum += weight[i]!;
  }
  return { matched: sum, all };
}

/** The matching nodes of a tree, level by level. */
export function matchLevels(tree: FrameTree, matched: Uint8Array): Level[] {
  return tree.levels.map((level, depth) => {
    if (depth === 0) return { n: 0, x: level.x, w: level.w, id: level.id };
    let n = 0;
    for (let i = 0; i < level.n; i++) n += matched[tree.key(level.id[i]!)]!;
    const out = { n, x: new Float64Array(n), w: new Float64Array(n), id: new Uint32Array(n) };
    for (let i = 0, to = 0; to < n; i++) {
      const node = level.id[i]!;
      if (!matched[tree.key(node)]) continue;
      out.x[to] = level.x[i]!;
      out.w[to] = level.w[i]!;
      out.id[to] = node;
      to++;
    }
    return out;
  });
}

/** The match after (or before) a node in reading order: level by level, left to right, round. */
export function nextMatch(
  tree: FrameTree,
  matches: readonly Level[],
  node: number,
  step: 1 | -1,
): number {
  const total = matches.reduce((sum, level) => sum + level.n, 0);
  if (total === 0) return -1;
  const depth = node < 0 ? 0 : tree.depth(node);
  const x = node < 0 ? -1 : tree.x(node);
  const level = matches[depth];
  if (level) {
    // Own level first: beyond the node's own place.
    if (step > 0) {
      for (let i = 0; i < level.n; i++) if (level.x[i]! > x) return level.id[i]!;
    } else {
      for (let i = level.n - 1; i >= 0; i--) if (level.x[i]! < x) return level.id[i]!;
    }
  }
  for (let i = 1; i <= matches.length; i++) {
    const at = (depth + step * i + matches.length * 2) % matches.length;
    const other = matches[at]!;
    if (other.n > 0) return other.id[step > 0 ? 0 : other.n - 1]!;
  }
  return -1;
}

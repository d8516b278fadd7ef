// Stacks with frames left out, cut or folded. A transform gives every node of the profile's tree
// another parent, or none: trees, tables and searches are then made as always. Pure.
import { noSamples } from '../data/measure';
import type { Profile, Samples } from '../data/profile';
import { matchedKeys, parseQuery } from '../search/search';
import type { Keys } from './keys';

/**
 * - focus: only stacks with the method, from its outermost call on
 * - callers: only stacks with the method, down to its outermost call
 * - merge: the method's frames go away, their time and what they call are their callers'
 * - merge-package: the same of all frames of a package
 * - merge-library: the same of all frames of a library
 * - drop: stacks with the method go away, with their time
 * - drop-package: the same of a package
 * - drop-library: the same of a library
 * - collapse: of frames of a package that follow each other only the outermost stays
 * - collapse-library: the same of a library
 * - only: only stacks with a frame that a search finds
 * - recursion: a method that is on the stack already is folded into where it is
 */
export const TRANSFORMS = [
  'focus',
  'callers',
  'merge',
  'merge-package',
  'merge-library',
  'drop',
  'drop-package',
  'drop-library',
  'collapse',
  'collapse-library',
  'only',
  'recursion',
] as const;

export interface Transform {
  kind: (typeof TRANSFORMS)[number];
  /** A method's label or a package; empty where none is needed. */
  name: string;
}

/** The package of a class; a library's file is a package of its own. */
export function packageOf(className: string): string {
  if (className.includes('.so') || className.startsWith('[')) return className;
  return className.slice(0, Math.max(0, className.lastIndexOf('.')));
}

type Kind = Transform['kind'];

const OF_PACKAGES: readonly Kind[] = ['merge-package', 'drop-package', 'collapse'];
const OF_LIBRARIES: readonly Kind[] = ['merge-library', 'drop-library', 'collapse-library'];
const MERGES: readonly Kind[] = ['merge', 'merge-package', 'merge-library'];
const DROPS: readonly Kind[] = ['drop', 'drop-package', 'drop-library'];
const COLLAPSES: readonly Kind[] = ['collapse', 'collapse-library'];

/** By key of code: 1 if the transform applies to it. */
function marksOf({ kind, name }: Transform, keys: Keys): Uint8Array {
  if (kind === 'only') {
    const { query } = parseQuery(name);
    return query ? matchedKeys(keys, query, name) : new Uint8Array(keys.count);
  }
  const isPackage = OF_PACKAGES.includes(kind);
  const isLibrary = OF_LIBRARIES.includes(kind);
  return Uint8Array.from({ length: keys.methods }, (_, key) => {
    if (isLibrary) return Number(keys.library(key) === name);
    if (!isPackage) return Number(keys.methodLabel(key) === name);
    const own = packageOf(keys.className(key));
    return Number(own !== '' && (own === name || own.startsWith(`${name}.`)));
  });
}

const GONE = -1;

/** The profile with its stacks transformed, one transform after the other. */
export function transformed(
  profile: Profile,
  keys: Keys,
  transforms: readonly Transform[],
): Profile {
  if (transforms.length === 0) return profile;
  const { frame } = profile.nodes;
  let parent = profile.nodes.parent;
  const to = Int32Array.from(parent, (_, node) => node);
  const key = (node: number) => keys.ofFrame[frame[node]!]!;
  for (const transform of transforms) {
    const step = applied(transform.kind, parent, key, marksOf(transform, keys));
    parent = step.parent;
    for (let node = 0; node < to.length; node++) {
      if (to[node] !== GONE) to[node] = step.to[to[node]!]!;
    }
  }
  return { ...profile, nodes: { parent, frame }, samples: moved(profile.samples, to) };
}

/** Where each node's samples go, and the new parents. Parents come before their children. */
function applied(
  kind: Transform['kind'],
  parent: Uint32Array,
  key: (node: number) => number,
  marks: Uint8Array,
): { parent: Uint32Array; to: Int32Array } {
  const n = parent.length;
  const to = new Int32Array(n);
  const next = new Uint32Array(n);
  /** By node: 1 if the method is on its stack. */
  const has = new Uint8Array(n);
  const drops = DROPS.includes(kind);
  const merges = MERGES.includes(kind);
  const collapses = COLLAPSES.includes(kind);
  const needs = kind === 'focus' || kind === 'callers' || kind === 'only';
  for (let node = 1; node < n; node++) {
    const above = parent[node]!;
    const at = key(node);
    const is = marks[at] === 1;
    has[node] = has[above]! | Number(is);
    const up = to[above]! === GONE ? 0 : to[above]!;
    let goes = node;
    if (merges) goes = is ? up : node;
    else if (collapses) {
      goes = is && up !== 0 && marks[key(up)] === 1 ? up : node;
    } else if (kind === 'recursion') goes = sameAbove(up, at, next, key) || node;
    else if (kind === 'callers' && has[above] === 1) goes = up;
    to[node] = goes;
    // Under a focus all before it falls away: the method itself comes below the root.
    next[node] = kind === 'focus' && has[above] === 0 ? 0 : up;
  }
  for (let node = 0; node < n; node++) {
    if ((drops && has[node] === 1) || (needs && has[node] === 0)) to[node] = GONE;
  }
  return { parent: next, to };
}

/** How far a method is looked for on its own stack. */
const RECURSION_MAX = 256;

/** The nearest node of a key on a stack, from `node` outwards; 0 if it is absent. */
function sameAbove(
  node: number,
  wanted: number,
  parent: Uint32Array,
  key: (node: number) => number,
): number {
  for (let steps = 0; node !== 0 && steps < RECURSION_MAX; steps++) {
    if (key(node) === wanted) return node;
    node = parent[node]!;
  }
  return 0;
}

/** The samples at their new places, without those that have none. */
function moved(samples: Samples, to: Int32Array): Samples {
  const chosen: number[] = [];
  for (let i = 0; i < samples.node.length; i++) {
    if (to[samples.node[i]!] !== GONE) chosen.push(i);
  }
  const kept = noSamples(chosen.length);
  for (const column of Object.keys(kept) as (keyof Samples)[]) {
    const [into, from] = [kept[column], samples[column]];
    for (let at = 0; at < chosen.length; at++) into[at] = from[chosen[at]!]!;
  }
  for (let at = 0; at < chosen.length; at++) kept.node[at] = to[kept.node[at]!]!;
  return kept;
}

/** A transform in words, for a button that takes it back. */
export function words({ kind, name }: Transform): string {
  switch (kind) {
    case 'focus':
      return `only ${name} and what it calls`;
    case 'callers':
      return `only callers of ${name}`;
    case 'merge':
    case 'merge-package':
    case 'merge-library':
      return `${name} merged into its callers`;
    case 'drop':
    case 'drop-package':
    case 'drop-library':
      return `no stacks with ${name}`;
    case 'collapse':
    case 'collapse-library':
      return `${name} collapsed`;
    case 'only':
      return `only stacks that match ${name}`;
    default:
      return 'recursion folded';
  }
}

const MANY = 20;
const NAME_MAX = 500;
/** Names in addresses that older pages wrote. */
const FORMER: ReadonlyMap<unknown, Transform['kind']> = new Map([
  ['hide', 'merge'],
  ['hide-package', 'merge-package'],
]);

/** Transforms as text in an address. */
export function toText(transforms: readonly Transform[]): string {
  return JSON.stringify(transforms.map(({ kind, name }) => [kind, name]));
}

/** Transforms from an address that anybody may have written; none if it makes no sense. */
export function fromText(text: string): Transform[] {
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list) || list.length > MANY) return [];
    return list.map((item: unknown) => {
      if (!Array.isArray(item) || item.length !== 2) throw new Error('not a pair');
      const [word, name] = item as [unknown, unknown];
      const known = TRANSFORMS.find((kind) => kind === word) ?? FORMER.get(word);
      if (!known || typeof name !== 'string' || name.length > NAME_MAX) throw new Error('unknown');
      return { kind: known, name };
    });
  } catch {
    return [];
  }
}

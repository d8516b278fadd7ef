// What is said about a frame: in the tooltip, in the status line and to screen readers.
import { count, percent, plural, weight } from '../data/format';
import type { Profile } from '../data/profile';
import { plain, shortened } from '../data/plain';
import { causesOf } from '../data/wall';
import { shareErrorAlike, type Whole } from '../data/whole';
import { diffFacts } from '../diff/describe';
import type { TreeDiff } from '../diff/sums';
import type { Keys } from '../tree/keys';
import type { FrameTree } from '../tree/tree';

export interface Description {
  name: string;
  /** Kind of the frame: a kind of code, a thread, everything. */
  kind: string;
  facts: [label: string, value: string][];
}

const NAME_MAX = 400;

export function describe(
  profile: Profile,
  keys: Keys,
  tree: FrameTree,
  node: number,
  zoom: number,
  whole: Whole,
  diff: TreeDiff | null = null,
  gaps: ReadonlySet<number> = new Set(),
): Description {
  const { unit } = profile.header;
  const value = tree.weight(node);
  const all = tree.total || 1;
  const facts: [string, string][] = diff ? diffFacts(diff, node, unit) : [];
  const error = plusMinus(value, whole);
  if (!diff) facts.push(['Total', `${percent(value / all)}${error}  ${weight(value, unit)}`]);
  const own = tree.own(node);
  const ownError = plusMinus(own, whole);
  if (!diff) facts.push(['Self', `${percent(own / all)}${ownError}  ${weight(own, unit)}`]);
  if (zoom !== 0 && tree.weight(zoom) > 0) {
    facts.push(['Share of zoomed frame', percent(value / tree.weight(zoom))]);
  }
  if (!diff) facts.push(['Samples', count(tree.samples(node))]);
  const causes = causesIn(profile, tree, node);
  if (!diff && causes !== '') facts.push(['Causes', causes]);
  if (node === 0) return { name: 'all', kind: 'all selected stacks', facts };
  const key = tree.key(node);
  const name = shortened(keys.label(key), NAME_MAX);
  if (keys.isGroup(key)) return { name, kind: keys.sortOf(key), facts };
  const library = keys.isGroup(key) ? '' : keys.library(key);
  if (library !== '' && library !== keys.className(key)) {
    facts.push(['Library', shortened(library, NAME_MAX)]);
  }
  const original = keys.originals(key);
  if (original !== '') facts.push(['Original', shortened(original, NAME_MAX)]);
  if (gaps.has(key)) facts.push(['Note', 'native frames that it calls could not be read']);
  const kinds = kindsOf(profile, tree, node);
  return { name: name || '(unnamed)', kind: kinds, facts };
}

/** One standard error of a share, if it is none of nothing or of all. */
function plusMinus(weight: number, whole: Whole): string {
  const error = shareErrorAlike(weight, whole);
  return error > 0 ? ` ±\u00a0${(error * 100).toFixed(1)}` : '';
}

/** Causes that are named in a tooltip. */
const CAUSES_MAX = 5;

/** `park 60.0 %, running 40.0 %`: the causes of a frame's time, the largest first. */
function causesIn(profile: Profile, tree: FrameTree, node: number): string {
  const weights = Array.from(tree.causes?.(node) ?? []);
  const all = weights.reduce((a, b) => a + b, 0);
  const names = causesOf(profile);
  return weights
    .map((weight, i) => ({ name: plain(names[i] ?? ''), share: weight / (all || 1) }))
    .filter(({ share }) => share >= 0.0005)
    .sort((a, b) => b.share - a.share)
    .slice(0, CAUSES_MAX)
    .map(({ name, share }) => `${name} ${percent(share)}`)
    .join(', ');
}

/** `C2`, or `C2 80 %, interpreted 20 %` where the frame ran in several ways. */
function kindsOf(profile: Profile, tree: FrameTree, node: number): string {
  const weights = tree.kinds(node);
  let all = 0;
  for (let kind = 0; kind < weights.length; kind++) all += weights[kind]!;
  const parts = profile.header.kinds
    .map((label, kind) => ({ label, share: all > 0 ? weights[kind]! / all : 0 }))
    .filter((part) => part.share > 0.0005)
    .sort((a, b) => b.share - a.share);
  if (parts.length < 2) return parts[0]?.label ?? profile.header.kinds[tree.kind(node)] ?? '';
  return parts.map((part) => `${part.label} ${percent(part.share)}`).join(', ');
}

/** One sentence for a screen reader. */
export function spoken(
  profile: Profile,
  keys: Keys,
  tree: FrameTree,
  node: number,
  whole: Whole,
  diff: TreeDiff | null = null,
): string {
  const { name, kind, facts } = describe(profile, keys, tree, node, 0, whole, diff);
  const values = facts.map(([label, value]) => `${label} ${value}`).join(', ');
  const children = plural(tree.children(node).length, tree.grow ? 'caller' : 'callee');
  return `${shortened(name, 120)}, ${kind}. ${values}. Level ${tree.depth(node)}, ${children}.`;
}

// Which frames of stacks are shown: all of them, or those of the application with what calls it and
// what it calls, one row each. Pure.
import type { Profile } from '../data/profile';
import { classKind } from '../data/kinds';
import type { Keys } from './keys';

/** The application's own frames, others folded; or all frames. */
export type Frames = 'mine' | 'all';

/** Kinds of code up to this one are of the program's language; see the file's order of kinds. */
const LAST_JAVA = 3;
const FAILED = 8;
/** Stands in stacks for native frames that could not be read. */
const GAP = 'native_frames_missing';

/** Whether a recording has code of the application, so that the choice means something. */
export function hasMine({ methods }: Profile): boolean {
  return methods.own.includes(1);
}

/** By frame: 1 if it stands for missing native frames; null: no frame does. */
function gapFrames({ frames, methods, names }: Profile): Uint8Array | null {
  let gaps: Uint8Array | null = null;
  for (let frame = 0; frame < frames.kind.length; frame++) {
    if (frames.kind[frame] !== FAILED) continue;
    if (names.text(methods.name[frames.method[frame]!]!) !== GAP) continue;
    gaps ??= new Uint8Array(frames.kind.length);
    gaps[frame] = 1;
  }
  return gaps;
}

/** The keys of frames that native frames are missing after. */
export function keysWithGaps(profile: Profile, keys: Keys): ReadonlySet<number> {
  const gaps = gapFrames(profile);
  const found = new Set<number>();
  if (!gaps) return found;
  const { parent, frame } = profile.nodes;
  for (let node = 1; node < parent.length; node++) {
    const above = parent[node]!;
    if (gaps[frame[node]!] === 1 && above !== 0) found.add(keys.ofFrame[frame[above]!]!);
  }
  return found;
}

/**
 * The profile with such frames. A frame that stands for missing ones is never kept: its time is its
 * caller's. All frames of the application stay.
 */
export function withFrames(profile: Profile, keys: Keys, frames: Frames): Profile {
  const gaps = gapFrames(profile);
  const isMine = frames === 'mine' && hasMine(profile);
  if (!isMine && !gaps) return profile;
  if (!isMine) return moved(profile, without(profile, gaps!), () => 0);
  const folded = withOthers(profile, fold(profile, keys, gaps));
  const { role } = profile.samples;
  const first = folded.parent.length;
  const roles = profile.standIns?.roles.slice(1) ?? [];
  const parent = new Uint32Array(first + roles.length);
  const frame = new Uint32Array(first + roles.length);
  parent.set(folded.parent);
  frame.set(folded.frame);
  frame.set(roles, first);
  // Threads of the JVM are shown by their role only.
  return moved(profile, { ...folded, parent, frame }, (i) =>
    role[i] !== 0 && role[i]! <= roles.length ? first + role[i]! - 1 : 0,
  );
}

/** The profile with its samples at their new nodes; `instead` is another one, or 0. */
function moved(profile: Profile, folded: Folded, instead: (sample: number) => number): Profile {
  const { parent, frame, to } = folded;
  const node = profile.samples.node.map((at, i) => instead(i) || to[at]!);
  return { ...profile, nodes: { parent, frame }, samples: { ...profile.samples, node } };
}

/** Nodes with other parents, and where each one's samples go. */
interface Folded {
  parent: Uint32Array;
  frame: Uint32Array;
  to: Uint32Array;
}

/**
 * Time of folded frames on stacks without own code gets a row of its own below the outermost one,
 * which else had it as its self time.
 */
function withOthers({ frames, standIns }: Profile, folded: FoldedRows): Folded {
  const { parent, frame, to, outer } = folded;
  if (!standIns) return folded;
  const rows = [...outer.keys()].filter((node) => outer[node] === 1);
  const placeOf = new Map(rows.map((node, i) => [node, parent.length + i]));
  const added = rows.map((node) => standIns.others[frames.kind[frame[node]!]!]!);
  return {
    parent: joined(parent, rows),
    frame: joined(frame, added),
    to: to.map((row, node) => (row === node ? row : (placeOf.get(row) ?? row))),
  };
}

function joined(of: Uint32Array, more: readonly number[]): Uint32Array {
  const all = new Uint32Array(of.length + more.length);
  all.set(of);
  all.set(more, of.length);
  return all;
}

interface FoldedRows extends Folded {
  /** By node: 1 if it is a row of folded frames that no own code calls, and hides frames. */
  outer: Uint8Array;
}

function without({ nodes }: Profile, gaps: Uint8Array): Folded {
  const { parent, frame } = nodes;
  const to = new Uint32Array(parent.length);
  const next = new Uint32Array(parent.length);
  for (let node = 1; node < parent.length; node++) {
    const up = to[parent[node]!]!;
    next[node] = up;
    to[node] = gaps[frame[node]!] === 1 ? up : node;
  }
  return { parent: next, frame, to };
}

/** Kinds of a node's row. */
const ROOT = 0;
const RUNTIME = 1;
const OTHER = 2;
const OWN = 3;

function fold(profile: Profile, keys: Keys, gaps: Uint8Array | null): FoldedRows {
  const { parent, frame } = profile.nodes;
  const n = parent.length;
  const { kind } = profile.frames;
  const classes = classKind(profile.header);
  const isJava = (node: number) => kind[frame[node]!]! <= LAST_JAVA;
  /** Whether any stack through a node has Java code there or further in, or further out. */
  const inwards = new Uint8Array(n);
  for (let node = n - 1; node > 0; node--) {
    if (isJava(node)) inwards[node] = 1;
    if (inwards[node] === 1) inwards[parent[node]!] = 1;
  }
  const outwards = new Uint8Array(n);
  const to = new Uint32Array(n);
  const next = new Uint32Array(n);
  const row = new Uint8Array(n).fill(ROOT);
  const outer = new Uint8Array(n);
  const frames = frame.slice();
  for (let node = 1; node < n; node++) {
    const above = parent[node]!;
    const up = to[above]!;
    const at = frame[node]!;
    next[node] = up;
    outwards[node] = outwards[above]! | Number(isJava(node));
    if (gaps?.[at] === 1) {
      to[node] = up;
      continue;
    }
    to[node] = node;
    if (keys.own[keys.ofFrame[at]!] === 1 || kind[at] === classes || kind[at] === FAILED) {
      row[node] = OWN;
    } else if (outwards[node] === 0) {
      // Stacks without any Java code are those of native threads: they stay as they are.
      if (inwards[node] === 0) row[node] = OWN;
      else if (row[up] === RUNTIME) to[node] = up;
      else {
        row[node] = RUNTIME;
        if (profile.standIns) frames[node] = profile.standIns.runtime;
      }
    } else if (row[up] === OTHER) {
      to[node] = up;
      if (row[next[up]!] !== OWN) outer[up] = 1;
    } else row[node] = OTHER;
  }
  return { parent: next, frame: frames, to, outer };
}

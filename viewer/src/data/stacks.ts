// Stacks as lines, innermost first, and the place in them that says most to a reader.
import { readable } from '../tree/readable';
import { OF_PLATFORM } from './platform';
import type { Profile } from './profile';

export interface Line {
  className: string;
  method: string;
  line: number;
  /** The number of the kind of code. */
  kind: number;
}

/** Numbers of kinds of code that Java methods run as: interpreted, C1, C2, inlined. */
const JAVA_KINDS = 4;

/** The frames of the stack that ends in a node, innermost first. */
export function linesOf(profile: Profile, node: number, most: number): Line[] {
  const { nodes, frames, methods, names } = profile;
  const lines: Line[] = [];
  for (let at = node; at !== 0 && lines.length < most; at = nodes.parent[at]!) {
    const frame = nodes.frame[at]!;
    const method = frames.method[frame]!;
    lines.push({
      className: names.text(methods.class[method]!),
      method: names.text(methods.name[method]!),
      line: frames.line[frame]!,
      kind: frames.kind[frame]!,
    });
  }
  return lines;
}

/**
 * The innermost Java frame of a stack, and how many frames of the JVM and of libraries are below
 * it; the stack itself if it has no Java frame.
 */
export function javaEnd(profile: Profile, node: number): { node: number; skipped: number } {
  const { nodes, frames } = profile;
  let skipped = 0;
  for (let at = node; at !== 0; at = nodes.parent[at]!) {
    if (frames.kind[nodes.frame[at]!]! < JAVA_KINDS) return { node: at, skipped };
    skipped++;
  }
  return { node, skipped: 0 };
}

export function depthOf(profile: Profile, node: number): number {
  let depth = 0;
  for (let at = node; at !== 0; at = profile.nodes.parent[at]!) depth++;
  return depth;
}

/** The innermost node that all of these stacks go through; 0: they share none. */
export function commonOf({ nodes }: Profile, ends: readonly number[]): number {
  const [first, ...others] = ends;
  if (first === undefined || others.length === 0) return 0;
  let common = first;
  for (let other of others) {
    // A parent's number is smaller than its children's.
    while (other !== common) {
      if (other > common) other = nodes.parent[other]!;
      else common = nodes.parent[common]!;
    }
  }
  return common;
}

/**
 * The innermost frame of the program: the first managed method outside of the runtime, else the
 * first Java method, else the first frame. As a node; 0: the stack is empty.
 */
export function placeOf(profile: Profile, node: number): number {
  const { nodes, frames, methods, names } = profile;
  const { tool } = profile.header.info;
  let first = 0;
  for (let at = node; at !== 0; at = nodes.parent[at]!) {
    const frame = nodes.frame[at]!;
    if (frames.kind[frame]! >= JAVA_KINDS) continue;
    const className = names.text(methods.class[frames.method[frame]!]!);
    if (!OF_PLATFORM.test(className) || (tool && className.startsWith(tool))) return at;
    first ||= at;
  }
  return first || node;
}

/** Classes of frames in which threads wait for locks. */
const MACHINERY =
  /^(?:java\.util\.concurrent\.locks\.|(?:jdk\.internal\.misc|sun\.misc)\.Unsafe|jdk\.internal\.vm\.|java\.lang\.(?:VirtualThread|System\$))/;

/** The method that wants a lock, below the frames of locks and parking; as a node, 0: none. */
export function takerOf({ nodes, frames, methods, names }: Profile, node: number): number {
  for (let at = node; at !== 0; at = nodes.parent[at]!) {
    const frame = nodes.frame[at]!;
    if (frames.kind[frame]! >= JAVA_KINDS) continue;
    if (!MACHINERY.test(names.text(methods.class[frames.method[frame]!]!))) return at;
  }
  return 0;
}

/** `Class.method` of a node's frame, the class without its package. */
export function shortName(profile: Profile, node: number): string {
  if (node === 0) return '(no stack)';
  const { nodes, frames, methods, names } = profile;
  const method = frames.method[nodes.frame[node]!]!;
  const className = readable(names.text(methods.class[method]!));
  const name = names.text(methods.name[method]!);
  const isLibrary = className.includes('.so') || className.startsWith('[');
  const simple = isLibrary ? className : className.slice(className.lastIndexOf('.') + 1);
  return simple === '' ? name : `${simple}.${name}`;
}

/** The same method's number for a node, to count by; -1 for none. */
export function methodOf(profile: Profile, node: number): number {
  return node === 0 ? -1 : profile.frames.method[profile.nodes.frame[node]!]!;
}

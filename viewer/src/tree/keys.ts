// Keys by which frames are merged. A key is a method (or a line of it). Further keys follow for
// threads, thread groups, endpoints and causes, for graphs that are split by these.
import { plain } from '../data/plain';
import type { Profile } from '../data/profile';
import { libraryOf } from './library';
import { readable } from './readable';

/** What gets a root of its own. */
export type SplitBy = 'none' | 'thread' | 'group' | 'endpoint' | 'cause';

/** Keys of one sort of groups: from `first` on, `count` of them. */
export interface GroupKeys {
  first: number;
  count: number;
}

export interface Keys {
  /** Keys of methods or lines; the threads' keys follow. */
  readonly methods: number;
  readonly count: number;
  /** The key of each frame. */
  readonly ofFrame: Uint32Array;
  /** By key: 1 if it is code of the application. */
  readonly own: Uint8Array;
  className(key: number): string;
  methodName(key: number): string;
  /** Origin of the class or function: a jar, folder or module, if it is known. */
  library(key: number): string;
  /** The line, when frames are kept apart by line; else 0. */
  line(key: number): number;
  /** `class.method`. */
  methodLabel(key: number): string;
  /** The class as the recording names it, if it is shown otherwise; else empty. */
  originals(key: number): string;
  /** `class.method`, with the line if there is one. */
  label(key: number): string;
  ofThread(thread: number): number;
  /** Whether it stands for a thread or another group, not for code. */
  isGroup(key: number): boolean;
  /** The keys of what a graph can be split by. */
  groups(by: Exclude<SplitBy, 'none'>): GroupKeys;
  /** What a key stands for: a thread, an endpoint, ... ; empty for code. */
  sortOf(key: number): string;
  /** The number of each thread's thread group. */
  readonly poolOfThread: Uint32Array;
}

/** Keys of methods or lines, apart where a class is in two libraries; generated classes are one for all their numbers unless `original`. */
export function makeKeys(profile: Profile, byLine: boolean, original = false): Keys {
  const { methods, frames } = profile;
  const classes = classNames(profile, original);
  const nameCount = 2 ** 26;
  const methodKeys = new Map<number, number>();
  const classOf = classesOfLibraries(nameCount);
  const keys = new Map<number, number>();
  const someMethod: number[] = [];
  const lines: number[] = [];
  // Overloads share a key: it is made of the class and the method's name.
  const keyOfMethod = new Uint32Array(methods.class.length);
  for (let method = 0; method < keyOfMethod.length; method++) {
    const of = classOf(classes.id(methods.class[method]!), methods.library[method]!);
    const name = of * nameCount + methods.name[method]!;
    const known = methodKeys.get(name);
    keyOfMethod[method] = known ?? methodKeys.size;
    if (known === undefined) methodKeys.set(name, methodKeys.size);
  }
  const ofFrame = new Uint32Array(frames.method.length);
  for (let frame = 0; frame < ofFrame.length; frame++) {
    const method = frames.method[frame]!;
    const line = byLine ? frames.line[frame]! : 0;
    const place = (keyOfMethod[method] ?? 0) * 2 ** 20 + Math.min(line, 2 ** 20 - 1);
    let key = keys.get(place);
    if (key === undefined) {
      key = keys.size;
      keys.set(place, key);
      someMethod.push(method);
      lines.push(line);
    }
    ofFrame[frame] = key;
  }
  return keysOf(profile, ofFrame, someMethod, lines, classes.text);
}

/** A number for a class of a library: the class's own, unless it is in another library as well. */
function classesOfLibraries(names: number): (of: number, library: number) => number {
  const first = new Map<number, number>();
  const others = new Map<number, number>();
  return (of, library) => {
    const known = first.get(of);
    if (known === undefined) first.set(of, library);
    if (known === undefined || known === library) return of;
    const both = of * names + library;
    const other = others.get(both) ?? names / 2 + others.size;
    others.set(both, other);
    return other;
  };
}

/** Names of classes as they are shown, and a number that is the same for the same name. */
function classNames({ names }: Profile, original: boolean) {
  const shown = new Map<number, string>();
  const ids = new Map<string, number>();
  const text = (id: number): string => {
    if (original || !names.mayBeGenerated(id)) return names.text(id);
    let name = shown.get(id);
    if (name === undefined) shown.set(id, (name = readable(names.text(id))));
    return name;
  };
  const id = (id: number): number => {
    if (original || !names.mayBeGenerated(id)) return id;
    const name = text(id);
    const first = ids.get(name) ?? id;
    ids.set(name, first);
    return first;
  };
  return { text, id };
}

function keysOf(
  profile: Profile,
  ofFrame: Uint32Array,
  someMethod: number[],
  lines: number[],
  classText: (id: number) => string,
): Keys {
  const { names, methods, threads, header } = profile;
  const own = someMethod.length;
  const { pools, poolOfThread } = poolsOf(profile);
  const labels = [
    ...pools,
    '(no endpoint)',
    ...header.endpoints.map(plain),
    'running',
    ...header.waits.map(plain),
  ];
  const ofLabels = own + threads.name.length;
  const afterPools = ofLabels + pools.length;
  const afterEndpoints = afterPools + 1 + header.endpoints.length;
  const groups: Record<Exclude<SplitBy, 'none'>, GroupKeys> = {
    thread: { first: own, count: threads.name.length },
    group: { first: ofLabels, count: pools.length },
    endpoint: { first: afterPools, count: 1 + header.endpoints.length },
    cause: { first: afterEndpoints, count: 1 + header.waits.length },
  };
  const groupName = (key: number) =>
    key < ofLabels ? threadName(profile, key - own) : (labels[key - ofLabels] ?? '');
  const name = (ids: Uint32Array, key: number) =>
    key < own ? names.text(ids[someMethod[key]!]!) : '';
  const keys: Keys = {
    methods: own,
    count: ofLabels + labels.length,
    ofFrame,
    own: Uint8Array.from({ length: ofLabels + labels.length }, (_, key) =>
      key < own ? methods.own[someMethod[key]!]! : 0,
    ),
    className: (key) => (key < own ? classText(methods.class[someMethod[key]!]!) : ''),
    methodLabel(key) {
      const className = keys.className(key);
      return className === '' ? keys.methodName(key) : `${className}.${keys.methodName(key)}`;
    },
    originals(key) {
      const written = name(methods.class, key);
      return written === keys.className(key) ? '' : written;
    },
    methodName: (key) => (key < own ? name(methods.name, key) : groupName(key)),
    library(key) {
      const library = key < own ? methods.library[someMethod[key]!]! : 0;
      return library === 0 ? libraryOf(keys.className(key)) : names.text(library - 1);
    },
    line: (key) => lines[key] ?? 0,
    label(key) {
      const line = lines[key] ? `:${lines[key]}` : '';
      const className = keys.className(key);
      const methodName = keys.methodName(key) + line;
      return className === '' ? methodName : `${className}.${methodName}`;
    },
    ofThread: (thread) => own + thread,
    isGroup: (key) => key >= own && key < keys.count,
    groups: (by) => groups[by],
    sortOf(key) {
      if (key < own || key >= keys.count) return '';
      if (key < ofLabels) return 'thread';
      if (key < afterPools) return 'thread group';
      return key < afterEndpoints ? 'endpoint' : 'cause';
    },
    poolOfThread,
  };
  return keys;
}

/** The groups of threads whose names differ only in numbers. */
function poolsOf({ names, threads }: Profile): { pools: string[]; poolOfThread: Uint32Array } {
  const numbers = new Map<string, number>();
  const poolOfThread = Uint32Array.from(threads.name, (name) => {
    const pool = poolOf(names.text(name));
    const known = numbers.get(pool) ?? numbers.size;
    numbers.set(pool, known);
    return known;
  });
  return { pools: [...numbers.keys()], poolOfThread };
}

/** Ids in hexadecimal digits, such as hash codes of objects and UUIDs, and numbers. */
const NUMBERS =
  /(?<![0-9a-z])0x[0-9a-f]+(?![0-9a-z])|(?<![0-9a-z])(?=[a-f]*\d)[0-9a-f]{6,}(?![0-9a-z])(?:-[0-9a-f]{4,}(?![0-9a-z]))*|\d+/gi;

/**
 * `http-exec-12` belongs to the pool `http-exec-#`. The twin of `group_of` in
 * `crates/profile/src/wall.rs`.
 */
export function poolOf(name: string): string {
  return name.replace(NUMBERS, '#').replace(/##+/g, '#');
}

export function threadName(profile: Profile, thread: number): string {
  const { name, tid } = profile.threads;
  const text = profile.names.text(name[thread] ?? 0);
  return tid[thread] ? `${text} (tid ${tid[thread]})` : text;
}

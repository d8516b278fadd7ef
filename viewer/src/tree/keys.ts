// What frames are merged by: a key is a method (or a line of it), and behind those, one a thread.
import type { Profile } from '../data/profile';

export interface Keys {
  /** Keys of methods or lines; the threads' keys follow. */
  readonly methods: number;
  readonly count: number;
  /** The key of each frame. */
  readonly ofFrame: Uint32Array;
  className(key: number): string;
  methodName(key: number): string;
  /** The line, when frames are kept apart by line; else 0. */
  line(key: number): number;
  /** `class.method`, with the line if there is one. */
  label(key: number): string;
  ofThread(thread: number): number;
  isThread(key: number): boolean;
}

export function makeKeys(profile: Profile, byLine: boolean): Keys {
  const { methods, frames } = profile;
  const methodKeys = new Map<number, number>();
  const keys = new Map<number, number>();
  const someMethod: number[] = [];
  const lines: number[] = [];
  const nameCount = 2 ** 26;
  // Overloads share a key: it is made of the class and the method's name.
  const keyOfMethod = new Uint32Array(methods.class.length);
  for (let method = 0; method < keyOfMethod.length; method++) {
    const name = methods.class[method]! * nameCount + methods.name[method]!;
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
  return keysOf(profile, ofFrame, someMethod, lines);
}

function keysOf(
  profile: Profile,
  ofFrame: Uint32Array,
  someMethod: number[],
  lines: number[],
): Keys {
  const { names, methods, threads } = profile;
  const own = someMethod.length;
  const name = (ids: Uint32Array, key: number) =>
    key < own ? names.text(ids[someMethod[key]!]!) : '';
  const keys: Keys = {
    methods: own,
    count: own + threads.name.length,
    ofFrame,
    className: (key) => name(methods.class, key),
    methodName: (key) => (key < own ? name(methods.name, key) : threadName(profile, key - own)),
    line: (key) => lines[key] ?? 0,
    label(key) {
      const line = lines[key] ? `:${lines[key]}` : '';
      const className = keys.className(key);
      const methodName = keys.methodName(key) + line;
      return className === '' ? methodName : `${className}.${methodName}`;
    },
    ofThread: (thread) => own + thread,
    isThread: (key) => key >= own && key < keys.count,
  };
  return keys;
}

export function threadName(profile: Profile, thread: number): string {
  const { name, tid } = profile.threads;
  const text = profile.names.text(name[thread] ?? 0);
  return tid[thread] ? `${text} (tid ${tid[thread]})` : text;
}

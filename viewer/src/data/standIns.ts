// Frames that stand for others: of the runtime, of a role's threads, of stacks without own code.
import { plain } from './plain';
import type { Profile } from './profile';

/** The label of the frame that stands for those of the runtime. */
export const RUNTIME = 'JVM and native frames';

/** The label of the frame that stands for those of the JDK and libraries, without own code. */
export const OTHERS = 'JDK and libraries only';

/** The label of the frame that stands for the threads of a role. */
export function roleLabel(role: string): string {
  return `${plain(role)} threads`;
}

/**
 * The same profile with frames that no stack has: one for frames of the runtime that stacks begin
 * with, one for the threads of each role, and one of each kind for stacks without own code.
 */
export function withStandIns(profile: Profile): Profile {
  const { names, methods, frames, header } = profile;
  const labels = [RUNTIME, ...header.roles.slice(1).map(roleLabel), OTHERS];
  const more = <T extends Uint32Array | Uint8Array>(
    of: T,
    value: (i: number) => number,
    n = labels.length,
  ): T => {
    const grown = new (of.constructor as new (n: number) => T)(of.length + n);
    grown.set(of);
    for (let i = 0; i < n; i++) grown[of.length + i] = value(i);
    return grown;
  };
  // The last label has a frame for each kind.
  const last = labels.length - 1;
  const all = last + header.kinds.length;
  const none = names.add('');
  const kind = Math.max(0, header.kinds.indexOf('VM'));
  const first = frames.method.length;
  return {
    ...profile,
    methods: {
      class: more(methods.class, () => none),
      name: more(methods.name, (i) => names.add(labels[i]!)),
      descriptor: more(methods.descriptor, () => none),
      library: more(methods.library, () => 0),
      own: more(methods.own, () => 0),
    },
    frames: {
      method: more(frames.method, (i) => methods.class.length + Math.min(i, last), all),
      line: more(frames.line, () => 0, all),
      kind: more(frames.kind, (i) => (i < last ? kind : i - last), all),
    },
    standIns: {
      runtime: first,
      roles: header.roles.map((_, role) => first + role),
      others: header.kinds.map((_, kind) => first + last + kind),
    },
  };
}

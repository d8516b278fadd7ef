// What the page measures: CPU time, or wall time by cause; of all endpoints or of one. The choice
// gives a profile of the same tables with other samples, from which everything else is made.
import type { Header, Profile, Samples } from './profile';

/** CPU time; all wall time; what waited; or what waited for one thing. */
export type Time = 'cpu' | 'wall' | 'off' | { cause: string };

export interface Measure {
  time: Time;
  /** Null: all, and what was done for none. */
  endpoint: string | null;
}

export const CPU: Measure = { time: 'cpu', endpoint: null };

/** The choice if the profile has it, else the nearest that it has. */
export function possible(header: Header, measure: Measure): Measure {
  const { time, endpoint } = measure;
  const hasCause = typeof time !== 'object' || header.waits.includes(time.cause);
  return {
    time: header.wall && hasCause ? time : 'cpu',
    endpoint: endpoint !== null && header.endpoints.includes(endpoint) ? endpoint : null,
  };
}

/** The profile of what is measured. */
export function measured(profile: Profile, measure: Measure): Profile {
  const { time, endpoint } = possible(profile.header, measure);
  if (time === 'cpu' && endpoint === null) return profile;
  const { wall } = profile;
  const number = endpoint === null ? -1 : profile.header.endpoints.indexOf(endpoint) + 1;
  const parts: Part[] = [];
  if (time === 'cpu') parts.push(part(profile.samples, number, () => true));
  if (time === 'wall' && wall) {
    parts.push(part(profile.samples, number, (i) => wall.running[i] === 1));
  }
  if (time !== 'cpu' && wall) {
    const cause = typeof time === 'object' ? profile.header.waits.indexOf(time.cause) + 1 : 0;
    parts.push(part(wall.looks, number, (i) => cause === 0 || wall.waits[i] === cause));
  }
  return { ...profile, samples: together(parts) };
}

/** Some entries of a table. */
interface Part {
  of: Samples;
  chosen: number[];
}

function part(of: Samples, endpoint: number, isWanted: (i: number) => boolean): Part {
  const chosen: number[] = [];
  for (let i = 0; i < of.node.length; i++) {
    if ((endpoint < 0 || of.endpoint[i] === endpoint) && isWanted(i)) chosen.push(i);
  }
  return { of, chosen };
}

function together(parts: Part[]): Samples {
  const size = parts.reduce((sum, { chosen }) => sum + chosen.length, 0);
  const all: Samples = {
    time: new Float64Array(size),
    thread: new Uint32Array(size),
    node: new Uint32Array(size),
    weight: new Float64Array(size),
    count: new Uint32Array(size),
    cause: new Uint32Array(size),
    role: new Uint8Array(size),
    endpoint: new Uint32Array(size),
  };
  const columns = Object.keys(all) as (keyof Samples)[];
  let at = 0;
  for (const { of, chosen } of parts) {
    for (const i of chosen) {
      for (const column of columns) all[column][at] = of[column][i]!;
      at++;
    }
  }
  return all;
}

/** The choice as one text, for lists and addresses. */
export function textOf(time: Time): string {
  return typeof time === 'object' ? `waits:${time.cause}` : time;
}

/** The choice that a text stands for; CPU time if it stands for none. */
export function timeOf(text: string): Time {
  if (text.startsWith('waits:')) return { cause: text.slice('waits:'.length) };
  return text === 'wall' || text === 'off' ? text : 'cpu';
}

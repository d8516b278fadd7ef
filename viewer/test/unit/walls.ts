// Profiles with wall time for tests: looks, requests and stops are given as rows.
import type { Profile } from '../../src/data/profile';
import { noSamples } from '../../src/data/measure';
import { namesOf, profileOf } from './art';

/** A look. Threads, causes and details are numbers of the lists below; times are in ns. */
export interface LookRow {
  thread: number;
  time: number;
  cause: string;
  duration?: number;
  weight?: number;
  count?: number;
  choices?: number;
  endpoint?: number;
  request?: number;
  detail?: string;
  owner?: number;
  ownerNode?: number;
  node?: number;
}

export interface RequestRow {
  time: number;
  duration: number;
  endpoint: number;
  count?: number;
}

export interface Rows {
  threads: string[];
  virtual?: number[];
  endpoints?: string[];
  looks: LookRow[];
  requests?: RequestRow[];
  /** Samples of CPU time: they stand for the time before. */
  ran?: { thread: number; time: number; weight: number; request?: number; endpoint?: number }[];
  durationNs?: number;
}

/** Stacks: node 1 is `java.A.wait`, 2 below it `app.B.work`, 3 `app.C.hold`. */
const ART = `
  java.lang.A.start java.lang.A.start app.C.hold
  -                 app.B.work        -`;

export function wallProfile(rows: Rows): Profile {
  const base = profileOf(ART);
  const waits = [...new Set(rows.looks.map(({ cause }) => cause))];
  const details = [...new Set(rows.looks.map(({ detail }) => detail ?? ''))];
  const known = Array.from({ length: 40 }, (_, i) => base.names.text(i)).filter((t) => t !== '');
  const texts = [...known, ...rows.threads, ...details];
  const nameOf = (text: string) => texts.lastIndexOf(text);
  const looks = noSamples(rows.looks.length);
  rows.looks.forEach((row, i) => {
    looks.time[i] = row.time;
    looks.thread[i] = row.thread;
    looks.node[i] = row.node ?? 2;
    looks.weight[i] = row.weight ?? 10;
    looks.count[i] = row.count ?? 1;
    looks.choices[i] = row.choices ?? row.count ?? 1;
    looks.endpoint[i] = row.endpoint ?? 0;
    looks.request[i] = row.request ?? 0;
    looks.wait[i] = waits.indexOf(row.cause) + 1;
  });
  const ran = rows.ran ?? [];
  const samples = noSamples(ran.length);
  ran.forEach((row, i) => {
    samples.time[i] = row.time;
    samples.thread[i] = row.thread;
    samples.node[i] = 2;
    samples.weight[i] = row.weight;
    samples.count[i] = 1;
    samples.request[i] = row.request ?? 0;
    samples.endpoint[i] = row.endpoint ?? 0;
  });
  const requests = rows.requests ?? [];
  const u32 = (values: number[]) => Uint32Array.from(values);
  const none = new Uint32Array(requests.length);
  return {
    ...base,
    names: namesOf(texts),
    header: {
      ...base.header,
      endpoints: rows.endpoints ?? [],
      waits,
      wall: { ns: 0, busyNs: 0, causes: [] },
      info: { ...base.header.info, durationNs: rows.durationNs ?? 1000 },
    },
    threads: {
      name: u32(rows.threads.map(nameOf)),
      tid: new Float64Array(rows.threads.length),
      javaTid: new Float64Array(rows.threads.length).fill(1),
      virtual: Uint8Array.from(rows.threads, (_, i) => (rows.virtual?.includes(i) ? 1 : 0)),
    },
    samples,
    wall: {
      running: new Uint8Array(ran.length).fill(1),
      looks,
      duration: Float64Array.from(rows.looks, (row) => row.duration ?? 0),
      detail: u32(rows.looks.map(({ detail }) => (detail ? nameOf(detail) + 1 : 0))),
      owner: u32(rows.looks.map(({ owner }) => (owner === undefined ? 0 : owner + 1))),
      ownerNode: u32(rows.looks.map(({ ownerNode }) => (ownerNode ? ownerNode + 1 : 0))),
    },
    requests: {
      time: Float64Array.from(requests, ({ time }) => time),
      duration: Float64Array.from(requests, ({ duration }) => duration),
      endpoint: u32(requests.map(({ endpoint }) => endpoint)),
      count: u32(requests.map(({ count }) => count ?? 1)),
      trace: [none, none, none, none],
    },
  };
}

/** Everything counts. */
export function everything(profile: Profile) {
  const threads = new Uint8Array(profile.threads.name.length).fill(1);
  return { threads, endpoint: null, idle: true, during: null, request: 0 };
}

// The profile as the page holds it: tables of typed arrays, names decoded when they are asked for.
import { type Column, type ColumnEntry, readContainer } from './columns';
import { plain } from './plain';

export interface Header {
  version: number;
  title: string;
  unit: 'ns' | 'samples';
  kinds: string[];
  roles: string[];
  causes: string[];
  info: Info;
  /** Endpoints that samples and looks name by their number, from 1 on. */
  endpoints: string[];
  /** What looks say was waited for, by its number from 1 on. */
  waits: string[];
  losses: { cause: string; samples: number; weightNs: number }[];
  gaps: { timeNs: number; durationNs: number; cause: string; samples: number; weightNs: number }[];
  /** What Java threads did or waited for; null if that was not recorded. */
  wall: { ns: number; causes: Cause[]; endpoints: WallRow[]; groups: WallRow[] } | null;
  requests: Requests[];
  selfCost: Record<string, number> | null;
  cpuUse: { userNs: number; systemNs: number } | null;
  warnings: string[];
  columns: ColumnEntry[];
}

/** Whether there is wall time, or a request. */
export function hasWall(header: Header): boolean {
  return header.wall !== null || header.requests.length > 0;
}

/** Wall time of one cause, and the standard error of its share. */
export interface Cause {
  cause: string;
  ns: number;
  error: number;
}

/** Wall time of an endpoint or a group of threads. */
export interface WallRow {
  name: string;
  ns: number;
  causes: Cause[];
}

/** Requests of one endpoint; null: it is not known. */
export interface Requests {
  endpoint: string | null;
  requests: number;
  p50Ns: number;
  p95Ns: number;
  p99Ns: number;
  longestNs: number;
}

export interface Info {
  startMs: number;
  durationNs: number;
  pid: number;
  profilerVersion: string;
  mode: string;
  engine: string;
  engineReason: string;
  intervalNs: number;
  options: string;
  jvmName: string;
  jvmVersion: string;
  javaArguments: string;
  sampleEvent: string;
  otherEvents: [string, number][];
}

export interface Profile {
  header: Header;
  names: Names;
  methods: { class: Uint32Array; name: Uint32Array; descriptor: Uint32Array };
  frames: { method: Uint32Array; line: Uint32Array; kind: Uint8Array };
  threads: { name: Uint32Array; tid: Float64Array; javaTid: Float64Array; virtual: Uint8Array };
  /** Node 0 is the root; a parent's number is smaller than its children's. */
  nodes: { parent: Uint32Array; frame: Uint32Array };
  samples: Samples;
  /** Wall time; null if that was not recorded. */
  wall: {
    /** For every sample 1 if its time is part of the wall time. */
    running: Uint8Array;
    looks: Samples;
    /** For every look the number of its cause in the header's waits. */
    waits: Uint8Array;
  } | null;
}

/** What a tree or a table is made of. */
export interface Samples {
  time: Float64Array;
  thread: Uint32Array;
  node: Uint32Array;
  weight: Float64Array;
  /** How many samples, or looks that saw the same, one entry stands for. */
  count: Uint32Array;
  /** The number of the failure, from 1 on; 0: none. */
  cause: Uint32Array;
  role: Uint8Array;
  /** The number of the endpoint, from 1 on; 0: none. */
  endpoint: Uint32Array;
}

/** All names, decoded one by one and made plain. */
export class Names {
  private readonly starts: Uint32Array;
  private readonly decoded: (string | undefined)[] = [];
  private readonly decoder = new TextDecoder();

  constructor(
    lengths: Uint32Array,
    private readonly bytes: Uint8Array,
  ) {
    this.starts = new Uint32Array(lengths.length + 1);
    for (let i = 0; i < lengths.length; i++) this.starts[i + 1] = this.starts[i]! + lengths[i]!;
  }

  text(id: number): string {
    const known = this.decoded[id];
    if (known !== undefined) return known;
    const text = plain(
      this.decoder.decode(this.bytes.subarray(this.starts[id], this.starts[id + 1])),
    );
    this.decoded[id] = text;
    return text;
  }
}

export function readProfile(data: Uint8Array<ArrayBuffer>): Profile {
  const { header, column } = readContainer<Header>(data);
  if (header.version !== 1) throw new Error(`This page holds data of version ${header.version}.`);
  const u32 = (name: string) => column(name).u32();
  const profile: Profile = {
    header,
    names: new Names(u32('name.length'), column('name.text').bytes),
    methods: {
      class: u32('method.class'),
      name: u32('method.name'),
      descriptor: u32('method.descriptor'),
    },
    frames: {
      method: u32('frame.method'),
      line: u32('frame.line'),
      kind: column('frame.kind').u8(),
    },
    threads: {
      name: u32('thread.name'),
      tid: column('thread.tid').f64(),
      javaTid: column('thread.java_tid').f64(),
      virtual: column('thread.virtual').u8(),
    },
    nodes: readNodes(u32('node.back'), u32('node.frame')),
    samples: {
      time: column('sample.time').f64(),
      thread: u32('sample.thread'),
      node: u32('sample.node'),
      weight: column('sample.weight').f64(),
      count: u32('sample.node').fill(1),
      cause: u32('sample.cause'),
      role: column('sample.role').u8(),
      endpoint: u32('sample.endpoint'),
    },
    wall: header.wall && readWall(column),
  };
  return profile;
}

function readWall(column: (name: string) => Column): Profile['wall'] {
  const node = column('look.node').u32();
  return {
    running: column('sample.running').u8(),
    looks: {
      time: column('look.time').f64(),
      thread: column('look.thread').u32(),
      node,
      weight: column('look.weight').f64(),
      count: column('look.count').u32(),
      cause: new Uint32Array(node.length),
      role: new Uint8Array(node.length),
      endpoint: column('look.endpoint').u32(),
    },
    waits: column('look.cause').u8(),
  };
}

/** Puts the root back in front and turns "so many back" into parents. */
function readNodes(back: Uint32Array, frames: Uint32Array): Profile['nodes'] {
  const parent = new Uint32Array(back.length + 1);
  const frame = new Uint32Array(back.length + 1);
  for (let i = 0; i < back.length; i++) {
    const node = i + 1;
    parent[node] = Math.max(0, node - Math.max(1, back[i]!));
    frame[node] = frames[i]!;
  }
  return { parent, frame };
}

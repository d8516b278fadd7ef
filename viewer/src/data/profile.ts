// The profile as the page holds it: tables of typed arrays, names decoded when they are asked for.
import { type Column, type ColumnEntry, readContainer } from './columns';
import type { RawFinding } from './findings';
import type { Unit } from './format';
import { withClasses } from './kinds';
import { type HeldTable, readHeld } from './held';
import { type Locked, type LockTable, readLocks } from './locked';
import { plain } from './plain';
import type { SelfCheck } from './selfCheck';
import { withStandIns } from './standIns';

export interface Header {
  version: number;
  title: string;
  unit: Unit;
  /** What samples measure, as text; missing: CPU time. */
  measured?: string;
  kinds: string[];
  roles: string[];
  causes: string[];
  /** Equal samples and looks within this time are merged; 0: no merging. */
  binNs: number;
  /** Frames that were left out of stacks; null or missing if none were. */
  leftOut?: LeftOut | null;
  info: Info;
  host: Host;
  cpuLimit: CpuLimit | null;
  machine: Machine | null;
  /** Endpoints that samples and looks name by their number, from 1 on. */
  endpoints: string[];
  /** Causes of waits in wall-clock samples, by number from 1 on. */
  waits: string[];
  /** Durations of requests, the slowest endpoints first; available before the columns are read. */
  latencies: Latency[];
  /** All samples, and their weights. */
  samples: number;
  cpuNs: number;
  /** Findings of `dwell explain`, if the page was made with them. */
  findings: RawFinding[];
  /** The effect of lost samples on tables; empty or missing: none were lost. */
  lossNote?: string;
  losses: { cause: string; samples: number; weightNs: number }[];
  gaps: { timeNs: number; durationNs: number; cause: string; samples: number; weightNs: number }[];
  /** What Java threads did or waited for; null if that was not recorded. */
  wall: { ns: number; busyNs: number; causes: Cause[] } | null;
  /** The wall time of a unit of a sample's weight, in nanoseconds; missing: 1. */
  wallScale?: number;
  /** The waits that the file lacks; empty or missing: none. */
  waitsNote?: string;
  /** Whether looks are events whose ends are known. */
  exactWaits?: boolean;
  /** Events of other recorders, summed up. */
  eventTables?: EventTable[];
  /** What is not known of endpoints found in stacks; null or missing if the program named them. */
  endpointsNote?: string | null;
  /** Wall time seen against latencies; null or missing if there is nothing to compare. */
  selfCheck?: SelfCheck | null;
  /** Sampled allocations; null or missing if they were not recorded. */
  allocated?: Allocated | null;
  /** Sampled objects that are still there; null or missing if they were not recorded. */
  alive?: AliveFacts | null;
  /** Of waits for locks; null or missing if they were not recorded. */
  locked?: Locked | null;
  /** Why threads came late to safepoints; `late.reason` names them by their places. */
  lateReasons: LateReason[];
  /** Kinds of stretches of time, and how to speak of them; `stretch.kind` is a place in it. */
  stretches: StretchKind[];
  selfCost: Record<string, number> | null;
  cpuUse: { userNs: number; systemNs: number } | null;
  warnings: string[];
  /** What of the file could not be read, as what follows its name; null or missing: nothing. */
  unread?: string | null;
  /** Two recordings in one page: what is known of both; null or missing in a page of one. */
  compare?: Compare | null;
  columns: ColumnEntry[];
}

/** Sums of events that are no time of threads. */
export interface EventTable {
  title: string;
  note: string;
  head: string;
  columns: { head: string; unit: 'count' | 'bytes' | 'ns' }[];
  rows: { name: string; cells: number[] }[];
  /** Rows that are not here. */
  more: number;
}

/** Stacks that few share have `[left out]` for the frames that only they have, all but the innermost. */
export interface LeftOut {
  /** Frames with fewer samples and other events were left out. */
  below: number;
  /** Places in stacks that there are, and that are in the page. */
  nodes: number;
  kept: number;
  /** Samples and other events, and those of stacks that lack frames. */
  events: number;
  cut: number;
}

/** Two recordings that are compared. The threads of the first come before those of the second. */
export interface Compare {
  per: 'second' | 'request' | 'sample';
  /** Scales that both recordings have. */
  possible: ('second' | 'request' | 'sample')[];
  threadsOfA: number;
  /** Whether weights of both are of one unit. */
  isOneUnit: boolean;
  /** Of endpoints with requests in both, those that take the most time first. */
  latencies?: LatencyChange[];
  sides: [Side, Side];
}

/** An endpoint in two recordings. */
export interface LatencyChange {
  endpoint: string | null;
  perSecond: [number, number];
  percentiles: {
    percent: number;
    a: number;
    b: number;
    /** With its 95 % interval; null: there are too few requests. */
    change: { ns: number; low: number; high: number; significant: boolean } | null;
  }[];
}

/** One of two recordings. */
export interface Side {
  name: string;
  durationNs: number;
  samples: number;
  /** Requests that ended, and those of each endpoint, in the order of the header's endpoints. */
  requests: number;
  requestsOf: number[];
  cpuNs: number;
  jvm: string;
  arguments: string;
  mode: string;
  /** The shares of stacks that failed. */
  failed: number;
  /** What of the file could not be read, as what follows its name. */
  unread?: string | null;
}

/** How long the requests of an endpoint took. */
export interface Latency {
  endpoint: string | null;
  requests: number;
  p50Ns: number;
  p95Ns: number;
}

/** What was allocated. */
export interface Allocated {
  bytes: number;
  samples: number;
  /** Between two samples, in the mean, the last one if it adapted; 0: not known. */
  intervalBytes: number;
  /** Samples wanted in a second; 0: the interval was always the same, or has only grown. */
  rate: number;
  /** The interval that was asked for where it has grown, as too many samples came; else 0. */
  askedBytes?: number;
  /** Samples that could not be kept, and what they stood for. */
  lost: number;
  lostBytes: number;
  /** The effect of lost samples on tables; empty or missing: none were lost. */
  lossNote?: string;
}

/** Sums of sampled objects that are still there. */
export interface AliveFacts {
  /** Survivors of a collection. */
  bytes: number;
  /** Objects not yet seen by a GC. */
  young: number;
  /** Between two samples, in the mean, the last one if it adapted; 0: not known. */
  intervalBytes: number;
  /** One of this number of samples was followed. */
  oneOf: number;
  /** Samples that found no room. */
  lost: number;
  /** From when to when objects were followed, since the recording's begin. */
  fromNs: number;
  toNs: number;
}

/** Wall time of one cause, and the standard error of its share. */
export interface Cause {
  cause: string;
  ns: number;
  /** Standard errors of its share of all wall time, and of what was not idle. */
  error: number;
  busyError: number;
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
  /** Name and version. */
  jvm: string;
  javaArguments: string;
  sampleEvent: string;
  /** Remedy for missing wall time, as the second half of a sentence. */
  wallRemedy: string;
  /** The beginning of the program's classes, if it comes with the platform; null or missing: not. */
  tool?: string | null;
  otherEvents: [string, number][];
  /** Other events that are only counted. */
  heldEvents?: [string, number][];
}

/** The program's environment; empty or 0 if the recording lacks it. */
export interface Host {
  jvmArguments: string;
  jvmFlags: string;
  jvmStartMs: number;
  cpu: string;
  hardwareThreads: number;
  os: string;
}

/** Limits of the control group; a quota of 0 means no quota. */
export interface CpuLimit {
  quotaNs: number;
  processors: number;
  periods: number;
  throttled: number;
  throttledNs: number;
}

/** Use of the processors that the process could run on, in the time with data. */
export interface Machine {
  durationNs: number;
  processors: number;
  /** By other processes. */
  othersNs: number;
  idleNs: number;
  /** By the hypervisor, for other machines. */
  stolenNs: number;
}

/** A part of the recording's time, in nanoseconds since its beginning. */
export interface Span {
  from: number;
  to: number;
}

export interface Profile {
  header: Header;
  names: Names;
  methods: {
    class: Uint32Array;
    name: Uint32Array;
    descriptor: Uint32Array;
    /** The jar, folder or module of the class, as a name's number plus 1; 0: not known. */
    library: Uint32Array;
    /** 1 if its class is the application's own. */
    own: Uint8Array;
  };
  /** Frames that stand for others; null: there are none. */
  standIns: {
    /** For frames of the runtime that stacks begin with. */
    runtime: number;
    /** By role: stand-in for the frames of its threads; the program has no stand-in. */
    roles: readonly number[];
    /** By kind: for frames of stacks without any frame of the application. */
    others: readonly number[];
  } | null;
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
    /** From the first to the last look that saw the same. */
    duration: Float64Array;
    /** On what it waited, as a name's number plus 1; 0: not known. */
    detail: Uint32Array;
    /** Holder of the lock, as a thread's number plus 1; 0: no holder, or unknown. */
    owner: Uint32Array;
    /** Where that one was, as a node's number plus 1; 0: not known. */
    ownerNode: Uint32Array;
  } | null;
  /** Allocated objects; null if they were not recorded. Weights are bytes. */
  allocations: {
    samples: Samples;
    /** A name's number. */
    class: Uint32Array;
    /** How many objects each one stands for. */
    objects: Float64Array;
  } | null;
  /** Objects that are still there; null if they were not recorded. Weights are bytes. */
  alive: AliveObjects | null;
  /** Waits for locks; null if they were not recorded. */
  locks: LockTable | null;
  /** Where owners of monitors were; null if locks were not recorded. */
  held: HeldTable | null;
  /** In the order of time; samples and looks name them by their number from 1 on. */
  requests: RequestTable;
  spans: SpanTable;
  /** Stretches of time, of each kind that occurs. */
  stretches: Stretches[];
  stops: Stops;
  late: LateThreads;
  /** Times in which the control group held the process back. */
  throttled: ThrottledTable;
  /** What the JVM counted of its compilers, about once a second. */
  compilers: CompilersTable;
  /** Compiled methods; only the JDK's own recorder has them. */
  compiled: CompiledTable;
}

/** A kind of what lasts for some time. Its words stand where the event is defined, in the crate `jfr`. */
export interface StretchKind {
  /** One of them in a sentence; more of them have an `s`. */
  one: string;
  /** Head of its lane in the timeline. */
  lane: string;
  /** Name of one stretch. */
  title: string;
  /** Description of one stretch. */
  what: string;
  /** Whether it stops all threads. */
  allStand: boolean;
  /** Said where they take much of the time; empty: that is not remarkable. */
  much: string;
  /** The cause of waits whose colour it has. */
  cause: string;
  /** Labels of further facts. */
  labels: string[];
  forms: StretchForm[];
}

/** Texts are a name's number, threads a thread's number plus 1 (0: not known). */
export type StretchForm = 'text' | 'number' | 'ns' | 'thread' | '';

export interface Stretches {
  kind: StretchKind;
  time: Float64Array;
  duration: Float64Array;
  /** By label: one number for each stretch. */
  facts: Float64Array[];
}

/** Objects that are still there. */
export interface AliveObjects {
  /** Time and thread of their allocation. */
  samples: Samples;
  /** A name's number. */
  class: Uint32Array;
  /** How many objects each one stands for. */
  objects: Float64Array;
  /** In nanoseconds, at the end. */
  age: Float64Array;
  /** Number of collections that each has survived; 0: not yet seen by a GC. */
  collections: Uint32Array;
}

export interface ThrottledTable {
  time: Float64Array;
  duration: Float64Array;
  periods: Uint32Array;
  /** Periods in which the quota was used up. */
  throttled: Uint32Array;
  /** How long threads were held back, all together. */
  held: Float64Array;
}

export interface CompilersTable {
  time: Float64Array;
  duration: Float64Array;
  /** Methods and loops compiled. */
  count: Uint32Array;
  /** For how long, of all compilers together. */
  compiling: Float64Array;
  wasted: Uint32Array;
}

export interface CompiledTable {
  time: Float64Array;
  duration: Float64Array;
  /** A name's number. */
  method: Uint32Array;
  level: Uint8Array;
}

/** Requests that ended while the recording ran. */
export interface RequestTable {
  time: Float64Array;
  duration: Float64Array;
  /** The number of the endpoint, from 1 on; 0: none. */
  endpoint: Uint32Array;
  /** How many requests one stands for. */
  count: Uint32Array;
  /** The trace's id in four parts. */
  trace: readonly [Uint32Array, Uint32Array, Uint32Array, Uint32Array];
}

/** Spans inside of requests. */
export interface SpanTable {
  /** Halves of their ids. */
  high: Uint32Array;
  low: Uint32Array;
  /** The numbers of the requests that they are inside of, from 1 on; in this order. */
  request: Uint32Array;
  /** Begin and duration; a duration of 0 means that they were not recorded. */
  time: Float64Array;
  duration: Float64Array;
  /** The number of each sample's span, from 1 on; 0: its request's own. Empty: there are none. */
  ofSample: Uint32Array;
  ofLook: Uint32Array;
}

/** Safepoints. */
export interface Stops {
  time: Float64Array;
  /** Until all threads had stopped. */
  reaching: Float64Array;
  /** From then until they went on. */
  operating: Float64Array;
  /** A name's number. */
  operation: Uint32Array;
  threads: Uint32Array;
  running: Uint32Array;
  count: Uint32Array;
  /** 1 if it was seen, 0 if it was only counted. */
  known: Uint8Array;
}

/** Why a thread came late to a safepoint, and what helps. */
export interface LateReason {
  /** A word or two. */
  why: string;
  remedy: string;
  /** For a loop: flags that help without a change of the program; null: it is no loop. */
  flags: string | null;
}

/** Threads that others waited for at a safepoint. */
export interface LateThreads {
  time: Float64Array;
  duration: Float64Array;
  /** Its part of the time to the safepoint. */
  held: Float64Array;
  /** The safepoint's number, from 1 on; 0: not in the page. */
  stop: Uint32Array;
  operation: Uint32Array;
  state: Uint32Array;
  thread: Uint32Array;
  /** A node's number plus 1; 0: not seen. */
  node: Uint32Array;
  last: Uint8Array;
  /** A place in the header's list. */
  reason: Uint32Array;
}

/** Input of a tree or a table. */
export interface Samples {
  time: Float64Array;
  thread: Uint32Array;
  node: Uint32Array;
  weight: Float64Array;
  /** How many samples, or looks that saw the same, one entry stands for. */
  count: Uint32Array;
  /** As how many choices of one weight that is certain; of what is known, more than looks. */
  choices: Uint32Array;
  /** The number of the failure, from 1 on; 0: none. */
  cause: Uint32Array;
  role: Uint8Array;
  /** The number of the endpoint, from 1 on; 0: none. */
  endpoint: Uint32Array;
  /** The number of the request, from 1 on; 0: none, or not in the page. */
  request: Uint32Array;
  /** The number of what it waited for in the header's waits, from 1 on; 0: it ran. */
  wait: Uint8Array;
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

  /** One more name, which is not in the file. */
  add(text: string): number {
    const id = Math.max(this.decoded.length, this.starts.length - 1);
    this.decoded[id] = text;
    return id;
  }

  /** Whether a name may be one that the JVM or a library generated; looks at its bytes alone. */
  mayBeGenerated(id: number): boolean {
    if (id >= this.starts.length - 1) return false;
    const [from, to] = [this.starts[id]!, this.starts[id + 1]!];
    const last = this.bytes[to - 1] ?? 0;
    if (to > from && last >= 0x30 && last <= 0x39) return true;
    for (let at = from; at < to; at++) {
      const byte = this.bytes[at]!;
      if (byte === 0x24 || byte === 0x2b || byte === 0x2f) return true;
    }
    return false;
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

/** The version of the data that this viewer reads. */
export const VERSION = 1;

export function readProfile(data: Uint8Array<ArrayBuffer>): Profile {
  const { header, column } = readContainer<Header>(data);
  if (header.version !== VERSION)
    throw new Error(`This page holds data of version ${header.version}.`);
  const u32 = (name: string) => column(name).u32();
  const profile: Profile = {
    header,
    names: new Names(u32('name.length'), column('name.text').bytes),
    methods: {
      class: u32('method.class'),
      name: u32('method.name'),
      descriptor: u32('method.descriptor'),
      library: u32('method.library'),
      own: column('method.own').u8(),
    },
    standIns: null,
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
      count: u32('sample.count'),
      choices: u32('sample.count'),
      cause: u32('sample.cause'),
      role: column('sample.role').u8(),
      endpoint: u32('sample.endpoint'),
      request: u32('sample.request'),
      wait: new Uint8Array(column('sample.time').rows),
    },
    wall: header.wall && readWall(column),
    allocations: header.allocated ? readAllocations(column) : null,
    alive: header.alive ? readAlive(column) : null,
    locks: header.locked ? readLocks(column) : null,
    held: header.locked ? readHeld(column) : null,
    stretches: readStretches(column, header.stretches),
    ...readEvents(column),
  };
  return withStandIns(withClasses(profile));
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
      choices: column('look.choices').u32(),
      cause: new Uint32Array(node.length),
      role: new Uint8Array(node.length),
      endpoint: column('look.endpoint').u32(),
      request: column('look.request').u32(),
      wait: column('look.cause').u8(),
    },
    duration: column('look.duration').f64(),
    detail: column('look.detail').u32(),
    owner: column('look.owner').u32(),
    ownerNode: column('look.owner_node').u32(),
  };
}

function readAllocations(column: (name: string) => Column): Profile['allocations'] {
  return readObjects(column, 'alloc', column('alloc.count').u32());
}

function readAlive(column: (name: string) => Column): AliveObjects {
  const age = column('live.age').f64();
  const objects = readObjects(column, 'live', new Uint32Array(age.length).fill(1));
  return { ...objects, age, collections: column('live.collections').u32() };
}

/** Columns that all tables of objects have. */
function readObjects(column: (name: string) => Column, table: string, count: Uint32Array) {
  const named = (name: string) => column(`${table}.${name}`);
  const node = named('node').u32();
  return {
    samples: {
      time: named('time').f64(),
      thread: named('thread').u32(),
      node,
      weight: named('bytes').f64(),
      count,
      choices: count,
      cause: new Uint32Array(node.length),
      role: new Uint8Array(node.length),
      endpoint: named('endpoint').u32(),
      request: named('request').u32(),
      wait: new Uint8Array(node.length),
    },
    class: named('class').u32(),
    objects: named('objects').f64(),
  };
}

/** The kinds come one after the other, in the order of the header. */
export function readStretches(column: (name: string) => Column, kinds: StretchKind[]): Stretches[] {
  const kindOf = column('stretch.kind').u8();
  const [time, duration] = [column('stretch.time').f64(), column('stretch.duration').f64()];
  const known = column('stretch.fact').f64();
  const all: Stretches[] = [];
  let [from, at] = [0, 0];
  while (from < kindOf.length) {
    const kind = kinds[kindOf[from]!]!;
    let to = from;
    while (to < kindOf.length && kindOf[to] === kindOf[from]) to++;
    const [first, labels, rows] = [at, kind.labels.length, to - from];
    const facts = kind.labels.map((_, label) =>
      Float64Array.from({ length: rows }, (_, row) => known[first + row * labels + label]!),
    );
    all.push({ kind, time: time.slice(from, to), duration: duration.slice(from, to), facts });
    at += rows * labels;
    from = to;
  }
  return all;
}

function readEvents(
  column: (name: string) => Column,
): Pick<Profile, 'requests' | 'spans' | 'stops' | 'late' | 'throttled' | 'compiled' | 'compilers'> {
  const u32 = (name: string) => column(name).u32();
  const f64 = (name: string) => column(name).f64();
  return {
    requests: {
      time: f64('request.time'),
      duration: f64('request.duration'),
      endpoint: u32('request.endpoint'),
      count: u32('request.count'),
      trace: [
        u32('request.trace_high'),
        u32('request.trace_mid_high'),
        u32('request.trace_mid_low'),
        u32('request.trace_low'),
      ],
    },
    spans: {
      high: u32('span.high'),
      low: u32('span.low'),
      request: u32('span.request'),
      time: f64('span.time'),
      duration: f64('span.duration'),
      ofSample: u32('sample.span'),
      ofLook: u32('look.span'),
    },
    stops: {
      time: f64('stop.time'),
      reaching: f64('stop.reaching'),
      operating: f64('stop.operating'),
      operation: u32('stop.operation'),
      threads: u32('stop.threads'),
      running: u32('stop.running'),
      count: u32('stop.count'),
      known: column('stop.known').u8(),
    },
    throttled: {
      time: f64('throttled.time'),
      duration: f64('throttled.duration'),
      periods: u32('throttled.periods'),
      throttled: u32('throttled.throttled'),
      held: f64('throttled.held'),
    },
    compilers: {
      time: f64('compilers.time'),
      duration: f64('compilers.duration'),
      count: u32('compilers.count'),
      compiling: f64('compilers.compiling'),
      wasted: u32('compilers.wasted'),
    },
    compiled: {
      time: f64('compiled.time'),
      duration: f64('compiled.duration'),
      method: u32('compiled.method'),
      level: column('compiled.level').u8(),
    },
    late: {
      time: f64('late.time'),
      duration: f64('late.duration'),
      held: f64('late.held'),
      stop: u32('late.stop'),
      operation: u32('late.operation'),
      state: u32('late.state'),
      thread: u32('late.thread'),
      node: u32('late.node'),
      last: column('late.last').u8(),
      reason: u32('late.reason'),
    },
  };
}

/** Puts the root back in front and turns distances into parents. */
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

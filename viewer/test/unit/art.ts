// Profiles drawn as text: one column a sample, outermost frame on top. The rows `thread:`,
// `weight:` and `cause:` are optional; a cell is `class.method`, `class.method:line`, with
// `[kind]` behind it, or `-` for nothing.
import { noSamples } from '../../src/data/measure';
import type { Header, Profile, Samples } from '../../src/data/profile';
import { Names } from '../../src/data/profile';
import type { WallFilter } from '../../src/data/wall';

export const KIND_LABELS = [
  'interpreted',
  'C1',
  'C2',
  'inlined',
  'native',
  'VM',
  'kernel',
  'stub',
  'failed',
  'other',
];

class Table<T> {
  readonly items: T[] = [];
  private readonly ids = new Map<string, number>();

  id(item: T): number {
    const text = JSON.stringify(item);
    const known = this.ids.get(text);
    if (known !== undefined) return known;
    this.ids.set(text, this.items.length);
    this.items.push(item);
    return this.items.length - 1;
  }
}

export function profileOf(art: string): Profile {
  const rows = art
    .split('\n')
    .map((row) => row.trim())
    .filter((row) => row !== '');
  const head = new Map<string, string[]>();
  const columns: string[][] = [];
  for (const row of rows) {
    const [first, ...rest] = row.split(/\s+/);
    if (/^(thread|weight|cause):$/.test(first!)) head.set(first!, rest);
    else
      [first!, ...rest].forEach((cell, column) => {
        columns[column] ??= [];
        if (cell !== '-') columns[column].push(cell);
      });
  }
  return assemble(columns, head);
}

function assemble(columns: string[][], head: Map<string, string[]>): Profile {
  const names = new Table<string>();
  const methods = new Table<[number, number]>();
  const frames = new Table<[number, number, number]>();
  const threads = new Table<string>();
  const nodes = new Table<[number, number]>();
  nodes.id([-1, -1]);
  const causes = new Table<string>();
  const samples = columns.map((cells, column) => {
    let node = 0;
    for (const cell of cells) {
      const [, path, line, kind] = /^(.*?)(?::(\d+))?(?:\[([^\]]+)\])?$/.exec(cell)!;
      const dot = path!.lastIndexOf('.');
      const method = methods.id([
        names.id(path!.slice(0, Math.max(0, dot))),
        names.id(path!.slice(dot + 1)),
      ]);
      const number = KIND_LABELS.indexOf(kind ?? 'C2');
      node = nodes.id([node, frames.id([method, Number(line ?? 0), number])]);
    }
    const cause = head.get('cause:')?.[column] ?? '-';
    return {
      node,
      thread: threads.id(head.get('thread:')?.[column] ?? 'main'),
      weight: Number(head.get('weight:')?.[column] ?? 1),
      cause: cause === '-' ? 0 : causes.id(cause) + 1,
    };
  });
  const threadNames = threads.items.map((name) => names.id(name));
  const column = <T>(items: T[], value: (item: T) => number) => Uint32Array.from(items, value);
  return {
    header: header(causes.items),
    names: namesOf(names.items),
    methods: {
      class: column(methods.items, (m) => m[0]),
      name: column(methods.items, (m) => m[1]),
      descriptor: new Uint32Array(methods.items.length),
      library: new Uint32Array(methods.items.length),
      own: new Uint8Array(methods.items.length),
    },
    frames: {
      method: column(frames.items, (f) => f[0]),
      line: column(frames.items, (f) => f[1]),
      kind: Uint8Array.from(frames.items, (f) => f[2]),
    },
    threads: {
      name: Uint32Array.from(threadNames),
      tid: new Float64Array(threadNames.length),
      javaTid: new Float64Array(threadNames.length),
      virtual: new Uint8Array(threadNames.length),
    },
    nodes: {
      parent: column(nodes.items, (n) => Math.max(0, n[0])),
      frame: column(nodes.items, (n) => Math.max(0, n[1])),
    },
    samples: {
      time: Float64Array.from(samples, (_, i) => i * 1e6),
      thread: column(samples, (s) => s.thread),
      node: column(samples, (s) => s.node),
      weight: Float64Array.from(samples, (s) => s.weight),
      count: new Uint32Array(samples.length).fill(1),
      choices: new Uint32Array(samples.length).fill(1),
      cause: column(samples, (s) => s.cause),
      role: new Uint8Array(samples.length),
      endpoint: new Uint32Array(samples.length),
      request: new Uint32Array(samples.length),
      wait: new Uint8Array(samples.length),
    },
    standIns: null,
    wall: null,
    allocations: null,
    alive: null,
    locks: null,
    held: null,
    ...noEvents(),
  };
}

/** One that takes everything of two threads, idle time excepted. */
export const ALL: WallFilter = {
  threads: Uint8Array.of(1, 1),
  endpoint: null,
  idle: false,
  during: null,
  request: 0,
};

/** Entries of a table of objects or waits, each one sample; missing values are 0. */
export function entriesOf(given: {
  time: number[];
  node: number[];
  weight: number[];
  endpoint?: number[];
}): Samples {
  const samples = noSamples(given.time.length);
  samples.time.set(given.time);
  samples.node.set(given.node);
  samples.weight.set(given.weight);
  samples.count.fill(1);
  samples.endpoint.set(given.endpoint ?? []);
  return samples;
}

/** Two stacks, and what more is known of the recording, which is so long. */
export function recordingOf(
  durationNs: number,
  known: Partial<Profile>,
  header: Partial<Header>,
): Profile {
  const cpu = profileOf('a.A.x  a.A.y');
  const info = { ...cpu.header.info, durationNs };
  return { ...cpu, ...known, header: { ...cpu.header, info, ...header } };
}

/** No requests, no pauses, no safepoints. */
export function noEvents(): Pick<
  Profile,
  'requests' | 'spans' | 'stretches' | 'stops' | 'late' | 'throttled' | 'compiled' | 'compilers'
> {
  const [f64, u32, u8] = [new Float64Array(0), new Uint32Array(0), new Uint8Array(0)];
  return {
    requests: { time: f64, duration: f64, endpoint: u32, count: u32, trace: [u32, u32, u32, u32] },
    spans: {
      high: u32,
      low: u32,
      request: u32,
      time: f64,
      duration: f64,
      ofSample: u32,
      ofLook: u32,
    },
    stretches: [],
    throttled: { time: f64, duration: f64, periods: u32, throttled: u32, held: f64 },
    compilers: { time: f64, duration: f64, count: u32, compiling: f64, wasted: u32 },
    compiled: { time: f64, duration: f64, method: u32, level: u8 },
    stops: {
      time: f64,
      reaching: f64,
      operating: f64,
      operation: u32,
      threads: u32,
      running: u32,
      count: u32,
      known: u8,
    },
    late: {
      time: f64,
      duration: f64,
      held: f64,
      stop: u32,
      operation: u32,
      state: u32,
      thread: u32,
      node: u32,
      last: u8,
      reason: u32,
    },
  };
}

export function namesOf(texts: string[]): Names {
  const encoded = texts.map((text) => new TextEncoder().encode(text));
  const bytes = new Uint8Array(encoded.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of encoded) {
    bytes.set(part, at);
    at += part.length;
  }
  return new Names(
    Uint32Array.from(encoded, (part) => part.length),
    bytes,
  );
}

function header(causes: string[]): Header {
  return {
    version: 1,
    title: 'art',
    unit: 'ns',
    kinds: KIND_LABELS,
    roles: ['program', 'GC', 'JIT', 'VM', 'profiler'],
    causes,
    binNs: 0,
    info: {
      startMs: 0,
      durationNs: 0,
      pid: 0,
      profilerVersion: '',
      mode: '',
      engine: '',
      engineReason: '',
      intervalNs: 0,
      options: '',
      jvmName: '',
      jvm: '',
      javaArguments: '',
      sampleEvent: '',
      wallRemedy: 'record with -e cpu,wall',
      otherEvents: [],
    },
    host: {
      jvmArguments: '',
      jvmFlags: '',
      jvmStartMs: 0,
      cpu: '',
      hardwareThreads: 0,
      os: '',
    },
    cpuLimit: null,
    machine: null,
    latencies: [],
    samples: 0,
    cpuNs: 0,
    findings: [],
    endpoints: [],
    waits: [],
    losses: [],
    gaps: [],
    wall: null,
    lateReasons: [],
    stretches: [],
    selfCost: null,
    cpuUse: null,
    warnings: [],
    columns: [],
  };
}

/** A profile of random stacks, the same for the same seed. */
export function randomProfile(
  seed: number,
  samples: number,
  methods: number,
  depth: number,
): Profile {
  const random = randomOf(seed);
  const columns: string[][] = [];
  const threads: string[] = [];
  const weights: string[] = [];
  for (let i = 0; i < samples; i++) {
    const frames = Array.from({ length: random(depth + 1) }, () => {
      const kind = KIND_LABELS[random(KIND_LABELS.length)];
      return `c.C.m${random(methods)}:${random(3)}[${kind}]`;
    });
    columns.push(frames);
    threads.push(`t${random(3)}`);
    weights.push(String(1 + random(50)));
  }
  return assemble(
    columns,
    new Map([
      ['thread:', threads],
      ['weight:', weights],
    ]),
  );
}

/** Numbers below a limit from a seed (xorshift). */
export function randomOf(seed: number): (limit: number) => number {
  let state = seed >>> 0 || 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state % limit;
  };
}

// The state of the page in its address, so that a link shows what its sender saw. Whatever is in an
// address was written by anybody: it is read strictly, and what makes no sense is left out.
import { CPU, type Measure, textOf, timeOf } from '../data/measure';
import type { Profile, Span } from '../data/profile';
import { hasStops } from '../data/stretches';
import type { Width } from '../diff/build';
import type { Per } from '../diff/statistics';
import { type Frames, hasMine } from '../tree/frames';
import type { SplitBy } from '../tree/keys';
import { fromText, toText, type Transform } from '../tree/transform';
import type { ThreadChoice } from '../tree/select';

/** The views, in the order of their tabs. The first one is shown where an address names none. */
export const VIEWS = [
  'overview',
  'flame',
  'table',
  'tree',
  'timeline',
  'requests',
  'locks',
  'safepoints',
] as const;

export type View = (typeof VIEWS)[number];

/** Two recordings in one page have no common time: views of it are left out. */
export const VIEWS_OF_TWO: readonly View[] = ['overview', 'flame', 'table', 'tree'];

/** The views that a page has: none is empty, whatever the recorder left out. */
export function viewsOf(profile: Profile): readonly View[] {
  if (profile.header.compare) return VIEWS_OF_TWO;
  return VIEWS.filter((view) => view !== 'safepoints' || hasStops(profile));
}

export interface Shared {
  view: View;
  icicle: boolean;
  reversed: boolean;
  split: SplitBy;
  byLine: boolean;
  threads: ThreadChoice;
  measure: Measure;
  /** Whether time in which threads had nothing to do is part of wall time. */
  idle: boolean;
  query: string;
  /** In the tree of callees a node's number; in that of callers the keys from the root. */
  zoom: number[];
  /** The part of the time that everything is made of; null: all. */
  during: Span | null;
  /** The part of the time that it is compared with; null: none is. */
  against: Span | null;
  /** The part of the time that the timeline shows; null: all. */
  sight: Span | null;
  /** A request's number; 0: none. */
  request: number;
  /** Whether all are only those of that request. */
  onlyRequest: boolean;
  /** Whether the slow requests of the endpoint are compared with its usual ones. */
  versus: boolean;
  /** Scale of two recordings; null: the default of the page. */
  per: Per | null;
  /** Of a comparison: whose frames are as wide as they weigh. */
  wide: Width;
  /** What is done to the stacks, in this order. */
  transforms: readonly Transform[];
  /** Whether generated classes have the names that the recording gives them. */
  original: boolean;
  /** Meaning of frame colours: kind of code, packages, or causes of waits. */
  colour: Colouring;
  /** The method whose callers and callees are shown, above and below it; empty: all stacks are. */
  around: string;
  /** The chosen lock, by its name; empty: the first one. */
  lock: string;
  /** The application's frames, others folded; or all frames. */
  frames: Frames;
}

/** `auto`: by cause where wall time is shown, else by kind of code. */
export type Colouring = 'auto' | 'kind' | 'package' | 'cause';

const COLOURINGS: readonly Colouring[] = ['auto', 'kind', 'package', 'cause'];

export const DEFAULTS: Shared = {
  view: 'overview',
  icicle: false,
  reversed: false,
  split: 'none',
  byLine: false,
  threads: { kind: 'all' },
  measure: CPU,
  idle: false,
  query: '',
  zoom: [],
  during: null,
  against: null,
  sight: null,
  request: 0,
  onlyRequest: false,
  versus: false,
  per: null,
  wide: 'both',
  transforms: [],
  original: false,
  colour: 'auto',
  around: '',
  lock: '',
  frames: 'all',
};

/** State of a page opened without any choice: wall time and own code, if present. */
export function firstState(profile: Profile): Shared {
  const { wall, compare } = profile.header;
  const isOne = !compare;
  return {
    ...DEFAULTS,
    measure: isOne && wall ? { time: 'wall', endpoint: null } : CPU,
    frames: isOne && hasMine(profile) ? 'mine' : 'all',
  };
}

const FRAMES: readonly Frames[] = ['mine', 'all'];
const SPLITS: readonly SplitBy[] = ['thread', 'group', 'endpoint', 'cause'];
/** The state without what a page of two recordings does not have. */
export function ofTwo(shared: Shared, possible: readonly Per[]): Shared {
  return {
    ...shared,
    view: VIEWS_OF_TWO.includes(shared.view) ? shared.view : DEFAULTS.view,
    during: null,
    against: null,
    sight: null,
    request: 0,
    onlyRequest: false,
    versus: false,
    per: possible.find((per) => per === shared.per) ?? null,
  };
}

const PERS: readonly Per[] = ['second', 'request', 'sample'];
const WIDTHS: readonly Width[] = ['both', 'a', 'b'];
const QUERY_MAX = 1000;
/** A deeper place is not put into the address: it would be longer than programs take. */
export const ZOOM_MAX = 256;

/** The choices that are not those of `first`. */
export function toFragment(state: Shared, first = DEFAULTS): string {
  const parts: string[] = [];
  const add = (name: string, value: string) => parts.push(`${name}=${encodeURIComponent(value)}`);
  if (state.view !== DEFAULTS.view) add('view', state.view);
  if (state.icicle) add('icicle', '1');
  if (state.reversed) add('reverse', '1');
  if (state.split !== 'none') add('split', state.split);
  if (state.byLine) add('lines', '1');
  if (state.threads.kind === 'one') add('thread', String(state.threads.thread));
  if (state.threads.kind === 'some') {
    add('threads', state.threads.threads.slice(0, ZOOM_MAX).join('.'));
  }
  if (state.threads.kind === 'pool') add('pool', state.threads.pool);
  const { time, endpoint } = state.measure;
  if (textOf(time) !== textOf(first.measure.time)) add('time', textOf(time));
  if (endpoint !== null) add('endpoint', endpoint);
  if (state.idle) add('idle', '1');
  if (state.during) add('range', spanText(state.during));
  if (state.against) add('against', spanText(state.against));
  if (state.sight) add('sight', spanText(state.sight));
  if (state.request > 0) add('request', String(state.request));
  if (state.request > 0 && state.onlyRequest) add('only', '1');
  if (state.versus) add('versus', 'slow');
  if (state.per !== null) add('per', state.per);
  if (state.wide !== 'both') add('wide', state.wide);
  if (state.transforms.length > 0) add('stacks', toText(state.transforms));
  if (state.original) add('names', '1');
  if (state.colour !== 'auto') add('colour', state.colour);
  if (state.frames !== first.frames) add('frames', state.frames);
  if (state.around !== '') add('around', state.around);
  if (state.lock !== '') add('lock', state.lock);
  if (state.query !== '') add('q', state.query);
  if (state.zoom.length > 0 && state.zoom.length <= ZOOM_MAX) add('zoom', state.zoom.join('.'));
  return parts.join('&');
}

export function fromFragment(fragment: string, first = DEFAULTS): Shared {
  const values = new Map<string, string>();
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const at = part.indexOf('=');
    if (at > 0) values.set(part.slice(0, at), decoded(part.slice(at + 1)));
  }
  const flag = (name: string) => values.get(name) === '1';
  const view = VIEWS.find((view) => view === values.get('view'));
  const request = natural(values.get('request') ?? '') ?? 0;
  return {
    view: view ?? DEFAULTS.view,
    icicle: flag('icicle'),
    reversed: flag('reverse'),
    split: SPLITS.find((by) => by === values.get('split')) ?? 'none',
    byLine: flag('lines'),
    threads: threadsOf(values),
    measure: {
      time: values.has('time') ? timeOf(values.get('time')!) : first.measure.time,
      endpoint: values.get('endpoint') ?? null,
    },
    idle: flag('idle'),
    query: (values.get('q') ?? '').slice(0, QUERY_MAX),
    zoom: zoomOf(values.get('zoom') ?? ''),
    during: spanOf(values.get('range') ?? ''),
    against: spanOf(values.get('against') ?? ''),
    sight: spanOf(values.get('sight') ?? ''),
    request,
    onlyRequest: request > 0 && flag('only'),
    versus: values.get('versus') === 'slow',
    per: PERS.find((per) => per === values.get('per')) ?? null,
    transforms: fromText(values.get('stacks') ?? ''),
    original: flag('names'),
    colour: COLOURINGS.find((colour) => colour === values.get('colour')) ?? 'auto',
    frames: FRAMES.find((frames) => frames === values.get('frames')) ?? first.frames,
    around: (values.get('around') ?? '').slice(0, QUERY_MAX),
    lock: (values.get('lock') ?? '').slice(0, QUERY_MAX),
    wide: WIDTHS.find((wide) => wide === values.get('wide')) ?? 'both',
  };
}

function threadsOf(values: Map<string, string>): ThreadChoice {
  const pool = values.get('pool');
  if (pool !== undefined) return { kind: 'pool', pool };
  const some = zoomOf(values.get('threads') ?? '');
  if (some.length > 1) return { kind: 'some', threads: some };
  const thread = natural(values.get('thread') ?? '');
  return thread === null ? { kind: 'all' } : { kind: 'one', thread };
}

/** Whole microseconds: finer than anything that can be seen. */
function spanText({ from, to }: Span): string {
  return `${Math.floor(from / 1000)}-${Math.ceil(to / 1000)}`;
}

function spanOf(text: string): Span | null {
  const found = /^(\d{1,12})-(\d{1,12})$/.exec(text);
  if (!found) return null;
  const [from, to] = [Number(found[1]) * 1000, Number(found[2]) * 1000];
  return from < to ? { from, to } : null;
}

function zoomOf(text: string): number[] {
  if (text === '') return [];
  const numbers = text.split('.', ZOOM_MAX + 1).map(natural);
  const wrong = numbers.length > ZOOM_MAX || numbers.some((number) => number === null);
  return wrong ? [] : (numbers as number[]);
}

function natural(text: string): number | null {
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

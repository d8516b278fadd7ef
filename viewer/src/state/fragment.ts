// The state of the page in its address, so that a link shows what its sender saw. Whatever is in an
// address was written by anybody: it is read strictly, and what makes no sense is left out.
import { CPU, type Measure, textOf, timeOf } from '../data/measure';
import type { ThreadChoice } from '../tree/select';

export type View = 'flame' | 'table' | 'tree';

export interface Shared {
  view: View;
  icicle: boolean;
  reversed: boolean;
  split: boolean;
  byLine: boolean;
  threads: ThreadChoice;
  measure: Measure;
  query: string;
  /** In the tree of callees a node's number; in that of callers the keys from the root. */
  zoom: number[];
}

export const DEFAULTS: Shared = {
  view: 'flame',
  icicle: false,
  reversed: false,
  split: false,
  byLine: false,
  threads: { kind: 'all' },
  measure: CPU,
  query: '',
  zoom: [],
};

const QUERY_MAX = 1000;
/** A deeper place is not put into the address: it would be longer than programs take. */
export const ZOOM_MAX = 256;

export function toFragment(state: Shared): string {
  const parts: string[] = [];
  const add = (name: string, value: string) => parts.push(`${name}=${encodeURIComponent(value)}`);
  if (state.view !== 'flame') add('view', state.view);
  if (state.icicle) add('icicle', '1');
  if (state.reversed) add('reverse', '1');
  if (state.split) add('split', '1');
  if (state.byLine) add('lines', '1');
  if (state.threads.kind === 'one') add('thread', String(state.threads.thread));
  if (state.threads.kind === 'pool') add('pool', state.threads.pool);
  const { time, endpoint } = state.measure;
  if (time !== 'cpu') add('time', textOf(time));
  if (endpoint !== null) add('endpoint', endpoint);
  if (state.query !== '') add('q', state.query);
  if (state.zoom.length > 0 && state.zoom.length <= ZOOM_MAX) add('zoom', state.zoom.join('.'));
  return parts.join('&');
}

export function fromFragment(fragment: string): Shared {
  const values = new Map<string, string>();
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const at = part.indexOf('=');
    if (at > 0) values.set(part.slice(0, at), decoded(part.slice(at + 1)));
  }
  const flag = (name: string) => values.get(name) === '1';
  const view = values.get('view');
  return {
    view: view === 'table' || view === 'tree' ? view : 'flame',
    icicle: flag('icicle'),
    reversed: flag('reverse'),
    split: flag('split'),
    byLine: flag('lines'),
    threads: threadsOf(values),
    measure: {
      time: timeOf(values.get('time') ?? ''),
      endpoint: values.get('endpoint') ?? null,
    },
    query: (values.get('q') ?? '').slice(0, QUERY_MAX),
    zoom: zoomOf(values.get('zoom') ?? ''),
  };
}

function threadsOf(values: Map<string, string>): ThreadChoice {
  const pool = values.get('pool');
  if (pool !== undefined) return { kind: 'pool', pool };
  const thread = natural(values.get('thread') ?? '');
  return thread === null ? { kind: 'all' } : { kind: 'one', thread };
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

// Findings of `dwell explain` in the page, if it was written with them.
import type { Shared, View } from '../state/fragment';
import { ALL_THREADS, poolOf, type ThreadChoice } from '../tree/select';
import type { Time } from './measure';
import { plain } from './plain';
import type { Header } from './profile';

/** As the header holds it. */
export interface RawFinding {
  what: string;
  /** How much it costs, in words. */
  share: string;
  evidence: string;
  remedy: string;
  sure: string;
  /** `cpu`, `wall`, `safepoints` or `live`. */
  measure: string;
  causes: string[];
  endpoint: string | null;
  /** The thread group that it is of, numbers as `*`; null: of all. */
  threads?: string | null;
  /** Its subject, by the name in the recording. */
  focus?: { sort: 'method' | 'lock' | 'class' | 'role' | 'part'; name: string } | null;
  /** The time that is lost, or its share where it is not about time. */
  cost?: string;
  /** The same, of what the most costly one loses; null: they cannot be compared. */
  bar?: number | null;
}

/** A place in the page. */
export interface Place {
  view: View;
  change: Partial<Shared>;
  /** The method or class that a graph there is searched for and zoomed to; empty: none. */
  seek: string;
  /** The role of the threads that it is about; empty: none. */
  role: string;
  /** The section of the overview; empty: none. */
  part: string;
}

export interface Finding extends Pick<RawFinding, 'what' | 'share' | 'evidence' | 'remedy'>, Place {
  sure: string;
  cause: string;
  /** The time that is lost, or its share where it is not about time. */
  cost: string;
  /** From 0 to 1: of what the most costly one loses; null: they cannot be compared. */
  bar: number | null;
}

/** The findings with the place where the page shows them. */
export function findingsOf(header: Header): Finding[] {
  return header.findings.map((raw) => {
    const [cause = ''] = raw.causes;
    return {
      ...placeOf(raw, header),
      what: plain(raw.what),
      share: plain(raw.share),
      evidence: plain(raw.evidence),
      remedy: plain(raw.remedy),
      sure: raw.sure === '' ? '' : `Confidence: ${plain(raw.sure)}`,
      cause: raw.measure === 'cpu' ? 'running' : cause,
      cost: plain(raw.cost ?? ''),
      bar: typeof raw.bar === 'number' ? Math.min(1, Math.max(0, raw.bar)) : null,
    };
  });
}

/** A finding covers the full recording, so earlier filters do not hide it. */
function placeOf(raw: RawFinding, header: Header): Place {
  const focus = raw.focus ?? null;
  const threads: ThreadChoice = raw.threads
    ? { kind: 'pool', pool: poolOf(raw.threads.replaceAll('*', '0')) }
    : ALL_THREADS;
  const change: Partial<Shared> = {
    measure: { time: timeOf(raw), endpoint: raw.endpoint },
    threads,
    during: null,
    onlyRequest: false,
    query: '',
    around: '',
    reversed: false,
    split: 'none',
  };
  const place: Place = { view: 'flame', change, seek: '', role: '', part: '' };
  if (focus?.sort === 'part') return { ...place, view: 'overview', part: focus.name };
  if (focus?.sort === 'role') return { ...place, role: focus.name };
  if (raw.measure === 'safepoints') return { ...place, view: 'safepoints' };
  if (focus?.sort === 'lock') {
    if (header.wall) {
      return { ...place, view: 'locks', change: { ...change, lock: focus.name || 'unknown' } };
    }
    change.measure = { time: 'locks', endpoint: raw.endpoint };
  }
  // Code that allocated objects of a class or waited for its locks: the class is the innermost
  // frame.
  if (focus && focus.sort !== 'method') change.reversed = true;
  return { ...place, seek: focus?.name ?? '' };
}

function timeOf({ measure, causes }: RawFinding): Time {
  const [cause = ''] = causes;
  if (measure === 'live') return 'live';
  if (measure === 'cpu' || cause === 'running') return 'cpu';
  if (causes.length === 1) return { cause };
  return causes.length > 1 ? 'off' : 'wall';
}

// The self-check: the wall time that samples saw for an endpoint, as a part of the latencies of its
// requests. The recording's reader has made it, of the whole recording.
import { plural } from './format';
import { plain } from './plain';
import type { Header } from './profile';

export interface Accounted {
  seenNs: number;
  latencyNs: number;
  ratio: number;
  standardError: number;
  /** `close`, `chance`, `low`, `high`, `several-threads` or `other-scopes`. */
  agreement: string;
  /** Whether samples and latencies contradict each other. */
  isOff: boolean;
  /** What that says; null where they agree. */
  note: string | null;
}

export interface EndpointCheck extends Accounted {
  /** null: requests without one. */
  endpoint: string | null;
}

export interface SelfCheck {
  total: Accounted;
  endpoints: EndpointCheck[];
}

/** How a ratio is shown. */
export interface Shown {
  text: string;
  isOff: boolean;
  /** Where it is off, or has a reason not to be 1. */
  mark: '' | '~' | '\u26a0';
  /** More of it, for a tooltip. */
  title: string;
}

/** What says why a ratio need not be 1. */
const REASONS = ['several-threads', 'other-scopes'];

/** `0.98`. */
function ratioOf({ ratio }: Accounted): string {
  return ratio.toFixed(2);
}

function errorOf({ standardError }: Accounted): string {
  return standardError.toFixed(2);
}

/** The ratio of an endpoint (null: of requests without one); null where none is known. */
export function shownOf(header: Header, endpoint: string | null): Shown | null {
  const found = header.selfCheck?.endpoints.find((check) => check.endpoint === endpoint);
  if (!found) return null;
  const whole = `Sampled wall time in the full recording: ${ratioOf(found)} \u00b1 ${errorOf(found)} of the latencies`;
  const title = found.note === null ? whole : plain(found.note);
  const mark = found.isOff ? '\u26a0' : REASONS.includes(found.agreement) ? '~' : '';
  return { text: ratioOf(found), isOff: found.isOff, mark, title };
}

/** All endpoints in one sentence; empty where none is known. */
export function totalOf({ selfCheck }: Header, hasRange = false): string {
  if (!selfCheck) return '';
  const { total, endpoints } = selfCheck;
  const [first] = endpoints;
  const only = endpoints.length === 1 ? (first?.endpoint ?? '(no endpoint)') : null;
  const of = only === null ? plural(endpoints.length, 'endpoint') : plain(only);
  const what = hasRange ? 'Self-check of the full recording' : 'Self-check';
  return `${what}: the sampled wall time is ${ratioOf(total)} \u00b1 ${errorOf(total)} of the latencies of ${of}.`;
}

/** Contradictions, one sentence each. All endpoints together only if no single one has one. */
export function warningsOf({ selfCheck }: Header): string[] {
  if (!selfCheck) return [];
  const off = selfCheck.endpoints.filter(({ isOff }) => isOff);
  const told = off.length > 0 ? off : [selfCheck.total].filter(({ isOff }) => isOff);
  return told.map(({ note }) => plain(note ?? '')).filter((note) => note !== '');
}

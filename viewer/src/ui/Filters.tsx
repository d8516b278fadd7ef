// Filters of all views: endpoint, threads, time range, one request.
import { count, duration, percent, plural, withSamples } from '../data/format';
import { idleNumber } from '../data/measure';
import { plain, shortened } from '../data/plain';
import { spanOf } from '../data/requests';
import type { Span } from '../data/profile';
import { rangeBetween } from '../data/window';
import { wholeSpan } from '../data/wall';
import { rangeWords } from '../diff/DiffBar';
import type { View } from '../state/fragment';
import type { Store } from '../state/store';
import { moreTools, openDialog } from './commands';

/** The value of the choice of several threads. */
const SEVERAL = 's';
/** More of them are not offered one by one. */
const CHOICES_MAX = 500;

export function Filters({ store }: { store: Store }) {
  return (
    <div class="group filters" role="group" aria-label="Filters">
      <Endpoints store={store} />
      <Threads store={store} />
      {!store.profile.header.compare && <During store={store} />}
      <OneRequest store={store} />
      <IdleTime store={store} />
    </div>
  );
}

/** In a narrow window only some tools are in sight before this is pressed. */
export function More() {
  return (
    <button
      type="button"
      class="more"
      aria-expanded={moreTools.value}
      onClick={() => (moreTools.value = !moreTools.value)}
    >
      More
    </button>
  );
}

/** That time in which threads had nothing to do is part of wall time. */
function IdleTime({ store }: { store: Store }) {
  if (!store.idle.value || idleNumber(store.profile.header) < 0) return null;
  return (
    <button
      type="button"
      aria-pressed="true"
      title="Idle time is included: click to exclude it (a)"
      onClick={() => (store.idle.value = false)}
    >
      Idle ✕
    </button>
  );
}

function Endpoints({ store }: { store: Store }) {
  const { endpoints } = store.profile.header;
  const { time, endpoint } = store.measure.value;
  if (endpoints.length === 0) return null;
  // Names of the program are text only: a choice is known by its number.
  return (
    <select
      aria-label="Endpoint"
      value={endpoint === null ? -1 : endpoints.indexOf(endpoint)}
      onChange={(event) => {
        const endpoint = endpoints[Number(event.currentTarget.value)] ?? null;
        store.measure.value = { time, endpoint };
      }}
    >
      <option value={-1}>All endpoints</option>
      {endpoints.slice(0, CHOICES_MAX).map((name, i) => (
        <option key={i} value={i}>
          {shortened(plain(name), 60)}
        </option>
      ))}
    </select>
  );
}

function Threads({ store }: { store: Store }) {
  const { threads, pools } = store.threadRows.value;
  const number = store.profile.threads.name.length;
  const all = threads.reduce((sum, row) => sum + row.weight, 0) || 1;
  const choice = store.choice.value;
  const value = {
    all: () => '',
    one: () => `t${(choice as { thread: number }).thread}`,
    some: () => SEVERAL,
    pool: () => `p${(choice as { pool: string }).pool}`,
  }[choice.kind]();
  const choose = (text: string) => {
    const rest = text.slice(1);
    store.choice.value =
      text === ''
        ? { kind: 'all' }
        : text.startsWith('t')
          ? { kind: 'one', thread: Number(rest) }
          : { kind: 'pool', pool: rest };
  };
  const label = (name: string, weight: number) =>
    `${shortened(name, 60)}  ${percent(weight / all)}`;
  return (
    <select
      aria-label="Threads"
      title={withSamples(threads.length, number)}
      value={value}
      onChange={(event) => {
        const { value: chosen } = event.currentTarget;
        if (chosen === SEVERAL) {
          event.currentTarget.value = value;
          openDialog.value = 'threads';
        } else choose(chosen);
      }}
    >
      <option value="">All threads ({count(number)})</option>
      {pools.length > 0 && (
        <optgroup label="Pools">
          {pools.map((row) => (
            <option key={row.pool} value={`p${row.pool}`}>
              {label(`${row.pool} (${count(row.threads)})`, row.weight)}
            </option>
          ))}
        </optgroup>
      )}
      <optgroup label="Threads">
        {threads.slice(0, CHOICES_MAX).map((row) => (
          <option key={row.thread} value={`t${row.thread}`}>
            {label(row.name, row.weight)}
          </option>
        ))}
      </optgroup>
      <option value={SEVERAL}>
        {choice.kind === 'some' ? plural(choice.threads.length, 'thread') : 'Several threads…'}
      </option>
    </select>
  );
}

/** Room for the padding and the arrows of a field for a number, in CSS. */
const ARROWS = '2.6em';

function During({ store }: { store: Store }) {
  const { profile } = store;
  const whole = wholeSpan(profile);
  const during = store.during.value;
  const now = during ?? whole;
  /** Takes both ends in either order, or says why there is no such range. */
  const set = (change: Partial<Span>): void => {
    const { from, to } = { ...now, ...change };
    const range = rangeBetween(from, to, whole);
    if (!range) {
      store.tell(`From and To must differ, and lie between 0 and ${seconds(whole.to)} s.`);
      return;
    }
    const isWhole = range.from <= whole.from && range.to >= whole.to;
    store.during.value = isWhole ? null : range;
  };
  const field = (label: string, end: keyof Span) => (
    <input
      type="number"
      aria-label={label}
      min={0}
      max={seconds(whole.to)}
      step="any"
      value={seconds(now[end])}
      style={{ width: `calc(${Math.max(3, String(seconds(now[end])).length)}ch + ${ARROWS})` }}
      onChange={(event) => {
        const ns = Number(event.currentTarget.value) * 1e9;
        if (event.currentTarget.value !== '' && ns >= 0) set({ [end]: ns });
        // A refused number does not stay in the field, nor one beyond the recording's end.
        event.currentTarget.value = String(seconds((store.during.peek() ?? whole)[end]));
      }}
    />
  );
  return (
    <span class="during">
      {field('From, in seconds', 'from')}–{field('To, in seconds', 'to')} s
      {during && (
        <button
          type="button"
          title="Full recording (Backspace)"
          onClick={() => (store.during.value = null)}
        >
          Full recording
        </button>
      )}
    </span>
  );
}

/** Notes about two ranges, in views without the bar of the comparison. */
const RANGE_NOTES: Partial<Record<View, string>> = {
  timeline: '',
  locks: '; stacks and holders are those of B, if it has the lock',
};

/**
 * The time range in a line of its own: in a narrow window, where its fields are behind "More", and
 * where two ranges are compared but the view has no bar of the comparison.
 */
export function RangeLine({ store, view, hasBar }: { store: Store; view: View; hasBar: boolean }) {
  const { profile, ranges } = store;
  const during = store.during.value;
  if (profile.header.compare) return null;
  if (ranges.value) {
    if (hasBar) return null;
    return (
      <p class="range-line" role="group" aria-label="Compared time ranges">
        <span>
          {rangeWords(ranges.value)}
          {RANGE_NOTES[view] ?? '; this view shows B'}
        </span>
        <button type="button" onClick={() => store.stopComparing()}>
          Stop comparing
        </button>
      </p>
    );
  }
  if (!during) return null;
  return (
    <p class="range-line narrow" role="group" aria-label="Time range">
      <span>
        Only {seconds(during.from)}–{seconds(during.to)} s
      </span>
      <button type="button" onClick={() => (store.during.value = null)}>
        Full recording
      </button>
    </p>
  );
}

function seconds(ns: number): number {
  return Math.round(ns / 1e6) / 1e3;
}

function OneRequest({ store }: { store: Store }) {
  const request = store.request.value;
  const span = spanOf(store.profile, request);
  if (!span || !store.onlyRequest.value) return null;
  return (
    <button
      type="button"
      aria-pressed="true"
      title="Only this request: click to show all requests"
      onClick={() => (store.onlyRequest.value = false)}
    >
      Request of {duration(span.to - span.from)} at {duration(span.from)} ✕
    </button>
  );
}

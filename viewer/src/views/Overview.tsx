// Recording, findings, slow endpoints with causes, and the full recording over time.
import { useComputed, useSignal } from '@preact/signals';
import { aboutCost, aboutProgram, aboutRecording, aboutSamples, type Row } from '../data/facts';
import { type Finding, findingsOf } from '../data/findings';
import { count, duration, percent, plural } from '../data/format';
import { inSentence, plain, shortened } from '../data/plain';
import { platformOf } from '../data/platform';
import { type EndpointRow, isTimed } from '../data/requests';
import { standing } from '../data/stretches';
import { causesOf, type Idle, idleOf, splitBy, type Strip, sum, wallStrip } from '../data/wall';
import {
  causeColour,
  causeWords,
  roleColour,
  RUNTIME_COLOURS,
  STOP_COLOURS,
  STOP_WORDS,
} from '../flame/causes';
import { rangeWords } from '../diff/DiffBar';
import type { Store } from '../state/store';
import { theme } from '../state/theme';
import { Lost } from '../ui/Lost';
import { SeenCell, SeenHead, SelfCheckNote } from '../ui/Seen';
import { CauseLegend, inWords, partsOf, SplitBar, Swatch } from '../ui/Split';
import { BYTES, type Series, StripView } from '../ui/StripView';
import { Alive } from './Alive';
import { EventTables } from './EventTables';
import { Allocated } from './Allocated';
import { Locked } from './Locked';

const TEXT_MAX = 600;
const ENDPOINTS_MAX = 12;
const CAUSES_MAX = 10;
/** Findings that are shown at first. */
const FINDINGS_FIRST = 3;
const GROUPS_MAX = 12;
const ALLOCATED: readonly Series[] = [{ name: 'bytes', colour: roleColour(''), at: 0 }];
const LOCKS: readonly Series[] = [
  { name: 'threads', colour: causeColour('monitor', 'light'), at: 0 },
];
const THROTTLED: readonly Series[] = [
  { name: 'held back', colour: RUNTIME_COLOURS.throttled, at: 0 },
];

export function Overview({ store }: { store: Store }) {
  return (
    <div class="page overview" tabIndex={0}>
      <NotWhole store={store} />
      <Findings store={store} />
      <Endpoints store={store} />
      <OverTime store={store} />
      <Alive store={store} />
      <Allocated store={store} />
      <Locked store={store} />
      <Causes store={store} />
      <Groups store={store} />
      <EventTables store={store} />
      <Facts store={store} />
    </div>
  );
}

/** First on the page: all other parts come from an incomplete file. */
function NotWhole({ store }: { store: Store }) {
  const { title, unread } = store.profile.header;
  if (!unread) return null;
  return (
    <p class="unread" role="note">
      <b>{shortened(plain(title), TEXT_MAX)}</b> {plain(unread)}.
    </p>
  );
}

function Findings({ store }: { store: Store }) {
  const findings = findingsOf(store.profile.header);
  const all = useSignal(false);
  return (
    <section aria-labelledby="findings">
      <h2 id="findings">Findings, most costly first</h2>
      {findings.length > 0 && store.during.value && (
        <p class="of-all">Of the full recording: findings do not follow the time range.</p>
      )}
      {findings.length === 0 && <p class="weak">No rule detects a problem in this recording.</p>}
      <ol class="findings">
        {findings.slice(0, all.value ? findings.length : FINDINGS_FIRST).map((finding, i) => (
          <FindingItem key={i} store={store} finding={finding} />
        ))}
      </ol>
      {findings.length > FINDINGS_FIRST && (
        <p>
          <button type="button" aria-expanded={all.value} onClick={() => (all.value = !all.value)}>
            {all.value ? 'Fewer findings' : `All ${count(findings.length)} findings`}
          </button>
        </p>
      )}
    </section>
  );
}

/** Goes to the place of a finding, which may be further down on this page. */
function show(store: Store, finding: Finding): void {
  if (finding.part === '') store.show(finding);
  else document.getElementById(finding.part)?.scrollIntoView({ block: 'start' });
}

function FindingItem({ store, finding }: { store: Store; finding: Finding }) {
  const { what, share, evidence, remedy, sure, cause } = finding;
  return (
    <li>
      <button type="button" class="finding" onClick={() => show(store, finding)}>
        <Lost finding={finding} colour={causeColour(cause, theme.value)} />
        <span class="told">
          <b>{shortened(sentence(what), TEXT_MAX)}</b>
          <span class="weak">{shortened(share, TEXT_MAX)}</span>
          <span>{shortened(evidence, TEXT_MAX)}</span>
          <span class="remedy">
            <b>Fix:</b> {shortened(remedy, TEXT_MAX)}
          </span>
          {sure !== '' && <span class="weak">{sure}</span>}
        </span>
      </button>
    </li>
  );
}

/** With a capital letter at its beginning. */
function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function Endpoints({ store }: { store: Store }) {
  const { profile } = store;
  const rows = store.endpointRows;
  if (rows.value.length === 0) return null;
  const causes = causesOf(profile);
  return (
    <section aria-labelledby="endpoints">
      <h2 id="endpoints">
        {profile.header.endpointsNote ? 'Endpoints by wall time' : 'Endpoints, slowest first'}
      </h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Endpoints">
        <table class={isTimed(profile.header) ? 'rows endpoints' : 'rows endpoints untimed'}>
          <thead>
            <tr>
              <th scope="col">Endpoint</th>
              {isTimed(profile.header) &&
                ['Requests', 'p50', 'p95'].map((head) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
              <SeenHead header={profile.header} hasRange={store.during.value !== null} />
              <th scope="col" class="bar-head">
                Where the time goes
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.value.slice(0, ENDPOINTS_MAX).map((row) => (
              <EndpointLine key={row.endpoint} store={store} row={row} causes={causes} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.value.length > ENDPOINTS_MAX && (
        <button type="button" onClick={() => (store.view.value = 'requests')}>
          All {count(rows.value.length)} endpoints
        </button>
      )}
      <SelfCheckNote header={profile.header} hasRange={store.during.value !== null} />
    </section>
  );
}

function EndpointLine(props: { store: Store; row: EndpointRow; causes: readonly string[] }) {
  const { store, row, causes } = props;
  const endpoint = row.endpoint === 0 ? null : row.name;
  const parts = row.split ? partsOf(causes, row.split) : [];
  return (
    <tr>
      <th scope="row">
        <button
          type="button"
          class="quiet link"
          onClick={() => store.go('requests', { measure: { time: 'wall', endpoint } })}
        >
          {shortened(plain(row.name), 80)}
        </button>
      </th>
      {isTimed(store.profile.header) && (
        <>
          <td>{count(row.requests)}</td>
          <td>{row.kept > 0 ? duration(row.p50) : ''}</td>
          <td>
            <b>{row.kept > 0 ? duration(row.p95) : ''}</b>
          </td>
        </>
      )}
      <SeenCell header={store.profile.header} endpoint={endpoint} />
      <td class="bar-cell">
        {row.split && <SplitBar causes={causes} split={row.split} />}
        <span class="weak">{inWords(parts.slice(0, 2), sum(row.split ?? []))}</span>
      </td>
    </tr>
  );
}

function OverTime({ store }: { store: Store }) {
  const { profile } = store;
  const { header } = profile;
  const platform = platformOf(header.info.jvmName);
  const causes = causesOf(profile);
  const ofRequests = store.requestsOnly;
  const hasEndpoints = header.wall !== null && header.endpoints.length > 0;
  const strip = useComputed(() =>
    hasEndpoints && ofRequests.value ? requestStrip(store) : store.wallStrip.value,
  );
  const wall = seriesOf(strip.value, causes, (cause) => causeColour(cause, theme.value), []);
  const cpu = seriesOf(store.cpuStrip.value, header.roles, roleColour, []);
  // Where all threads stand still is a safepoint, too: it would be counted twice.
  const hasStops = profile.stops.time.length > 0;
  const told = standing(profile).map(({ kind }) => kind);
  const toldWords = told.map(({ title }) => inSentence(title));
  const toldColours = told.map(({ cause }) => causeColour(cause, theme.value));
  const stopColours = [...toldColours, ...STOP_COLOURS];
  const stops = seriesOf(
    store.stopStrip.value,
    [...toldWords, ...STOP_WORDS],
    (_, i) => stopColours[i]!,
    hasStops ? toldWords : [],
  );
  return (
    <section aria-labelledby="overtime">
      <h2 id="overtime">Over time</h2>
      <p class="weak">
        Drag across a chart to select a time range. It applies to all views, but not to findings,
        the self-check and what the page marks as of the full recording. Ctrl and drag selects a
        second range, A, to compare it with.
      </p>
      {store.ranges.value && (
        <p class="actions">
          {rangeWords(store.ranges.value)}
          <button type="button" onClick={() => store.go('flame')}>
            Flame graph of the differences
          </button>
          <button type="button" onClick={() => store.stopComparing()}>
            Stop comparing
          </button>
        </p>
      )}
      {header.wall && (
        <>
          {hasEndpoints && (
            <label class="check">
              <input
                type="checkbox"
                checked={ofRequests.value}
                onChange={(event) => (ofRequests.value = event.currentTarget.checked)}
              />
              only threads handling requests
            </label>
          )}
          <StripView
            store={store}
            title={`${platform.threads} by activity${store.idle.value ? '' : ', idle time excluded'}`}
            strip={strip.value}
            series={wall}
            height={120}
            unit="threads"
          />
          <CauseLegend causes={wall.map(({ name }) => name)} />
        </>
      )}
      {header.unit === 'ns' && (
        <>
          <StripView
            store={store}
            title="CPUs in use"
            strip={store.cpuStrip.value}
            series={cpu}
            height={80}
            unit="CPUs"
          />
          <ColourKey series={cpu} />
        </>
      )}
      {profile.throttled.time.length > 0 && (
        <StripView
          store={store}
          title="CPU-throttled by the control group's quota (part of its periods)"
          strip={store.throttledStrip.value}
          series={THROTTLED}
          height={40}
          unit="%"
        />
      )}
      {profile.allocations && !header.compare && (
        <StripView
          store={store}
          title="Allocated"
          strip={store.allocatedStrip.value}
          series={ALLOCATED}
          height={60}
          unit={BYTES}
        />
      )}
      {profile.locks && !header.compare && (
        <StripView
          store={store}
          title="Blocked by locks"
          strip={store.lockStrip.value}
          series={LOCKS}
          height={60}
          unit="threads"
        />
      )}
      {stops.length > 0 && (
        <>
          <StripView
            store={store}
            title="Stop-the-world pauses"
            strip={store.stopStrip.value}
            series={stops}
            height={60}
            unit="%"
          />
          <ColourKey series={stops} />
        </>
      )}
    </section>
  );
}

const strips = new WeakMap<object, Strip>();

/** The strip of what was done for requests. */
function requestStrip(store: Store): Strip {
  const filter = store.filter.value;
  let strip = strips.get(filter);
  if (!strip) {
    const { profile } = store;
    const looks = profile.wall && withoutOthers(profile.wall.looks);
    const wall = profile.wall && looks ? { ...profile.wall, looks } : null;
    const samples = withoutOthers(profile.samples);
    strip = wallStrip({ ...profile, samples, wall }, filter, store.wallStrip.value.bins);
    strips.set(filter, strip);
  }
  return strip;
}

/** The same entries; those that were for no request weigh nothing. */
function withoutOthers<T extends { weight: Float64Array; endpoint: Uint32Array }>(of: T): T {
  return { ...of, weight: of.weight.map((weight, i) => (of.endpoint[i] === 0 ? 0 : weight)) };
}

/** The series that have anything, the greatest at the bottom. */
function seriesOf(
  strip: Strip,
  names: readonly string[],
  colour: (name: string, i: number) => string,
  without: readonly string[],
): Series[] {
  return names
    .map((name, at) => ({ name, at, colour: colour(name, at), all: sum(strip.values[at] ?? []) }))
    .filter(({ name, all }) => all > 0 && !without.includes(name))
    .sort((a, b) => b.all - a.all);
}

function ColourKey({ series }: { series: readonly Series[] }) {
  return (
    <ul class="key" aria-label="Colours">
      {series.map(({ name, colour }) => (
        <li key={name}>
          <Swatch colour={colour} />
          {plain(name)}
        </li>
      ))}
    </ul>
  );
}

/** All wall time by cause. */
function Causes({ store }: { store: Store }) {
  const { profile } = store;
  const causes = causesOf(profile);
  const split = useComputed(() => {
    const [split] = splitBy(profile, store.filter.value, () => 0).values();
    return split ?? new Float64Array(causes.length);
  });
  const idle = useComputed(() => idleOf(profile, store.filter.value));
  const { wall } = profile.header;
  if (!wall) return null;
  const all = sum(split.value);
  const parts = partsOf(causes, split.value);
  const withIdle = store.idle.value;
  const errors = new Map(
    wall.causes.map(({ cause, error, busyError }) => [cause, withIdle ? error : busyError]),
  );
  const isWhole = Math.abs(all - (withIdle ? wall.ns : wall.busyNs)) < 1e-6 * all;
  const besides = idle.value && !withIdle ? ', idle time excluded' : '';
  return (
    <section aria-labelledby="causes">
      <h2 id="causes">
        What {platformOf(profile.header.info.jvmName).threads} did: {duration(all)}
        {besides}
      </h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Causes">
        <table class="rows causes">
          <thead>
            <tr>
              <th scope="col">Cause</th>
              <th scope="col">Share</th>
              {isWhole && <th scope="col">±</th>}
              <th scope="col">Time</th>
              <th scope="col" class="text">
                Meaning
              </th>
            </tr>
          </thead>
          <tbody>
            {parts.slice(0, CAUSES_MAX).map(({ cause, weight }) => (
              <tr key={cause}>
                <th scope="row">
                  <Swatch colour={causeColour(cause, theme.value)} />
                  <button
                    type="button"
                    class="quiet link"
                    onClick={() => store.go('flame', { measure: measureOf(store, cause) })}
                  >
                    {plain(cause)}
                  </button>
                </th>
                <td>{percent(weight / (all || 1))}</td>
                {isWhole && <td>{percent(errors.get(cause) ?? 0)}</td>}
                <td>{duration(weight)}</td>
                <td class="text weak">{plain(causeWords(cause))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {parts.length > CAUSES_MAX && (
        <p class="weak">and {plural(parts.length - CAUSES_MAX, 'smaller cause')}</p>
      )}
      {idle.value && <IdleLine store={store} idle={idle.value} />}
    </section>
  );
}

/** What is not in the tables, in one line. */
function IdleLine({ store, idle }: { store: Store; idle: Idle }) {
  const shown = store.idle.value;
  return (
    <p class="idle">
      Idle: {duration(idle.weight)}, {percent(idle.weight / (idle.all || 1))} of all wall time, in{' '}
      {idleThreads(idle)}{' '}
      <button type="button" class="quiet link" onClick={() => (store.idle.value = !shown)}>
        {shown ? 'exclude' : 'include'}
      </button>
    </p>
  );
}

/** `31 threads`, or `7 of 31 threads`. */
function idleThreads({ threads, allThreads }: Idle): string {
  return threads === allThreads
    ? plural(threads, 'thread')
    : `${count(threads)} of ${plural(allThreads, 'thread')}`;
}

/** The same by thread group. */
export function Groups({ store }: { store: Store }) {
  const { profile } = store;
  const causes = causesOf(profile);
  const rows = useComputed(() => {
    const { poolOfThread } = store.keys.value;
    const splits = splitBy(
      profile,
      store.filter.value,
      ({ of, i }) => poolOfThread[of.thread[i]!]!,
    );
    return [...splits].sort((a, b) => sum(b[1]) - sum(a[1]));
  });
  if (rows.value.length === 0) return null;
  const { first } = store.keys.value.groups('group');
  return (
    <section aria-labelledby="groups">
      <h2 id="groups">Activity of thread groups</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Thread groups">
        <table class="rows groups">
          <thead>
            <tr>
              <th scope="col">Threads</th>
              <th scope="col">Time</th>
              <th scope="col" class="bar-head">
                What they did
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.value.slice(0, GROUPS_MAX).map(([pool, split]) => (
              <tr key={pool}>
                <th scope="row" class="name">
                  {shortened(store.keys.value.methodName(first + pool), 60)}
                </th>
                <td>{duration(sum(split))}</td>
                <td class="bar-cell">
                  <SplitBar causes={causes} split={split} />
                  <span class="weak">
                    {inWords(partsOf(causes, split).slice(0, 2), sum(split))}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.value.length > GROUPS_MAX && (
        <p class="weak">and {plural(rows.value.length - GROUPS_MAX, 'more group')}</p>
      )}
    </section>
  );
}

function measureOf(store: Store, cause: string) {
  const { endpoint } = store.measure.value;
  return { time: cause === 'running' ? ('cpu' as const) : { cause }, endpoint };
}

function Facts({ store }: { store: Store }) {
  const { profile } = store;
  const warnings = profile.header.warnings.map((warning): Row => ['Note', warning]);
  return (
    <div class="facts-columns">
      <FactTable title="Program" rows={[...aboutProgram(profile), ...warnings]} />
      <FactTable title="Recording" rows={[...aboutRecording(profile), ...aboutSamples(profile)]} />
      <FactTable title="Profiler overhead" rows={aboutCost(profile)} />
    </div>
  );
}

function FactTable({ title, rows }: { title: string; rows: Row[] }) {
  if (rows.length === 0) return null;
  const id = title.toLowerCase().replaceAll(' ', '-');
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <table class="facts">
        <tbody>
          {rows.map(([label, value], i) => (
            <tr key={i}>
              <th scope="row">{label}</th>
              <td>{shortened(plain(value), TEXT_MAX)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

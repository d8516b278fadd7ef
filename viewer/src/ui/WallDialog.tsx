// Wall time: what threads did or waited for, by endpoint and group of threads, and requests.
import { count, duration, percent } from '../data/format';
import { plain, shortened } from '../data/plain';
import type { Cause, Header, Requests, WallRow } from '../data/profile';
import type { Store } from '../state/store';
import { Dialog } from './Dialog';

const NAME_MAX = 120;
/** One in a hundred of a bar is too little to be seen. */
const SEEN = 0.01;
/** Causes have the same colour everywhere; others share the last one. */
const COLOURS = [
  'running',
  'runnable',
  'monitor',
  'lock',
  'park',
  'sleep',
  'object-wait',
  'socket',
  'file',
  'page-fault',
  'safepoint',
  'gc-stall',
  'idle-pool',
];

export function WallDialog({ store }: { store: Store }) {
  const { header } = store.profile;
  return (
    <Dialog name="wall" title="Wall time and requests">
      <Contents header={header} />
    </Dialog>
  );
}

function Contents({ header }: { header: Header }) {
  const { wall, requests, info } = header;
  return (
    <div class="wall">
      {wall && (
        <p>
          What Java threads did or waited for, {duration(wall.ns)} in all. For the stacks choose
          wall time, or a cause, where CPU time is chosen for the graph (key <kbd>m</kbd>).
        </p>
      )}
      {wall && <Causes causes={wall.causes} ns={wall.ns} />}
      {requests.length > 0 && <Latencies requests={requests} seconds={info.durationNs / 1e9} />}
      {wall && wall.endpoints.length > 0 && <Rows title="By endpoint" rows={wall.endpoints} />}
      {wall && <Rows title="By group of threads (digits of names as *)" rows={wall.groups} />}
    </div>
  );
}

function Causes({ causes, ns }: { causes: Cause[]; ns: number }) {
  return (
    <table class="causes">
      <thead>
        <tr>
          <th scope="col">Cause</th>
          <th scope="col">Share</th>
          <th scope="col">±</th>
          <th scope="col">Time</th>
        </tr>
      </thead>
      <tbody>
        {causes.map((part) => (
          <tr key={part.cause}>
            <th scope="row">
              <span class={`swatch ${colour(part.cause)}`} /> {plain(part.cause)}
            </th>
            <td>{percent(part.ns / (ns || 1))}</td>
            <td>{percent(part.error)}</td>
            <td>{duration(part.ns)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Latencies({ requests, seconds }: { requests: Requests[]; seconds: number }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Requests">
      <table class="requests">
        <caption>Requests</caption>
        <thead>
          <tr>
            {['Endpoint', 'Requests', 'A second', 'p50', 'p95', 'p99', 'Longest'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {requests.map((row) => (
            <tr key={row.endpoint ?? ''}>
              <th scope="row">{shortened(plain(row.endpoint ?? '(no endpoint)'), NAME_MAX)}</th>
              <td>{count(row.requests)}</td>
              <td>{seconds > 0 ? (row.requests / seconds).toFixed(1) : ''}</td>
              <td>{duration(row.p50Ns)}</td>
              <td>{duration(row.p95Ns)}</td>
              <td>{duration(row.p99Ns)}</td>
              <td>{duration(row.longestNs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Rows({ title, rows }: { title: string; rows: WallRow[] }) {
  return (
    <section>
      <h3>{title}</h3>
      {rows.map((row) => (
        <div class="wall-row" key={row.name}>
          <span class="name">{shortened(plain(row.name), NAME_MAX)}</span>
          <span class="time">{duration(row.ns)}</span>
          <div class="split" role="img" aria-label={told(row)} title={told(row)}>
            {row.causes
              .filter((part) => part.ns >= SEEN * row.ns)
              .map((part) => (
                <span
                  key={part.cause}
                  class={colour(part.cause)}
                  style={{ flexGrow: part.ns / (row.ns || 1) }}
                />
              ))}
          </div>
        </div>
      ))}
    </section>
  );
}

function told(row: WallRow): string {
  const parts = row.causes.map(
    (part) => `${plain(part.cause)} ${percent(part.ns / (row.ns || 1))}`,
  );
  return parts.join(', ');
}

function colour(cause: string): string {
  return COLOURS.includes(cause) ? `cause-${cause}` : 'cause-other';
}

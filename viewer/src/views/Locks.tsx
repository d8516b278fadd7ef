// Locks: waiting threads, holders, times, and the stacks of both.
import { useComputed, useSignal } from '@preact/signals';
import { type Chain, chainsOf } from '../data/chains';
import { count, duration, percent, plural } from '../data/format';
import {
  type ComparedLock,
  comparedLocks,
  greatest,
  holdersWords,
  type Locks as Found,
  locksOf,
  type Waiting,
} from '../data/locks';
import { plain, shortened } from '../data/plain';
import { commonOf, placeOf, shortName } from '../data/stacks';
import { rate, signedRate } from '../diff/words';
import { causeColour, causeWords } from '../flame/causes';
import { sum } from '../data/wall';
import type { Store } from '../state/store';
import { theme } from '../state/theme';
import { threadName } from '../tree/keys';
import { Breakable } from '../ui/Breakable';
import { StackLines } from '../ui/Stack';
import { Swatch } from '../ui/Split';
import { Held } from './Held';

const ROWS_MAX = 100;
const NAME_MAX = 120;
const STACKS_MAX = 3;
const CHAINS_MAX = 20;

export function Locks({ store }: { store: Store }) {
  const { profile } = store;
  const apart = useSignal(false);
  const found = useComputed(() =>
    locksOf(profile, store.filter.value, apart.value, (thread, time) =>
      store.tracks.value.seenAt(thread, time),
    ),
  );
  const chains = useComputed(() =>
    chainsOf(profile, store.filter.value, (thread, time) =>
      store.tracks.value.seenAt(thread, time),
    ),
  );
  const compared = useComputed(() => {
    const ranges = store.ranges.value;
    if (!ranges) return null;
    return comparedLocks(profile, store.filter.value, ranges, apart.value, (thread, time) =>
      store.tracks.value.seenAt(thread, time),
    );
  });
  const { edges, weight } = found.value;
  const locks = compared.value?.map(({ lock }) => lock) ?? found.value.locks;
  if (locks.length === 0) {
    const { wall, info } = profile.header;
    return (
      <div class="page locks-view" tabIndex={0}>
        <None hasWall={wall !== null} remedy={info.wallRemedy} />
        <Held store={store} />
      </div>
    );
  }
  const at = Math.max(
    0,
    locks.findIndex(({ name }) => name === store.lock.value),
  );
  return (
    <div class="page locks-view" tabIndex={0}>
      <section aria-labelledby="locks">
        <h2 id="locks">
          {compared.value ? ratesOf(compared.value) : duration(weight)} waiting on{' '}
          {apart.value ? plural(locks.length, 'lock') : lockClasses(locks.length)}
        </h2>
        <p class="actions">
          <label class="check">
            <input
              type="checkbox"
              checked={apart.value}
              onChange={(event) => (apart.value = event.currentTarget.checked)}
            />
            list each lock
          </label>
          <Graph store={store} label="Flame graph of waiters" time="monitor" />
          <Graph store={store} label="Flame graph of holders" time="owners" />
          <span class="weak">{holdersWords(store.holders.value)}</span>
        </p>
        <div class="wide" tabIndex={0} role="group" aria-label="Locks">
          <table class={compared.value ? 'rows locks compared' : 'rows locks'}>
            <thead>
              <tr>
                {[
                  'Lock',
                  ...(compared.value ? ['A', 'B', 'Change'] : ['Waited', 'Share']),
                  'Threads',
                  'Samples',
                ].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
                <th scope="col" class="text">
                  Taken in
                </th>
                <th scope="col" class="text">
                  Mostly held by
                </th>
                <th scope="col" class="text">
                  Holder in
                </th>
              </tr>
            </thead>
            <tbody>
              {locks.slice(0, ROWS_MAX).map((lock, i) => (
                <tr key={i} aria-current={i === at ? 'true' : undefined}>
                  <th scope="row">
                    <Swatch colour={causeColour(lock.cause, theme.value)} />
                    <button
                      type="button"
                      class="quiet link"
                      aria-pressed={i === at}
                      onClick={() => (store.lock.value = lock.name)}
                    >
                      <Breakable text={shortened(plain(lock.name), NAME_MAX)} />
                    </button>
                  </th>
                  {compared.value ? (
                    <Rates row={compared.value[i]!} />
                  ) : (
                    <>
                      <td>{duration(lock.weight)}</td>
                      <td>{percent(lock.weight / (weight || 1))}</td>
                    </>
                  )}
                  <td>{count(lock.waiters.size)}</td>
                  <td>{count(lock.looks)}</td>
                  <td class="text">
                    <Breakable text={mostlyIn(store, lock.waiterNodes)} />
                  </td>
                  <td class="text">{holder(store, lock)}</td>
                  <td class="text">
                    <Breakable text={mostlyIn(store, lock.ownerNodes)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <Stacks store={store} lock={locks[at]!} />
      <Held store={store} />
      <Edges edges={edges} weight={weight} />
      <Chains chains={chains.value} weight={weight} />
    </div>
  );
}

/** The waiting in each second of two ranges, and what changed. */
function Rates({ row: { a, b } }: { row: ComparedLock }) {
  const inWords = (value: number) => rate(value, 'second', 'ns');
  return (
    <>
      <td>{inWords(a)}</td>
      <td>{inWords(b)}</td>
      <td>{signedRate(b - a, 'second', 'ns')}</td>
    </>
  );
}

function ratesOf(rows: readonly ComparedLock[]): string {
  const [a, b] = [sum(rows.map((row) => row.a)), sum(rows.map((row) => row.b))];
  return `Per second: A ${duration(a)}, B ${duration(b)}`;
}

function None({ hasWall, remedy }: { hasWall: boolean; remedy: string }) {
  return (
    <p class="empty">
      {hasWall
        ? 'No sample shows a thread that waits for a lock of another thread.'
        : `Waits for locks need wall time, which the recording does not have; ${remedy}.`}
    </p>
  );
}

function Graph(props: { store: Store; label: string; time: 'monitor' | 'owners' }) {
  const { store } = props;
  const { waits } = store.profile.header;
  const { endpoint } = store.measure.value;
  const waiting = waits.includes('monitor') ? 'monitor' : 'lock';
  const time = props.time === 'owners' ? ('owners' as const) : { cause: waiting };
  return (
    <button type="button" onClick={() => store.go('flame', { measure: { time, endpoint } })}>
      {props.label}
    </button>
  );
}

/** The application's method that most of the time at some nodes is in. */
function mostlyIn({ profile }: Store, nodes: ReadonlyMap<number, number>): string {
  const sums = new Map<string, number>();
  for (const [node, weight] of nodes) {
    const name = shortName(profile, placeOf(profile, node));
    sums.set(name, (sums.get(name) ?? 0) + weight);
  }
  const [first] = [...sums].sort((a, b) => b[1] - a[1]);
  return first ? shortened(plain(first[0]), NAME_MAX) : 'unknown';
}

function holder({ profile }: Store, lock: Waiting): string {
  const [first] = greatest(lock.owners, 1);
  if (!first || first[0] < 0) return 'unknown';
  return `${shortened(threadName(profile, first[0]), 60)} (${percent(first[1] / lock.weight)})`;
}

/** Stacks of the waiting threads, and of the holders at that time. */
function Stacks({ store, lock }: { store: Store; lock: Waiting }) {
  const { profile } = store;
  const side = (title: string, nodes: Map<number, number>, none: string) => {
    const all = [...nodes.values()].reduce((a, b) => a + b, 0) || 1;
    const shown = greatest(nodes, STACKS_MAX);
    const common = commonOf(
      profile,
      shown.map(([node]) => node),
    );
    return (
      <div>
        <h3>{title}</h3>
        {nodes.size === 0 && <p class="weak">{none}</p>}
        {shown.map(([node, weight], i) => (
          <div key={node}>
            <p class="stack-head">
              {percent(weight / all)} <span class="weak">{duration(weight)}</span>
            </p>
            <StackLines
              profile={profile}
              node={node}
              label={`${title}, ${percent(weight / all)}`}
              until={i === 0 ? 0 : common}
            />
          </div>
        ))}
        {nodes.size > STACKS_MAX && (
          <p class="weak">and {plural(nodes.size - STACKS_MAX, 'more stack')}</p>
        )}
      </div>
    );
  };
  return (
    <section aria-labelledby="lock-stacks">
      <h2 id="lock-stacks">{shortened(plain(lock.name), NAME_MAX)}</h2>
      <div class="beside">
        {side('Waiting threads', lock.waiterNodes, '')}
        {side(
          'What the holder was doing',
          lock.ownerNodes,
          'The holders are unknown, or no sample shows them at that time.',
        )}
      </div>
    </section>
  );
}

function Edges({ edges, weight }: { edges: Found['edges']; weight: number }) {
  return (
    <section aria-labelledby="edges">
      <h2 id="edges">Waiters and holders</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Waiters and holders">
        <table class="rows edges">
          <thead>
            <tr>
              <th scope="col">Threads</th>
              <th scope="col" class="text">
                wait for
              </th>
              <th scope="col">Time</th>
              <th scope="col">Share</th>
              <th scope="col">Samples</th>
            </tr>
          </thead>
          <tbody>
            {edges.slice(0, ROWS_MAX).map((edge, i) => (
              <tr key={i}>
                <th scope="row">{shortened(plain(edge.waiter), NAME_MAX)}</th>
                <td class="text">
                  {edge.owner === '' ? 'unknown' : shortened(plain(edge.owner), NAME_MAX)}
                </td>
                <td>{duration(edge.weight)}</td>
                <td>{percent(edge.weight / (weight || 1))}</td>
                <td>{count(edge.looks)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function lockClasses(n: number): string {
  return `${count(n)} lock class${n === 1 ? '' : 'es'}`;
}

/** Wait chains: the thread at the end holds up all others. */
function Chains({ chains, weight }: { chains: readonly Chain[]; weight: number }) {
  if (chains.length === 0) return null;
  return (
    <section aria-labelledby="chains">
      <h2 id="chains">Wait chains</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Chains">
        <table class="rows chains">
          <thead>
            <tr>
              <th scope="col">Threads, each waiting for the next</th>
              <th scope="col" class="text">
                Last thread
              </th>
              <th scope="col">Time</th>
              <th scope="col">Share</th>
              <th scope="col">Samples</th>
            </tr>
          </thead>
          <tbody>
            {chains.slice(0, CHAINS_MAX).map((chain, i) => (
              <tr key={i}>
                <th scope="row">{inARow(chain)}</th>
                <td class="text">
                  {chain.end === '' ? 'not sampled' : plain(causeWords(chain.end))}
                </td>
                <td>{duration(chain.weight)}</td>
                <td>{percent(chain.weight / (weight || 1))}</td>
                <td>{count(chain.looks)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chains.length > CHAINS_MAX && (
        <p class="weak">and {plural(chains.length - CHAINS_MAX, 'more chain')}</p>
      )}
    </section>
  );
}

function inARow({ groups, locks }: Chain): string {
  const links = groups.map((group, i) => {
    const name = shortened(plain(group), 60);
    const lock = locks[i];
    return lock === undefined ? name : `${name} \u2192 (${shortened(plain(lock), 80)}) `;
  });
  return links.join('');
}

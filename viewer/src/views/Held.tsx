// Places of monitor holders when waits began, and places of the waiters.
import { useComputed, useSignal } from '@preact/signals';
import { count, duration, percent, plural } from '../data/format';
import { type HeldRow, heldRows } from '../data/held';
import { plain, shortened } from '../data/plain';
import { sharesOf, shareText } from '../data/shares';
import { linesOf, placeOf } from '../data/stacks';
import { sum } from '../data/wall';
import type { Store } from '../state/store';
import { readable } from '../tree/readable';
import { RowTable, Section } from '../ui/RowTable';
import { StackLines } from '../ui/Stack';

const ROWS_MAX = 15;
const NAME_MAX = 80;
const GROUP_MAX = 40;

export function Held({ store }: { store: Store }) {
  const { profile } = store;
  const chosen = useSignal(0);
  const found = useComputed(() => heldRows(profile, store.filter.value));
  const all = found.value;
  // Rows with a known place of the holder.
  const rows = all.filter(({ node }) => node > 0);
  if (rows.length === 0) return null;
  const ns = sum(all.map((row) => row.ns));
  const unknown = ns - sum(rows.map((row) => row.ns));
  const at = Math.min(chosen.value, rows.length - 1);
  const shares = sharesOf(all.map((row) => ({ value: row.ns, error: row.error })));
  const { names } = profile;
  const select = (row: HeldRow, i: number) => (
    <button
      type="button"
      class="quiet link"
      aria-pressed={i === at}
      onClick={() => (chosen.value = i)}
    >
      {shortened(plain(names.text(row.class)), NAME_MAX)}
    </button>
  );
  return (
    <>
      <Section id="held" title="What holders were doing when a wait began">
        <p class="weak">
          From {plural(sum(all.map(({ samples }) => samples)), 'wait')} sampled, which stand for{' '}
          {duration(ns)} of waiting; holder unknown for {percent(unknown / (ns || 1))}. All
          endpoints.
        </p>
        <RowTable
          label="Holders of monitors"
          name="held"
          columns={[
            { head: 'Class of the monitor', cell: select },
            { head: 'Wait caused', cell: (row) => duration(row.ns) },
            { head: 'Share', cell: (row) => shareText(shares[all.indexOf(row)]!) },
            { head: 'Samples', cell: (row) => count(row.samples) },
            { head: 'Holder', cell: (row) => first(row.owners, row.ns) },
            { head: 'Holder in', cell: (row) => place(store, row.node) },
          ]}
          rows={rows}
          keyOf={(row) => `${row.class} ${row.node}`}
          most={ROWS_MAX}
          tellsMore
          current={at}
        />
      </Section>
      <Sides store={store} row={rows[at]!} />
    </>
  );
}

function Sides({ store, row }: { store: Store; row: HeldRow }) {
  const { profile } = store;
  const [node, ns] = [...row.waiterNodes].sort((a, b) => b[1] - a[1])[0] ?? [0, 0];
  return (
    <section aria-labelledby="held-stacks">
      <h2 id="held-stacks">{shortened(plain(profile.names.text(row.class)), NAME_MAX)}</h2>
      <div class="beside">
        <div>
          <h3>Holder: {first(row.owners, row.ns)}</h3>
          <StackLines profile={profile} node={row.node} label="Holder" />
        </div>
        <div>
          <h3>
            Waiters: {first(row.waiters, row.ns)}; {percent(ns / (row.ns || 1))} with this stack
          </h3>
          <StackLines profile={profile} node={node} label="Waiters" />
        </div>
      </div>
    </section>
  );
}

/** The thread group with the most time, and its share. */
function first(groups: Map<string, number>, all: number): string {
  const [name, ns] = [...groups].sort((a, b) => b[1] - a[1])[0] ?? ['', 0];
  if (name === '') return 'unknown';
  return `${shortened(plain(name), GROUP_MAX)} ${percent(ns / (all || 1))}`;
}

/** The method of the program that a stack is in. */
function place({ profile }: Store, node: number): string {
  const [line] = linesOf(profile, placeOf(profile, node), 1);
  if (!line) return '';
  const className = readable(line.className);
  return shortened(className === '' ? line.method : `${className}.${line.method}`, NAME_MAX);
}

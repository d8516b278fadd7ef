// What can be done with a frame: its callers and callees, and stacks cut, folded or left out by it.
import { useComputed, useSignal } from '@preact/signals';
import { count, percent, weight } from '../data/format';
import { shortened } from '../data/plain';
import type { Store } from '../state/store';
import { type Neighbour, sandwich } from '../tree/sandwich';
import { packageOf, type Transform } from '../tree/transform';
import { frameKey, openDialog } from './commands';
import { Dialog } from './Dialog';

const ROWS_MAX = 12;
const NAME_MAX = 80;

export function FrameDialog({ store }: { store: Store }) {
  return (
    <Dialog name="frame" title="Frame: its callers, its callees and transforms">
      <Frame store={store} />
    </Dialog>
  );
}

function Frame({ store }: { store: Store }) {
  const chosen = useSignal(frameKey.value >= 0 ? frameKey.value : store.focusedKey());
  const around = useComputed(() =>
    sandwich(store.shown.value, store.keys.value, store.threads.value, chosen.value),
  );
  const keys = store.keys.value;
  const key = chosen.value;
  if (key < 0) return <p>Select a frame first: point at it, or go to it with the arrow keys.</p>;
  const { unit } = store.shown.value.header;
  const { total, own, callers, callees } = around.value;
  const original = keys.originals(key);
  return (
    <>
      <p class="frame-name">
        <b>{shortened(keys.label(key), 200)}</b>
      </p>
      {original !== '' && <p class="weak">for example {shortened(original, 200)}</p>}
      <p>
        {store.sides.value ? 'Both sides together: ' : ''}
        {weight(total, unit)} total, {weight(own, unit)} self
      </p>
      <div class="beside">
        <Neighbours store={store} title="Callers" all={total} rows={callers} choose={chosen} />
        <Neighbours store={store} title="Callees" all={total} rows={callees} choose={chosen} />
      </div>
      <Actions store={store} of={key} />
    </>
  );
}

function Neighbours(props: {
  store: Store;
  title: string;
  all: number;
  rows: Neighbour[];
  choose: { value: number };
}) {
  const { store, title, all, rows, choose } = props;
  const keys = store.keys.value;
  return (
    <div>
      <h2>{title}</h2>
      <table class="rows" aria-label={title}>
        <tbody>
          {rows.slice(0, ROWS_MAX).map(({ key, weight }) => (
            <tr key={key}>
              <td class="number">{percent(weight / (all || 1))}</td>
              <th scope="row" class="text">
                {key < 0 ? (
                  '(root)'
                ) : (
                  <button type="button" class="quiet link" onClick={() => (choose.value = key)}>
                    {shortened(keys.label(key), NAME_MAX) || '(unnamed)'}
                  </button>
                )}
              </th>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="weak">none</p>}
      {rows.length > ROWS_MAX && <p class="weak">and {count(rows.length - ROWS_MAX)} more</p>}
    </div>
  );
}

/** The transforms of this frame, as buttons. */
function Actions({ store, of }: { store: Store; of: number }) {
  const keys = store.keys.value;
  const name = keys.methodLabel(of);
  const place = packageOf(keys.className(of));
  const actions: [label: string, transform: Transform][] = [
    ['Graph of its callees', { kind: 'focus', name }],
    ['Graph of its callers', { kind: 'callers', name }],
    ['Merge it into its callers (M)', { kind: 'merge', name }],
    ['Drop stacks with it (D)', { kind: 'drop', name }],
  ];
  if (place !== '') {
    const short = shortened(place, NAME_MAX);
    actions.push([`Collapse ${short}`, { kind: 'collapse', name: place }]);
    actions.push([`Merge ${short} into its callers`, { kind: 'merge-package', name: place }]);
    actions.push([`Drop stacks with ${short}`, { kind: 'drop-package', name: place }]);
  }
  const library = keys.library(of);
  if (library !== place && library !== keys.className(of)) {
    const short = shortened(library, NAME_MAX);
    actions.push([`Collapse ${short}`, { kind: 'collapse-library', name: library }]);
    actions.push([`Merge ${short} into its callers`, { kind: 'merge-library', name: library }]);
    actions.push([`Drop stacks with ${short}`, { kind: 'drop-library', name: library }]);
  }
  return (
    <p class="actions">
      <button
        type="button"
        onClick={() => {
          openDialog.value = null;
          store.go('flame', { around: name });
        }}
      >
        Callers and callees
      </button>
      {actions.map(([label, transform]) => (
        <button
          key={label}
          type="button"
          onClick={() => {
            openDialog.value = null;
            store.transform(transform);
          }}
        >
          {label}
        </button>
      ))}
      <span class="note">
        Merge: hides the frame, keeps its time. Drop: removes its stacks and their time.
      </span>
    </p>
  );
}

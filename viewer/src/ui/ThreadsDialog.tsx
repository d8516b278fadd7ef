// Several threads at a time, by name.
import { useSignal } from '@preact/signals';
import { count, percent } from '../data/format';
import { shortened } from '../data/plain';
import type { Store } from '../state/store';
import { ALL_THREADS, withThread } from '../tree/select';
import { Dialog } from './Dialog';

const ROWS_MAX = 500;
const NAME_MAX = 80;

export function ThreadsDialog({ store }: { store: Store }) {
  return (
    <Dialog name="threads" title="Threads">
      <Threads store={store} />
    </Dialog>
  );
}

function Threads({ store }: { store: Store }) {
  const wanted = useSignal('');
  const { threads } = store.threadRows.value;
  const all = threads.reduce((sum, row) => sum + row.weight, 0) || 1;
  const choice = store.choice.value;
  const chosen = new Set(
    choice.kind === 'some' ? choice.threads : choice.kind === 'one' ? [choice.thread] : [],
  );
  const text = wanted.value.toLowerCase();
  const found = threads.filter(({ name }) => name.toLowerCase().includes(text));
  return (
    <>
      <p class="actions">
        <input
          type="search"
          aria-label="Names of threads"
          placeholder="Name"
          value={wanted.value}
          onInput={(event) => (wanted.value = event.currentTarget.value)}
        />
        <button type="button" onClick={() => (store.choice.value = ALL_THREADS)}>
          All threads
        </button>
      </p>
      <ul class="threads">
        {found.slice(0, ROWS_MAX).map(({ thread, name, weight }) => (
          <li key={thread}>
            <label>
              <input
                type="checkbox"
                checked={chosen.has(thread)}
                onChange={(event) => {
                  const isIn = event.currentTarget.checked;
                  store.choice.value = withThread(choice, thread, isIn);
                }}
              />{' '}
              {shortened(name, NAME_MAX)} <span class="weak">{percent(weight / all)}</span>
            </label>
          </li>
        ))}
      </ul>
      {found.length > ROWS_MAX && <p class="weak">and {count(found.length - ROWS_MAX)} more</p>}
    </>
  );
}

// The search box, and how much of the profile matches.
import { percent } from '../data/format';
import type { Store } from '../state/store';
import { SEARCH_ID } from './commands';

export function SearchBox({ store }: { store: Store }) {
  const { error } = store.parsed.value;
  const weight = store.matchedWeight.value;
  const hasMatch = weight !== null && error === '' && weight.matched > 0;
  return (
    <div class={hasMatch ? 'search matching' : 'search'} role="search">
      <input
        id={SEARCH_ID}
        type="search"
        placeholder="Search"
        title="Text, or /a regular expression/ (key /)"
        aria-label="Search frames, text or /regular expression/"
        aria-invalid={error !== ''}
        aria-describedby="matched"
        autocomplete="off"
        spellcheck={false}
        value={store.query.value}
        onInput={(event) => (store.query.value = event.currentTarget.value)}
        onKeyDown={(event) => onKey(store, event)}
      />
      <button
        type="button"
        title="Previous match (N)"
        aria-label="Previous match"
        disabled={!weight}
        onClick={() => store.nextMatch(-1)}
      >
        ‹
      </button>
      <button
        type="button"
        title="Next match (n)"
        aria-label="Next match"
        disabled={!weight}
        onClick={() => store.nextMatch(1)}
      >
        ›
      </button>
      <output
        id="matched"
        class={error ? 'matched wrong' : 'matched'}
        title={weight && !error ? 'Share of the visible time with a match' : undefined}
      >
        {error
          ? 'Not a pattern'
          : weight && (
              <>
                <span class="word">Matched </span>
                {percent(weight.all > 0 ? weight.matched / weight.all : 0)}
              </>
            )}
      </output>
      {hasMatch && (
        <button
          type="button"
          title="Only stacks that match"
          onClick={() => {
            store.transform({ kind: 'only', name: store.query.value });
            // Each stack left matches: a search would only pale its other frames.
            store.query.value = '';
          }}
        >
          Only these
        </button>
      )}
    </div>
  );
}

function onKey(store: Store, event: KeyboardEvent & { currentTarget: HTMLInputElement }): void {
  if (event.key === 'Enter') store.nextMatch(event.shiftKey ? -1 : 1);
  else if (event.key === 'Escape') {
    if (store.query.value === '') leave();
    else store.query.value = '';
  } else return;
  event.preventDefault();
}

/** Gives the focus back to the view. */
function leave(): void {
  document.querySelector<HTMLElement>('main [tabindex="0"]')?.focus();
}

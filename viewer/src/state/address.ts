// Keeps the page's address and its state in step: choices are written into the address, and a new
// address (such as the previous one) sets the state.
import { effect } from '@preact/signals';
import { fromFragment, type Shared, toFragment } from './fragment';
import type { Store } from './store';

/** No place at all: the page has just been opened. */
const UNKNOWN = '?';
/**
 * Minimum distance of two writes while the user moves along the time. Browsers are slower at it
 * than at drawing, and some refuse a hundred writes in half a minute.
 */
const EVERY_MS = 400;

/** Typing, and moving along the time, are no places to come back to. */
function placeOf(shared: Shared, { first }: Store): string {
  return toFragment({ ...shared, query: '', sight: null }, first);
}

export function keepAddress(store: Store): void {
  // What this page wrote into its own address must not come back as a change.
  let written = location.hash;
  let place = UNKNOWN;
  let unmoved = '';
  let [timer, last] = [0, -EVERY_MS];
  const replace = () => {
    last = performance.now();
    if (written !== location.hash) history.replaceState(null, '', addressOf(written));
  };
  effect(() => {
    const { shared } = store;
    if (store.busy.value) return;
    window.clearTimeout(timer);
    const fragment = toFragment(shared, store.first);
    written = fragment === '' ? '' : `#${fragment}`;
    const before = { place, unmoved };
    place = placeOf(shared, store);
    unmoved = toFragment({ ...shared, sight: null }, store.first);
    if (written === location.hash) return;
    const isSame = before.place === place || before.place === UNKNOWN;
    const wait = last + EVERY_MS - performance.now();
    if (!isSame) history.pushState(null, '', addressOf(written));
    else if (before.unmoved === unmoved && wait > 0) timer = window.setTimeout(replace, wait);
    else replace();
  });
  addEventListener('hashchange', () => {
    if (location.hash === written) return;
    const shared = fromFragment(location.hash, store.first);
    // The way back is not a new place.
    place = placeOf(shared, store);
    store.apply(shared);
  });
}

function addressOf(hash: string): string {
  return hash || location.pathname + location.search;
}

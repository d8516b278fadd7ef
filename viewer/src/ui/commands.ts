// What can be done with a key: one table, from which the keys work and the help is made.
import { signal } from '@preact/signals';
import { hasWall } from '../data/profile';
import type { Store } from '../state/store';
import { toggleTheme } from '../state/theme';

export interface Command {
  key: string;
  label: string;
  run(store: Store): void;
}

export type DialogName = 'help' | 'recording' | 'wall';

export const openDialog = signal<DialogName | null>(null);

export const SEARCH_ID = 'search';
export const TIME_ID = 'time';

export const COMMANDS: readonly Command[] = [
  { key: '/', label: 'Search', run: () => document.getElementById(SEARCH_ID)?.focus() },
  { key: 'n', label: 'Next match', run: (store) => store.nextMatch(1) },
  { key: 'N', label: 'Previous match', run: (store) => store.nextMatch(-1) },
  { key: 'Escape', label: 'Zoom out, leave the search', run: (store) => void store.zoomOut() },
  { key: '0', label: 'Zoom all the way out', run: (store) => store.resetZoom() },
  {
    key: 'i',
    label: 'Root on top (icicle) or at the bottom (flame)',
    run: (store) => flip(store.icicle),
  },
  { key: 'r', label: 'Callers instead of callees', run: (store) => flip(store.reversed) },
  { key: 's', label: 'One root for each thread', run: (store) => flip(store.split) },
  { key: 'l', label: 'Lines of a method apart', run: (store) => flip(store.byLine) },
  { key: 't', label: 'Table of methods', run: (store) => show(store, 'table') },
  { key: 'c', label: 'Call tree', run: (store) => show(store, 'tree') },
  { key: 'm', label: 'Choose CPU time, wall time or a cause', run: () => focusTime() },
  { key: 'w', label: 'Wall time and requests', run: (store) => showWall(store) },
  { key: 'd', label: 'Dark or light', run: () => toggleTheme() },
  { key: '?', label: 'This help', run: () => toggleDialog('help') },
];

/** Keys that the views themselves take. */
export const VIEW_KEYS: readonly [string, string][] = [
  ['Arrow keys', 'Move from frame to frame, or from row to row'],
  ['Enter', 'Zoom to the frame, or search for the row'],
  ['Home, End', 'First and last frame of the level'],
];

function flip(value: { value: boolean }): void {
  value.value = !value.value;
}

export function show(store: Store, view: 'table' | 'tree'): void {
  store.view.value = store.view.value === view ? 'flame' : view;
}

function focusTime(): void {
  document.getElementById(TIME_ID)?.focus();
}

function showWall(store: Store): void {
  if (hasWall(store.profile.header)) toggleDialog('wall');
}

export function toggleDialog(dialog: DialogName): void {
  openDialog.value = openDialog.value === dialog ? null : dialog;
}

/** Runs the command of a key, unless somebody is typing or a dialog is open. */
export function onKey(store: Store, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (openDialog.value !== null) return;
  const target = event.target;
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
  const command = COMMANDS.find((command) => command.key === event.key);
  if (!command) return;
  event.preventDefault();
  command.run(store);
}

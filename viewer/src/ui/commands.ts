// Commands with keys: one table for the keys and the help.
import { signal } from '@preact/signals';
import { idleNumber } from '../data/measure';
import { type View, VIEWS, viewsOf } from '../state/fragment';
import type { Store } from '../state/store';
import { contrastful, toggleTheme } from '../state/theme';
import { TITLES } from './Tabs';

export interface Command {
  key: string;
  label: string;
  /** Only where stacks are shown: in the graph, the table and the tree. */
  ofStacks?: true;
  run(store: Store): void;
}

const OF_STACKS: readonly View[] = ['flame', 'table', 'tree'];

export type DialogName = 'help' | 'frame' | 'threads';

export const openDialog = signal<DialogName | null>(null);
/** The frame that its dialog is about; -1: the one that has the focus. */
export const frameKey = signal(-1);

/** Whether tools that have no room on a narrow page are shown. */
export const moreTools = signal(false);

export const SEARCH_ID = 'search';
export const TIME_ID = 'time';

export const COMMANDS: readonly Command[] = [
  {
    key: '/',
    ofStacks: true,
    label: 'Search, as Ctrl+F',
    run: () => toSearch(),
  },
  { key: 'n', ofStacks: true, label: 'Next match', run: (store) => store.nextMatch(1) },
  { key: 'N', ofStacks: true, label: 'Previous match', run: (store) => store.nextMatch(-1) },
  {
    key: 'Escape',
    ofStacks: true,
    label: 'Zoom out, clear the search',
    run: (store) => void store.zoomOut(),
  },
  { key: '0', ofStacks: true, label: 'Zoom all the way out', run: (store) => store.resetZoom() },
  {
    key: 'i',
    ofStacks: true,
    label: 'Root on top (icicle) or at the bottom (flame)',
    run: (store) => flip(store.icicle),
  },
  {
    key: 'r',
    ofStacks: true,
    label: 'Callers instead of callees',
    run: (store) => flip(store.reversed),
  },
  {
    key: 's',
    ofStacks: true,
    label: 'One root for each thread',
    run: (store) => splitByThread(store),
  },
  {
    key: 'l',
    ofStacks: true,
    label: 'Split by line',
    run: (store) => flip(store.byLine),
  },
  {
    key: 'f',
    ofStacks: true,
    label: 'Lists of the frame’s callers and callees; transform stacks by it',
    run: () => toggleDialog('frame'),
  },
  {
    key: 'g',
    ofStacks: true,
    label: 'Graph of callers above the frame and callees below; and back',
    run: (store) => store.flipAround(),
  },
  {
    key: 'M',
    ofStacks: true,
    label: 'Merge the frame’s method into its callers, which keep its time',
    run: (store) => store.transformFocused('merge'),
  },
  {
    key: 'D',
    ofStacks: true,
    label: 'Drop stacks with the frame’s method, with their time',
    run: (store) => store.transformFocused('drop'),
  },
  {
    key: 'u',
    ofStacks: true,
    label: 'Fold recursion',
    run: (store) => store.transform({ kind: 'recursion', name: '' }),
  },
  {
    key: 'p',
    ofStacks: true,
    label: 'My code, or all frames',
    run: (store) => store.flipFrames(),
  },
  {
    key: 'k',
    ofStacks: true,
    label: 'Colour by compilation, package or wait cause',
    run: (store) => store.nextColour(),
  },
  {
    key: 'o',
    ofStacks: true,
    label: 'Original names of generated classes',
    run: (store) => flip(store.original),
  },
  {
    key: 'z',
    ofStacks: true,
    label: 'Undo last transform',
    run: (store) => void (store.transforms.value = store.transforms.value.slice(0, -1)),
  },
  ...VIEWS.map((view, i) => ({
    key: String(i + 1),
    label: TITLES[view],
    run: (store: Store) => {
      if (viewsOf(store.profile).includes(view)) store.view.value = view;
    },
  })),
  {
    key: 'x',
    label: 'Slow requests of the endpoint compared with typical ones, and back',
    run: (store) => slowAgainstUsual(store),
  },
  {
    key: 'a',
    label: 'Wall time with or without idle time',
    run: (store) => {
      if (idleNumber(store.profile.header) > 0) flip(store.idle);
    },
  },
  { key: 't', label: 'Table of methods', run: (store) => show(store, 'table') },
  { key: 'c', label: 'Call tree', run: (store) => show(store, 'tree') },
  {
    key: 'm',
    ofStacks: true,
    label: 'Choose CPU time, wall time or a cause',
    run: () => focusTime(),
  },
  { key: 'w', label: 'Requests', run: (store) => show(store, 'requests') },
  { key: 'h', label: 'High contrast', run: () => flip(contrastful) },
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

/** To a view, and from it back to the graph. */
export function show(store: Store, view: View): void {
  if (!viewsOf(store.profile).includes(view)) return;
  store.view.value = store.view.value === view ? 'flame' : view;
}

/** Compares the slow requests of the endpoint that is chosen with its usual ones, or stops that. */
export function slowAgainstUsual(store: Store, endpoint = store.measure.value.endpoint): void {
  if (store.profile.header.compare) return;
  if (store.ranges.value) return store.stopComparing();
  if (store.versus.value && endpoint === store.measure.value.endpoint) {
    store.versus.value = false;
    return;
  }
  if (endpoint === null || store.profile.requests.time.length === 0) return;
  const time = store.profile.header.wall ? ('wall' as const) : ('cpu' as const);
  store.go('flame', { versus: true, onlyRequest: false, measure: { time, endpoint } });
}

function splitByThread({ split }: Store): void {
  split.value = split.value === 'thread' ? 'none' : 'thread';
}

function focusTime(): void {
  document.getElementById(TIME_ID)?.focus();
}

export function toggleDialog(dialog: DialogName): void {
  openDialog.value = openDialog.value === dialog ? null : dialog;
}

/** Ctrl+F searches frames where stacks are shown; the browser's own search finds no drawn text. */
function find(store: Store, event: KeyboardEvent): void {
  if (event.key !== 'f' || openDialog.value !== null) return;
  if (!OF_STACKS.includes(store.view.value)) return;
  // A second time it is the browser's.
  if (document.activeElement?.id === SEARCH_ID) return;
  toSearch();
  event.preventDefault();
}

/** Goes to the search box, which a narrow page may have to show first. */
function toSearch(): void {
  moreTools.value = true;
  const focus = () => {
    const box = document.getElementById(SEARCH_ID);
    if (box instanceof HTMLInputElement) {
      box.focus();
      box.select();
    }
  };
  focus();
  if (document.activeElement?.id !== SEARCH_ID) requestAnimationFrame(focus);
}

/** Runs the command of a key, unless the user types text or a dialog is open. */
export function onKey(store: Store, event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey) return;
  if (event.ctrlKey || event.metaKey) return find(store, event);
  if (openDialog.value !== null) return;
  const target = event.target;
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
  const command = COMMANDS.find((command) => command.key === event.key);
  if (!command || (command.ofStacks && !OF_STACKS.includes(store.view.value))) return;
  event.preventDefault();
  command.run(store);
}

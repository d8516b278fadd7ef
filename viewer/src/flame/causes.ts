// Colours of what threads did or waited for: the same in every view.
import { coloursOf, contrast, dimmed, mix, paint } from './colours';
import type { Paint, Theme } from './colours';

const LIGHT: Readonly<Record<string, string>> = {
  running: '#1d9a4b',
  runnable: '#f2c200',
  throttled: '#7a6a00',
  monitor: '#d11f3a',
  lock: '#ff6f91',
  socket: '#1b73d0',
  file: '#8a5414',
  'page-fault': '#c69352',
  park: '#6d83c9',
  'object-wait': '#a5b4e3',
  sleep: '#8b4fc4',
  safepoint: '#ff8a1f',
  'gc-stall': '#c84a00',
  'class-init': '#0fa3a3',
  'jit-wait': '#0b6e75',
  'vm-lock': '#b8860b',
  stopped: '#4a4a52',
  'idle-pool': '#d9dde3',
};
const OTHER = '#8f96a1';
/** Darker colours for unimportant causes on a dark page. */
const DARK: Readonly<Record<string, string>> = { 'idle-pool': '#3b424c', unknown: '#6f7783' };

export function causeColour(cause: string, theme: Theme): string {
  const dark = theme === 'dark' ? DARK[cause] : undefined;
  return dark ?? (Object.hasOwn(LIGHT, cause) ? LIGHT[cause]! : OTHER);
}

/** The part of the background in the colour of code that is not the application's. */
const PALE = 0.35;

/** Colours of frames by cause, and the same stepped back. */
export interface CausePaints {
  /** Of the application's own code. */
  strong: readonly Paint[];
  /** Paints of all other code. */
  pale: readonly Paint[];
  back: readonly Paint[];
}

export function causePaints(causes: readonly string[], theme: Theme): CausePaints {
  const strong = causes.map((cause) => paint(causeColour(cause, theme)));
  const { background } = coloursOf(theme);
  const pale = strong.map(({ fill }) => paint(mix(fill, background, PALE)));
  return { strong, pale, back: strong.map((from) => dimmed(from, background)) };
}

/** What a cause means, in words that need no manual. */
const WORDS: Readonly<Record<string, string>> = {
  running: 'running on CPU',
  runnable: 'runnable, waiting for a CPU',
  throttled: 'runnable, CPU quota used up',
  monitor: 'waiting for a synchronized block',
  lock: 'waiting for a lock',
  socket: 'waiting for the network',
  file: 'reading or writing files',
  'page-fault': 'waiting for memory to be loaded',
  park: 'parked (queue, future, permit)',
  'object-wait': 'in Object.wait',
  sleep: 'sleeping',
  safepoint: 'stopped at a safepoint',
  'gc-stall': 'waiting for the GC to free memory',
  'class-init': 'waiting for a class to be initialised',
  'jit-wait': 'waiting for the compiler',
  'vm-lock': 'waiting for a lock of the JVM itself',
  stopped: 'whole process stopped (signal, debugger, freezer)',
  'idle-pool': 'idle pool thread',
  unknown: 'inside the runtime, reason unknown',
};

export function causeWords(cause: string): string {
  return Object.hasOwn(WORDS, cause) ? WORDS[cause]! : cause;
}

/** Colours of roles in the strip of CPU time. */
const ROLES: Readonly<Record<string, string>> = {
  program: '#1d9a4b',
  GC: '#c84a00',
  JIT: '#d4559b',
  VM: '#4a5568',
  profiler: '#8f96a1',
};

export function roleColour(role: string): string {
  return Object.hasOwn(ROLES, role) ? ROLES[role]! : OTHER;
}

/** The way to a safepoint; the safepoint itself. */
export const STOP_COLOURS = ['#ffbf80', '#ff8a1f'] as const;
export const STOP_WORDS = ['time to safepoint', 'in safepoint'] as const;

/** Compilers; what the control group held back: threads that were ready. */
export const RUNTIME_COLOURS = { jit: ROLES['JIT']!, throttled: LIGHT['throttled']! } as const;

export const RUNTIME_WORDS = {
  jit: 'JIT CPU (full height: one CPU); line: by the JVM’s counters; bars: compilations',
  throttled: 'CPU-throttled (height: frequency)',
} as const;

/** Black or white, whichever reads better. */
export function textOn(fill: string): string {
  return contrast(fill, '#111111') >= contrast(fill, '#ffffff') ? '#111111' : '#ffffff';
}

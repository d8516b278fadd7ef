// Numbers for people. The locale is fixed, so that a page reads the same everywhere.

const GROUPED = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export function count(value: number): string {
  return GROUPED.format(value);
}

export function percent(share: number): string {
  const value = share * 100;
  return `${value.toFixed(value !== 0 && Math.abs(value) < 1 ? 2 : 1)}\u00a0%`;
}

export function duration(ns: number): string {
  if (ns >= 6e12) return `${(ns / 3.6e12).toFixed(1)}\u00a0h`;
  if (ns >= 1.2e11) return `${(ns / 6e10).toFixed(1)}\u00a0min`;
  if (ns >= 1e9) return `${three(ns / 1e9)}\u00a0s`;
  if (ns >= 1e6) return `${three(ns / 1e6)}\u00a0ms`;
  if (ns >= 1e3) return `${three(ns / 1e3)}\u00a0\u00b5s`;
  return `${Math.round(ns)}\u00a0ns`;
}

function three(value: number): string {
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

/** A number that is never shown as 0 unless it is: a digit that says something, one at least. */
export function few(value: number): string {
  if (value === 0) return '0';
  if (value >= 9.95) return value.toFixed(0);
  if (value >= 0.05) return value.toFixed(1);
  if (value < 1e-6) return 'less than 0.000001';
  return value.toFixed(Math.ceil(-Math.log10(value)));
}

/** Unit of weights. */
export type Unit = 'ns' | 'samples' | 'bytes';

export function weight(value: number, unit: Unit): string {
  if (unit === 'bytes') return size(value);
  return unit === 'ns' ? duration(value) : plural(value, 'sample');
}

const SIZES = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

/** A number of bytes. */
export function size(bytes: number): string {
  if (bytes < 1024) return plural(Math.round(bytes), 'byte');
  let [value, at] = [bytes / 1024, 0];
  while (value >= 1024 && at < SIZES.length - 1) [value, at] = [value / 1024, at + 1];
  return `${three(value)}\u00a0${SIZES[at]}`;
}

export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** What samples measure by default. */
export const CPU_TIME = 'CPU time';

/** Threads without samples of the measure have no rows. */
export function withSamples(rows: number, all: number): string {
  return `${count(rows)} of ${plural(all, 'thread')} have samples`;
}

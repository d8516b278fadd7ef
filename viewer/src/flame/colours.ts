// Colours of frames. Chosen by search so that any two differ for normal sight and for the three
// common colour deficiencies, on both backgrounds; the tests hold them to that. Every fill comes
// with the text colour that reads better on it.

import { pixelOf } from './raster';

export type Theme = 'light' | 'dark';

export interface Paint {
  fill: string;
  /** The fill as a pixel. */
  pixel: number;
  text: string;
}

export interface Colours {
  background: string;
  /** By kind of code. */
  kinds: readonly Paint[];
  /** The same, stepped back: not matched, or switched off in the legend. */
  dimmed: readonly Paint[];
  /** The root and threads. */
  neutral: Paint;
  neutralDimmed: Paint;
  match: Paint;
  focus: string;
}

type Rgb = readonly [number, number, number];

// interpreted, C1, C2, inlined, native, VM, kernel, stub, failed, other: the order of the file; then
// classes, which are no code.
const FILLS: readonly string[] = [
  '#f69c43',
  '#fcd63d',
  '#b2e5b3',
  '#47e2fd',
  '#80b2ff',
  '#e8674d',
  '#c36acd',
  '#b8b8b8',
  '#1e1e1e',
  '#949494',
  '#7a6024',
];
/** What cannot be seen on a dark page. */
const DARK_FILLS: Readonly<Record<number, string>> = { 8: '#ffffff' };

const DARK_TEXT = '#111111';
const LIGHT_TEXT = '#ffffff';

export const KIND_FAILED = 8;

const made = new Map<Theme, Colours>();

export function coloursOf(theme: Theme): Colours {
  const known = made.get(theme) ?? makeColours(theme);
  made.set(theme, known);
  return known;
}

function makeColours(theme: Theme): Colours {
  const dark = theme === 'dark';
  const background = dark ? '#16181c' : '#ffffff';
  const kinds = FILLS.map((fill, kind) => paint((dark && DARK_FILLS[kind]) || fill));
  const neutral = paint(dark ? '#3a3f47' : '#e4e7eb');
  const dim = (from: Paint) => dimmed(from, background);
  return {
    background,
    kinds,
    dimmed: kinds.map(dim),
    neutral,
    neutralDimmed: dim(neutral),
    match: paint(dark ? '#ff5cf4' : '#a3009e'),
    focus: dark ? '#ffffff' : '#000000',
  };
}

/** A colour stepped back. */
export function dimmed(from: Paint, background: string): Paint {
  return paint(mix(from.fill, background, 0.72));
}

/** A colour, and the text that reads better on it. */
export function paint(fill: string): Paint {
  const text = contrast(fill, DARK_TEXT) >= contrast(fill, LIGHT_TEXT) ? DARK_TEXT : LIGHT_TEXT;
  return { fill, pixel: pixelOf(fill), text };
}

export function rgb(colour: string): Rgb {
  const value = Number.parseInt(colour.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** `a` with a part of `b` in it. */
export function mix(a: string, b: string, part: number): string {
  const [from, to] = [rgb(a), rgb(b)];
  const channel = (i: 0 | 1 | 2) => Math.round(from[i] + (to[i] - from[i]) * part);
  const digits = [channel(0), channel(1), channel(2)].map((c) => c.toString(16).padStart(2, '0'));
  return `#${digits.join('')}`;
}

/** Linear light, 0 to 1. */
export function linear(colour: string): Rgb {
  const decode = (channel: number) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const [r, g, b] = rgb(colour);
  return [decode(r), decode(g), decode(b)];
}

/** The contrast ratio of the web accessibility guidelines, 1 to 21. */
export function contrast(a: string, b: string): number {
  const luminance = (colour: string) => {
    const [r, g, b] = linear(colour);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [x, y] = [luminance(a) + 0.05, luminance(b) + 0.05];
  return Math.max(x, y) / Math.min(x, y);
}

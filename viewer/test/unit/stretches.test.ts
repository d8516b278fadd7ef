// Stretches of time, whatever they are: how they are read, and what is said of them.
import { describe, expect, it } from 'vitest';
import { Column } from '../../src/data/columns';
import { readStretches, type Span, type StretchKind } from '../../src/data/profile';
import { factsOf, standing, summaryOf } from '../../src/data/stretches';
import { stopStrip } from '../../src/data/wall';
import { runtimeLanes, stepsOf, toldRuntime } from '../../src/timeline/runtime';
import { recordingOf } from './art';

const NAP: StretchKind = {
  one: 'nap',
  lane: 'Naps',
  title: 'Nap',
  what: 'rest of all threads',
  allStand: true,
  much: 'Naps stop the program',
  cause: 'sleep',
  labels: [],
  forms: [],
};
const TALK: StretchKind = {
  ...NAP,
  one: 'talk',
  lane: 'Talks',
  title: 'Talk',
  what: 'of one thread',
  allStand: false,
  much: '',
  labels: ['About', 'By', 'Words', 'Hidden'],
  forms: ['text', 'thread', 'number', ''],
};

/** A column of numbers, as a page has it. */
function column(numbers: number[]): Column {
  const width = 6;
  const rows = numbers.length;
  const bytes = new Uint8Array(rows * width);
  numbers.forEach((number, row) => {
    for (let plane = 0; plane < width; plane++) {
      bytes[plane * rows + row] = Math.floor(number / 2 ** (8 * plane)) % 256;
    }
  });
  return new Column({ name: '', rows, width, delta: false, bytes: bytes.length }, bytes);
}

const COLUMNS: Record<string, number[]> = {
  'stretch.kind': [1, 2, 2],
  'stretch.time': [5e8, 1e8, 9e8],
  'stretch.duration': [25e7, 7, 8],
  'stretch.fact': [1, 2, 30, 0, 0, 0, 40, 0],
};

describe('stretches of time', () => {
  const stretches = readStretches((name) => column(COLUMNS[name]!), [TALK, NAP, TALK]);
  const profile = recordingOf(1e9, { stretches }, {});

  it('are read kind by kind, with what else is known of each', () => {
    expect(stretches.map(({ kind, time }) => [kind.one, ...time])).toEqual([
      ['nap', 5e8],
      ['talk', 1e8, 9e8],
    ]);
    expect(stretches[1]!.facts.map((facts) => [...facts])).toEqual([
      [1, 0],
      [2, 0],
      [30, 40],
      [0, 0],
    ]);
  });

  it('have lanes of their own, and say what is known', () => {
    expect(runtimeLanes(profile).map(({ name }) => name)).toEqual(['Naps', 'Talks']);
    const told = toldRuntime(profile, 1, 8e8);
    expect([told.title, told.kind]).toEqual(['Talk', 'of one thread']);
    expect(told.facts.map(([label]) => label).slice(0, 2)).toEqual(['At', 'Took']);
    const known = new Map(factsOf(profile, stretches[1]!, 0));
    expect(known.get('About')).toBe(profile.names.text(1));
    expect(known.get('Words')).toBe('30');
    expect(known.has('Hidden')).toBe(false);
    expect(new Map(factsOf(profile, stretches[1]!, 1)).has('By')).toBe(false);
  });

  it('name the safepoint that they are in, and are steps for the keyboard', () => {
    const names = ['', 'Nap'].map((name) => profile.names.add(name));
    const stops = {
      ...profile.stops,
      time: Float64Array.of(1e8, 4.9e8),
      operation: Uint32Array.of(names[0]!, names[1]!),
      reaching: Float64Array.of(1e6, 1e7),
      operating: Float64Array.of(1e6, 2e8),
      count: Uint32Array.of(1, 1),
      known: Uint8Array.of(1, 1),
    };
    const stopped = { ...profile, stops };
    expect(toldRuntime(stopped, 0, 5e8).facts.at(-1)).toEqual(['Safepoint', 'Nap']);
    // Only one thread talks: no safepoint is its reason.
    expect(toldRuntime(stopped, 1, 5e8).facts.map(([label]) => label)).not.toContain('Safepoint');
    expect([...stepsOf(stopped, 0)!.to]).toEqual([7.5e8]);
    expect([...stepsOf(stopped, 'safepoints')!.to]).toEqual([1.02e8, 7e8]);
    expect(stepsOf(stopped, 'jit')).toBe(null);
  });

  it('are summed up in a range of time', () => {
    const [naps] = stretches;
    const text = (during: Span | null) => summaryOf(naps!, during).replaceAll('\u00a0', ' ');
    expect(text(null)).toBe('1 nap, 250 ms in all, the longest 250 ms.');
    const part = { from: 6e8, to: 9e8 };
    expect(text(part)).toContain('150 ms in all, the longest 150 ms.');
    expect(text({ from: 0, to: 1e8 })).toBe('No nap in the time range.');
  });

  it('count as stops where all threads stand still', () => {
    expect(standing(profile).map(({ kind }) => kind.one)).toEqual(['nap']);
    const strip = stopStrip(profile, 4);
    expect(strip.values.map((values) => [...values])).toEqual([
      [0, 0, 25e7, 0],
      [0, 0, 0, 0],
      [0, 0, 0, 0],
    ]);
  });
});

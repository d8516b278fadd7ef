// One request over the spans of its trace.
import { describe, expect, it } from 'vitest';
import type { Profile } from '../../src/data/profile';
import { spansOf } from '../../src/data/spans';
import { wallProfile } from './walls';

/** A request with two spans inside on other threads, and one of another service in the same JVM. */
function traced(): Profile {
  const profile = wallProfile({
    threads: ['http', 'db', 'cache'],
    endpoints: ['GET /', 'inner'],
    looks: [
      { thread: 0, time: 100, duration: 80, count: 5, weight: 100, cause: 'park', request: 1 },
      { thread: 1, time: 140, duration: 20, count: 2, weight: 30, cause: 'socket', request: 1 },
      { thread: 2, time: 120, cause: 'file', weight: 10, request: 1 },
      { thread: 1, time: 155, cause: 'file', weight: 10, request: 1 },
      { thread: 2, time: 130, cause: 'file', weight: 4, request: 2 },
    ],
    requests: [
      { time: 90, duration: 110, endpoint: 1 },
      { time: 125, duration: 10, endpoint: 2 },
      { time: 300, duration: 10, endpoint: 2 },
    ],
  });
  const trace = (a: number, b: number, c: number) => Uint32Array.of(a, b, c);
  return {
    ...profile,
    requests: {
      ...profile.requests,
      trace: [trace(0, 0, 0), trace(0, 0, 0), trace(5, 5, 5), trace(7, 7, 8)],
    },
    spans: {
      high: Uint32Array.of(0, 1),
      low: Uint32Array.of(0xab, 0xcd),
      request: Uint32Array.of(1, 1),
      time: new Float64Array(2),
      duration: new Float64Array(2),
      ofSample: new Uint32Array(0),
      ofLook: Uint32Array.of(0, 2, 1, 2, 0),
    },
  };
}

describe('one request', () => {
  it('is a bar for each span of its trace, with what the threads did for it', () => {
    const bars = spansOf(traced(), 1);
    expect(bars.map(({ kind, id }) => [kind, id])).toEqual([
      ['request', ''],
      ['inner', '00000000000000ab'],
      ['other', ''],
      ['inner', '00000001000000cd'],
    ]);
    const [own, first, other, last] = bars;
    expect([own!.from, own!.to]).toEqual([90, 200]);
    expect(own!.work.map(({ thread }) => thread)).toEqual([0]);
    expect([first!.from, first!.to]).toEqual([120, 130]);
    // From the first to the last time that somebody was seen at it: 140 + 20 + 30 / 2.
    expect([last!.from, last!.to]).toEqual([140, 175]);
    expect(last!.work.map(({ thread, steps }) => [thread, steps.length])).toEqual([[1, 2]]);
    // Another request of the trace has times of its own, and is not the third, of another trace.
    expect([other!.request, other!.from, other!.to]).toEqual([2, 125, 135]);
    expect(other!.work.map(({ thread }) => thread)).toEqual([2]);
  });

  it('shows spans from their beginnings to their ends where these were told', () => {
    const profile = traced();
    const spans = {
      ...profile.spans,
      high: Uint32Array.of(0, 1, 0, 0),
      low: Uint32Array.of(0xab, 0xcd, 0xef, 0xee),
      request: Uint32Array.of(1, 1, 1, 2),
      time: Float64Array.of(0, 135, 95, 126),
      duration: Float64Array.of(0, 50, 2, 3),
    };
    const inner = spansOf({ ...profile, spans }, 1).filter(({ kind }) => kind === 'inner');
    const shown = inner.map(({ id, from, to, isTold }) => [id.slice(-2), from, to, isTold]);
    expect(shown).toEqual([
      ['ef', 95, 97, true],
      ['ab', 120, 130, false],
      ['cd', 135, 185, true],
    ]);
    // One of which nothing was seen has a bar and no threads.
    expect(inner.map(({ work }) => work.length)).toEqual([0, 1, 1]);
    const second = spansOf({ ...profile, spans }, 2).filter(({ kind }) => kind === 'inner');
    expect(second.map(({ from, to }) => [from, to])).toEqual([[126, 129]]);
  });

  it('has one bar where no spans are told, and none if there is no such request', () => {
    const profile = { ...traced(), spans: wallProfile({ threads: [], looks: [] }).spans };
    const [own, ...rest] = spansOf(profile, 3);
    expect([own!.kind, own!.work, rest]).toEqual(['request', [], []]);
    expect(spansOf(profile, 1)[0]!.work.map(({ thread }) => thread)).toEqual([0, 1, 2]);
    expect(spansOf(profile, 0)).toEqual([]);
  });
});

// Waits for monitors on lanes: a search finds the same as a loop over all of them.
import { describe, expect, it } from 'vitest';
import { monitorWaits } from '../../src/data/locked';
import type { Profile } from '../../src/data/profile';
import { isSameWait, standsFor, stepOf, tell } from '../../src/timeline/describe';
import { Tracks } from '../../src/timeline/tracks';
import { coverage, waitAt, waitedUntil, Waits } from '../../src/timeline/waits';
import { ALL, entriesOf, randomOf, recordingOf } from './art';

interface Row {
  time: number;
  lasted: number;
  thread?: number;
  endpoint?: number;
  count?: number;
  look?: number;
  weight?: number;
}

function profileOfWaits(rows: Row[]): Profile {
  const samples = entriesOf({
    time: rows.map(({ time }) => time),
    node: rows.map(() => 2),
    weight: rows.map(({ weight, lasted }) => weight ?? lasted),
    endpoint: rows.map(({ endpoint }) => endpoint ?? 0),
  });
  samples.thread.set(rows.map(({ thread }) => thread ?? 0));
  samples.count.set(rows.map(({ count }) => count ?? 1));
  const locks = {
    samples,
    class: Uint32Array.from(rows, () => 0),
    waits: Float64Array.from(rows, ({ weight, lasted }) => (weight ?? lasted) / lasted),
    longest: Float64Array.from(rows, ({ lasted }) => lasted),
    duration: Float64Array.from(rows, ({ lasted }) => lasted),
    owner: Uint32Array.from(rows, () => 1),
    look: Uint8Array.from(rows, ({ look }) => look ?? 0),
  };
  return recordingOf(1000, { locks }, { endpoints: ['GET /a'] });
}

describe('waits for monitors', () => {
  const profile = profileOfWaits([
    { time: 300, lasted: 50, endpoint: 1 },
    { time: 100, lasted: 100 },
    { time: 500, lasted: 10, thread: 1 },
    { time: 600, lasted: 10, count: 3 },
    { time: 700, lasted: 10, look: 1 },
  ]);

  it('are lanes of their threads, without sums and without what looks tell', () => {
    const waits = new Waits(profile);
    expect([...waits.of(0).from]).toEqual([100, 300]);
    expect([...waits.of(0).to]).toEqual([200, 350]);
    expect([...waits.of(0).ref]).toEqual([1, 0]);
    expect([...waits.of(1).from]).toEqual([500]);
    expect(waits.of(7).n).toBe(0);
    expect(waits.summed).toBe(3);
    expect([...waits.ofEndpoint(0, 1).ref]).toEqual([0]);
    expect(waits.ofEndpoint(0, -1)).toBe(waits.of(0));
    expect(new Waits({ ...profile, locks: null }).any).toBe(false);
  });

  it('give a lane to a thread that was seen at nothing else', () => {
    const silent = { ...profile, samples: entriesOf({ time: [], node: [], weight: [] }) };
    const tracks = new Tracks(silent);
    expect([tracks.has(0), tracks.has(1)]).toEqual([true, true]);
    expect(new Tracks({ ...silent, locks: null }).has(0)).toBe(false);
  });

  it('are found by a time, near ones too', () => {
    const track = new Waits(profile).of(0);
    expect(waitAt(track, 150, 0)).toBe(0);
    expect(waitAt(track, 250, 0)).toBe(-1);
    expect(waitAt(track, 205, 10)).toBe(0);
    expect(waitAt(track, 295, 10)).toBe(1);
    expect(waitAt(track, 360, 10)).toBe(1);
    expect(waitAt(track, 361, 10)).toBe(-1);
  });

  it('have class, time, holder and the waiting stack', () => {
    const chosen = { thread: 0, ref: 0, wait: 1, at: 150 };
    const step = stepOf(profile, chosen);
    expect([step.what, step.cause, step.time, step.duration]).toEqual([
      'wait',
      'monitor',
      100,
      100,
    ]);
    expect(step.node).toBe(profile.nodes.parent[2]);
    expect([step.owner, step.ownerNode]).toEqual([0, -1]);
    const lane = { kind: 'thread' as const, name: 'main', thread: 0, inPool: false };
    const facts = new Map(tell(profile, { lane, time: 150, step: chosen, request: 0 }).facts);
    expect(facts.get('Waited')).toBe('100\u00a0ns');
    expect(facts.get('On')).toBe(profile.names.text(0));
    expect(facts.get('Held by')).toBe('main');
    expect(facts.has('Stands for')).toBe(false);
  });

  it('are of the same lock as a look by its class, looks by the single lock', () => {
    const wait = stepOf(profile, { thread: 0, ref: 0, wait: 1, at: 150 });
    const look = { ...wait, what: 'wall sample' as const, detail: `${wait.detail}@7f` };
    expect(isSameWait(wait, look)).toBe(true);
    expect(isSameWait(look, { ...look, detail: `${wait.detail}@80` })).toBe(false);
    expect(isSameWait(look, { ...look })).toBe(true);
    expect(isSameWait(look, { ...look, cause: 'lock' })).toBe(false);
    expect(isSameWait({ ...look, cause: 'park' }, { ...look, cause: 'park' })).toBe(false);
  });

  it('say what they stand for where shorter ones are chosen by chance', () => {
    const one = profileOfWaits([{ time: 100, lasted: 20, weight: 1000 }]);
    const step = stepOf(one, { thread: 0, ref: 0, wait: 0, at: 100 });
    expect(standsFor(step)).toBe('about 50 waits of 1.00\u00a0µs in all');
  });

  it('are summed up by thread, as far as filters take them', () => {
    expect(monitorWaits(profile, ALL, 0)).toEqual({ waits: 3, ns: 160, longest: 100 });
    expect(monitorWaits(profile, { ...ALL, endpoint: 'GET /a' }, 0).ns).toBe(50);
    expect(monitorWaits(profile, { ...ALL, during: { from: 0, to: 200 } }, 0).ns).toBe(100);
  });
});

describe('the part of a pixel that waits have', () => {
  it('is that of going through all of them, wherever and however close one looks', () => {
    const random = randomOf(7);
    for (let round = 0; round < 60; round++) {
      const rows: Row[] = [];
      let time = 0;
      for (let i = 0; i < 80; i++) {
        time += random(40);
        const lasted = 1 + random(round % 2 === 0 ? 6 : 300);
        rows.push({ time, lasted });
        time += lasted;
      }
      const track = new Waits(profileOfWaits(rows)).of(0);
      const from = random(time);
      const span = { from, to: from + 1 + random(time) };
      const out = new Float64Array(1 + random(70));
      coverage(track, span, out);
      const each = (span.to - span.from) / out.length;
      out.forEach((part, x) => {
        const [left, right] = [span.from + x * each, span.from + (x + 1) * each];
        const inside = ({ time: at, lasted }: Row) =>
          Math.max(0, Math.min(at + lasted, right) - Math.max(at, left));
        const sum = rows.reduce((all, row) => all + inside(row), 0);
        expect(part).toBeCloseTo(sum / each, 6);
      });
    }
  });

  it('is something for a wait of no length, and at most all of it', () => {
    const waits = new Waits(profileOfWaits([{ time: 500, lasted: 0 }]));
    const out = new Float64Array(10);
    coverage(waits.of(0), { from: 0, to: 1000 }, out);
    expect(out[5]).toBeGreaterThan(0);
    expect([...out].filter((part) => part > 0).length).toBe(1);
    // Two that say they were at the same time: a thread waits for one at a time.
    const twice = new Waits(
      profileOfWaits([
        { time: 100, lasted: 400 },
        { time: 200, lasted: 100 },
      ]),
    ).of(0);
    expect(waitedUntil(twice, 1000)).toBe(400);
    coverage(twice, { from: 0, to: 1000 }, out);
    expect(Math.max(...out)).toBeLessThanOrEqual(1);
  });
});

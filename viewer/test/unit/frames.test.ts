// The application's frames, and those that are folded.
import { describe, expect, it } from 'vitest';
import type { Profile } from '../../src/data/profile';
import { OTHERS, RUNTIME, withStandIns } from '../../src/data/standIns';
import { firstState, fromFragment, toFragment } from '../../src/state/fragment';
import { Store } from '../../src/state/store';
import { hasMine, keysWithGaps, withFrames } from '../../src/tree/frames';
import { makeKeys } from '../../src/tree/keys';
import { packagesOf } from '../../src/flame/packages';
import { causePaints } from '../../src/flame/causes';
import { describe as describeFrame } from '../../src/flame/describe';
import { buildForward } from '../../src/tree/forward';
import { wholeOf } from '../../src/data/whole';
import { profileOf } from './art';

/** The profile with classes of a package as the application's. */
function ofApplication(profile: Profile, start = 'app.'): Profile {
  const { names, methods } = profile;
  const own = Uint8Array.from(methods.class, (id) => Number(names.text(id).startsWith(start)));
  return withStandIns({ ...profile, methods: { ...methods, own } });
}

/** The stacks of all samples, outermost frame first. */
function stacks(profile: Profile): string[] {
  const keys = makeKeys(profile, false);
  const { parent, frame } = profile.nodes;
  return Array.from(profile.samples.node, (node) => {
    const labels: string[] = [];
    for (let at = node; at !== 0; at = parent[at]!) {
      labels.unshift(keys.label(keys.ofFrame[frame[at]!]!));
    }
    return labels.join(' ');
  });
}

const SERVICE = ofApplication(
  profileOf(`
    libc.so.clone[native]   libc.so.clone[native]   libc.so.clone[native]   libc.so.clone[native]
    libjvm.so.run[VM]       libjvm.so.run[VM]       libjvm.so.run[VM]       libjvm.so.work[VM]
    java.lang.Thread.run    java.lang.Thread.run    java.lang.Thread.run    libjvm.so.mark[VM]
    io.netty.Loop.run       io.netty.Loop.run       io.netty.Loop.run       -
    app.Orders.get          app.Orders.get          java.util.Map.get       -
    app.Orders.price        org.h2.Jdbc.ask         app.Key.hash            -
    org.h2.Jdbc.ask         org.h2.Engine.run       -                       -
    libc.so.read[native]    -                       -                       -
  `),
);

function mine(profile: Profile): Profile {
  return withFrames(profile, makeKeys(profile, false), 'mine');
}

describe('frames of the application', () => {
  it('stay, others that follow each other are one row', () => {
    const begin = `${RUNTIME} java.lang.Thread.run`;
    expect(stacks(mine(SERVICE))).toEqual([
      `${begin} app.Orders.get app.Orders.price org.h2.Jdbc.ask`,
      `${begin} app.Orders.get org.h2.Jdbc.ask`,
      `${begin} app.Key.hash`,
      // Without Java code it is a native thread's stack: it stays as it is.
      `${RUNTIME} libjvm.so.work libjvm.so.mark`,
    ]);
    expect(stacks(withFrames(SERVICE, makeKeys(SERVICE, false), 'all'))).toEqual(stacks(SERVICE));
  });

  it('have a row of their own for time without own code', () => {
    const idle = ofApplication(
      profileOf(`
        java.lang.Thread.run    java.lang.Thread.run    java.lang.Thread.run    app.Main.main
        java.util.Pool.take     app.Job.run             -                       java.util.Pool.take
        java.util.Lock.park     -                       -                       java.util.Lock.park
      `),
    );
    expect(stacks(mine(idle))).toEqual([
      `java.lang.Thread.run ${OTHERS}`,
      'java.lang.Thread.run app.Job.run',
      // Nothing is folded into its self time.
      'java.lang.Thread.run',
      // A row that own code calls has the name of its outermost frame.
      'app.Main.main java.util.Pool.take',
    ]);
  });

  it('show threads of the JVM by role alone', () => {
    const role = Uint8Array.of(0, 0, 0, 1);
    const profile = { ...SERVICE, samples: { ...SERVICE.samples, role } };
    const shown = mine(profile);
    expect(stacks(shown)[3]).toBe('GC threads');
    const sum = (of: Profile) => of.samples.weight.reduce((a, b) => a + b, 0);
    expect(sum(shown)).toBe(sum(profile));
  });

  it('are shown first where a recording has them', () => {
    expect(hasMine(SERVICE)).toBe(true);
    expect(firstState(SERVICE)).toMatchObject({ frames: 'mine', measure: { time: 'cpu' } });
    const wall = { ns: 1, busyNs: 1, causes: [] };
    const header = { ...SERVICE.header, wall };
    const first = firstState({ ...SERVICE, header });
    expect(first.measure.time).toBe('wall');
    // The address of what is shown first is empty, and that of another choice is not.
    expect(toFragment(first, first)).toBe('');
    const cpu = { ...first, measure: { time: 'cpu' as const, endpoint: null } };
    const all = { ...cpu, frames: 'all' as const };
    for (const state of [cpu, all]) {
      expect(fromFragment(toFragment(state, first), first)).toEqual(state);
    }
    const none = profileOf('a.A.x');
    expect(firstState(none).frames).toBe('all');
    expect(mine(none)).toBe(none);
  });

  it('have the first colours of packages, and stronger ones of causes', () => {
    const keys = makeKeys(SERVICE, false);
    const { named } = packagesOf(SERVICE, keys, Uint8Array.of(1));
    expect(named[0]!.name).toBe('app');
    expect(named.map(({ share }) => share)).toContain(0.25);
    const { strong, pale } = causePaints(['running'], 'light');
    expect(pale[0]!.fill).not.toBe(strong[0]!.fill);
  });
});

describe('native frames that are missing', () => {
  const profile = ofApplication(
    profileOf(`
      app.A.run                               app.A.run
      java.io.File.read                       app.B.go
      [failed].native_frames_missing[failed]  -
      libc.so.read[native]                    -
    `),
  );

  it('are a note of their caller, and no frame', () => {
    const keys = makeKeys(profile, false);
    expect(stacks(withFrames(profile, keys, 'all'))).toEqual([
      'app.A.run java.io.File.read libc.so.read',
      'app.A.run app.B.go',
    ]);
    expect(stacks(mine(profile))[0]).toBe('app.A.run java.io.File.read');
    const gaps = keysWithGaps(profile, keys);
    expect([...gaps].map((key) => keys.label(key))).toEqual(['java.io.File.read']);
    const threads = Uint8Array.of(1);
    const work = buildForward({ profile, keys, threads, split: 'none' });
    let step = work.next();
    while (!step.done) step = work.next();
    const tree = step.value;
    const notes = (label: string) => {
      for (let node = 1; node < tree.size; node++) {
        if (keys.label(tree.key(node)) !== label) continue;
        const whole = wholeOf(profile, threads);
        const { facts } = describeFrame(profile, keys, tree, node, 0, whole, null, gaps);
        return facts.filter(([name]) => name === 'Note').length;
      }
      return -1;
    };
    expect([notes('java.io.File.read'), notes('app.B.go')]).toEqual([1, 0]);
  });
});

describe('the switch', () => {
  it('goes to all frames where what is sought is folded', async () => {
    const store = new Store(SERVICE);
    store.start('');
    const built = async () => {
      for (let i = 0; i < 100 && store.busy.value; i++)
        await new Promise((done) => setTimeout(done));
    };
    await built();
    expect(store.frames.value).toBe('mine');
    store.show({ view: 'flame', change: {}, seek: 'app.Orders.price', role: '', part: '' });
    await built();
    expect(store.frames.value).toBe('mine');
    store.show({ view: 'flame', change: {}, seek: 'org.h2.Engine.run', role: '', part: '' });
    await built();
    expect([store.frames.value, store.query.value]).toEqual(['all', 'org.h2.Engine.run']);
    expect(store.zoom.value).not.toBe(0);
    store.flipFrames();
    await built();
    expect([store.frames.value, store.zoom.value]).toEqual(['mine', 0]);
    store.stop();
  });
});

// The main cause of frames, in trees of callees and of callers.
import { describe, expect, it } from 'vitest';
import { causeColour, roleColour, RUNTIME_COLOURS, STOP_COLOURS } from '../../src/flame/causes';
import { randomProfile } from './art';
import { request } from './trees';
import { wholeOf } from '../../src/data/whole';
import { describe as tooltip } from '../../src/flame/describe';
import { buildForward } from '../../src/tree/forward';
import { ReverseTree } from '../../src/tree/reverse';
import { type FrameTree, pathTo } from '../../src/tree/tree';

const CAUSES = 4;

/** Weight by cause of every path of keys, sample by sample. */
function expected(made: ReturnType<typeof request>, outwards: boolean) {
  const { profile, keys } = made;
  const sums = new Map<string, number[]>();
  for (let i = 0; i < profile.samples.node.length; i++) {
    const path: number[] = [];
    for (let node = profile.samples.node[i]!; node !== 0; node = profile.nodes.parent[node]!) {
      path.push(keys.ofFrame[profile.nodes.frame[node]!]!);
    }
    if (!outwards) path.reverse();
    for (let end = 1; end <= path.length; end++) {
      const name = path.slice(0, end).join(' ');
      const sum = sums.get(name) ?? Array<number>(CAUSES).fill(0);
      sum[profile.samples.wait[i]!]! += profile.samples.weight[i]!;
      sums.set(name, sum);
    }
  }
  return sums;
}

function check(tree: FrameTree, sums: Map<string, number[]>): void {
  let seen = 0;
  const visit = (node: number) => {
    for (const child of Array.from(tree.children(node))) {
      const name = pathTo(tree, child)
        .slice(1)
        .map((at) => tree.key(at))
        .join(' ');
      const of = sums.get(name)!;
      // Either of two equal causes may be shown.
      expect(of[tree.cause!(child)], name).toBeCloseTo(Math.max(...of), 3);
      const shares = Array.from(tree.causes!(child));
      expect(shares.length).toBe(CAUSES);
      shares.forEach((weight, cause) => expect(weight, name).toBeCloseTo(of[cause]!, 3));
      seen++;
      visit(child);
    }
  };
  visit(0);
  expect(seen).toBe(sums.size);
}

describe('colours', () => {
  it('have one meaning each on the timeline', () => {
    const causes = ['running', 'runnable', 'throttled', 'monitor', 'lock', 'socket', 'file'];
    const others = ['page-fault', 'park', 'object-wait', 'sleep', 'class-init', 'jit-wait'];
    const all = [...causes, ...others, 'gc-stall', 'idle-pool', 'unknown'];
    const colours = all.map((cause) => causeColour(cause, 'light'));
    colours.push(...STOP_COLOURS, RUNTIME_COLOURS.jit, roleColour('VM'));
    expect(new Set(colours).size).toBe(colours.length);
  });
});

describe('frames that know their causes', () => {
  it('have that of most of their weight', () => {
    for (let seed = 1; seed <= 5; seed++) {
      const made = { ...request(randomProfile(seed, 60, 6, 8)), causes: CAUSES };
      made.profile.samples.wait.forEach((_, i, wait) => (wait[i] = (i * 7 + seed) % CAUSES));
      const work = buildForward(made);
      let step = work.next();
      while (!step.done) step = work.next();
      check(step.value, expected(made, false));
      check(new ReverseTree(made), expected(made, true));
    }
  });
});

describe('the tooltip of a frame', () => {
  it('names at most five causes, the largest first', () => {
    const all = randomProfile(1, 60, 6, 8);
    const waits = ['park', 'socket', 'file', 'sleep', 'lock', 'monitor'];
    const profile = { ...all, header: { ...all.header, waits } };
    const made = { ...request(profile), causes: 1 + waits.length };
    profile.samples.wait.forEach((_, i, wait) => (wait[i] = i % made.causes));
    profile.samples.weight.forEach((_, i, weight) => (weight[i] = 1 + (i % made.causes)));
    const tree = new ReverseTree(made);
    const whole = wholeOf(profile, made.threads);
    const causesOf = (of: FrameTree, node: number) =>
      tooltip(profile, made.keys, of, node, 0, whole).facts.find(([label]) => label === 'Causes');
    const work = buildForward(made);
    let step = work.next();
    while (!step.done) step = work.next();
    const text = causesOf(step.value, 0)![1].replaceAll('\u00a0', ' ');
    expect(text).toMatch(/^monitor [\d.]+ %, lock .* %, sleep .* %, file .* %, socket .* %$/);
    expect(causesOf(tree, Array.from(tree.children(0))[0]!)).toBeDefined();
    expect(causesOf(new ReverseTree({ ...made, causes: 0 }), 0)).toBeUndefined();
  });
});

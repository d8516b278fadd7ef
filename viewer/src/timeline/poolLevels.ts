// Activity of pools on pixels: long ranges from bins that are summed once, short ranges from the
// steps of the threads.
import type { Profile, Span } from '../data/profile';
import {
  causesOf,
  emptyStrip,
  lookSpan,
  sampleSpan,
  spread,
  type Strip,
  wholeSpan,
} from '../data/wall';
import type { Pool } from './lanes';
import { Sums } from './sums';
import type { Tracks } from './tracks';

const POOL_BINS = 4096;
/** From this part of the whole on, a range is drawn from the bins of a pool. */
const POOL_FROM = 1 / 8;
/** Entries between two looks at the clock. */
const SLICE = 1 << 15;

/** What the threads of each pool did, all together, over the whole time; see `fill`. */
export class PoolLevels {
  /** Whether all has been summed up. */
  isReady = false;
  private readonly strips = new Map<string, Strip>();
  private readonly ofThread: Int32Array;

  constructor(
    private readonly profile: Profile,
    pools: readonly Pool[],
  ) {
    const causes = causesOf(profile).length;
    const whole = wholeSpan(profile);
    this.ofThread = new Int32Array(profile.threads.name.length).fill(-1);
    this.all = pools.map((pool, at) => {
      for (const thread of pool.threads) this.ofThread[thread] = at;
      const strip = emptyStrip(whole, causes, pool.threads.length > 1 ? POOL_BINS : 1);
      this.strips.set(pool.key, strip);
      return strip;
    });
  }

  private readonly all: Strip[];

  /** Sums up; a generator, so that the page stays responsive. */
  *fill(): Generator<void, void> {
    const { profile, ofThread, all } = this;
    const { samples, wall, header } = profile;
    const seen = new Uint8Array(ofThread.length);
    if (wall) {
      const { looks } = wall;
      for (let i = 0; i < looks.node.length; i++) {
        if (i % SLICE === SLICE - 1) yield;
        const strip = all[ofThread[looks.thread[i]!]!];
        if (!strip) continue;
        seen[looks.thread[i]!] = 1;
        const { from, to } = lookSpan(profile, i, strip.span);
        spread(strip, looks.wait[i]!, from, to, looks.weight[i]!);
      }
      for (let i = 0; i < samples.node.length; i++) {
        if (wall.running[i] === 1) seen[samples.thread[i]!] = 1;
      }
    }
    for (let i = 0; i < samples.node.length; i++) {
      if (i % SLICE === SLICE - 1) yield;
      const strip = all[ofThread[samples.thread[i]!]!];
      // Threads of the JVM have no looks, so their samples are used.
      const isOne = wall?.running[i] === 1 || (!seen[samples.thread[i]!] && header.unit === 'ns');
      if (!strip || !isOne) continue;
      const { from, to } = sampleSpan(profile, samples.time[i]!, samples.weight[i]!);
      spread(strip, 0, from, to, samples.weight[i]!);
    }
    this.isReady = true;
  }

  /** Whether a span is so short that pools are drawn from the steps of their threads. */
  needsSteps(span: Span): boolean {
    const whole = wholeSpan(this.profile);
    return (span.to - span.from) / (whole.to - whole.from) < POOL_FROM;
  }

  /** By cause: number of threads at it, by pixel; valid until the next call. */
  shares(
    key: string,
    threads: readonly number[],
    tracks: Tracks,
    span: Span,
    width: number,
  ): Float64Array[] {
    const strip = this.strips.get(key);
    this.sums.begin(width, causesOf(this.profile).length);
    if (strip && !this.needsSteps(span)) this.addBins(strip, span, width);
    else for (const thread of threads) this.sums.addSteps(tracks.of(thread), span);
    return this.sums.end();
  }

  private readonly sums = new Sums();

  private addBins(strip: Strip, span: Span, width: number): void {
    const whole = wholeSpan(this.profile);
    const bin = (whole.to - whole.from) / strip.bins;
    const pixel = (span.to - span.from) / width;
    strip.values.forEach((values, cause) => {
      if (!this.isSeen(strip, cause)) return;
      const out = this.sums.row(cause);
      for (let x = 0; x < width; x++) {
        const at = (span.from + x * pixel - whole.from) / bin;
        const from = Math.floor(at);
        const to = Math.min(strip.bins, Math.max(from + 1, Math.floor(at + pixel / bin)));
        let all = 0;
        for (let i = from; i < to; i++) all += values[i]!;
        out[x] = all / ((to - from) * bin);
      }
    });
  }

  /** Whether a pool's threads were ever at something. */
  private isSeen(strip: Strip, cause: number): boolean {
    let seen = this.seen.get(strip);
    if (!seen) {
      seen = strip.values.map((values) => values.some((value) => value > 0));
      this.seen.set(strip, seen);
    }
    return seen[cause]!;
  }

  private readonly seen = new WeakMap<Strip, boolean[]>();
}

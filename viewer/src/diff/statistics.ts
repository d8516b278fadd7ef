// Whether a difference is more than the chance of sampling. The same arithmetic as `dwell diff` has
// (crates/profile/src/diff): pure numbers.

/** Common scale of both sides: a second, a request, or all samples. */
export type Per = 'second' | 'request' | 'sample';

/** Entries of fewer samples on both sides together are not tested: they could not show anything. */
export const TESTED_FROM = 10;
/** Of the differences that are called significant, at most this part is chance, on average. */
export const FALSE_DISCOVERIES = 0.05;

/** A sum of weights that remembers how certain it is. */
export interface Sum {
  sum: number;
  /** Of the samples' weights. */
  squares: number;
  samples: number;
}

/** How much of the base there is on each side, and the mean weight of a sample by weight. */
export interface Base {
  per: Per;
  a: number;
  b: number;
  grainA: number;
  grainB: number;
  /** Whether weights of both are of one unit, so that they can be added up. */
  isOneUnit: boolean;
}

export function baseOf(
  per: Per,
  a: number,
  b: number,
  wholeA: Sum,
  wholeB: Sum,
  isOneUnit = true,
): Base {
  const grain = ({ sum, squares }: Sum) => (sum > 0 ? squares / sum : 1);
  return { per, a, b, grainA: grain(wholeA), grainB: grain(wholeB), isOneUnit };
}

/** Of both together. Of two units each side counts as many samples as it is worth. */
function rateOfBoth({ a, b, grainA, grainB, isOneUnit }: Base, sumA: Sum, sumB: Sum): number {
  const [byA, byB] = isOneUnit ? [1, 1] : [grainA, grainB];
  return (sumA.sum / byA + sumB.sum / byB) / (a / byA + b / byB);
}

/**
 * The variance of the difference of two rates that are the same but for chance. A sum of weights w
 * has the variance `sum of w^2`: its mean times the mean of w^2 by that of w, the grain. With the
 * rate r of both together: `r (grain_a / n + grain_b / m)`; shares of a whole vary less.
 */
export function variance(base: Base, a: Sum, b: Sum): number {
  const rate = rateOfBoth(base, a, b);
  const grain = (of: Sum, all: number) => (of.sum > 0 ? of.squares / of.sum : all);
  const noise = grain(a, base.grainA) / base.a + grain(b, base.grainB) / base.b;
  return rate * noise * (base.per === 'sample' ? Math.max(0, 1 - rate) : 1);
}

export interface Change {
  /** Sums by the base. */
  a: number;
  b: number;
  /** Standard error of the difference if both sides are equal. */
  error: number;
  /** The difference in standard errors; 0 where it was not tested. */
  z: number;
  isTested: boolean;
  samplesA: number;
  samplesB: number;
}

export function changeOf(base: Base, a: Sum, b: Sum): Change {
  const [rateA, rateB] = [a.sum / base.a, b.sum / base.b];
  const error = Math.sqrt(variance(base, a, b));
  const isTested = a.samples + b.samples >= TESTED_FROM;
  return {
    a: rateA,
    b: rateB,
    error,
    z: isTested && error > 0 ? (rateB - rateA) / error : 0,
    isTested,
    samplesA: a.samples,
    samplesB: b.samples,
  };
}

/**
 * Which of many differences are more than chance, by the step-up procedure of Benjamini and
 * Hochberg: those are meant whose z is not 0; `tested` is how many were tested in all.
 */
export function significant(z: ArrayLike<number>, tested: number): Uint8Array {
  const marks = new Uint8Array(z.length);
  const order: number[] = [];
  for (let i = 0; i < z.length; i++) if (z[i] !== 0) order.push(i);
  order.sort((a, b) => Math.abs(z[b]!) - Math.abs(z[a]!));
  let last = -1;
  order.forEach((at, place) => {
    if (twoSided(z[at]!) <= (FALSE_DISCOVERIES * (place + 1)) / tested) last = place;
  });
  for (let place = 0; place <= last; place++) marks[order[place]!] = 1;
  return marks;
}

/** The probability that a normal variable is at least z deviations from its mean. */
export function twoSided(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  return x < 2 ? 1 - errorSeries(x) : errorFraction(x);
}

/** The error function by its power series, for small numbers. */
function errorSeries(x: number): number {
  let [sum, term] = [x, x];
  for (let n = 1; n < 60; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (sum * 2) / Math.sqrt(Math.PI);
}

/** Its complement by its continued fraction, for large numbers, from the inside out. */
function errorFraction(x: number): number {
  let inner = x;
  for (let n = 60; n >= 1; n--) inner = x + n / 2 / inner;
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * inner);
}

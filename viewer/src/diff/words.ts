// A difference in words and numbers.
import { duration, percent, plural, size, type Unit } from '../data/format';
import type { Sides } from './sides';
import type { Change, Per } from './statistics';

/** A rate of one side: time a second or a request, or a share. */
export function rate(value: number, per: Per, unit: Unit): string {
  if (per === 'sample') return percent(value);
  if (unit === 'bytes') return size(value);
  return unit === 'ns' ? duration(value) : value.toFixed(2);
}

export function signedRate(value: number, per: Per, unit: Unit): string {
  const sign = value > 0 ? '+' : value < 0 ? '−' : '';
  return sign + rate(Math.abs(value), per, unit);
}

/** By how much one is more than the other: `+40 %`, or `new`, or `gone`. */
export function relative({ a, b, samplesA, samplesB }: Change): string {
  if (samplesA === 0) return samplesB === 0 ? '' : 'new';
  if (samplesB === 0) return 'gone';
  if (!(a > 0)) return '';
  const part = (b - a) / a;
  // Of nearly nothing it is no number that means something.
  if (part >= 1000) return 'over 1000 times';
  if (part >= 9.995) return `${(b / a).toFixed(0)} times`;
  return `${part > 0 ? '+' : part < 0 ? '−' : ''}${Math.abs(part * 100).toFixed(0)} %`;
}

/** What is known of it beyond chance. */
export function certainty(change: Change, isSignificant: boolean): string {
  if (!change.isTested) return 'too few samples to say';
  return isSignificant ? 'significant' : 'within sampling noise';
}

export const PER_WORDS: Readonly<Record<Per, string>> = {
  second: 'per second',
  request: 'per completed request',
  sample: 'as a share of all samples',
};

/** Description of both sides and of the scale. */
export function sentence(sides: Sides): string {
  const { slow, base } = sides;
  if (!slow) return `B compared with A; all numbers are ${PER_WORDS[base.per]}.`;
  return (
    `${plural(slow.slow, 'request')} longer than p95 (${duration(slow.p95)}) against ` +
    `${plural(slow.usual, 'request')} around p50 (${duration(slow.from)} to ` +
    `${duration(slow.to)}); all numbers are per request.`
  );
}

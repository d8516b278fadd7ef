// Errors of shares of a sum whose parts are estimated separately. Pure.
import { percent } from './format';

/** A sum that is estimated. */
export interface Estimate {
  value: number;
  variance: number;
}

/**
 * One standard error of the share p = x / (x + y) for independent errors of x and y: sqrt((1-p)^2
 * var(x) + p^2 var(y)) / (x + y). It is 0 for a share of 0 or 100 %, because a part without samples
 * has no variance here. The error of x alone, divided by the sum, is different: it ignores y, and
 * does not end at 100 %.
 */
export function errorOfShare(x: Estimate, y: Estimate): number {
  const all = x.value + y.value;
  if (!(x.value > 0 && y.value > 0)) return 0;
  const share = x.value / all;
  return Math.sqrt((1 - share) ** 2 * x.variance + share ** 2 * y.variance) / all;
}

export interface Share {
  share: number;
  /** One standard error of the share. */
  error: number;
}

/** Share of each part in the sum; `error` is one standard error of a part's value. */
export function sharesOf(parts: readonly { value: number; error: number }[]): Share[] {
  let [value, variance] = [0, 0];
  for (const part of parts) {
    value += part.value;
    variance += part.error ** 2;
  }
  return parts.map((part) => {
    const own = { value: part.value, variance: part.error ** 2 };
    // Of rounding may be left what is below nothing.
    const others = {
      value: Math.max(0, value - own.value),
      variance: Math.max(0, variance - own.variance),
    };
    return { share: part.value / (value || 1), error: errorOfShare(own, others) };
  });
}

/** `97.9 % ±0.3`, and `0.04 % ±0.02`: both with the same digits. */
export function shareText({ share, error }: Share): string {
  const digits = share > 0 && share < 0.01 ? 2 : 1;
  return `${percent(share)} ±${(error * 100).toFixed(digits)}`;
}

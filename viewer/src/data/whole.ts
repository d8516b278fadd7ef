// How certain shares are, from the weights of all samples that are shown.
import type { Profile, Samples } from './profile';
import { errorOfShare } from './shares';

/** All that is shown: sums of weights and of their squares, and what might have been seen. */
export interface Whole {
  weight: number;
  squares: number;
  /** The square of one and a half looks as heavy as the heaviest; 0 where there are no looks. */
  unseen: number;
}

/** Number of looks that the variance includes in addition. The crate `profile` has the reason. */
const UNSEEN = 1.5;
/** Looks that stand for a smaller part of the time than this are no sort of their own. */
const LEAST = 0.01;
/** More classes than a weight in nanoseconds has powers of two. */
const CLASSES = 64;

export function wholeOf(profile: Profile, threads: Uint8Array): Whole {
  const { samples } = profile;
  const { thread, weight, choices } = samples;
  const all = { weight: 0, squares: 0, unseen: 0 };
  for (let i = 0; i < weight.length; i++) {
    if (!threads[thread[i]!]) continue;
    all.weight += weight[i]!;
    // Looks that saw the same are choices of their own, of about the same weight; of what is known
    // in between there is less chance, which is as that of more choices.
    all.squares += weight[i]! ** 2 / choices[i]!;
  }
  all.unseen = UNSEEN * heaviest(samples, threads) ** 2;
  return all;
}

/** What the heaviest looks weigh each, without those that stand for next to nothing. */
function heaviest({ thread, weight, count, wait }: Samples, threads: Uint8Array): number {
  const time = new Float64Array(CLASSES);
  const most = new Float64Array(CLASSES);
  let all = 0;
  for (let i = 0; i < weight.length; i++) {
    if (wait[i] === 0 || !threads[thread[i]!]) continue;
    const each = weight[i]! / Math.max(1, count[i]!);
    const at = Math.min(CLASSES - 1, Math.floor(Math.log2(Math.max(1, each))));
    time[at]! += weight[i]!;
    most[at] = Math.max(most[at]!, each);
    all += weight[i]!;
  }
  let above = 0;
  for (let at = CLASSES - 1; at >= 0 && all > 0; at--) {
    above += time[at]!;
    if (above >= LEAST * all) return most[at]!;
  }
  return 0;
}

/**
 * The standard error of a share of the whole, with the squares inside and those outside of it as
 * the variances. For equal weights the binomial sqrt(p(1-p)/n). Looks that might as well have been
 * seen count inside and outside.
 */
export function shareError(weight: number, squares: number, all: Whole): number {
  return errorOfShare(
    { value: weight, variance: squares + all.unseen },
    {
      value: all.weight - weight,
      variance: Math.max(0, all.squares - squares) + all.unseen,
    },
  );
}

/** The same where squares are not known: as if the weights were alike inside and outside. */
export function shareErrorAlike(weight: number, all: Whole): number {
  return shareError(weight, all.weight > 0 ? (weight / all.weight) * all.squares : 0, all);
}

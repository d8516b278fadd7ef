// The order of times, as numbers of places. What is recorded comes nearly in order. Pure.

/** Places that a time may be moved back on average, before sorting is the faster way. */
const MOVES_MAX = 16;

/**
 * The order of some times; where they are equal the first stays the first. Of times that are far
 * from being in order, those closer than a few parts in 2^52 may change places.
 */
export function orderOf(times: Float64Array): Uint32Array {
  const n = times.length;
  const order = new Uint32Array(n);
  const sorted = new Float64Array(n);
  let moves = MOVES_MAX * n;
  for (let i = 0; i < n; i++) {
    const time = times[i]!;
    let at = i;
    for (; at > 0 && sorted[at - 1]! > time; at--) {
      sorted[at] = sorted[at - 1]!;
      order[at] = order[at - 1]!;
    }
    sorted[at] = time;
    order[at] = i;
    moves -= i - at;
    if (moves < 0) return sortedOrder(times);
  }
  return order;
}

/** Sorting numbers is many times as fast as sorting with a function, so each is one with its place. */
function sortedOrder(times: Float64Array): Uint32Array {
  const n = times.length;
  let [least, most] = [Infinity, -Infinity];
  for (const time of times) {
    least = Math.min(least, time);
    most = Math.max(most, time);
  }
  const unit = Math.max(1, Math.ceil(((most - least + 1) * n) / 2 ** 52));
  const keys = times.map((time, i) => Math.floor((time - least) / unit) * n + i).sort();
  return Uint32Array.from(keys, (key) => key % n);
}

/** The order of two lists together, the places of the second after those of the first. */
export function orderOfBoth(first: Float64Array, second: Float64Array): Uint32Array {
  const [a, b] = [orderOf(first), orderOf(second)];
  const out = new Uint32Array(a.length + b.length);
  let [i, j] = [0, 0];
  for (let at = 0; at < out.length; at++) {
    const isFirst = j >= b.length || (i < a.length && first[a[i]!]! <= second[b[j]!]!);
    out[at] = isFirst ? a[i++]! : a.length + b[j++]!;
  }
  return out;
}

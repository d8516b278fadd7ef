// A thread's steps put into bins over the whole time: for each number how much of each bin it has.
// Where there are more steps than pixels these are added up instead. Pure.
import type { Span } from '../data/profile';

export class Crowd {
  /** The numbers that there are, and for each what it has of each bin. */
  private readonly numbers: number[] = [];
  private readonly sums: Float32Array[] = [];
  private readonly place = new Int16Array(256).fill(-1);

  constructor(
    private readonly whole: Span,
    private readonly bins: number,
  ) {}

  /** Adds a step; its parts outside of the whole are left out. */
  add(number: number, from: number, to: number): void {
    const scale = this.bins / (this.whole.to - this.whole.from);
    const first = Math.max(0, (from - this.whole.from) * scale);
    const last = Math.min(this.bins, (to - this.whole.from) * scale);
    if (last < first || first >= this.bins) return;
    const row = this.row(number);
    const [left, right] = [Math.floor(first), Math.min(this.bins - 1, Math.floor(last))];
    // Steps without duration are also drawn.
    if (left === right) {
      row[left]! += Math.max(last - first, LEAST);
      return;
    }
    row[left]! += left + 1 - first;
    for (let bin = left + 1; bin < right; bin++) row[bin]! += 1;
    row[right]! += last - right;
  }

  private row(number: number): Float32Array {
    let at = this.place[number]!;
    if (at < 0) {
      at = this.place[number] = this.numbers.length;
      this.numbers.push(number);
      this.sums.push(new Float32Array(this.bins));
    }
    return this.sums[at]!;
  }

  /** The same in half as many bins. */
  halved(): Crowd {
    const half = new Crowd(this.whole, this.bins / 2);
    this.sums.forEach((row, at) => {
      const into = half.row(this.numbers[at]!);
      for (let bin = 0; bin < into.length; bin++) into[bin] = row[2 * bin]! + row[2 * bin + 1]!;
    });
    return half;
  }

  /** Fills `out` with the numbers that have most of each pixel of a span. */
  pixels(span: Span, out: Uint8Array): void {
    const { numbers, sums, bins, whole } = this;
    const width = out.length;
    if (ends.length <= width) {
      ends = new Int32Array(width + 1);
      most = new Float64Array(width);
    }
    const scale = bins / (whole.to - whole.from);
    const start = (span.from - whole.from) * scale;
    const each = ((span.to - span.from) / width) * scale;
    for (let x = 0; x <= width; x++) {
      ends[x] = Math.max(0, Math.min(bins, Math.floor(start + x * each)));
    }
    most.fill(0, 0, width);
    out.fill(0);
    // Number by number: so each row is read once, from its beginning to its end.
    for (let at = 0; at < sums.length; at++) {
      const [row, number] = [sums[at]!, numbers[at]!];
      for (let x = 0; x < width; x++) {
        const to = ends[x + 1]!;
        let bin = ends[x]!;
        if (bin >= bins) break;
        // A pixel has one bin at least.
        let sum = row[bin]!;
        for (bin++; bin < to; bin++) sum += row[bin]!;
        if (sum > most[x]!) {
          most[x] = sum;
          out[x] = number;
        }
      }
    }
  }
}

const LEAST = 1e-6;

/** The first bin of each pixel, and the most that any number has of it so far. */
let ends = new Int32Array(0);
let most = new Float64Array(0);

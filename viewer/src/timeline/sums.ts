// How many threads were at what, by pixel, from their steps. A step costs the same however long it
// is: where it begins and ends is noted, and added up along the pixels once all are there. Pure.
import type { Span } from '../data/profile';
import { lowerBound } from './time';
import { firstReaching, type Track } from './tracks';

export class Sums {
  private width = 0;
  /** By cause: the parts of pixels where steps begin and end. */
  private rows: Float64Array[] = [];
  /** By cause: how many steps go on from a pixel on, less those that ended. */
  private changes: Int32Array[] = [];
  private used: boolean[] = [];
  private nothing = new Float64Array(0);

  /** Empties all. Earlier results are overwritten. */
  begin(width: number, causes: number): void {
    if (width !== this.width || causes !== this.rows.length) {
      this.width = width;
      this.nothing = new Float64Array(width);
      this.rows = Array.from({ length: causes }, () => this.nothing);
      this.changes = Array.from({ length: causes }, () => new Int32Array(0));
    }
    this.used = this.rows.map(() => false);
  }

  /** The numbers of a cause. */
  row(cause: number): Float64Array {
    if (!this.used[cause]) {
      this.used[cause] = true;
      if (this.rows[cause] === this.nothing) {
        this.rows[cause] = new Float64Array(this.width);
        this.changes[cause] = new Int32Array(this.width + 1);
      } else {
        this.rows[cause]!.fill(0);
        this.changes[cause]!.fill(0);
      }
    }
    return this.rows[cause]!;
  }

  addSteps(track: Track, span: Span): void {
    const { width } = this;
    const scale = width / (span.to - span.from);
    const end = lowerBound(track.from, span.to);
    for (let at = firstReaching(track, span.from); at < end; at++) {
      const from = Math.max(0, (track.from[at]! - span.from) * scale);
      const to = Math.min(width, (track.to[at]! - span.from) * scale);
      if (to <= from) continue;
      const cause = track.cause[at]!;
      const row = this.row(cause);
      const left = Math.floor(from);
      const right = Math.floor(to);
      if (left === right) {
        row[left]! += to - from;
        continue;
      }
      row[left]! += left + 1 - from;
      if (right < width) row[right]! += to - right;
      const changes = this.changes[cause]!;
      changes[left + 1]! += 1;
      changes[right]! -= 1;
    }
  }

  /** The numbers by cause, all added up. */
  end(): Float64Array[] {
    return this.rows.map((row, cause) => {
      if (!this.used[cause]) return this.nothing;
      const changes = this.changes[cause]!;
      let going = 0;
      for (let x = 0; x < row.length; x++) {
        going += changes[x]!;
        row[x]! += going;
      }
      return row;
    });
  }
}

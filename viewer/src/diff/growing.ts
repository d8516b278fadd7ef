// Changes in a tree of callers that grows while the user opens nodes. Significance is tested over
// the present nodes, and again after the tree has grown.
import type { ReverseTree } from '../tree/reverse';
import type { Sides } from './sides';
import { type Change, changeOf, significant, type Sum, TESTED_FROM } from './statistics';
import type { Changes, TreeDiff } from './sums';

export function growingDiff(sides: Sides, tree: ReverseTree): TreeDiff {
  return {
    sides,
    total: new GrowingChanges(sides, tree, 'total'),
    own: new GrowingChanges(sides, tree, 'own'),
  };
}

class GrowingChanges implements Changes {
  /** By visited node; 0 if it was not tested. */
  private readonly z: number[] = [];
  private tested = 0;
  private marks: Uint8Array = new Uint8Array(0);
  private marked = 0;

  constructor(
    readonly sides: Sides,
    private readonly tree: ReverseTree,
    private readonly of: 'total' | 'own',
  ) {}

  private sums(node: number): readonly [Sum, Sum] {
    return this.tree.both(node)![this.of];
  }

  /** Visits new nodes. Existing nodes do not change. */
  private catchUp(): void {
    const { size } = this.tree;
    if (this.marks.length === size) return;
    for (let node = this.z.length; node < size; node++) {
      const [a, b] = this.sums(node);
      const isTested = a.samples + b.samples >= TESTED_FROM;
      this.z.push(isTested ? this.at(node).z : 0);
      if (isTested) this.tested++;
    }
    this.marks = significant(this.z, this.tested);
    this.marked = this.marks.reduce((sum, mark) => sum + mark, 0);
  }

  at(node: number): Change {
    const [a, b] = this.sums(node);
    return changeOf(this.sides.base, a, b);
  }

  rates(node: number): [number, number] {
    const { base } = this.sides;
    const [a, b] = this.sums(node);
    return [a.sum / base.a, b.sum / base.b];
  }

  isSignificant(node: number): boolean {
    this.catchUp();
    return this.marks[node] === 1;
  }

  get found(): number {
    this.catchUp();
    return this.marked;
  }

  isNew = (node: number): boolean => this.sums(node)[0].samples === 0;
  isGone = (node: number): boolean => this.sums(node)[1].samples === 0;
}

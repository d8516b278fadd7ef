// A frame of a comparison is described: both values, the change and its significance.
import { plural, type Unit } from '../data/format';
import type { TreeDiff } from './sums';
import { certainty, rate, relative, signedRate } from './words';

export function diffFacts(
  diff: TreeDiff,
  node: number,
  unit: Unit,
): [label: string, value: string][] {
  const { sides, total, own } = diff;
  const { per } = sides.base;
  const [all, self] = [total.at(node), own.at(node)];
  const side = (value: number, of: number, samples: number) =>
    `${rate(value, per, unit)}  (self ${rate(of, per, unit)}, ${plural(samples, 'sample')})`;
  return [
    [sides.names[0], side(all.a, self.a, all.samplesA)],
    [sides.names[1], side(all.b, self.b, all.samplesB)],
    ['Change', `${signedRate(all.b - all.a, per, unit)}  ${relative(all)}`.trimEnd()],
    ['Chance', `± ${rate(all.error, per, unit)}: ${certainty(all, total.isSignificant(node))}`],
  ];
}

/** Both sides and the change, in a line. */
export function changeInWords(diff: TreeDiff, node: number, unit: Unit): string {
  const { sides, total } = diff;
  const { per } = sides.base;
  const all = total.at(node);
  const [a, b] = [rate(all.a, per, unit), rate(all.b, per, unit)];
  const change = `${signedRate(all.b - all.a, per, unit)} ${relative(all)}`.trimEnd();
  const mark = total.isSignificant(node) ? ' *' : '';
  return `${sides.names[0]} ${a}, ${sides.names[1]} ${b}: ${change}${mark}`;
}

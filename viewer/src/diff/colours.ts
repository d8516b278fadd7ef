// Colours of differences: red is more, blue is less, stronger means larger, grey is not
// significant. Tests check that red and blue differ with any colour deficiency. Signs in front of
// names say the same without colour.
import { type Colours, contrast, mix, type Paint, type Theme } from '../flame/colours';
import { pixelOf } from '../flame/raster';
import type { TreeDiff } from './sums';

/** From a small change to one of all there was: parts of the larger of both sides. */
export const STEPS: readonly number[] = [0.1, 0.25, 0.5, 0.9];

interface Base {
  none: string;
  more: string;
  less: string;
}

const BASES: Readonly<Record<Theme, Base>> = {
  light: { none: '#e9e9e9', more: '#c2182f', less: '#1559b8' },
  dark: { none: '#3b3e44', more: '#ff6b5e', less: '#5cb0ff' },
};
/** How much of the full colour the steps have; with high contrast all are strong. */
const STRENGTH = { normal: [0.3, 0.5, 0.75, 1], more: [0.62, 0.75, 0.88, 1] };

export interface DiffColours {
  none: Paint;
  /** By step, weak to strong. */
  more: readonly Paint[];
  less: readonly Paint[];
}

export function diffColours(theme: Theme, strong: boolean): DiffColours {
  const { none, more, less } = BASES[theme];
  const steps = STRENGTH[strong ? 'more' : 'normal'];
  return {
    none: paint(none),
    more: steps.map((part) => paint(mix(none, more, part))),
    less: steps.map((part) => paint(mix(none, less, part))),
  };
}

function paint(fill: string): Paint {
  const [dark, light] = ['#000000', '#ffffff'];
  const text = contrast(fill, dark) >= contrast(fill, light) ? dark : light;
  return { fill, pixel: pixelOf(fill), text };
}

/** How large a change is: 0 none, or chance; else the step from 1 on, negative if it is less. */
export function stepOf(a: number, b: number, isSignificant: boolean): number {
  const larger = Math.max(a, b);
  if (!isSignificant || !(larger > 0)) return 0;
  const part = Math.abs(b - a) / larger;
  // A significant change always has a colour.
  const step = Math.max(1, STEPS.filter((from) => part >= from).length);
  return b > a ? step : -step;
}

/** How the nodes of a compared tree look. */
export interface DiffLook {
  paint(node: number, isBack: boolean): Paint;
  /** A sign for the change, to be written before the name. */
  sign(node: number): string;
}

export function diffLook(diff: TreeDiff, colours: DiffColours, { background }: Colours): DiffLook {
  const { total } = diff;
  const back = (from: Paint) => paint(mix(from.fill, background, 0.72));
  const dimmed: DiffColours = {
    none: back(colours.none),
    more: colours.more.map(back),
    less: colours.less.map(back),
  };
  const step = (node: number) => {
    const [a, b] = total.rates(node);
    return stepOf(a, b, total.isSignificant(node));
  };
  return {
    paint(node, isBack) {
      const [of, at] = [isBack ? dimmed : colours, step(node)];
      if (at === 0) return of.none;
      return (at > 0 ? of.more[at - 1] : of.less[-at - 1]) ?? of.none;
    },
    sign(node) {
      if (total.isNew(node)) return '✚ ';
      if (total.isGone(node)) return '✖ ';
      const at = step(node);
      return at === 0 ? '' : at > 0 ? '▲ ' : '▼ ';
    },
  };
}

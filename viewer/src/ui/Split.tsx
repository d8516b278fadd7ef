// A bar of wall time by cause, with its parts as text for screen readers.
import { percent } from '../data/format';
import { plain } from '../data/plain';
import { sum } from '../data/wall';
import { causeColour, causeWords } from '../flame/causes';
import { theme } from '../state/theme';

/** A smaller part of a bar cannot be seen. */
const SEEN = 0.004;
/** Causes that are named in words. */
const TOLD = 6;

export interface Part {
  cause: string;
  weight: number;
}

/** The parts of a split that are there, the greatest first. */
export function partsOf(causes: readonly string[], split: ArrayLike<number>): Part[] {
  return causes
    .map((cause, i) => ({ cause, weight: split[i] ?? 0 }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight);
}

/** `socket 88 %, running 7 %`. */
export function inWords(parts: readonly Part[], all: number): string {
  return parts
    .slice(0, TOLD)
    .map(({ cause, weight }) => `${plain(cause)} ${percent(weight / (all || 1))}`)
    .join(', ');
}

export function SplitBar(props: { causes: readonly string[]; split: ArrayLike<number> }) {
  const all = sum(props.split) || 1;
  const parts = partsOf(props.causes, props.split);
  const words = inWords(parts, all);
  return (
    <div class="split" role="img" aria-label={words || 'nothing seen'} title={words}>
      {parts
        .filter(({ weight }) => weight / all >= SEEN)
        .map(({ cause, weight }) => (
          <span
            key={cause}
            style={{ flexGrow: weight / all, background: causeColour(cause, theme.value) }}
          />
        ))}
    </div>
  );
}

export function Swatch({ colour }: { colour: string }) {
  return <span class="swatch" style={{ background: colour }} />;
}

/** The colours of causes, each with its words. */
export function CauseLegend({ causes }: { causes: readonly string[] }) {
  return (
    <ul class="key" aria-label="Colours">
      {causes.map((cause) => (
        <li key={cause} title={causeWords(cause)}>
          <Swatch colour={causeColour(cause, theme.value)} />
          {plain(cause)}
        </li>
      ))}
    </ul>
  );
}

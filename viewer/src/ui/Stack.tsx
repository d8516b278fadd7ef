// A stack as lines of text, innermost first.
import { useSignal } from '@preact/signals';
import type { Profile } from '../data/profile';
import { count, plural } from '../data/format';
import { depthOf, javaEnd, type Line, linesOf } from '../data/stacks';
import { shortened } from '../data/plain';
import { readable } from '../tree/readable';

const FIRST = 14;
const MOST = 500;
const NAME_MAX = 160;

export function StackLines(props: {
  profile: Profile;
  node: number;
  label: string;
  /** Frames from this node outwards are shown elsewhere; missing or 0: none are. */
  until?: number;
}) {
  const { profile, node, until = 0 } = props;
  const whole = useSignal(false);
  if (node === 0) return <p class="weak">No stack was sampled.</p>;
  // How the JVM waits is the same everywhere: it is shown on demand.
  const java = javaEnd(profile, node);
  const start = whole.value ? node : java.node;
  const own = whole.value ? MOST : Math.max(1, depthOf(profile, start) - depthOf(profile, until));
  const lines = linesOf(profile, start, Math.min(own, whole.value ? MOST : FIRST));
  const isCut = until !== 0 && !whole.value && lines.length === own;
  const more = depthOf(profile, start) - lines.length;
  return (
    <>
      <ol class="stack" aria-label={props.label}>
        {java.skipped > 0 && !whole.value && (
          <li class="weak">({plural(java.skipped, 'frame')} of the runtime and of libraries)</li>
        )}
        {lines.map((line, i) => (
          <li key={i}>{text(line, whole.value)}</li>
        ))}
        {more > 0 && (
          <li class="weak">
            … {count(more)} more{isCut && ', as above'}
          </li>
        )}
      </ol>
      {(more > 0 || java.skipped > 0) && !whole.value && (
        <button type="button" class="quiet link" onClick={() => (whole.value = true)}>
          all frames
        </button>
      )}
    </>
  );
}

/** Generated classes have their own names where all is shown. */
function text({ className: original, method, line }: Line, isWhole: boolean) {
  const className = isWhole ? original : readable(original);
  const at = line > 0 ? `:${line}` : '';
  return (
    <>
      <span class="weak">{className === '' ? '' : `${shortened(className, NAME_MAX)}.`}</span>
      {shortened(method, NAME_MAX) || '(unnamed)'}
      <span class="weak">{at}</span>
    </>
  );
}

// Facts about the frame under the pointer or under the keyboard focus.
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { FlameController } from '../flame/controller';
import { describe } from '../flame/describe';
import type { Store } from '../state/store';

const GAP = 14;

export function Tooltip({ store, controller }: { store: Store; controller: FlameController }) {
  const box = useRef<HTMLDivElement>(null);
  const tree = store.tree.value;
  const pointed = controller.pointed.value;
  void [store.range.value, store.growth.value];
  const place = pointed ?? (controller.byKey.value ? controller.focusedPlace() : null);
  const node = pointed?.node ?? store.focused.value;
  const shown = tree && place && node < tree.size && (pointed || node !== 0);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !place) return;
    const { offsetWidth, offsetHeight } = element;
    const left = Math.min(place.x + GAP, window.innerWidth - offsetWidth - 4);
    const below = place.y + GAP;
    const fits = below + offsetHeight < window.innerHeight;
    const top = fits ? below : place.y - offsetHeight - GAP * 2;
    element.style.left = `${Math.max(4, left)}px`;
    element.style.top = `${Math.max(4, top)}px`;
  });

  if (!shown) return null;
  const { name, kind, facts } = describe(
    store.shown.value,
    store.keys.value,
    tree,
    node,
    store.zoom.value,
    store.whole.value,
    store.diff.value,
    store.gaps.value,
  );
  return (
    <div ref={box} class="tooltip" aria-hidden="true">
      <div class="tooltip-name">{name}</div>
      <div class="tooltip-kind">{kind}</div>
      <dl>
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

// What can be done with a frame, at the pointer: in the graph, the table and the tree.
import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { shortened } from '../data/plain';
import type { Profile } from '../data/profile';
import type { Store } from '../state/store';
import type { Keys } from '../tree/keys';
import { frameKey, openDialog } from './commands';
import { copy, stackText } from './copy';
import { ideLink, ideSetting } from './ide';

const NAME_MAX = 60;
const EDGE = 4;

/** A frame that the menu is about. */
export interface Chosen {
  store: Store;
  x: number;
  y: number;
  key: number;
  /** Its node in the tree on show; -1: it is all calls of a method. */
  node: number;
}

export const frameMenu = signal<Chosen | null>(null);

/** Opens the menu of a frame of code; other frames have none. Says whether it did. */
export function openMenu(chosen: Chosen): boolean {
  if (chosen.key < 0 || chosen.store.keys.value.isGroup(chosen.key)) return false;
  frameMenu.value = chosen;
  return true;
}

export function FrameMenu() {
  const chosen = frameMenu.value;
  return chosen && <Menu key={`${chosen.x} ${chosen.y}`} chosen={chosen} />;
}

function Menu({ chosen }: { chosen: Chosen }) {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef<Element | null>(null);
  useLayoutEffect(() => {
    const element = box.current!;
    const left = Math.min(chosen.x, window.innerWidth - element.offsetWidth - EDGE);
    const top = Math.min(chosen.y, window.innerHeight - element.offsetHeight - EDGE);
    element.style.left = `${Math.max(EDGE, left)}px`;
    element.style.top = `${Math.max(EDGE, top)}px`;
    before.current = document.activeElement;
    element.querySelector<HTMLElement>('button')?.focus();
  }, []);
  const close = () => {
    frameMenu.value = null;
    if (before.current instanceof HTMLElement) before.current.focus();
  };
  useEffect(() => {
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) frameMenu.value = null;
    };
    document.addEventListener('pointerdown', outside, true);
    document.addEventListener('wheel', outside, true);
    return () => {
      document.removeEventListener('pointerdown', outside, true);
      document.removeEventListener('wheel', outside, true);
    };
  }, []);
  const onKey = (event: KeyboardEvent) => {
    const items = [...box.current!.querySelectorAll<HTMLElement>('button')];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = {
      ArrowDown: (at + 1) % items.length,
      ArrowUp: (at + items.length - 1) % items.length,
      Home: 0,
      End: items.length - 1,
    };
    if (event.key === 'Escape' || event.key === 'Tab') close();
    else if (Object.hasOwn(steps, event.key)) items[steps[event.key]!]!.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const { store, key } = chosen;
  return (
    <div
      ref={box}
      class="frame-menu"
      role="menu"
      tabIndex={-1}
      aria-label={`Frame ${shortened(store.keys.value.label(key), NAME_MAX)}`}
      onKeyDown={onKey}
    >
      {entriesOf(chosen).map(([label, run]) => (
        <button
          key={label}
          type="button"
          role="menuitem"
          onClick={() => {
            close();
            run();
          }}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/** Opens the method in the editor that is set, if one is and the method has a source. */
function inEditor(store: Store, key: number): [string, () => void][] {
  const keys = store.keys.value;
  const className = keys.originals(key) || keys.className(key);
  const link = ideLink(
    ideSetting.value,
    className,
    keys.line(key) || lineOf(store.profile, keys, key),
  );
  return link === '' ? [] : [['Open in IDE', () => void (location.href = link)]];
}

/** A line of a method that the recording has: the smallest one is next to its beginning. */
function lineOf({ frames }: Profile, keys: Keys, key: number): number {
  let least = 0;
  for (let frame = 0; frame < frames.line.length; frame++) {
    const line = frames.line[frame]!;
    if (keys.ofFrame[frame] === key && line > 0 && (least === 0 || line < least)) least = line;
  }
  return least;
}

function entriesOf({ store, key, node }: Chosen): [label: string, run: () => void][] {
  const keys = store.keys.value;
  const name = keys.methodLabel(key);
  const tree = store.tree.value;
  const entries: [string, () => void][] = [
    ['Callers and callees', () => store.go('flame', { around: name })],
    ['Only its callees', () => store.transform({ kind: 'focus', name })],
    ['Merge into its callers', () => store.transform({ kind: 'merge', name })],
    ['Drop stacks with it', () => store.transform({ kind: 'drop', name })],
    [
      'More…',
      () => {
        frameKey.value = key;
        openDialog.value = 'frame';
      },
    ],
    ...inEditor(store, key),
    ['Copy name', () => void copy(store, 'the name', keys.label(key))],
  ];
  if (tree && node > 0 && node < tree.size) {
    const stack = () => copy(store, 'the stack', stackText(tree, keys, node));
    entries.push(['Copy stack', () => void stack()]);
  } else {
    entries.unshift(['Find in the flame graph', () => store.find(name)]);
  }
  return entries;
}

// The flame graph: a scrolled canvas, its pointer and its keys.
import { useEffect, useRef, useState } from 'preact/hooks';
import { takeFocus } from '../ui/focus';
import type { Store } from '../state/store';
import { openMenu } from '../ui/FrameMenu';
import { Tooltip } from '../ui/Tooltip';
import { FlameController } from './controller';
import { spoken } from './describe';
import { type Move, moved } from './moves';

interface Props {
  store: Store;
  /** Name of this part of the view; missing: it is the whole view. */
  part?: string;
  /** Action of the right button; missing: it opens the frame's menu. */
  choose?: (node: number) => void;
}

export function FlameView({ store, part, choose }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [controller, setController] = useState<FlameController | null>(null);

  useEffect(() => {
    const made = new FlameController(store, scroller.current!, spacer.current!, canvas.current!);
    setController(made);
    // For tests and measuring from outside of the page.
    Object.assign(window, { [part ? `dwellFlame${part}` : 'dwellFlame']: made });
    if (!part) takeFocus(scroller.current);
    return () => made.dispose();
  }, [store, part]);

  return (
    <div class="flame">
      <div
        ref={scroller}
        class="flame-scroll"
        tabIndex={0}
        role="application"
        aria-label={`${part ?? 'Flame graph'}. Arrow keys move, Enter zooms, Escape zooms out; t shows a table.`}
        aria-describedby="said"
        onKeyDown={(event) => controller && onKey(store, controller, event)}
        onBlur={() => controller && (controller.byKey.value = false)}
        onPointerMove={(event) => controller && point(controller, event)}
        onPointerLeave={() => controller && (controller.pointed.value = null)}
        onClick={(event) => controller && click(store, controller, event)}
        onContextMenu={(event) => controller && menu(store, controller, event, choose)}
        onDblClick={() => store.resetZoom()}
      >
        <div ref={spacer}>
          <canvas ref={canvas} class="flame-canvas" aria-hidden="true" />
        </div>
      </div>
      {controller && <Tooltip store={store} controller={controller} />}
    </div>
  );
}

function point(controller: FlameController, event: PointerEvent): void {
  if (event.pointerType === 'touch') return;
  controller.byKey.value = false;
  const node = controller.nodeAt(event.clientX, event.clientY);
  controller.pointed.value = node < 0 ? null : { node, x: event.clientX, y: event.clientY };
}

function click(store: Store, controller: FlameController, event: MouseEvent): void {
  const node = controller.nodeAt(event.clientX, event.clientY);
  // The second click of a double click zooms out instead.
  if (node < 0 || event.detail > 1) return;
  controller.pointed.value = null;
  store.zoomTo(node);
}

/** The other button: what can be done with a frame. */
function menu(
  store: Store,
  controller: FlameController,
  event: MouseEvent,
  choose?: (node: number) => void,
): void {
  const node = controller.nodeAt(event.clientX, event.clientY);
  if (node <= 0) return;
  event.preventDefault();
  controller.pointed.value = null;
  if (choose) return choose(node);
  store.focused.value = node;
  const tree = store.tree.value!;
  openMenu({ store, x: event.clientX, y: event.clientY, key: tree.key(node), node });
}

/** The menu of the frame that has the focus, by key. */
function menuByKey(store: Store, controller: FlameController): void {
  const [tree, node] = [store.tree.value, store.focused.value];
  const place = controller.focusedPlace();
  if (tree && node > 0 && place) openMenu({ store, ...place, key: tree.key(node), node });
}

const MOVES: Readonly<Record<string, Move>> = {
  ArrowLeft: 'before',
  ArrowRight: 'after',
  Home: 'first',
  End: 'last',
};

function onKey(store: Store, controller: FlameController, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const tree = store.tree.value;
  if (!tree) return;
  const node = store.focused.value;
  let move = MOVES[event.key];
  const up = event.key === 'ArrowUp';
  if (up || event.key === 'ArrowDown') move = up === store.icicle.value ? 'out' : 'in';
  if (move) {
    store.focus(moved(tree, node, move));
    say(store);
  } else if (event.key === 'Enter') {
    store.zoomTo(node);
    say(store);
  } else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
    menuByKey(store, controller);
  } else return;
  controller.byKey.value = true;
  controller.pointed.value = null;
  event.preventDefault();
}

function say(store: Store): void {
  const tree = store.tree.value;
  if (!tree) return;
  const { shown, keys, focused, whole, diff } = store;
  store.said.value = spoken(shown.value, keys.value, tree, focused.value, whole.value, diff.value);
}

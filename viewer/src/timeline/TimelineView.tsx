// The timeline: names of lanes beside a canvas, tools above, what was chosen below.
import { useEffect, useRef, useState } from 'preact/hooks';
import { count, CPU_TIME, duration } from '../data/format';
import { inSentence, plain, shortened } from '../data/plain';
import type { Span } from '../data/profile';
import { causesOf, splitBy } from '../data/wall';
import {
  causeColour,
  RUNTIME_COLOURS,
  RUNTIME_WORDS,
  STOP_COLOURS,
  STOP_WORDS,
} from '../flame/causes';
import { takeFocus } from '../ui/focus';
import type { Store } from '../state/store';
import { theme } from '../state/theme';
import { CauseLegend, Swatch } from '../ui/Split';
import { TimelineController } from './controller';
import { spoken, tell } from './describe';
import { Details } from './Details';
import { AXIS, LANE } from './draw';
import { hitAtCursor, onKey } from './keyboard';
import type { Lane } from './lanes';
import { runtimeLanes } from './runtime';
import { moved } from './time';

/** Rows of names made beyond the edges. */
const BEYOND = 6;
/** A drag of fewer pixels is a click. */
const DRAG_PX = 4;
/** Characters of a lane's name in a narrow window. */
const NARROW_CHARS = 9;

export function TimelineView({ store }: { store: Store }) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [controller, setController] = useState<TimelineController | null>(null);
  useEffect(() => {
    const made = new TimelineController(store, scroller.current!, canvas.current!);
    setController(made);
    // For tests and measuring from outside of the page.
    Object.assign(window, { dwellTimeline: made });
    takeFocus(scroller.current);
    return () => made.dispose();
  }, [store]);
  const lanes = controller?.lanes.value ?? [];
  return (
    <div class="timeline">
      <Tools store={store} controller={controller} />
      <div
        ref={scroller}
        class="lanes-scroll"
        tabIndex={0}
        role="application"
        aria-label={
          'Timeline. Up and down choose a lane, left and right a step in it, Enter shows its stack ' +
          'or folds a pool, plus and minus zoom, Shift with left and right moves.'
        }
        aria-describedby="said"
        onKeyDown={(event) => controller && onKey(controller, event)}
        onBlur={() => controller && (controller.cursor.value = null)}
      >
        <div class="lanes-body" style={{ height: `${AXIS + lanes.length * LANE}px` }}>
          <div class="lane-names">
            <div class="lane-corner">{controller && <InSight controller={controller} />}</div>
            {controller && <Names controller={controller} />}
          </div>
          <canvas
            ref={canvas}
            class="lanes-canvas"
            aria-hidden="true"
            {...(controller ? pointerOf(controller) : {})}
          />
        </div>
      </div>
      {controller && <Tip controller={controller} />}
      {controller && <Details controller={controller} />}
    </div>
  );
}

/** A separate component, so that only this part renders again with every frame. */
function InSight({ controller }: { controller: TimelineController }) {
  return (
    <>
      <span class="wide-only">showing </span>
      {duration(length(controller.sight.value))}
    </>
  );
}

function length({ from, to }: Span): number {
  return to - from;
}

function Tools({ store, controller }: { store: Store; controller: TimelineController | null }) {
  const { during } = store;
  const left = controller?.leftOut.value ?? 0;
  return (
    <div class="timeline-tools">
      <div class="group">
        <button type="button" title="Key +" onClick={() => controller?.zoom(1)}>
          Zoom in
        </button>
        <button type="button" title="Key -" onClick={() => controller?.zoom(-1)}>
          Zoom out
        </button>
        <button type="button" title="Key 0" onClick={() => (store.sight.value = null)}>
          All
        </button>
        <button
          type="button"
          disabled={during.value === null}
          onClick={() => (store.sight.value = during.value)}
        >
          Zoom to range
        </button>
      </div>
      <Colours store={store} />
      {left > 0 && (
        <span class="weak" role="note">
          {count(left)} more threads have no lane: choose threads above to see them
        </span>
      )}
      <span class="weak hint">
        Drag to select, drag the axis or Shift+wheel to pan, Ctrl+wheel to zoom.
      </span>
    </div>
  );
}

const seenCauses = new WeakMap<object, string[]>();

function Colours({ store }: { store: Store }) {
  const { profile } = store;
  let causes = seenCauses.get(profile);
  if (!causes) {
    const threads = new Uint8Array(profile.threads.name.length).fill(1);
    const filter = { threads, endpoint: null, idle: true, during: null, request: 0 };
    const [split] = splitBy(profile, filter, () => 0).values();
    causes = causesOf(profile).filter((_, i) => i === 0 || (split?.[i] ?? 0) > 0);
    seenCauses.set(profile, causes);
  }
  const { waits } = store.tracks.value;
  const measured = plain(store.profile.header.measured ?? CPU_TIME);
  return (
    <div class="legend-line" role="group" aria-label="Legend">
      <CauseLegend causes={causes} />
      <ul class="key" aria-label="Marks">
        <li>
          <span class="mark" /> {measured === CPU_TIME ? 'sample of CPU time' : measured}
        </li>
        {waits.any && (
          <li>
            <Swatch colour={causeColour('monitor', theme.value)} />
            exact monitor waits (lower bar; pale: a small part of the time)
            {waits.summed > 0 && `; ${count(waits.summed)} are known as sums only`}
          </li>
        )}
        {profile.requests.time.length > 0 && (
          <li>
            <span class="request-mark" /> request (dark: slowest 5 %)
          </li>
        )}
        {runtimeLanes(profile).map(({ what }) =>
          what === 'jit' || what === 'throttled' ? (
            <li key={what}>
              <Swatch colour={RUNTIME_COLOURS[what]} />
              {RUNTIME_WORDS[what]}
            </li>
          ) : null,
        )}
        {profile.stretches.map(({ kind }) => (
          <li key={kind.title}>
            <Swatch colour={causeColour(kind.cause, theme.value)} />
            {inSentence(kind.title)}
          </li>
        ))}
        {profile.stops.time.length > 0 &&
          STOP_WORDS.map((words, i) => (
            <li key={words}>
              <Swatch colour={STOP_COLOURS[i]!} />
              {words}
            </li>
          ))}
      </ul>
    </div>
  );
}

/** The names of the lanes in sight: buttons to fold a pool, or to look at one thread alone. */
function Names({ controller }: { controller: TimelineController }) {
  const lanes = controller.lanes.value;
  const first = Math.max(0, Math.floor(controller.scrollTop.value / LANE) - BEYOND);
  const count = Math.ceil(controller.height.value / LANE) + 2 * BEYOND;
  return (
    <>
      {lanes.slice(first, first + count).map((lane, i) => (
        <div
          key={first + i}
          class={lane.kind === 'thread' && lane.inPool ? 'lane-name within' : 'lane-name'}
          style={{ top: `${AXIS + (first + i) * LANE}px`, height: `${LANE}px` }}
        >
          <Name controller={controller} lane={lane} />
        </div>
      ))}
    </>
  );
}

function Name({ controller, lane }: { controller: TimelineController; lane: Lane }) {
  const { store } = controller;
  const full = plain(lane.name);
  // A narrow lane would hide the number at the end, in which the names of a pool differ.
  const isNarrow = controller.width.value > 0 && window.innerWidth <= 640;
  if (lane.kind === 'runtime') return <span title={full}>{shortened(full, 80)}</span>;
  const name = shortened(full, isNarrow ? NARROW_CHARS : 80);
  if (lane.kind === 'pool') {
    return (
      <button
        type="button"
        class="quiet"
        aria-expanded={lane.open}
        title={`${full}: ${count(lane.threads.length)} threads`}
        onClick={() => controller.toggle(lane.key)}
      >
        {lane.open ? '▾' : '▸'} {name} <span class="weak">({count(lane.threads.length)})</span>
      </button>
    );
  }
  const choice = store.choice.value;
  const isOnly = choice.kind === 'one' && choice.thread === lane.thread;
  return (
    <button
      type="button"
      class="quiet"
      aria-pressed={isOnly}
      title={`${full}: show only this thread, in all views`}
      onClick={() => {
        store.choice.value = isOnly ? { kind: 'all' } : { kind: 'one', thread: lane.thread };
      }}
    >
      {name}
    </button>
  );
}

/** Dragging, pointing and clicking. */
function pointerOf(controller: TimelineController) {
  const { store } = controller;
  type Drag = { x: number; at: number; sight: Span; moves: boolean; far: boolean };
  const state = controller as unknown as { drag?: Drag };
  return {
    onPointerDown(event: PointerEvent) {
      if (event.button !== 0) return;
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      const moves =
        event.shiftKey || event.pointerType === 'touch' || controller.isAxis(event.clientY);
      state.drag = {
        x: event.clientX,
        at: controller.timeAt(event.clientX),
        sight: controller.sight.peek(),
        moves,
        far: false,
      };
    },
    onPointerMove(event: PointerEvent) {
      const { drag } = state;
      if (!drag) {
        const hit = controller.hitAt(event.clientX, event.clientY);
        controller.pointed.value =
          hit && event.pointerType !== 'touch' ? { hit, x: event.clientX, y: event.clientY } : null;
        return;
      }
      drag.far ||= Math.abs(event.clientX - drag.x) >= DRAG_PX;
      if (!drag.far) return;
      controller.pointed.value = null;
      if (drag.moves) {
        const scale = length(drag.sight) / Math.max(1, controller.width.peek());
        controller.set(moved(drag.sight, (drag.x - event.clientX) * scale, controller.whole));
      } else {
        const at = controller.timeAt(event.clientX);
        controller.dragged.value = { from: Math.min(drag.at, at), to: Math.max(drag.at, at) };
      }
    },
    onPointerUp(event: PointerEvent) {
      const { drag } = state;
      delete state.drag;
      if (!drag) return;
      const dragged = controller.dragged.peek();
      controller.dragged.value = null;
      if (drag.far) {
        const isBase = (event.ctrlKey || event.metaKey) && !store.profile.header.compare;
        if (dragged && dragged.to > dragged.from) store.chooseRange(dragged, isBase);
        return;
      }
      const hit = controller.hitAt(event.clientX, event.clientY);
      if (hit?.lane.kind === 'pool') controller.toggle(hit.lane.key);
      else if (hit?.request) store.request.value = hit.request;
      else controller.choose(hit?.step ?? null);
    },
    onPointerLeave() {
      controller.pointed.value = null;
    },
    onDblClick() {
      store.sight.value = null;
    },
  };
}

/** The keyboard's place in a lane of the runtime, which no other part of the page shows. */
function atCursor(controller: TimelineController) {
  const at = controller.cursor.value;
  const hit = at && hitAtCursor(controller);
  if (!hit || hit.lane.kind !== 'runtime') return null;
  return { hit, ...controller.cursorPlace(at) };
}

function Tip({ controller }: { controller: TimelineController }) {
  const pointed = controller.pointed.value ?? atCursor(controller);
  if (!pointed) return null;
  const told = tell(controller.store.profile, pointed.hit);
  const isRight = pointed.x > window.innerWidth / 2;
  // In a narrow window it is as wide as the room next to the pointer.
  const room = (isRight ? pointed.x : window.innerWidth - pointed.x) - 16;
  const isLow = pointed.y > window.innerHeight / 2;
  return (
    <div
      class="tooltip"
      style={{
        left: isRight ? 'auto' : `${pointed.x + 12}px`,
        right: isRight ? `${window.innerWidth - pointed.x + 12}px` : 'auto',
        maxWidth: `min(520px, ${room}px)`,
        top: isLow ? 'auto' : `${pointed.y + 14}px`,
        bottom: isLow ? `${window.innerHeight - pointed.y + 14}px` : 'auto',
      }}
      role="tooltip"
      aria-label={spoken(told)}
    >
      <div class="tooltip-name">{shortened(plain(told.title), 160)}</div>
      <div class="tooltip-kind">{told.kind}</div>
      <dl>
        {told.facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{shortened(plain(value), 120)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

// Values over the time of the recording as stacked bars. Dragging over them chooses a part of the
// time; the keyboard has fields for that (see Filters).
import { useEffect, useRef } from 'preact/hooks';
import { duration, few, size } from '../data/format';
import type { Span } from '../data/profile';
import type { Strip } from '../data/wall';
import { coloursOf } from '../flame/colours';
import type { Store } from '../state/store';
import { contrastful, theme } from '../state/theme';
import { ticksOf } from '../timeline/time';

export interface Series {
  name: string;
  colour: string;
  /** The series of the strip. */
  at: number;
}

/** The unit of bytes: values are bytes a nanosecond. */
export const BYTES = 'bytes';

/** The range that is chosen, and the one that it is compared with. */
type Chosen = readonly [Span | null, Span | null];

const AXIS = 16;
const LEFT = 44;

export function StripView(props: {
  store: Store;
  title: string;
  strip: Strip;
  series: readonly Series[];
  height: number;
  /** Unit of a value, e.g. threads: a bin's value is divided by its time. */
  unit: string;
}) {
  const { store, strip, series, height, unit } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [during, against] = [store.during.value, store.against.value];
  const [scheme, contrast] = [theme.value, contrastful.value];
  useEffect(() => {
    const element = canvas.current!;
    const paint = () => draw(element, strip, series, [during, against], height, unit);
    const observer = new ResizeObserver(paint);
    observer.observe(element);
    paint();
    return () => observer.disconnect();
  }, [strip, series, during, against, height, unit, scheme, contrast]);
  const timeAt = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT);
    return strip.span.from + Math.max(0, Math.min(1, share)) * (strip.span.to - strip.span.from);
  };
  const from = useRef<number | null>(null);
  /** Whether it is the range that another one is compared with. */
  const isBase = useRef(false);
  const move = (event: PointerEvent, isLast: boolean) => {
    if (from.current === null) return;
    const at = timeAt(event);
    const [a, b] = [Math.min(from.current, at), Math.max(from.current, at)];
    const bin = (strip.span.to - strip.span.from) / strip.bins;
    const chosen = { from: a, to: b };
    if (isLast) store.chooseRange(b - a > bin ? chosen : null, isBase.current);
    else {
      const ranges: Chosen = isBase.current ? [during, chosen] : [chosen, against];
      draw(canvas.current!, strip, series, ranges, height, unit);
    }
    if (isLast) from.current = null;
  };
  const top = topOf(strip, series);
  return (
    <figure class="strip">
      <figcaption>
        {props.title} <span class="weak">{scaleText(top, unit)}</span>
      </figcaption>
      <canvas
        ref={canvas}
        style={{ height: `${height}px` }}
        role="img"
        aria-label={`${props.title}. ${series.map(({ name }) => name).join(', ')}.`}
        onPointerDown={(event) => {
          if (event.button !== 0 || event.pointerType === 'touch') return;
          event.currentTarget.setPointerCapture(event.pointerId);
          from.current = timeAt(event);
          isBase.current = (event.ctrlKey || event.metaKey) && !store.profile.header.compare;
        }}
        onPointerMove={(event) => move(event, false)}
        onPointerUp={(event) => move(event, true)}
      />
    </figure>
  );
}

function scaleText(top: number, unit: string): string {
  if (unit === '%') return `peak ${few(top * 100)} % of the time`;
  if (unit === BYTES) return `peak ${size(top * 1e9)} a second`;
  return `peak ${few(top)} ${unit}`;
}

/** The same next to the strip, where there is less room. */
function axisText(top: number, unit: string): string {
  if (unit === '%') return `${few(top * 100)} %`;
  // The title has its unit.
  if (unit === BYTES) return size(top * 1e9).split(' ')[0]!;
  if (top >= 10) return top.toFixed(0);
  return top >= 1 ? top.toFixed(1) : top >= 0.005 ? top.toFixed(2) : few(top);
}

/** The highest bar, in what one bin can hold. */
function topOf(strip: Strip, series: readonly Series[]): number {
  const bin = (strip.span.to - strip.span.from) / strip.bins;
  let top = 0;
  for (let i = 0; i < strip.bins; i++) {
    let all = 0;
    for (const { at } of series) all += strip.values[at]?.[i] ?? 0;
    top = Math.max(top, all / bin);
  }
  return top;
}

function draw(
  canvas: HTMLCanvasElement,
  strip: Strip,
  series: readonly Series[],
  [during, against]: Chosen,
  height: number,
  unit: string,
): void {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (width === 0) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d')!;
  const style = getComputedStyle(canvas);
  const [text, line] = [style.getPropertyValue('--weak'), style.getPropertyValue('--line')];
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = coloursOf(theme.peek()).background;
  context.fillRect(0, 0, width, height);
  const plot = { left: LEFT, width: width - LEFT, height: height - AXIS };
  const { span } = strip;
  const scale = plot.width / (span.to - span.from);
  const top = topOf(strip, series) || 1;
  const bin = (span.to - span.from) / strip.bins;
  const step = plot.width / strip.bins;
  for (let i = 0; i < strip.bins; i++) {
    let y = plot.height;
    for (const { at, colour } of series) {
      const tall = ((strip.values[at]?.[i] ?? 0) / bin / top) * (plot.height - 4);
      if (tall <= 0) continue;
      context.fillStyle = colour;
      const left = Math.round((plot.left + i * step) * ratio) / ratio;
      const right = Math.round((plot.left + (i + 1) * step) * ratio) / ratio;
      context.fillRect(left, y - tall, right - left, tall);
      y -= tall;
    }
  }
  context.font = '11px system-ui, sans-serif';
  context.fillStyle = text;
  context.strokeStyle = line;
  context.textBaseline = 'top';
  context.fillText(axisText(top, unit), 2, 2, LEFT - 4);
  context.fillText('0', 2, plot.height - 10);
  context.beginPath();
  context.moveTo(plot.left, plot.height + 0.5);
  context.lineTo(width, plot.height + 0.5);
  context.stroke();
  for (const time of ticksOf(span, plot.width)) {
    const x = plot.left + (time - span.from) * scale;
    const label = time === 0 ? '0' : duration(time);
    const room = context.measureText(label).width;
    context.fillText(label, Math.min(width - room, Math.max(plot.left, x - room / 2)), height - 13);
  }
  if (against) {
    const [a, b] = [(against.from - span.from) * scale, (against.to - span.from) * scale];
    context.strokeStyle = text;
    context.lineWidth = 2;
    context.setLineDash([5, 4]);
    context.strokeRect(plot.left + a, 1, Math.max(2, b - a), plot.height - 2);
    context.setLineDash([]);
    context.fillStyle = text;
    context.fillText('A', plot.left + a + 4, 4);
  }
  if (!during) return;
  if (against) {
    // Neither range is more than the other: nothing is dimmed.
    const [a, b] = [(during.from - span.from) * scale, (during.to - span.from) * scale];
    context.strokeStyle = style.getPropertyValue('--accent');
    context.lineWidth = 2;
    context.strokeRect(plot.left + a, 1, Math.max(2, b - a), plot.height - 2);
    context.fillText('B', plot.left + a + 4, 4);
    return;
  }
  const [a, b] = [(during.from - span.from) * scale, (during.to - span.from) * scale];
  context.globalAlpha = 0.7;
  context.fillStyle = coloursOf(theme.peek()).background;
  context.fillRect(plot.left, 0, Math.max(0, a), plot.height);
  context.fillRect(plot.left + b, 0, Math.max(0, plot.width - b), plot.height);
  context.globalAlpha = 1;
  context.strokeStyle = style.getPropertyValue('--accent');
  context.lineWidth = 2;
  context.strokeRect(plot.left + a, 1, Math.max(2, b - a), plot.height - 2);
}

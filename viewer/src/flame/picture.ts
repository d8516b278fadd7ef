// The whole graph as a picture to save: title, measure, all levels, and the legend.
import { shortened } from '../data/plain';

const FONT = '12px system-ui, sans-serif';

/** Browsers refuse higher canvases; levels beyond are left out, and the picture says so. */
export const HEIGHT_MAX = 16_000;

const PAD = 10;
const LINE = 20;
const SWATCH = 11;

/** An entry of the legend; one without a colour is text only. */
export interface Entry {
  colour: string;
  text: string;
}

export interface Picture {
  title: string;
  /** The measure and the filters. */
  lines: readonly string[];
  graphs: readonly HTMLCanvasElement[];
  legend: readonly Entry[];
  text: string;
  background: string;
  ratio: number;
}

/** Places of the entries, on as many lines as a width needs. */
export function placesOf(widths: readonly number[], width: number): { x: number; line: number }[] {
  let [x, line] = [0, 0];
  return widths.map((room) => {
    if (x > 0 && x + room > width) [x, line] = [0, line + 1];
    const place = { x, line };
    x += room;
    return place;
  });
}

export function paintPicture(picture: Picture): HTMLCanvasElement {
  const { graphs, legend, lines, ratio } = picture;
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d')!;
  const width = Math.max(...graphs.map((graph) => graph.width)) / ratio;
  context.font = FONT;
  const rooms = legend.map(({ text }) => context.measureText(text).width + SWATCH + 5 + 14);
  const places = placesOf(rooms, width - 2 * PAD);
  const head = 2 * PAD + LINE * (1 + lines.length);
  const tall = graphs.reduce((sum, graph) => sum + graph.height / ratio + PAD, 0);
  const last = places.at(-1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round((head + tall + (last ? LINE * (last.line + 1) : 0) + PAD) * ratio);
  context.fillStyle = picture.background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  let top = head * ratio;
  for (const graph of graphs) {
    context.drawImage(graph, 0, Math.round(top));
    top += graph.height + PAD * ratio;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.textBaseline = 'middle';
  context.fillStyle = picture.text;
  context.font = `bold ${FONT}`;
  context.fillText(shortened(picture.title, 200), PAD, PAD + LINE / 2, width - 2 * PAD);
  context.font = FONT;
  lines.forEach((line, i) => {
    context.fillText(line, PAD, PAD + LINE * (i + 1.5), width - 2 * PAD);
  });
  legend.forEach(({ colour, text }, i) => {
    const { x, line } = places[i]!;
    const y = head + tall + line * LINE;
    if (colour !== '') {
      context.fillStyle = colour;
      context.fillRect(PAD + x, y + (LINE - SWATCH) / 2, SWATCH, SWATCH);
    }
    context.fillStyle = picture.text;
    context.fillText(text, PAD + x + (colour === '' ? 0 : SWATCH + 5), y + LINE / 2);
  });
  return canvas;
}

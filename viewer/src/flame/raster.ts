// The rectangles of all visible levels as pixels: one row of pixels a level, stretched to the
// height of a level when it is put on the canvas. A dense level has a rectangle for every pixel
// of the screen; as runs in an array they cost a fraction of what as many calls to the canvas
// would.

/** Pixels that are coloured one by one. */
const SHORT = 16;

export class Raster {
  private readonly canvas = document.createElement('canvas');
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);

  /** Clears `rows` rows of `width` device pixels. */
  begin(width: number, rows: number, background: number): void {
    if (!this.image || this.image.width !== width || this.image.height !== rows) {
      this.canvas.width = width;
      this.canvas.height = rows;
      this.image = new ImageData(width, rows);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(background);
  }

  /** Colours a part of a row; at least one pixel. */
  fill(row: number, from: number, to: number, colour: number): void {
    const { width } = this.image!;
    const start = Math.max(0, Math.min(width - 1, from));
    const end = Math.min(width, Math.max(start + 1, to));
    const [first, last] = [row * width + start, row * width + end];
    // Most are short, and calling out takes longer than they do.
    if (last - first > SHORT) this.pixels.fill(colour, first, last);
    else for (let at = first; at < last; at++) this.pixels[at] = colour;
  }

  /** Colours a row by numbers; places with the number 0 stay unchanged. */
  setRow(row: number, numbers: Uint8Array, colours: Uint32Array): void {
    const { pixels } = this;
    const first = row * this.image!.width;
    for (let x = 0; x < numbers.length; x++) {
      const number = numbers[x]!;
      if (number !== 0) pixels[first + x] = colours[number]!;
    }
  }

  /** Colours one pixel that is inside. */
  set(row: number, x: number, colour: number): void {
    this.pixels[row * this.image!.width + x] = colour;
  }

  /** Puts the rows on a canvas whose unit is a device pixel; `top` gives each its place. */
  put(
    context: CanvasRenderingContext2D,
    rows: number,
    height: number,
    top: (row: number) => number,
  ): void {
    this.flush(context);
    for (let row = 0; row < rows; row++) this.putRows(context, row, 1, top(row), height);
  }

  /** Makes what was filled ready to be put. */
  flush(context: CanvasRenderingContext2D): void {
    this.canvas.getContext('2d')!.putImageData(this.image!, 0, 0);
    context.imageSmoothingEnabled = false;
  }

  /** Puts some rows that follow each other, stretched to a height. */
  putRows(
    context: CanvasRenderingContext2D,
    row: number,
    rows: number,
    top: number,
    height: number,
    left = 0,
  ): void {
    const { width } = this.image!;
    context.drawImage(this.canvas, 0, row, width, rows, left, top, width, height);
  }
}

/** `#rrggbb` as an opaque pixel of an ImageData. */
export function pixelOf(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  // Bytes are red, green, blue, alpha; all browsers run on little-endian machines.
  return ((0xff << 24) | ((value & 0xff) << 16) | (value & 0xff00) | ((value >> 16) & 0xff)) >>> 0;
}

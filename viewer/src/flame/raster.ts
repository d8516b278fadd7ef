// The rectangles of all visible levels as pixels: one row of pixels a level, stretched to the
// height of a level when it is put on the canvas. A dense level has a rectangle for every pixel
// of the screen; as runs in an array they cost a fraction of what as many calls to the canvas
// would.

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
    this.pixels.fill(colour, row * width + start, row * width + end);
  }

  /** Puts the rows on a canvas whose unit is a device pixel; `top` gives each its place. */
  put(
    context: CanvasRenderingContext2D,
    rows: number,
    height: number,
    top: (row: number) => number,
  ): void {
    this.canvas.getContext('2d')!.putImageData(this.image!, 0, 0);
    const { width } = this.image!;
    context.imageSmoothingEnabled = false;
    for (let row = 0; row < rows; row++) {
      context.drawImage(this.canvas, 0, row, width, 1, 0, top(row), width, height);
    }
  }
}

/** `#rrggbb` as an opaque pixel of an ImageData. */
export function pixelOf(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  // Bytes are red, green, blue, alpha; all browsers run on little-endian machines.
  return ((0xff << 24) | ((value & 0xff) << 16) | (value & 0xff00) | ((value >> 16) & 0xff)) >>> 0;
}

// Decodes the container: magic, header, columns. The layout is described where it is written
// (crates/report, module page). Everything is checked against the number of bytes there are.

export interface ColumnEntry {
  name: string;
  rows: number;
  width: number;
  delta: boolean;
  bytes: number;
}

export interface Container<H> {
  header: H;
  column(name: string): Column;
}

export class Column {
  constructor(
    readonly entry: ColumnEntry,
    readonly bytes: Uint8Array,
  ) {}

  get rows(): number {
    return this.entry.rows;
  }

  u32(): Uint32Array {
    const { rows, width, delta } = this.entry;
    const out = new Uint32Array(rows);
    for (let plane = 0; plane < Math.min(width, 4); plane++) {
      const from = plane * rows;
      const shift = plane * 8;
      for (let row = 0; row < rows; row++) {
        out[row] = (out[row]! | (this.bytes[from + row]! << shift)) >>> 0;
      }
    }
    if (delta) for (let row = 1; row < rows; row++) out[row] = (out[row]! + out[row - 1]!) >>> 0;
    return out;
  }

  u8(): Uint8Array {
    return this.bytes.slice(0, this.entry.rows);
  }

  /** Numbers of up to 48 bits. */
  f64(): Float64Array {
    const { rows, width, delta } = this.entry;
    const out = new Float64Array(rows);
    for (let plane = 0; plane < width; plane++) {
      const from = plane * rows;
      const factor = 2 ** (plane * 8);
      for (let row = 0; row < rows; row++) out[row] = out[row]! + this.bytes[from + row]! * factor;
    }
    if (delta) {
      const modulus = 2 ** (width * 8);
      for (let row = 1; row < rows; row++) {
        const sum = out[row]! + out[row - 1]!;
        out[row] = sum >= modulus ? sum - modulus : sum;
      }
    }
    return out;
  }
}

const MAGIC = 'DWP1';

/** The header alone, from the beginning of the data; null if it is not all there. */
export function readHeader<H>(data: Uint8Array<ArrayBuffer>): H | null {
  if (data.length < 8 || String.fromCharCode(...data.subarray(0, 4)) !== MAGIC) return null;
  const length = new DataView(data.buffer, data.byteOffset).getUint32(4, true);
  if (8 + length > data.length) return null;
  return JSON.parse(new TextDecoder().decode(data.subarray(8, 8 + length))) as H;
}

export function readContainer<H extends { columns: ColumnEntry[] }>(
  data: Uint8Array<ArrayBuffer>,
): Container<H> {
  if (data.length < 8 || String.fromCharCode(...data.subarray(0, 4)) !== MAGIC) {
    throw new Error('The data in this page is not a profile of dwell.');
  }
  const length = new DataView(data.buffer, data.byteOffset).getUint32(4, true);
  if (8 + length > data.length) throw new Error('The data in this page is cut off.');
  const header = JSON.parse(new TextDecoder().decode(data.subarray(8, 8 + length))) as H;
  const columns = new Map<string, Column>();
  let at = 8 + length;
  for (const entry of header.columns) {
    const fits = entry.rows * entry.width === entry.bytes && at + entry.bytes <= data.length;
    if (!fits) throw new Error(`The column ${entry.name} in this page is cut off.`);
    columns.set(entry.name, new Column(entry, data.subarray(at, at + entry.bytes)));
    at += entry.bytes;
  }
  return {
    header,
    column(name) {
      const column = columns.get(name);
      if (!column) throw new Error(`The data in this page has no column ${name}.`);
      return column;
    },
  };
}

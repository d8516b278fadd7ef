// From the page's <script> blocks to bytes: base64, then gzip, both in pieces so that no string or
// buffer has to hold everything twice.

const TYPE = 'application/octet-stream;base64';
/** Characters decoded at once; a multiple of 4. */
const PIECE = 1 << 18;
/** Characters that hold the header in all but the oddest pages, and the bytes that it may have. */
const BEGINNING = 1 << 17;
const BEGINNING_MAX = 1 << 22;

/** The compressed bytes of all blocks, piece by piece. */
export function* decodeBase64(texts: Iterable<string>): Generator<Uint8Array<ArrayBuffer>> {
  for (const text of texts) {
    for (let at = 0; at < text.length; at += PIECE) {
      yield bytesOf(text.slice(at, at + PIECE));
    }
  }
}

/** Browsers of 2025 and later have a decoder, which is many times as fast. */
const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> })
  .fromBase64;

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Unpacks gzip. */
export async function gunzip(
  pieces: Iterable<Uint8Array<ArrayBuffer>>,
): Promise<Uint8Array<ArrayBuffer>> {
  const iterator = pieces[Symbol.iterator]();
  const source = new ReadableStream<BufferSource>({
    pull(controller) {
      const next = iterator.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
  });
  const stream = source.pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The first bytes of the unpacked data, from its first packed bytes: at most about `most`. */
export async function beginning(
  packed: Uint8Array<ArrayBuffer>,
  most: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const gunzip = new DecompressionStream('gzip');
  const writer = gunzip.writable.getWriter();
  // The stream ends early and reports an error. The bytes before it are the result.
  writer.write(packed).catch(() => {});
  writer.close().catch(() => {});
  const reader = gunzip.readable.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    while (length < most) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
    }
  } catch {
    // See above.
  }
  reader.cancel().catch(() => {});
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The first bytes inside the page. */
export async function beginningOfPage(page: Document): Promise<Uint8Array<ArrayBuffer>> {
  const text = page.querySelector(`script[type="${TYPE}"]`)?.textContent ?? '';
  const [piece] = decodeBase64([text.slice(0, BEGINNING)]);
  return piece ? beginning(piece, BEGINNING_MAX) : new Uint8Array(0);
}

/** The bytes inside the page; null if it holds none. The blocks are removed to free their text. */
export async function bytesOfPage(page: Document): Promise<Uint8Array<ArrayBuffer> | null> {
  const blocks = [...page.querySelectorAll(`script[type="${TYPE}"]`)];
  if (blocks.length === 0) return null;
  const texts = (function* () {
    for (const block of blocks) {
      const text = block.textContent ?? '';
      block.remove();
      yield text;
    }
  })();
  return gunzip(decodeBase64(texts));
}

// From the page's <script> blocks to bytes: base64, then gzip, both in pieces so that no string or
// buffer has to hold everything twice.

const TYPE = 'application/octet-stream;base64';
/** Characters decoded at once; a multiple of 4. */
const PIECE = 1 << 18;

/** The compressed bytes of all blocks, piece by piece. */
export function* decodeBase64(texts: Iterable<string>): Generator<Uint8Array<ArrayBuffer>> {
  for (const text of texts) {
    for (let at = 0; at < text.length; at += PIECE) {
      const binary = atob(text.slice(at, at + PIECE));
      const bytes = new Uint8Array(binary.length);
      for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
      yield bytes;
    }
  }
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

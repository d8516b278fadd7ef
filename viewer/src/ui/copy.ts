// Text for the clipboard, and files to save.
import type { Keys } from '../tree/keys';
import { type FrameTree, pathTo } from '../tree/tree';
import type { Store } from '../state/store';

/** Puts a text on the clipboard; says whether that worked. */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByCommand(text);
  }
}

/** The old way, for pages that may not use the clipboard otherwise. */
function copiedByCommand(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.setAttribute('aria-hidden', 'true');
  area.className = 'unseen';
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

/** Copies, and says so. */
export async function copy(store: Store, what: string, text: string): Promise<void> {
  const done = await copied(text);
  store.tell(done ? `Copied ${what}.` : `The browser does not let the page copy ${what}.`);
}

/** The stack of a node, innermost frame first, a line each. */
export function stackText(tree: FrameTree, keys: Keys, node: number): string {
  const path = pathTo(tree, node).slice(1);
  const labels = path.map((at) => keys.label(tree.key(at)) || '(unnamed)');
  // A tree of callers begins with the innermost frame.
  if (!tree.grow) labels.reverse();
  return labels.join('\n');
}

/** More lines than this are no text for a clipboard. */
const LINES_MAX = 20_000;

/** All stacks with weights of their own, outermost frame first; empty: they are too many. */
export function stacksText(tree: FrameTree, keys: Keys): string {
  const lines: string[] = [];
  for (let node = 1; node < tree.size; node++) {
    const own = tree.own(node);
    if (own <= 0) continue;
    if (lines.length === LINES_MAX) return '';
    const path = pathTo(tree, node).slice(1);
    const labels = path.map((at) => (keys.label(tree.key(at)) || '(unnamed)').replaceAll(';', ':'));
    if (tree.grow) labels.reverse();
    lines.push(`${labels.join(';')} ${Math.round(own)}`);
  }
  return lines.join('\n');
}

/** A cell of a file of comma-separated values. A text never begins a formula. */
export function csvCell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const inert = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

export function csvOf(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => row.map(csvCell).join(',')).join('\n') + '\n';
}

/** Lets the browser save a file. */
export function save(name: string, blob: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href));
}

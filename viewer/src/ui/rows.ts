// Rows of one height in a scrolled box: which of them are in sight.
import { useEffect, useState } from 'preact/hooks';
import type { RefObject } from 'preact';
import type { Store } from '../state/store';

export const ROW_HEIGHT = 26;
/** Rows made beyond the edges, so that scrolling does not show gaps. */
const BEYOND = 12;

export interface Window {
  first: number;
  end: number;
  before: number;
  after: number;
}

export function windowOf(rows: number, scrollTop: number, height: number): Window {
  const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - BEYOND);
  const end = Math.min(rows, Math.ceil((scrollTop + height) / ROW_HEIGHT) + BEYOND);
  const from = Math.min(first, end);
  return { first: from, end, before: from * ROW_HEIGHT, after: (rows - end) * ROW_HEIGHT };
}

export interface Scroll {
  top: number;
  height: number;
  width: number;
}

/** A wide guess at the mean width of a character of a name. */
export const CHAR_PX = 7.2;

/** Number of characters of a name that fit next to columns of this width in pixels. */
export function nameRoom(scroll: Scroll, columns: number): number {
  return Math.max(20, Math.floor((scroll.width - columns) / CHAR_PX));
}

/** Follows the scroll position and size of a box. */
export function useScroll(box: RefObject<HTMLElement | null>): Scroll {
  const [scroll, setScroll] = useState<Scroll>({ top: 0, height: 800, width: 1000 });
  useEffect(() => {
    const element = box.current!;
    const update = () => {
      const { scrollTop: top, clientHeight: height, clientWidth: width } = element;
      setScroll({ top, height, width });
    };
    const observer = new ResizeObserver(update);
    observer.observe(element);
    element.addEventListener('scroll', update, { passive: true });
    update();
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', update);
    };
  }, [box]);
  return scroll;
}

/** Scrolls a row into sight; `head` is what a sticky head covers. */
export function scrollToRow(element: HTMLElement, row: number, head = 0): void {
  const top = row * ROW_HEIGHT;
  if (top < element.scrollTop) element.scrollTop = top;
  const bottom = top + ROW_HEIGHT + head;
  if (bottom > element.scrollTop + element.clientHeight) {
    element.scrollTop = bottom - element.clientHeight;
  }
}

/** Makes a row the one that keys for frames mean, until the view is left. */
export function selectRow(store: Store, key: number): () => void {
  store.row.value = key;
  return () => {
    store.row.value = -1;
  };
}

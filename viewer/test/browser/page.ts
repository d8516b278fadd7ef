// A page of the report in a browser that watches: what it asks for, what it says, what goes wrong.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { expect, inject } from 'vitest';
import type { FlameController } from '../../src/flame/controller';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export interface Report {
  page: Page;
  /** Close it, and check that it behaved: no request, no dialog, no error. */
  close(): Promise<void>;
}

export interface Look {
  width?: number;
  height?: number;
  scheme?: 'light' | 'dark';
  scale?: number;
  fragment?: string;
  /** Runs in the page before anything of its own does. */
  first?: () => void;
}

export async function open(browser: Browser, name: string, look: Look = {}): Promise<Report> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1300, height: look.height ?? 800 },
    colorScheme: look.scheme ?? 'light',
    deviceScaleFactor: look.scale ?? 1,
  });
  // The default is 30 s, which a page of a million frames may exceed on a slow machine.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  if (look.first) await page.addInitScript(look.first);
  const url = pathToFileURL(join(inject('pages'), name)).href;
  const wrong: string[] = [];
  page.on('request', (request) => {
    const { protocol } = new URL(request.url());
    const own = request.url().split('#')[0] === url;
    if (!own && protocol !== 'data:') wrong.push(`request for ${request.url()}`);
  });
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') wrong.push(`console: ${message.text()}`);
  });
  // All frames of CPU time, whatever the page would show first.
  await page.goto(url + (look.fragment ?? '#view=flame&time=cpu&frames=all'));
  await ready(page);
  return {
    page,
    async close() {
      const hacked = await page.evaluate('window.hacked');
      if (hacked !== undefined) wrong.push(`a name was run: ${String(hacked)}`);
      await context.close();
      expect(wrong).toEqual([]);
    },
  };
}

/** The page's address without what `open` has chosen. */
export async function address(page: Page): Promise<string> {
  const hash = (await page.evaluate('decodeURIComponent(location.hash)')) as string;
  return hash.replace('&time=cpu', '').replace('&frames=all', '');
}

/** Waits until the tree is built and drawn. */
export async function ready(page: Page): Promise<void> {
  await page.waitForSelector('main[aria-busy="false"]');
  await page.evaluate(twoFrames);
  // Effects of the timeline run after a paint, which may be late on a busy machine.
  await page.waitForFunction(
    () => !document.querySelector('.timeline') || 'dwellTimeline' in window,
  );
}

export function twoFrames(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
  });
}

interface Place {
  node: number;
  label: string;
  depth: number;
  /** The middle of the frame in the window. */
  x: number;
  y: number;
  width: number;
}

/** The frames of a level that are in sight, from left to right. */
export function framesOf(page: Page, depth: number): Promise<Place[]> {
  return page.evaluate((level) => {
    // The controller puts itself here; its types end at the page's border.
    const controller = (window as never as { dwellFlame: FlameController }).dwellFlame;
    const { store } = controller;
    const tree = store.tree.value!;
    const places: Place[] = [];
    for (const node of tree.levels[level]?.id ?? []) {
      const place = controller.placeInWindow(node);
      const width = place ? place.right - place.left : 0;
      if (!place || width < 1) continue;
      const label = node === 0 ? 'all' : store.keys.value.label(tree.key(node));
      places.push({
        node,
        label,
        depth: level,
        x: place.left + width / 2,
        y: place.top + 9,
        width,
      });
    }
    return places;
  }, depth);
}

/** The label of the frame that is zoomed to. */
export async function zoomedTo(page: Page): Promise<string> {
  const crumb = page.locator('.crumbs [aria-current="location"]');
  return (await crumb.count()) === 0 ? 'all' : ((await crumb.textContent()) ?? '');
}

/** The colour of the canvas at a place in the window. */
export function colourAt(page: Page, x: number, y: number): Promise<string> {
  return page.evaluate(
    ([x, y]) => {
      const canvas = document.querySelector<HTMLCanvasElement>('.flame-canvas')!;
      const box = canvas.getBoundingClientRect();
      const ratio = canvas.width / box.width;
      const [r, g, b] = canvas
        .getContext('2d')!
        .getImageData((x! - box.left) * ratio, (y! - box.top) * ratio, 1, 1).data;
      return `#${[r!, g!, b!].map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
    },
    [x, y],
  );
}

/** Keeps a picture of the page, if somebody wants to see it: DWELL_SHOTS names the folder. */
export async function shot(page: Page, name: string): Promise<void> {
  const folder = process.env['DWELL_SHOTS'];
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}

/** What axe finds wrong, serious or worse. */
export async function violations(page: Page): Promise<string[]> {
  // Not as a script of the page: its policy would refuse it, as it should.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(AXE);
  // Reporting passed checks takes longer than finding violations.
  const run = "axe.run({ resultTypes: ['violations'] })";
  const results = (await page.evaluate(run)) as AxeResults;
  return results.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
}

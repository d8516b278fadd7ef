// The flame graph of built pages in a browser: pointer, keys, search, address, extremes.
import type { Browser } from 'playwright-core';
import type { FlameController } from '../../src/flame/controller';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launch } from './launch.mjs';
import { address, colourAt, framesOf, open, ready, type Report, twoFrames, zoomedTo } from './page';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
});

async function withPage(
  name: string,
  look: Parameters<typeof open>[2],
  test: (page: Report['page']) => Promise<void>,
): Promise<void> {
  const report = await open(browser, name, look);
  await test(report.page);
  await report.close();
}

/**
 * Counts the frames of the screen by the colour in the canvas's corner. It asks first in a frame,
 * when the canvas still has what was shown in the one before.
 */
function watchCanvas(): void {
  const shown: Record<string, number> = {};
  Object.assign(window, { shown });
  const look = () => {
    requestAnimationFrame(look);
    // Before the page has made its context, asking for one would make another.
    if (!('dwellFlame' in window)) return;
    const canvas = document.querySelector<HTMLCanvasElement>('.flame-canvas');
    if (!canvas) return;
    // On the right, where no stack is so high.
    const { data } = canvas.getContext('2d')!.getImageData(canvas.width - 2, 1, 1, 1);
    const colour = [...data].slice(0, 3).map((channel) => channel.toString(16).padStart(2, '0'));
    const name = `#${colour.join('')}`;
    shown[name] = (shown[name] ?? 0) + 1;
  };
  requestAnimationFrame(look);
}

describe('the flame graph', () => {
  it('zooms with a click, back with Escape, crumbs, double click and 0', () =>
    withPage('small.html', {}, async (page) => {
      const [frame] = await framesOf(page, 2);
      const short = frame!.label.split('.').slice(-2).join('.');
      const zoomIn = async () => {
        // The graph of before may still be on the screen: waits until its frames do not move.
        let [again] = await framesOf(page, 2);
        for (let turn = 0; turn < 50; turn++) {
          await page.evaluate(twoFrames);
          const [next] = await framesOf(page, 2);
          const stays = next?.x === again?.x && next?.label === frame!.label;
          again = next;
          if (stays) break;
        }
        await page.mouse.click(again!.x, again!.y);
        await page.evaluate(twoFrames);
        expect(await zoomedTo(page)).toBe(short);
      };
      await zoomIn();
      expect((await framesOf(page, 2)).map((place) => place.label)).toEqual([frame!.label]);
      expect(await address(page)).toMatch(/^#view=flame&zoom=\d+$/);
      await page.keyboard.press('Escape');
      expect(await zoomedTo(page)).toBe('all');
      await zoomIn();
      await page.click('.crumbs button:has-text("all")');
      expect(await zoomedTo(page)).toBe('all');
      expect(await address(page)).toBe('#view=flame');
      await zoomIn();
      const [wide] = await framesOf(page, 2);
      await page.mouse.dblclick(wide!.x, wide!.y);
      expect(await zoomedTo(page)).toBe('all');
      await zoomIn();
      await page.keyboard.press('0');
      expect(await zoomedTo(page)).toBe('all');
    }));

  it('searches, shows the share and the place, and goes from match to match', () =>
    withPage('small.html', {}, async (page) => {
      await page.keyboard.press('/');
      await page.keyboard.type('Thread.run');
      await page.evaluate(twoFrames);
      expect(await page.textContent('#matched')).toMatch(/^Matched \d+\.\d+\u00a0%$/);
      const [run] = (await framesOf(page, 1)).filter((place) => place.label.endsWith('Thread.run'));
      expect(await colourAt(page, run!.x + run!.width / 4, run!.y)).toBe('#a3009e');
      await page.keyboard.press('Control+A');
      await page.keyboard.type('/^java\\.util\\..*getNode$/');
      const percent = Number.parseFloat((await page.textContent('#matched'))!.slice(8));
      expect(percent).toBeGreaterThan(1);
      expect(percent).toBeLessThan(20);
      await page.keyboard.press('Enter');
      const first = await page.evaluate('dwellFlame.store.focused.value');
      await page.keyboard.press('Escape');
      expect(await page.inputValue('#search')).toBe('');
      // The second one leaves the field, so that keys are commands again.
      await page.keyboard.press('Escape');
      expect(await page.evaluate('document.activeElement.className')).toBe('flame-scroll');
      await page.keyboard.press('/');
      await page.keyboard.type('getNode');
      await page.keyboard.press('Tab');
      await page.focus('.flame-scroll');
      await page.keyboard.press('n');
      const second = await page.evaluate('dwellFlame.store.focused.value');
      await page.keyboard.press('N');
      expect(await page.evaluate('dwellFlame.store.focused.value')).toBe(first);
      expect(second).not.toBe(first);
      await page.fill('#search', '/(/');
      expect(await page.textContent('#matched')).toBe('Not a pattern');
    }));

  it('leaves the keyboard to the search box if the view comes up later', () =>
    withPage('small.html', { fragment: '' }, async (page) => {
      await page.evaluate(async () => {
        const press = (key: string) =>
          document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        press('2');
        await Promise.resolve();
        press('/');
      });
      await page.evaluate(twoFrames);
      await page.waitForSelector('.flame-scroll');
      await page.evaluate(twoFrames);
      expect(await page.evaluate('document.activeElement.id')).toBe('search');
    }));

  it('shows what was found beside the search box, however narrow', async () => {
    for (const width of [360, 800, 1000, 1300, 1600])
      await withPage('small.html', { width, height: 800 }, async (page) => {
        await page.keyboard.press('/');
        for (const query of ['Thread.run', '/(/']) {
          await page.fill('#search', query);
          await page.evaluate(twoFrames);
          const places = ['#matched', '.search button >> nth=1', '#search'];
          const boxes = await Promise.all(places.map((it) => page.locator(it).boundingBox()));
          const [found, next, field] = boxes.map((box) => box!);
          const apart = (a: typeof found, b: typeof found) =>
            a!.x + a!.width <= b!.x ||
            b!.x + b!.width <= a!.x ||
            a!.y + a!.height <= b!.y ||
            b!.y + b!.height <= a!.y;
          // The text, not only the box that it may not fit into.
          const fits = await page.evaluate(() => {
            const output = document.querySelector('#matched')!;
            return output.scrollWidth <= output.clientWidth;
          });
          expect([width, query, apart(found, next), apart(found, field), fits]).toEqual([
            width,
            query,
            true,
            true,
            true,
          ]);
        }
      });
  });

  it('turns over: the root at the bottom, or on top', () =>
    withPage('small.html', {}, async (page) => {
      const [below] = await framesOf(page, 0);
      const [child] = await framesOf(page, 1);
      expect(child!.y).toBeLessThan(below!.y);
      expect(below!.y).toBeGreaterThan(700);
      await page.keyboard.press('i');
      await page.evaluate(twoFrames);
      const [above] = await framesOf(page, 0);
      const [under] = await framesOf(page, 1);
      expect(under!.y).toBeGreaterThan(above!.y);
      expect(above!.y).toBeLessThan(120);
      expect(await address(page)).toBe('#view=flame&icicle=1');
    }));

  it('shows callers, and a root for each thread', () =>
    withPage('small.html', {}, async (page) => {
      await page.keyboard.press('r');
      await ready(page);
      const leaves = (await framesOf(page, 1)).map((place) => place.label);
      expect(leaves).toContain('java.util.HashMap.getNode');
      expect(leaves).not.toContain('java.lang.Thread.run');
      await page.keyboard.press('r');
      await page.keyboard.press('s');
      await ready(page);
      const threads = (await framesOf(page, 1)).map((place) => place.label);
      expect(threads).toContain('main (tid 1000)');
      expect(threads.length).toBe(24);
    }));

  it('filters by thread and by pool', () =>
    withPage('small.html', {}, async (page) => {
      const total = () => page.evaluate('dwellFlame.store.tree.value.total') as Promise<number>;
      const all = await total();
      await page.selectOption('select[aria-label="Threads"]', { index: 1 });
      await ready(page);
      const pool = await total();
      expect(await address(page)).toBe('#view=flame&pool=http-exec-#');
      await page.selectOption('select[aria-label="Threads"]', 't0');
      await ready(page);
      expect(await address(page)).toBe('#view=flame&thread=0');
      const one = await total();
      expect(pool).toBeLessThan(all);
      expect(one).toBeLessThan(pool);
      expect(one).toBeGreaterThan(0);
    }));

  it('steps kinds back from the legend', () =>
    withPage('small.html', {}, async (page) => {
      const [run] = await framesOf(page, 1);
      const at = [run!.x + run!.width / 4, run!.y] as const;
      expect(await colourAt(page, ...at)).toBe('#f69c43');
      await page.click('.legend button:has-text("interpreted")');
      await page.evaluate(twoFrames);
      const back = await colourAt(page, ...at);
      expect(back).not.toBe('#f69c43');
      expect(
        await page.getAttribute('.legend button:has-text("interpreted")', 'aria-pressed'),
      ).toBe('false');
      await page.click('.legend button:has-text("interpreted")');
      await page.evaluate(twoFrames);
      expect(await colourAt(page, ...at)).toBe('#f69c43');
    }));

  it('steps what is outside of the zoom back', () =>
    withPage('small.html', {}, async (page) => {
      const [run] = await framesOf(page, 1);
      const [below] = await framesOf(page, 2);
      await page.mouse.click(below!.x, below!.y);
      await page.evaluate(twoFrames);
      expect(await colourAt(page, 1000, run!.y)).not.toBe('#f69c43');
      await page.mouse.click(1000, run!.y);
      await page.evaluate(twoFrames);
      expect(await colourAt(page, 1000, run!.y)).toBe('#f69c43');
    }));

  it('tells about the frame under the pointer', () =>
    withPage('small.html', {}, async (page) => {
      const [run] = await framesOf(page, 1);
      await page.mouse.move(run!.x, run!.y);
      await page.waitForSelector('.tooltip');
      const text = await page.innerText('.tooltip');
      expect(text).toContain('java.lang.Thread.run');
      expect(text).toContain('interpreted');
      for (const fact of ['Total', 'Self', 'Samples']) expect(text).toContain(fact);
    }));

  it('can be used with the keyboard alone', () =>
    withPage('small.html', {}, async (page) => {
      const focused = () =>
        page.evaluate(() => {
          const { store } = (window as never as { dwellFlame: FlameController }).dwellFlame;
          return store.keys.value.label(store.tree.value!.key(store.focused.value));
        });
      await page.keyboard.press('ArrowUp');
      expect(await focused()).toBe('java.lang.Thread.run');
      await page.keyboard.press('ArrowUp');
      const second = await focused();
      expect(await page.textContent('#said')).toContain('Level 2');
      await page.keyboard.press('ArrowRight');
      expect(await focused()).not.toBe(second);
      await page.keyboard.press('ArrowLeft');
      expect(await focused()).toBe(second);
      await page.keyboard.press('Enter');
      expect(await zoomedTo(page)).toBe(String(second).split('.').slice(-2).join('.'));
      await page.keyboard.press('ArrowDown');
      expect(await focused()).toBe('java.lang.Thread.run');
      await page.keyboard.press('Escape');
      expect(await zoomedTo(page)).toBe('all');
      await page.keyboard.press('?');
      await page.waitForSelector('dialog[open] kbd:has-text("Arrow keys")');
      await page.keyboard.press('i');
      expect(await address(page)).toBe('#view=flame');
      await page.keyboard.press('Escape');
      await page.waitForSelector('dialog[open]', { state: 'detached' });
      await page.keyboard.press('d');
      expect(await page.getAttribute('html', 'data-theme')).toBe('dark');
    }));

  it('opens as its address says', async () => {
    const first = await open(browser, 'small.html');
    const [, frame] = await framesOf(first.page, 3);
    await first.page.evaluate(`dwellFlame.store.zoomTo(${frame!.node})`);
    await first.page.keyboard.press('i');
    await first.page.fill('#search', 'service1');
    await first.page.evaluate(twoFrames);
    const fragment = String(await first.page.evaluate('location.hash'));
    const zoomed = await zoomedTo(first.page);
    await first.close();
    await withPage('small.html', { fragment }, async (page) => {
      expect(await zoomedTo(page)).toBe(zoomed);
      expect(await page.inputValue('#search')).toBe('service1');
      expect(await page.evaluate('dwellFlame.store.icicle.value')).toBe(true);
      await page.evaluate(() => {
        location.hash = '#view=flame&split=thread';
      });
      const split = () => page.evaluate('dwellFlame.store.split.value');
      await expect.poll(split).toBe('thread');
      await ready(page);
      expect(await zoomedTo(page)).toBe('all');
    });
  });

  it('follows the size and the density of the screen', () =>
    withPage('small.html', { scale: 2 }, async (page) => {
      const size = () =>
        page.evaluate(
          '(({ width, height }) => [width, height])(document.querySelector(".flame-canvas"))',
        );
      const [width] = (await size()) as [number, number];
      expect(width).toBe(
        2 * Number(await page.evaluate('document.querySelector(".flame-scroll").clientWidth')),
      );
      await page.setViewportSize({ width: 700, height: 500 });
      await page.evaluate(twoFrames);
      const [narrow] = (await size()) as [number, number];
      expect(narrow).toBeLessThan(width);
      const [run] = await framesOf(page, 1);
      expect(await colourAt(page, run!.x + run!.width / 4, run!.y)).toBe('#f69c43');
    }));

  it('stays at its root when it becomes higher', () =>
    withPage('small.html', {}, async (page) => {
      const fromRoot = () =>
        page.evaluate(() => {
          const scroller = document.querySelector('.flame-scroll')!;
          return scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
        });
      const to = async (height: number) => {
        // Asking for the layout moves the content before the page hears of the other height.
        await page.evaluate((height) => {
          const scroller = document.querySelector<HTMLElement>('.flame-scroll')!;
          Object.assign(scroller.style, { alignSelf: 'start', height: `${height}px` });
          return scroller.scrollTop;
        }, height);
        for (let frame = 0; frame < 3; frame++) await page.evaluate(twoFrames);
      };
      for (const height of [100, 180, 120, 200]) {
        await to(height);
        expect(await fromRoot(), `at the root, ${height} px high`).toBe(0);
      }
      const [root] = await framesOf(page, 0);
      expect(await colourAt(page, root!.x - root!.width / 4, root!.y)).not.toBe('#000000');
    }));

  for (const [scheme, background] of [
    ['light', '#ffffff'],
    ['dark', '#16181c'],
  ] as const) {
    it(`has the page's colour from the first frame on, and at another size: ${scheme}`, () =>
      withPage('small.html', { scheme, first: watchCanvas }, async (page) => {
        const shown = () => page.evaluate('Object.entries(shown)') as Promise<[string, number][]>;
        const atFirst = await shown();
        expect(atFirst).toEqual([[background, expect.any(Number)]]);
        const widths = [700, 900, 500];
        for (const width of widths) {
          await page.setViewportSize({ width, height: 800 });
          await page.waitForFunction(`innerWidth === ${width}`);
          await page.evaluate(twoFrames);
        }
        const later = await shown();
        expect(later).toEqual([[background, expect.any(Number)]]);
        expect(later[0]![1]).toBeGreaterThan(atFirst[0]![1] + widths.length);
      }));
  }
});

describe('extreme profiles', () => {
  it('shows eight thousand levels on a canvas of the size of the window', () =>
    withPage('deep.html', {}, async (page) => {
      expect(
        Number(await page.evaluate('dwellFlame.store.tree.value.levels.length')),
      ).toBeGreaterThan(8192);
      expect(
        Number(await page.evaluate('document.querySelector(".flame-canvas").height')),
      ).toBeLessThan(900);
      // A picture has as many levels as browsers take, and says how many it leaves out.
      const [height, left] = await page.evaluate(() => {
        const { dwellFlame } = window as never as { dwellFlame: FlameController };
        const picture = dwellFlame.picture()!;
        return [picture.canvas.height, picture.left] as const;
      });
      expect(height).toBeGreaterThan(15_000);
      expect(height).toBeLessThan(16_001);
      expect(left).toBeGreaterThan(7000);
      await page.keyboard.press('/');
      await page.keyboard.type('Deep.leaf');
      await page.keyboard.press('Shift+Enter');
      await page.evaluate(twoFrames);
      const depth = Number(
        await page.evaluate('dwellFlame.store.tree.value.depth(dwellFlame.store.focused.value)'),
      );
      expect(depth).toBeGreaterThan(8192);
      const [deepest] = await framesOf(page, depth);
      expect(deepest!.y).toBeGreaterThan(60);
      expect(deepest!.y).toBeLessThan(760);
      expect(await colourAt(page, deepest!.x, deepest!.y)).toBe('#a3009e');
    }));

  it('builds and searches a million frames, and their callers, while it stays alive', () =>
    withPage('large.html', {}, async (page) => {
      expect(Number(await page.evaluate('dwellFlame.store.tree.value.size'))).toBeGreaterThan(
        900_000,
      );
      await page.fill('#search', 'handle1');
      expect(await page.textContent('#matched')).toMatch(/^Matched \d/);
      await page.click('button:has-text("Callers")');
      await ready(page);
      const leaves = await framesOf(page, 1);
      expect(leaves.map((place) => place.label)).toContain('java.util.HashMap.getNode');
      expect(Number(await page.evaluate('dwellFlame.store.tree.value.size'))).toBeLessThan(
        1_000_000,
      );
    }));
});

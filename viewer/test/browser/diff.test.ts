// Comparisons in a browser: slow requests against usual ones, and two recordings in one page.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diffColours } from '../../src/diff/colours';
import { colourAt, framesOf, open, ready, shot, violations } from './page';
import { launch } from './launch.mjs';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
});

const bar = (page: Page) => page.innerText('.diff-bar');

describe('slow requests against usual ones', () => {
  it('are one click away, in the address, and told by pointer and by key', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=requests' });
    await page.click('tr:has-text("POST /orders") button:has-text("slow vs. typical")');
    await page.waitForSelector('.diff-bar');
    await ready(page);
    const told = await bar(page);
    expect(told).toContain('POST /orders, slow vs. typical');
    expect(told).toMatch(/10 requests longer than p95 .* against 4\d requests around p50/);
    expect(told).toContain('per request');
    const address = '#view=flame&endpoint=POST%20%2Forders&versus=slow';
    expect(await page.evaluate('location.hash')).toBe(address);
    const [all] = await framesOf(page, 0);
    await page.mouse.move(all!.x, all!.y);
    const tip = await page.innerText('.tooltip');
    for (const part of ['typical', 'slow', 'Change', '±']) {
      expect(tip).toContain(part);
    }
    await page.focus('.flame-scroll');
    await page.keyboard.press('ArrowUp');
    expect(await page.innerText('#said')).toMatch(
      /typical .*slow .*Change .*(significant|sampling noise)/,
    );
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('t');
    await page.waitForSelector('.diff-rows tbody tr');
    const heads = await page.locator('.diff-rows th[scope=col]').allInnerTexts();
    expect(heads.map((head) => head.replace(/ .$/, ''))).toEqual([
      'typical',
      'slow',
      'Change',
      '±',
      'Name',
    ]);
    await page.keyboard.press('2');
    await ready(page);
    await page.keyboard.press('r');
    await expect
      .poll(() => page.evaluate('location.hash'))
      .toBe(address.replace('&endpoint', '&reverse=1&endpoint'));
    await ready(page);
    const [first] = await framesOf(page, 1);
    await page.mouse.move(first!.x, first!.y);
    expect(await page.innerText('.tooltip')).toMatch(/typical[\s\S]*slow[\s\S]*Change/);
    await page.keyboard.press('t');
    await page.waitForSelector('.diff-rows tbody tr');
    await page.keyboard.press('x');
    await ready(page);
    expect(await page.locator('.diff-bar').count()).toBe(0);
    await page.goBack();
    await expect.poll(() => page.evaluate('location.hash')).toContain('versus=slow');
    expect(await bar(page)).toContain('slow vs. typical');
    await close();
  });
});

describe('the page of two recordings', () => {
  it('tells both, and what differs, whatever the names', async () => {
    const { page, close } = await open(browser, 'compare.html', { fragment: '' });
    await page.waitForSelector('#by-method');
    const tabs = await page.locator('[role=tab]').allInnerTexts();
    expect(tabs).toEqual(['Differences', 'Flame graph', 'Table', 'Tree']);
    const files = await page.innerText('table.files');
    expect(files).toContain('<img src=x');
    expect(files).toContain('b�lmth.jfr');
    expect(await page.locator('.compare img').count()).toBe(0);
    const cell = () =>
      page.innerText('table.diff-rows >> nth=0 >> tbody tr >> nth=0 >> td >> nth=0');
    const perSecond = await cell();
    await page.selectOption('select[aria-label="Numbers are"]', 'sample');
    await ready(page);
    expect(await cell()).toMatch(/%$/);
    expect(perSecond).toMatch(/s$/);
    expect(await page.evaluate('location.hash')).toBe('#per=sample');
    expect(await violations(page)).toEqual([]);
    await shot(page, 'compare-overview');
    await page.keyboard.press('3');
    await page.waitForSelector('.diff-table .diff-rows tbody tr');
    expect(await page.innerText('.diff-table .note')).toContain('are significant');
    await page.keyboard.press('4');
    await page.waitForSelector('[role=treeitem]');
    expect(await page.innerText('.tree-head')).toMatch(/A\s+B\s+Change/);
    // There is no time that both recordings share.
    await page.keyboard.press('5');
    expect(await page.innerText('[role=tab][aria-selected=true]')).toBe('Tree');
    await close();
  });

  it('shows new and gone frames, or leaves them out, in colours of their own', async () => {
    const look = { width: 390, scheme: 'dark' } as const;
    const { page, close } = await open(browser, 'compare.html', look);
    const widthOf = async (depth: number) => {
      const frames = await framesOf(page, depth);
      return frames.reduce((sum, { width }) => sum + width, 0);
    };
    const both = await widthOf(12);
    const select = page.locator('select[aria-label="Frames are"]');
    await select.selectOption('a');
    await ready(page);
    expect(await page.evaluate('location.hash')).toContain('wide=a');
    const ofA = await widthOf(12);
    await select.selectOption('b');
    await ready(page);
    const ofB = await widthOf(12);
    // The mean of both, up to what is narrower than a pixel.
    expect(ofA).not.toBe(ofB);
    expect(Math.abs((ofA + ofB) / 2 - both)).toBeLessThan(look.width * 0.1);
    const [root] = await framesOf(page, 0);
    const { none, more, less } = diffColours('dark', false);
    const fills = [none, ...more, ...less].map(({ fill }) => fill);
    expect(fills).toContain(await colourAt(page, root!.x + 60, root!.y));
    expect(await violations(page)).toEqual([]);
    await page.click('button:has-text("Contrast")');
    await ready(page);
    expect(await violations(page)).toEqual([]);
    const sideways = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(sideways).toBe(0);
    await shot(page, 'compare-narrow-dark');
    await close();
  });

  it('has callers with both sides, and a method in the middle of both', async () => {
    const fragment = '#view=flame&per=sample';
    const { page, close } = await open(browser, 'compare.html', { fragment });
    const sidesOf = (part: string): Promise<[string, number, number][]> =>
      page.evaluate((part) => {
        const { store } = (window as any)[part];
        const [tree, diff] = [store.tree.value, store.diff.value];
        return [0, ...(Array.from(tree.children(0)) as number[])].map((node) => [
          node === 0 ? 'all' : store.keys.value.methodLabel(tree.key(node)),
          ...(diff.total.rates(node) as [number, number]),
        ]);
      }, part);
    await page.keyboard.press('r');
    await expect.poll(() => page.evaluate('location.hash')).toContain('reverse=1');
    await ready(page);
    const [all, ...innermost] = await sidesOf('dwellFlame');
    expect([all![1], all![2]].map((share) => Math.round(share * 1e6))).toEqual([1e6, 1e6]);
    const sum = (at: 1 | 2) => innermost.reduce((sum, row) => sum + row[at], 0);
    // Weight without a stack belongs to no method.
    for (const at of [1, 2] as const) expect(sum(at)).toBeCloseTo(1, 1);
    const [frame] = await framesOf(page, 1);
    await page.mouse.move(frame!.x, frame!.y);
    const tip = await page.innerText('.tooltip');
    for (const part of ['A', 'B', 'Change', '±']) expect(tip).toContain(part);
    expect(tip).toMatch(/significant|within sampling noise/);
    const { none, more, less } = diffColours('light', false);
    const fills = [none, ...more, ...less].map(({ fill }) => fill);
    await page.mouse.move(5, 5);
    // Above the name.
    expect(fills).toContain(await colourAt(page, frame!.x, frame!.y - 7));
    await shot(page, 'compare-callers');
    await page.keyboard.press('4');
    await page.waitForSelector('[role=tree][aria-label="Callers"] [role=treeitem]');
    expect(await page.innerText('.tree-head')).toMatch(/A\s+B\s+Change/);
    const row = page.locator('[role=treeitem]').nth(1);
    expect(await row.innerText()).toMatch(/%\s+\d[\d.]*\s%\s+[+−]?\d/);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    expect(await page.locator('[role=treeitem][aria-level="3"]').count()).toBeGreaterThan(0);
    // The method in the middle has the same numbers above and below.
    await page.keyboard.press('2');
    await ready(page);
    await page.focus('.flame-scroll');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('g');
    const middle = page.locator('.sandwich .middle');
    await middle.waitFor();
    await page.waitForSelector('.sandwich[aria-busy="false"]');
    expect(await middle.innerText()).toMatch(/A \d[\d.]*\s%, B \d[\d.]*\s%: [+−]?\d/);
    const [above, below] = [await sidesOf('dwellFlameCallers'), await sidesOf('dwellFlameCallees')];
    const name = await middle.locator('b').innerText();
    expect([above[1]![0], below[1]![0]]).toEqual([name, name]);
    for (const at of [1, 2] as const) {
      expect(above[0]![at]).toBeCloseTo(below[0]![at] as number, 9);
      expect(above[0]![at]).toBeLessThan(0.99);
    }
    expect(await page.evaluate('location.hash')).toContain('around=');
    expect(await violations(page)).toEqual([]);
    await shot(page, 'compare-around');
    await close();
  });
});

describe('two ranges of one recording', () => {
  it('are dragged out, the first one with Ctrl, and compared', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '' });
    const strip = page.locator('.strip canvas').first();
    await strip.scrollIntoViewIfNeeded();
    const box = (await strip.boundingBox())!;
    const drag = async (from: number, to: number) => {
      await page.mouse.move(box.x + box.width * from, box.y + 20);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * to, box.y + 30, { steps: 3 });
      await page.mouse.up();
    };
    await page.keyboard.down('Control');
    await drag(0.1, 0.4);
    await page.keyboard.up('Control');
    await expect.poll(() => page.innerText('#said')).toContain('without Ctrl');
    await drag(0.6, 0.9);
    await ready(page);
    expect(await page.evaluate('location.hash')).toMatch(/^#range=\d+-\d+&against=\d+-\d+$/);
    await page.keyboard.press('7');
    expect(await page.innerText('.range-line')).toMatch(
      /A .* to .*, B .* to .*are those of B, if it has the lock/,
    );
    expect(await page.innerText('#locks')).toMatch(/^Per second: A .*s, B .*s waiting on/);
    expect(await page.innerText('table.locks thead')).toMatch(/A\s+B\s+Change/);
    // Of the same waiting all the time A and B are nearly the same.
    const cells = await page.locator('table.locks tbody tr:first-child td').allInnerTexts();
    expect(cells.slice(0, 3).join(' ')).toMatch(/^\S+\s[mu]?s \S+\s[mu]?s [+−]?\S+\s[mu]?s$/);
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('1');
    await page.click('button:has-text("Flame graph of the differences")');
    await ready(page);
    expect(await page.innerText('.diff-bar')).toMatch(/A .* to .*, B .* to .*per second/);
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('x');
    await ready(page);
    expect(await page.locator('.diff-bar').count()).toBe(0);
    await close();
  });
});

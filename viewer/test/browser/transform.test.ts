// Callers and callees of a frame, and stacks cut, folded, merged and dropped, in a browser.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launch } from './launch.mjs';
import { address, framesOf, open, ready, violations } from './page';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
});

const hash = address;
const labels = async (page: Page, depth: number) =>
  (await framesOf(page, depth)).map(({ label }) => label);

describe('a frame', () => {
  it('has callers and callees, and stacks can be cut by it and put back', async () => {
    const { page, close } = await open(browser, 'small.html');
    await page.focus('.flame-scroll');
    for (const key of ['ArrowUp', 'ArrowUp', 'f']) await page.keyboard.press(key);
    const dialog = page.locator('dialog[open]');
    await dialog.waitFor();
    const name = await dialog.locator('.frame-name').innerText();
    expect(name).toMatch(/^com\.example\.shop\..*\.handle\d+$/);
    expect(await dialog.locator('table[aria-label="Callers"]').innerText()).toContain('Thread.run');
    expect(await violations(page)).toEqual([]);
    // To a callee, and from there to its caller again.
    await dialog.locator('table[aria-label="Callees"] button').first().click();
    const callee = await dialog.locator('.frame-name').innerText();
    expect(callee).not.toBe(name);
    await dialog.locator('button:has-text("Graph of its callees")').click();
    await ready(page);
    expect(await labels(page, 1)).toEqual([callee]);
    expect(await hash(page)).toBe(`#view=flame&stacks=[["focus","${callee}"]]`);
    expect(await page.innerText('.transforms')).toContain(`only ${callee}`);
    await page.keyboard.press('u');
    await ready(page);
    expect(await hash(page)).toContain('["recursion",""]');
    await page.goBack();
    await expect.poll(() => hash(page)).not.toContain('recursion');
    await page.keyboard.press('z');
    await ready(page);
    expect(await hash(page)).toBe('#view=flame');
    expect(await labels(page, 1)).toContain('java.lang.Thread.run');
    await close();
  });

  it('can be merged from its menu, with its package', async () => {
    const { page, close } = await open(browser, 'small.html');
    const [frame] = (await framesOf(page, 2)).filter(({ label }) => label.includes('.shop.'));
    await page.mouse.click(frame!.x, frame!.y, { button: 'right' });
    await page.click('.frame-menu button:has-text("More")');
    const dialog = page.locator('dialog[open]');
    expect(await dialog.locator('.frame-name').innerText()).toBe(frame!.label);
    await dialog.locator('button:has-text("Merge com.example.shop")').click();
    await ready(page);
    const name = frame!.label.split('.').slice(0, 4).join('.');
    for (const depth of [2, 3]) {
      for (const label of await labels(page, depth)) expect(label).not.toContain(`${name}.`);
    }
    await page.keyboard.press('k');
    await page.waitForSelector('.legend[aria-label="Packages, by self time"]');
    expect(await hash(page)).toContain('colour=package');
    await page.click('.transforms button');
    await ready(page);
    expect(await labels(page, 2)).toContain(frame!.label);
    await close();
  });
});

describe('the menu of a frame', () => {
  it('opens at the pointer, works by key, and copies', async () => {
    const { page, close } = await open(browser, 'small.html');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const [frame] = (await framesOf(page, 2)).filter(({ label }) => label.includes('.shop.'));
    await page.mouse.click(frame!.x, frame!.y, { button: 'right' });
    const menu = page.locator('.frame-menu');
    const box = (await menu.boundingBox())!;
    expect(Math.abs(box.x - frame!.x)).toBeLessThan(300);
    expect(await violations(page)).toEqual([]);
    const labels = await menu.locator('button').allInnerTexts();
    expect(labels.slice(-2)).toEqual(['Copy name', 'Copy stack']);
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.innerText('#said')).toBe('Copied the stack.');
    const text = await page.evaluate(() => navigator.clipboard.readText());
    expect(text.split('\n')).toEqual([frame!.label, 'java.lang.Thread.run']);
    expect(await menu.count()).toBe(0);
    // Rows of the table and of the tree have it, too; Escape closes it.
    for (const [key, row] of [
      ['3', 'table.top tbody tr[aria-rowindex]'],
      ['4', '.tree-row >> nth=2'],
    ] as const) {
      await page.keyboard.press(key);
      await page.locator(row).first().click({ button: 'right' });
      await menu.waitFor();
      await page.keyboard.press('Escape');
      expect(await menu.count()).toBe(0);
    }
    await close();
  });
});

describe('merging and dropping', () => {
  const total = (page: Page): Promise<number> =>
    page.evaluate(() => (window as any).dwellFlame.store.tree.value.total);

  it('are different things, by key, and can be taken back', async () => {
    const { page, close } = await open(browser, 'small.html');
    const all = await total(page);
    await page.focus('.flame-scroll');
    await page.keyboard.press('M');
    expect(await page.innerText('#said')).toBe('Select a frame or a method first.');
    for (const key of ['ArrowUp', 'ArrowUp']) await page.keyboard.press(key);
    const name: string = await page.evaluate(() =>
      (window as any).dwellFlame.store.focusedMethod(),
    );
    expect(name).toMatch(/^com\.example\.shop\./);
    await page.keyboard.press('M');
    await ready(page);
    expect(await hash(page)).toBe(`#view=flame&stacks=[["merge","${name}"]]`);
    expect(await page.innerText('.transforms')).toContain(`${name} merged into its callers`);
    // The frame is gone, the time is not.
    expect(await labels(page, 2)).not.toContain(name);
    expect(await total(page)).toBeCloseTo(all, 0);
    await page.keyboard.press('z');
    await ready(page);
    await page.focus('.flame-scroll');
    for (const key of ['ArrowUp', 'ArrowUp', 'D']) await page.keyboard.press(key);
    await ready(page);
    expect(await hash(page)).toBe(`#view=flame&stacks=[["drop","${name}"]]`);
    expect(await labels(page, 2)).not.toContain(name);
    expect(await total(page)).toBeLessThan(all * 0.99);
    await page.goBack();
    await expect.poll(() => hash(page)).toBe('#view=flame');
    await close();
  });

  it('are in the address, and one from an older page still means the same', async () => {
    const fragment = '#view=flame&stacks=' + encodeURIComponent('[["hide-package","java"]]');
    const { page, close } = await open(browser, 'small.html', { fragment });
    expect(await page.innerText('.transforms')).toContain('java merged into its callers');
    expect(await labels(page, 1)).not.toContain('java.lang.Thread.run');
    await close();
  });
});

describe('a method in the middle', () => {
  it('has its callers above and its callees below, as wide as all its calls', async () => {
    const { page, close } = await open(browser, 'small.html');
    await page.focus('.flame-scroll');
    for (const key of ['ArrowUp', 'ArrowUp', 'g']) await page.keyboard.press(key);
    const middle = page.locator('.sandwich .middle');
    await middle.waitFor();
    await page.waitForSelector('.sandwich[aria-busy="false"]');
    const name = await middle.locator('b').innerText();
    expect(name).toMatch(/^com\.example\.shop\..*\.handle\d+$/);
    expect(await hash(page)).toBe(`#view=flame&around=${name}`);
    const rows = (part: string): Promise<[string, number][]> =>
      page.evaluate((part) => {
        // The controllers are there for tests.
        const { store } = (window as unknown as Record<string, { store: any }>)[part]!;
        const [tree, keys] = [store.tree.value, store.keys.value];
        const [first] = tree.children(0);
        const next = Array.from(tree.children(first) as ArrayLike<number>);
        return [first, ...next].map((node) => [
          keys.methodLabel(tree.key(node)),
          tree.weight(node),
        ]);
      }, part);
    const [above, below] = [await rows('dwellFlameCallers'), await rows('dwellFlameCallees')];
    expect([above[0]![0], below[0]![0]]).toEqual([name, name]);
    expect(above[0]![1]).toBeCloseTo(below[0]![1], 3);
    expect(above.slice(1).map(([label]) => label)).toContain('java.lang.Thread.run');
    expect(below.length).toBeGreaterThan(1);
    expect(await violations(page)).toEqual([]);
    // Keys mean the frame that was gone to in one of the halves.
    await page.locator('.flame-scroll').nth(1).focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'M']) await page.keyboard.press(key);
    await expect.poll(() => hash(page)).toMatch(/&stacks=\[\["merge","[^"]+"\]\]&around=/);
    expect(await hash(page)).not.toContain(`["merge","${name}"]`);
    await page.keyboard.press('z');
    // Colours of causes do not need another graph.
    await page.keyboard.press('g');
    await expect.poll(() => hash(page)).not.toContain('around');
    await close();
  });
});

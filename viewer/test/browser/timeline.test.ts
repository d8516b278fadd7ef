// The timeline in a browser: lanes, choosing, dragging, keys, and how long a frame takes.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TimelineController } from '../../src/timeline/controller';
import { launch } from './launch.mjs';
import { open, ready, shot, twoFrames, violations } from './page';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
});

type Of = { dwellTimeline: TimelineController };

/** The middle of a lane in the window, at a part of what is in sight. */
async function placeOf(page: Page, name: string, share: number): Promise<{ x: number; y: number }> {
  const canvas = (await page.locator('.lanes-canvas').boundingBox())!;
  const label = (await page.locator(`.lane-name:has-text("${name}")`).first().boundingBox())!;
  return { x: canvas.x + canvas.width * share, y: label.y + label.height / 2 };
}

function laneNames(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    (window as never as Of).dwellTimeline.lanes.value.map(({ name }) => name),
  );
}

describe('the timeline', () => {
  it('has lanes of the runtime, pools that fold, and threads', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=timeline' });
    const names = await laneNames(page);
    expect(names.slice(0, 4)).toEqual([
      'GC pauses',
      'Safepoints',
      'Compilers (JIT)',
      'CPU-throttled',
    ]);
    // From 10 s on of 30 s.
    const held = await placeOf(page, 'CPU-throttled', 10.5 / 30);
    await page.mouse.move(held.x, held.y);
    expect(await page.innerText('.tooltip')).toMatch(/20\.0\s% of 10 periods/);
    const compiled = await placeOf(page, 'Compilers (JIT)', 1.5 / 30);
    await page.mouse.move(compiled.x, compiled.y);
    expect(await page.innerText('.tooltip')).toContain('com.example.shop.Stock.reserve');
    expect(await page.innerText('.tooltip')).toMatch(/Compiled\s+200, 1 of them discarded/);
    expect(names).toContain('main');
    expect(names).toContain('http-exec-1');
    // Threads of the JVM are folded by default.
    expect(names).toContain('threads of the JVM');
    expect(names).not.toContain('GC Thread#0');
    await page.click('.lane-name button:has-text("threads of the JVM")');
    expect(await laneNames(page)).toContain('GC Thread#0');
    await page.click('.lane-name button:has-text("http-exec-#")');
    expect(await laneNames(page)).not.toContain('http-exec-1');
    expect(await laneNames(page)).toContain('virtual threads');
    await close();
  });

  it('shows the stack of a step that waits, and that of the owner beside it', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=timeline' });
    const place = await page.evaluate(() => {
      const controller = (window as never as Of).dwellTimeline;
      const { profile } = controller.store;
      const { looks, owner } = profile.wall!;
      const i = owner.findIndex((owner) => owner > 0);
      const thread = looks.thread[i]!;
      const time = looks.time[i]!;
      controller.set({ from: time - 5e6, to: time + 5e6 });
      const lane = controller.lanes.value.findIndex(
        (lane) => lane.kind === 'thread' && lane.thread === thread,
      );
      controller.showLane(lane);
      const box = document.querySelector('.lanes-canvas')!.getBoundingClientRect();
      const y = box.top + 22 + lane * 26 - controller.scroller.scrollTop + 13;
      return { x: controller.placeOf(time + 1e5), y };
    });
    await page.evaluate(twoFrames);
    await page.mouse.move(place.x, place.y);
    await page.waitForSelector('.tooltip:has-text("Held by")');
    await page.mouse.click(place.x, place.y);
    await page.waitForSelector('.chosen');
    const stacks = await page.locator('.chosen ol.stack').allInnerTexts();
    expect(stacks[0]).toContain('Orders.find');
    expect(stacks[1]).toContain('Stock.reserve');
    const pinned = await page.evaluate(() => {
      const { pinned } = (window as never as Of).dwellTimeline;
      return pinned.value!.owner;
    });
    expect(pinned).toBeGreaterThanOrEqual(0);
    await page.locator('.lanes-scroll').focus();
    await page.keyboard.press('Escape');
    expect(await page.locator('.chosen').count()).toBe(0);
    await close();
  });

  it('has waits for monitors where they were, with the class, the owner and the stack', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=timeline' });
    expect(await page.innerText('.timeline-tools')).toContain('exact monitor waits');
    const place = await page.evaluate(() => {
      const controller = (window as never as Of).dwellTimeline;
      const { samples, longest, owner, look } = controller.store.profile.locks!;
      const i = owner.findIndex((owner, i) => owner > 0 && look[i] === 0);
      const [thread, time] = [samples.thread[i]!, samples.time[i]!];
      // Ten times as long, so that it is in the middle of the row and not at its ends.
      controller.set({ from: time - 4.5 * longest[i]!, to: time + 5.5 * longest[i]! });
      const lane = controller.lanes.value.findIndex(
        (lane) => lane.kind === 'thread' && lane.thread === thread,
      );
      controller.showLane(lane);
      const box = document.querySelector('.lanes-canvas')!.getBoundingClientRect();
      const y = box.top + 22 + lane * 26 - controller.scroller.scrollTop + 17;
      const { from } = controller.sight.value;
      return { x: controller.placeOf(time + longest[i]! / 2), y, time, lane, i, from };
    });
    await page.evaluate(twoFrames);
    await page.mouse.move(place.x, place.y);
    await page.waitForSelector('.tooltip:has-text("Waited")');
    const tooltip = await page.innerText('.tooltip');
    expect(tooltip).toContain('monitor: waiting for a synchronized block');
    expect(tooltip).toContain('com.example.shop.Stock');
    expect(tooltip).toContain('Held by');
    // The row has the colour of monitors in it, and not the background.
    const colour = await page.evaluate(({ x, y }) => {
      const canvas = document.querySelector<HTMLCanvasElement>('.lanes-canvas')!;
      const box = canvas.getBoundingClientRect();
      return [...canvas.getContext('2d')!.getImageData(x - box.left, y - box.top, 1, 1).data];
    }, place);
    expect(colour).toEqual([0xd1, 0x1f, 0x3a, 255]);
    await page.mouse.click(place.x, place.y);
    await page.waitForSelector('.chosen');
    const chosen = await page.innerText('.chosen');
    expect(chosen).toContain(', exact');
    expect(chosen).toMatch(/All waits of this thread for monitors: \d+ waits?, .* in all/);
    expect(await page.innerText('.chosen ol.stack')).toContain('Orders.find');
    const pinned = await page.evaluate(
      () => (window as never as Of).dwellTimeline.pinned.value!.from,
    );
    expect(pinned).toBe(place.time);
    await close();
  });

  it('makes all views of a range that is dragged out', async () => {
    const { page, close } = await open(browser, 'small.html', {
      fragment: '#view=timeline&time=wall',
    });
    const from = await placeOf(page, 'http-exec-#', 0.2);
    const to = await placeOf(page, 'http-exec-#', 0.4);
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move(to.x, to.y, { steps: 3 });
    await page.mouse.up();
    await ready(page);
    const range = await page.evaluate(() => {
      return (window as never as Of).dwellTimeline.store.during.value!;
    });
    const whole = await page.evaluate(() => (window as never as Of).dwellTimeline.whole.to);
    expect(Math.abs(range.from / whole - 0.2)).toBeLessThan(0.01);
    expect(Math.abs(range.to / whole - 0.4)).toBeLessThan(0.01);
    await page.click('button:has-text("Zoom to range")');
    // Moving along the time is written to the address a little later.
    const address = () => page.evaluate('location.hash');
    await expect.poll(address).toMatch(/range=\d+-\d+&sight=\d+-\d+$/);
    await page.keyboard.press('3');
    await page.waitForSelector('table.top');
    const times = await page.evaluate(() => {
      const { time } = (window as never as Of).dwellTimeline.store.shown.value.samples;
      return [Math.min(...time), Math.max(...time)];
    });
    // A look that began before reaches into the range; none is longer than this.
    expect(times[0]).toBeGreaterThanOrEqual(range.from - 31e6);
    expect(times[1]).toBeLessThan(range.to);
    await close();
  });

  it('zooms about the pointer, moves along, and can be used by key', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=timeline' });
    const sight = () => page.evaluate(() => (window as never as Of).dwellTimeline.sight.value);
    const at = await placeOf(page, 'http-exec-#', 0.25);
    await page.mouse.move(at.x, at.y);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -300);
    await page.keyboard.up('Control');
    await expect.poll(async () => (await sight()).to).toBeLessThan(30e9);
    const zoomed = await sight();
    const under = zoomed.from + 0.25 * (zoomed.to - zoomed.from);
    expect(Math.abs(under - 7.5e9)).toBeLessThan(0.1e9);
    await page.focus('.lanes-scroll');
    await page.keyboard.press('Shift+ArrowRight');
    expect((await sight()).from).toBeGreaterThan(zoomed.from);
    await page.keyboard.press('0');
    expect((await sight()).to).toBe(30e9);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await page.textContent('#said')).toContain('safepoint');
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    expect(await page.textContent('#said')).toMatch(/http-exec-\d+ .*At/);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.chosen ol.stack');
    await close();
  });

  it('looks at one thread alone, in all views', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=timeline' });
    await page.click('.lane-name button:has-text("main")');
    await ready(page);
    expect(await laneNames(page)).not.toContain('http-exec-1');
    expect(await page.evaluate('location.hash')).toBe('#view=timeline&thread=0');
    await page.keyboard.press('2');
    await ready(page);
    const threads = await page.evaluate(() => {
      const { store } = (window as never as Of).dwellTimeline;
      return store.threads.value.reduce((a, b) => a + b, 0);
    });
    expect(threads).toBe(1);
    await close();
  });

  it('has bars of requests that can be chosen, slow ones dark', async () => {
    const { page, close } = await open(browser, 'small.html', { fragment: '#view=timeline' });
    const place = await page.evaluate(() => {
      const controller = (window as never as Of).dwellTimeline;
      const { tracks, profile } = controller.store;
      const lane = controller.lanes.value.findIndex(
        (lane) => lane.kind === 'thread' && tracks.value.bars(lane.thread).n > 0,
      );
      const of = controller.lanes.value[lane] as { thread: number };
      const { request, from, to } = tracks.value.bars(of.thread);
      const slow = (request: number) => profile.requests.duration[request - 1]!;
      const i = request.indexOf([...request].sort((a, b) => slow(b) - slow(a))[0]!);
      const middle = (from[i]! + to[i]!) / 2;
      controller.set({ from: middle - 5e8, to: middle + 5e8 });
      controller.showLane(lane);
      const box = document.querySelector('.lanes-canvas')!.getBoundingClientRect();
      const y = box.top + 22 + lane * 26 - controller.scroller.scrollTop + 3;
      return { x: controller.placeOf(middle), y, request: request[i]! };
    });
    await page.evaluate(twoFrames);
    const colour = await page.evaluate(({ x, y }) => {
      const canvas = document.querySelector<HTMLCanvasElement>('.lanes-canvas')!;
      const box = canvas.getBoundingClientRect();
      const { data } = canvas.getContext('2d')!.getImageData(x - box.left, y - box.top, 1, 1);
      const text = getComputedStyle(canvas).getPropertyValue('--text').trim();
      return [
        `#${[...data.slice(0, 3)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`,
        text,
      ];
    }, place);
    expect(colour[0]).toBe(colour[1]);
    await page.mouse.click(place.x, place.y);
    await ready(page);
    expect(await page.evaluate('location.hash')).toContain(`request=${place.request}`);
    await close();
  });

  it('moves without writing the address for every frame', async () => {
    const first = () => {
      const { replaceState } = History.prototype;
      const counted = window as unknown as { written: number };
      counted.written = 0;
      History.prototype.replaceState = function (...words) {
        counted.written++;
        replaceState.apply(this, words);
      };
    };
    const { page, close } = await open(browser, 'small.html', {
      fragment: '#view=timeline&sight=0-1000000',
      first,
    });
    const { frames, ms, written } = await page.evaluate(async () => {
      const controller = (window as never as Of).dwellTimeline;
      const counted = window as unknown as { written: number };
      const [began, before] = [performance.now(), counted.written];
      for (let i = 0; i < 60; i++) {
        controller.pan(0.01);
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
      const ms = performance.now() - began;
      return { frames: 60, ms, written: counted.written - before };
    });
    expect(written).toBeLessThanOrEqual(Math.ceil(ms / 400) + 1);
    expect(written).toBeLessThan(frames);
    // Where it stops is in the address.
    const { from } = await page.evaluate(() => (window as never as Of).dwellTimeline.sight.value);
    const text = `sight=${Math.floor(from / 1000)}-`;
    await expect.poll(() => page.evaluate('location.hash')).toContain(text);
    await close();
  });

  it.each([
    [390, 844, 'light'],
    [390, 844, 'dark'],
    [390, 420, 'light'],
    [320, 640, 'light'],
    [1440, 900, 'light'],
  ] as const)('shows all of its legend at %i x %i, %s', async (width, height, scheme) => {
    const { page, close } = await open(browser, 'small.html', {
      width,
      height,
      scheme,
      fragment: '#view=timeline',
    });
    const seen = await page.evaluate(() => {
      const tools = document.querySelector('.timeline-tools')!;
      const timeline = document.querySelector('.timeline')!;
      const box = tools.getBoundingClientRect();
      const items = [...tools.querySelectorAll('.key li, button')];
      const isCut = (item: Element) => {
        const { left, right, top, bottom } = item.getBoundingClientRect();
        return left < 0 || right > innerWidth || top < box.top || bottom > box.bottom + 1;
      };
      const cut = items.filter(isCut).map((item) => item.textContent);
      timeline.scrollTop = timeline.scrollHeight;
      const lanes = document.querySelector('.lanes-scroll')!.getBoundingClientRect();
      return {
        items: items.length,
        cut,
        hidden: tools.scrollHeight - tools.clientHeight,
        sideways: document.documentElement.scrollWidth - innerWidth,
        lanes: Math.round(lanes.height),
        below: Math.max(0, Math.round(lanes.bottom - innerHeight)),
      };
    });
    expect(seen.items).toBeGreaterThan(12);
    expect(seen).toMatchObject({ cut: [], hidden: 0, sideways: 0, below: 0 });
    expect(seen.lanes).toBeGreaterThanOrEqual(120);
    expect(await violations(page)).toEqual([]);
    await shot(page, `timeline-${width}-${height}-${scheme}`);
    await close();
  });
});

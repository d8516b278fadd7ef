// Starts the browser that is installed: DWELL_CHROMIUM, or the first of the usual names on the
// PATH.
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

export function browserPath() {
  const named = process.env['DWELL_CHROMIUM'];
  if (named) return named;
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of NAMES) if (existsSync(join(folder, name))) return join(folder, name);
  }
  throw new Error('no Chromium found: install one, or name it in DWELL_CHROMIUM');
}

export function launch() {
  // Without a sandbox, because tests often run as root in a container; the pages are our own.
  // No process of its own for what draws, and one for all pages: starting them takes longer than
  // most tests.
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--in-process-gpu',
    '--renderer-process-limit=1',
    '--disable-features=site-per-process,IsolateOrigins,PaintHolding',
    '--disable-background-networking',
  ];
  return chromium.launch({ executablePath: browserPath(), headless: true, args, timeout: 180_000 });
}

// Makes the pages that the browser tests open: the built viewer with invented profiles, written
// by the report crate. The viewer must have been built before.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    pages: string;
  }
}

const PAGES: Record<string, string[]> = {
  'small.html': ['--frames', '3000'],
  'hostile.html': ['--frames', '1000', '--hostile'],
  'compare.html': ['--frames', '1500', '--against', '2000', '--hostile'],
  'deep.html': ['--frames', '100', '--depth', '8192'],
  'large.html': ['--frames', '1000000'],
};

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'dwell-viewer-'));
  const top = resolve(import.meta.dirname, '../../..');
  const cargo = ['run', '-q', '-p', 'dwell-report', '--example', 'synthetic', '--'];
  for (const [name, args] of Object.entries(PAGES)) {
    execFileSync('cargo', [...cargo, join(folder, name), ...args], { cwd: top, stdio: 'inherit' });
  }
  project.provide('pages', folder);
  return () => rmSync(folder, { recursive: true, force: true });
}

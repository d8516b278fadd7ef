// Types of launch.mjs, which the benchmark runs without a compiler.
import type { Browser } from 'playwright-core';

export function browserPath(): string;
export function launch(): Promise<Browser>;

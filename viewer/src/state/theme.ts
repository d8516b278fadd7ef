// Dark or light: the reader's preference, unless the reader chose here. The choice is kept in the
// browser where that is allowed.
import { computed, effect, signal } from '@preact/signals';
import type { Theme } from '../flame/colours';

const STORED = 'dwell.theme';

const preference = window.matchMedia('(prefers-color-scheme: dark)');
const preferred = signal<Theme>(preference.matches ? 'dark' : 'light');
preference.addEventListener('change', (event) => {
  preferred.value = event.matches ? 'dark' : 'light';
});

const chosen = signal<Theme | null>(stored());

const wantsContrast = window.matchMedia('(prefers-contrast: more)');
/** Whether lines and text are to stand out as much as they can. */
export const contrastful = signal(wantsContrast.matches);
wantsContrast.addEventListener('change', (event) => {
  contrastful.value = event.matches;
});

export const theme = computed<Theme>(() => chosen.value ?? preferred.value);

effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
  document.documentElement.dataset['contrast'] = contrastful.value ? 'more' : 'normal';
});

export function toggleTheme(): void {
  chosen.value = theme.value === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(STORED, chosen.value);
  } catch {
    // A page from a file may not be allowed to store; the choice then lasts as long as the page.
  }
}

function stored(): Theme | null {
  try {
    const value = localStorage.getItem(STORED);
    return value === 'dark' || value === 'light' ? value : null;
  } catch {
    return null;
  }
}

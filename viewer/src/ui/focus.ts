// Where the keyboard is when a view comes up.

/** Focuses a view, unless the user moves along the tabs. */
export function takeFocus(view: HTMLElement | null): void {
  if (document.activeElement?.getAttribute('role') === 'tab') return;
  view?.focus({ preventScroll: true });
}

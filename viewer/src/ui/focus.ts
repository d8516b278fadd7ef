// Where the keyboard is when a view comes up.

/** Focuses a view, unless the user moves along the tabs or already types, as into the search box. */
export function takeFocus(view: HTMLElement | null): void {
  const active = document.activeElement;
  if (active?.getAttribute('role') === 'tab' || active instanceof HTMLInputElement) return;
  view?.focus({ preventScroll: true });
}

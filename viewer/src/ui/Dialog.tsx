// A dialog of the browser, which traps the focus and closes on Escape.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { type DialogName, frameKey, openDialog } from './commands';

export function Dialog(props: { name: DialogName; title: string; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = openDialog.value === props.name;
  useEffect(() => {
    const element = dialog.current;
    if (!element) return;
    if (open && !element.open) element.showModal();
    if (!open && element.open) element.close();
  }, [open]);
  const close = () => {
    if (openDialog.value !== props.name) return;
    openDialog.value = null;
    frameKey.value = -1;
  };
  const title = `${props.name}-title`;
  return (
    <dialog
      ref={dialog}
      aria-labelledby={title}
      // `close` comes a task later than the dialog goes: keys pressed in between would be lost.
      onCancel={close}
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div class="dialog-body">
        <div class="dialog-head">
          <h2 id={title}>{props.title}</h2>
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
        {open && props.children}
      </div>
    </dialog>
  );
}

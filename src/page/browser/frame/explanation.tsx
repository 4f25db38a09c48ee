import { useEffect, useRef } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { reasonTextOf } from '../parts/reason-texts.ts';

/** What a reason word means and what to do: its row of docs/troubleshooting.md. */
export function Explanation({ reason, onClose }: { readonly reason: string; readonly onClose: () => void }) {
  const text = reasonTextOf(reason);
  return (
    <Dialog title={reason} onClose={onClose}>
      {text === undefined ? (
        <p>docs/troubleshooting.md has no row for this word: it is not one of ours.</p>
      ) : (
        <>
          <p>
            <Prose text={text.meaning} />
          </p>
          {text.whatToDo !== '' && (
            <>
              <h3>What to do</h3>
              <p>
                <Prose text={text.whatToDo} />
              </p>
            </>
          )}
        </>
      )}
    </Dialog>
  );
}

/** Text with code in backticks. */
export function Prose({ text }: { readonly text: string }) {
  return (
    <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}

/** A window above the page; Esc and a click beside it close it. */
export function Dialog(props: {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      aria-label={props.title}
      onClose={props.onClose}
      onClick={({ target, currentTarget }) => {
        if (target === currentTarget) currentTarget.close();
      }}
    >
      <div class="dialog-body">
        <header>
          <h2>{props.title}</h2>
          <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
            <span aria-hidden="true">✕</span>
            <span class="hidden">close</span>
          </button>
        </header>
        {props.children}
      </div>
    </dialog>
  );
}

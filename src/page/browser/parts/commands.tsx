import { useState } from 'preact/hooks';
import { usePage } from './page-context.ts';

/** A command line to copy. */
export function Command({ line }: { readonly line: string }) {
  return (
    <div class="command">
      <code>{line}</code>
      <CopyButton text={line} what="the command" />
    </div>
  );
}

/** @param what is copied, for screen readers. */
export function CopyButton(props: { readonly text: string; readonly what: string; readonly label?: string }) {
  const { announce } = usePage();
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(props.text);
      announce('copied');
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      announce('this browser does not let pages copy: select the text instead');
    }
  };
  return (
    <button type="button" class="quiet copy" onClick={() => void copy()}>
      {isCopied ? 'copied' : (props.label ?? 'copy')}
      <span class="hidden"> {props.what}</span>
    </button>
  );
}

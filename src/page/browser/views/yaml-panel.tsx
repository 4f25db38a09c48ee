import { useEffect, useState } from 'preact/hooks';
import type { ObjectAnswer } from '../../messages.ts';
import { CopyButton } from '../parts/commands.tsx';
import { usePage } from '../parts/page-context.ts';
import { plain } from '../../../objects/plain.ts';
import { objectOf } from '../state/session.ts';

/** An object to read; its `managedFields` are folded. */
export function YamlPanel(props: {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}) {
  const { kind, namespace, name } = props;
  const { atMs } = usePage();
  const [answer, setAnswer] = useState<ObjectAnswer | string>();
  useEffect(() => {
    objectOf(kind, namespace, name).then(setAnswer, (cause: unknown) => setAnswer(String(cause)));
  }, [kind, namespace, name]);
  if (answer === undefined) return <p class="muted">reading …</p>;
  if (typeof answer === 'string') return <p class="notice bad">{answer}</p>;
  return (
    <div class="yaml">
      {atMs !== undefined && <p class="muted">As it is now:</p>}
      <CopyButton text={answer.yaml} what="the YAML" />
      <pre tabIndex={0} aria-label={`YAML of ${kind} ${name}`}>
        {plainLines(answer.yaml)}
      </pre>
      {answer.managedFields !== '' && (
        <details>
          <summary>managedFields</summary>
          <pre tabIndex={0} aria-label="managedFields">
            {plainLines(answer.managedFields)}
          </pre>
        </details>
      )}
    </div>
  );
}

function plainLines(text: string): string {
  return text.split('\n').map(plain).join('\n');
}

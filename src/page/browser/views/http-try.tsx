import { useState } from 'preact/hooks';
import type { TraceAnswer } from '../../messages.ts';
import { usePage } from '../parts/page-context.ts';
import { PlaceLink, Sign, Text } from '../parts/words.tsx';
import { placeOf, secondText } from '../state/place.ts';
import { post } from '../state/session.ts';
import { verdicts } from './way-answer.tsx';

type Stage = TraceAnswer['stages'][number];

interface Tried {
  readonly request: string;
  /** A sentence: it could not be asked. */
  readonly answer: TraceAnswer | string;
}

/** What the router would do with a request from outside: as `servicenet trace outside URL` says it. Nothing is sent. */
export function HttpTry() {
  const { place, atMs } = usePage();
  const [typed, setTyped] = useState({ scheme: 'https', host: place.query['host'] ?? '', path: '/' });
  const [tried, setTried] = useState<Tried>();
  const ask = (): void => {
    const path = typed.path.startsWith('/') ? typed.path : `/${typed.path}`;
    const request = `${typed.scheme}://${typed.host.trim()}${path}`;
    const at = atMs === undefined ? {} : { at: secondText(atMs) };
    post('/data/trace', { from: 'outside', to: request, ...at }).then(
      (answer) => setTried({ request, answer }),
      (cause: unknown) =>
        setTried({ request, answer: cause instanceof Error ? cause.message : String(cause) }),
    );
  };
  return (
    <form
      class="question try"
      aria-label="Try a request"
      onSubmit={(event) => {
        event.preventDefault();
        ask();
      }}
    >
      <label class="field small">
        <span>scheme</span>
        <select
          value={typed.scheme}
          onChange={({ currentTarget }) => setTyped({ ...typed, scheme: currentTarget.value })}
        >
          <option>https</option>
          <option>http</option>
        </select>
      </label>
      <label class="field">
        <span>host</span>
        <input
          type="text"
          placeholder="shop.example.com"
          value={typed.host}
          spellcheck={false}
          onInput={({ currentTarget }) => setTyped({ ...typed, host: currentTarget.value })}
        />
      </label>
      <label class="field">
        <span>path</span>
        <input
          type="text"
          value={typed.path}
          spellcheck={false}
          onInput={({ currentTarget }) => setTyped({ ...typed, path: currentTarget.value })}
        />
      </label>
      <span class="buttons">
        <button type="submit" disabled={typed.host.trim() === ''}>
          Try
        </button>
      </span>
      <div role="status" class="tried">
        {tried !== undefined && <Answer tried={tried} />}
      </div>
    </form>
  );
}

function Answer({ tried: { request, answer } }: { readonly tried: Tried }) {
  const { place } = usePage();
  if (typeof answer === 'string') {
    return (
      <p class="notice bad">
        <Text>{answer}</Text>
      </p>
    );
  }
  const { verdict, message } = decisionOf(answer);
  const { sign, tone } = verdicts[verdict];
  return (
    <p>
      <Sign tone={tone} sign={sign} /> <Text>{message}</Text>{' '}
      <PlaceLink to={placeOf('way', place, { from: 'outside', to: request })}>the way</PlaceLink>
    </p>
  );
}

/** What the router decides; where the request does not reach it, what is in its way. */
function decisionOf({ traces, stages, reachable }: TraceAnswer): {
  readonly verdict: Stage['verdict'];
  readonly message: string;
} {
  const all = [...stages, ...traces.flatMap(({ hops }) => hops.flat().flatMap((hop) => hop.stages))];
  const found = all.find(({ stage }) => stage === 'router') ?? all.find(({ verdict }) => verdict === 'deny');
  if (found === undefined) return { verdict: 'unknown', message: 'objects do not tell' };
  const of = found.object === undefined ? '' : `${found.object}: `;
  const more = found.verdict === 'allow' && reachable === false ? '; behind it, it is denied' : '';
  return { verdict: found.verdict, message: `${of}${found.message}${more}` };
}

import type { HttpBackendRow, HttpRuleRow } from '../../../view/rows/rows.ts';
import { kubectlLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import { usePage } from '../parts/page-context.ts';
import { Empty, Toolbar } from '../parts/view-parts.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { counted, ObjectLink, Reason, ServiceLink, Sign, Text, PlaceLink } from '../parts/words.tsx';
import { useState } from 'preact/hooks';
import type { TraceAnswer } from '../../messages.ts';
import { placeOf, secondText } from '../state/place.ts';
import { post } from '../state/session.ts';
import { verdicts } from './way-answer.tsx';

/** What the router does: the rules of Ingresses, and of Routes of OpenShift and of Gateway API. */
export function HttpView() {
  const { rows, place, isCurrent } = usePage();
  const { q = '', host, ns } = place.query;
  const all = rows.all('httpRule');
  const found = all.filter((rule) => (host === undefined || rule.host === host) && isFound(rule, q));
  return (
    <div class="view http">
      <Toolbar
        summary={
          found.length === all.length
            ? counted(all.length, 'rule')
            : `${found.length} of ${counted(all.length, 'rule')}`
        }
        name="http"
        command={kubectlLine(rows.cluster, 'get', 'ingress', ...(ns === undefined ? ['-A'] : ['-n', ns]))}
      />
      {all.length > 0 && <HttpTry />}
      {found.length === 0 && isCurrent ? (
        <Empty
          sentence={
            all.length === 0 ? 'There is no Ingress, no Route and no Gateway.' : 'No rule is like this.'
          }
        >
          {all.length === 0 && (
            <Command
              line={kubectlLine(rows.cluster, 'create', 'ingress', 'web', '--rule=web.example.com/*=web:80')}
            />
          )}
        </Empty>
      ) : (
        <HttpTable rules={found} />
      )}
    </div>
  );
}

/** Rules by host; a host is named once. */
export function HttpTable({ rules }: { readonly rules: readonly HttpRuleRow[] }) {
  const sorted = rules.toSorted(
    (a, b) => compare(a.host, b.host) || compare(a.path, b.path) || compare(a.key, b.key),
  );
  const rows = sorted.map((rule, index) => ({ ...rule, isFirst: sorted[index - 1]?.host !== rule.host }));
  return (
    <Table
      name="rules of hosts and paths"
      class="http-rules"
      rows={rows}
      rowClass={({ isFirst }) => (isFirst ? 'first-of-host' : '')}
      columns={[
        {
          title: 'Host',
          class: 'wide',
          cell: ({ host, isFirst }) => (
            <strong class={isFirst ? '' : 'again'}>
              <Text>{host === '' ? 'every host' : host}</Text>
            </strong>
          ),
        },
        { title: 'TLS', class: 'short', cell: (rule) => <Tls rule={rule} /> },
        {
          title: 'Path',
          class: 'short',
          cell: ({ path, match, only = [] }) => (
            <>
              <bdi class="code">{path === '' ? '/' : path}</bdi> <span class="muted">{match}</span>
              {only.map((condition) => (
                <bdi key={condition} class="code only">
                  {condition}
                </bdi>
              ))}
            </>
          ),
        },
        { title: 'From', cell: ({ source }) => <ObjectLink of={source} /> },
        {
          title: 'State',
          cell: ({ trouble }) =>
            trouble === undefined ? (
              <>
                <Sign tone="good" sign="✓" /> admitted
              </>
            ) : (
              <span title={trouble.message}>
                <Reason word={trouble.reason} />
                <span class="hidden">
                  <Text>{trouble.message}</Text>
                </span>
              </span>
            ),
        },
        {
          title: 'Backends',
          class: 'wide',
          cell: ({ backends, answer }) =>
            backends.length === 0
              ? (answer ?? '–')
              : backends.map((backend) => (
                  <Backend
                    key={`${backend.service} ${backend.port}`}
                    backend={backend}
                    isOne={backends.length === 1}
                  />
                )),
        },
      ]}
    />
  );
}

function Tls({ rule: { tls, insecure } }: { readonly rule: HttpRuleRow }) {
  if (tls === undefined) return <>–</>;
  const words = [tls.termination, ...(tls.secret === undefined ? [] : [tls.secret])].join(', ');
  return (
    <>
      <Text>{words}</Text>
      {insecure !== 'Allow' && (
        <span class="muted"> · without TLS: {insecure === 'Redirect' ? 'redirect' : 'none'}</span>
      )}
    </>
  );
}

function Backend({ backend, isOne }: { readonly backend: HttpBackendRow; readonly isOne: boolean }) {
  const { service, port, weight, ready, total, trouble } = backend;
  return (
    <span class="backend">
      <ServiceLink of={service} />
      {port !== '' && <Text>{`:${port}`}</Text>}{' '}
      <span class={ready === 0 ? 'bad' : 'muted'}>
        {ready}/{total}
        <span class="hidden"> ready</span>
      </span>
      {!isOne && <span class="muted"> weight {weight}</span>}
      {trouble !== undefined && (
        <>
          {' '}
          <Reason word={trouble.reason} />
        </>
      )}
    </span>
  );
}

function isFound({ host, path, only = [], source, backends, trouble }: HttpRuleRow, search: string): boolean {
  const texts = [
    host,
    path,
    ...only,
    source.kind,
    source.namespace,
    source.name,
    trouble?.reason ?? '',
    ...backends.map(({ service }) => service),
  ];
  const text = texts.join('\n').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

type Stage = TraceAnswer['stages'][number];

interface Tried {
  readonly request: string;
  /** A sentence: it could not be asked. */
  readonly answer: TraceAnswer | string;
}

/** What the router would do with a request from outside: as `servicenet trace outside URL` says it. Nothing is sent. */
function HttpTry() {
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

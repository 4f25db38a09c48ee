import type { HttpBackendRow, HttpRuleRow } from '../../../view/rows/rows.ts';
import { kubectlLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import { usePage } from '../parts/page-context.ts';
import { Empty, Toolbar } from '../parts/view-parts.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { HttpTry } from './http-try.tsx';
import { counted, ObjectLink, Reason, ServiceLink, Sign, Text } from '../parts/words.tsx';

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

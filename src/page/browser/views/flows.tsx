import { useState } from 'preact/hooks';
import { type Outcome, worstFirst } from '../../../objects/flows/outcomes.ts';
import type { FlowGroupRow, FlowRow } from '../../../view/rows/rows.ts';
import type { FollowedFlows } from '../../messages.ts';
import { ChoiceInput } from '../parts/choice-input.tsx';
import { EndInputs } from '../parts/connection-inputs.tsx';
import { commandLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import { useHeldOrder } from '../parts/held-order.ts';
import { usePage } from '../parts/page-context.ts';
import { Empty, Pending, PlaceCheck, PlaceSelect, Toolbar } from '../parts/view-parts.tsx';
import { type Column, Table } from '../parts/virtual-list.tsx';
import { Age, counted, digits, PlaceLink, Reason, Sign, Text, type Tone } from '../parts/words.tsx';
import { type Place, placeOf, withQuery } from '../state/place.ts';

const outcomeSigns: Readonly<Record<Outcome, { readonly sign: string; readonly tone: Tone }>> = {
  dropped: { sign: '✗', tone: 'bad' },
  refused: { sign: '✗', tone: 'bad' },
  NXDOMAIN: { sign: '?', tone: 'warn' },
  opened: { sign: '◌', tone: 'quiet' },
  connected: { sign: '✓', tone: 'good' },
};

/** Those that a filter may ask for; several with commas. */
const outcomeChoices = [
  ['', 'all outcomes'],
  ['dropped,refused,NXDOMAIN', 'denied'],
  ...worstFirst.map((outcome) => [outcome, outcome] as const),
] as const;

/** What the words of a place ask for. */
export function followedFlows({ from, to, outcome, by, all, each }: Place['query']): FollowedFlows {
  return {
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(outcome === undefined ? {} : { outcomes: outcome.split(',') }),
    ...(by === undefined ? {} : { by }),
    ...(all === '1' ? { all: true } : {}),
    ...(each === '1' ? { each: true } : {}),
  };
}

/** What becomes of connections, while somebody looks: in groups, or each. */
export function FlowsView() {
  const { rows, place, isCurrent } = usePage();
  const isEach = place.query['each'] === '1';
  const [paused, setPaused] = useState<readonly ShownFlow[]>();
  const now = isEach ? newestFirst(rows.all('flow')) : inOrder(rows.all('flowGroup'));
  const all = paused ?? now;
  const found = all.filter((row) => isFound(row, place.query['q'] ?? ''));
  const held = useHeldOrder(found);
  const watch = rows.get('flowWatch', 'flows');
  const whyNone = watch?.whyEnded;
  const { total = 0 } = watch ?? {};
  const isWatching = isCurrent && watch !== undefined && watch.state !== 'beginning';
  const word = isEach ? 'flow' : 'group';
  return (
    <div class="view flows">
      <Filters key={filterWords.map((word) => place.query[word] ?? '').join(' ')} />
      <Toolbar
        summary={
          found.length < total ? `${digits(found.length)} of ${counted(total, word)}` : counted(total, word)
        }
        name="flows"
        command={useCommand()}
      >
        <PlaceCheck name="each" on="1">
          each by itself
        </PlaceCheck>
        <PlaceCheck name="all" on="1">
          with the cluster’s own
        </PlaceCheck>
        <button
          type="button"
          aria-pressed={paused !== undefined}
          onClick={() => setPaused(paused === undefined ? now : undefined)}
        >
          Pause
        </button>
        <Pending count={held.pending} />
      </Toolbar>
      {watch?.trouble !== undefined && (
        <p class="notice">
          <Reason word={watch.trouble.reason} tone="warn" /> <Text>{watch.trouble.message}</Text>
        </p>
      )}
      {whyNone !== undefined && found.length > 0 && (
        <p class="notice bad">
          Nothing more comes: <Text>{whyNone}</Text>
        </p>
      )}
      {found.length > 0 ? (
        <div {...held.hold}>
          <FlowTable rows={held.rows} isEach={isEach} />
        </div>
      ) : isWatching ? (
        <NoFlows whyNone={whyNone} isFiltered={all.length > 0} />
      ) : (
        <p class="muted waiting">asking the nodes …</p>
      )}
    </div>
  );
}

/** A group or a single one. */
type ShownFlow = FlowRow | FlowGroupRow;

/** As the server sends them: it has sorted them, and sends what has changed. */
function inOrder(groups: readonly FlowGroupRow[]): readonly FlowGroupRow[] {
  return groups.toSorted(
    (a, b) =>
      worstFirst.indexOf(a.outcome) - worstFirst.indexOf(b.outcome) ||
      b.count - a.count ||
      (a.key < b.key ? -1 : 1),
  );
}

function newestFirst(flows: readonly FlowRow[]): readonly FlowRow[] {
  return flows.toSorted((a, b) =>
    a.time < b.time ? 1 : a.time > b.time ? -1 : Number(b.key) - Number(a.key),
  );
}

function isFound(row: ShownFlow, search: string): boolean {
  const { from, service, to, protocol, outcomeText, decidedBy } = row;
  const text = [from, service, to, protocol, outcomeText, decidedBy].join('\n').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** What is typed to filter by. */
const filterWords = ['from', 'to', 'by'] as const;

function Filters() {
  const { rows, place, go } = usePage();
  const { from = '', to = '', by = '', outcome = '' } = place.query;
  const [typed, setTyped] = useState({ from, to, by });
  const isChanged = filterWords.some((word) => typed[word] !== (place.query[word] ?? ''));
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault();
        go(withQuery(place, typed));
      }}
    >
      <EndInputs
        ends={typed}
        toPlaceholder="svc/shop/catalog, pod/…, dns/NAME"
        onInput={(ends) => setTyped({ ...typed, ...ends })}
      />
      <ChoiceInput
        label="decided by"
        placeholder="networkpolicy/shop/deny-in, svc/…, ingress/…"
        value={typed.by}
        choices={[
          ...rows.all('policy').map(({ key }) => ({ value: `networkpolicy/${key}`, note: 'NetworkPolicy' })),
          ...rows.all('service').map(({ key, type }) => ({ value: `svc/${key}`, note: type })),
        ]}
        onInput={(next) => setTyped({ ...typed, by: next })}
      />
      <PlaceSelect
        {...{ name: 'outcome', label: 'outcome', class: 'field small', value: outcome }}
        choices={outcomeChoices}
      />
      <span class="buttons">
        <button type="submit" disabled={!isChanged}>
          Filter
        </button>
      </span>
    </form>
  );
}

/** The command that prints the same. */
function useCommand(): string {
  const { rows, place } = usePage();
  const { from, to, outcome, by, all, each, ns } = place.query;
  const given = (flag: string, value: string | undefined) => (value === undefined ? [] : [flag, value]);
  return commandLine(
    ...['servicenet', 'flows', ...(rows.cluster?.clusterFlags ?? []), ...given('-n', ns)],
    ...[...given('--from', from), ...given('--to', to), ...given('--outcome', outcome)],
    ...[...given('--by', by), ...(all === '1' ? ['--all'] : []), each === '1' ? '-f' : '--groups'],
  );
}

function NoFlows(props: { readonly whyNone: string | undefined; readonly isFiltered: boolean }) {
  const { rows, place } = usePage();
  const { whyNone, isFiltered } = props;
  if (whyNone !== undefined) return <Empty sentence={`There are no flows: ${whyNone}.`} />;
  const { q: _, ns: __, each: ___, all: ____, ...filters } = place.query;
  if (isFiltered || Object.keys(filters).length > 0) return <Empty sentence="No flow is like this." />;
  const services = rows.all('service').filter(({ type }) => type !== 'ExternalName' && type !== 'Headless');
  const service = services.find(({ namespace }) => namespace !== 'kube-system') ?? services[0];
  const [port = '80'] = service?.ports.match(/^\d+/) ?? [];
  const at = service === undefined ? 'web.default' : `${service.name}.${service.namespace}`;
  const url = `http://${at}${port === '80' ? '' : `:${port}`}/`;
  return (
    <Empty sentence="Nothing was sent in the last minutes. Send something:">
      <Command
        line={commandLine(
          'servicenet',
          'run',
          ...(rows.cluster?.clusterFlags ?? []),
          '--',
          'curl',
          '-s',
          url,
        )}
      />
    </Empty>
  );
}

function FlowTable({ rows, isEach }: { readonly rows: readonly ShownFlow[]; readonly isEach: boolean }) {
  const counts: readonly Column<ShownFlow>[] = isEach
    ? [
        {
          title: 'Packets',
          class: 'short number',
          cell: (row) => ('packets' in row ? (row.packets ?? '') : ''),
        },
      ]
    : [
        {
          title: '/s',
          class: 'short number',
          cell: (row) =>
            'perSecond' in row ? <span title={`${row.count} in five minutes`}>{row.perSecond}</span> : '',
        },
        { title: '5 min', class: 'short', cell: (row) => ('history' in row ? <History of={row} /> : '') },
      ];
  return (
    <Table
      name="Flows"
      class="flow-rows"
      rows={rows}
      columns={[
        { title: 'Last', class: 'short', cell: ({ time }) => <Age time={time} /> },
        { title: 'From', class: 'flow-end', cell: (row) => <WayLink of={row} /> },
        { title: 'Service', class: 'flow-end', cell: ({ service }) => <Text>{service || '–'}</Text> },
        { title: 'To', class: 'flow-end', cell: ({ to }) => <Text>{to || '–'}</Text> },
        {
          title: 'Outcome',
          class: 'nowrap',
          cell: ({ outcome, outcomeText }) => (
            <>
              <Sign {...outcomeSigns[outcome]} /> <Text>{outcomeText}</Text>
            </>
          ),
        },
        ...counts,
        { title: 'Decided by', class: 'wide', cell: ({ decidedBy }) => <Text>{decidedBy || '–'}</Text> },
      ]}
    />
  );
}

/** The source; it leads to the way between the same ends. */
function WayLink({ of: { from, way, service, to } }: { readonly of: ShownFlow }) {
  const { place } = usePage();
  if (way === undefined) return <Text>{from}</Text>;
  const { protocol, ...ends } = way;
  const query = { ...ends, ...(protocol === 'TCP' ? {} : { protocol }) };
  return (
    <PlaceLink to={placeOf('way', place, query)} class="name" title={`the way to ${way.to}`}>
      <Text>{from}</Text>
      <span class="hidden">: its way to {service || to}</span>
    </PlaceLink>
  );
}

/** How many there were in each five seconds. */
function History({ of: { history, count } }: { readonly of: FlowGroupRow }) {
  const most = history.reduce((max, each) => Math.max(max, each), 1);
  const bars = history.flatMap((each, index) =>
    each === 0 ? [] : [`M${index * 2 + 1} 20v-${Math.max(2, Math.round((each / most) * 19))}`],
  );
  return (
    <>
      <svg class="history" viewBox="0 0 120 20" width="120" height="20" aria-hidden="true">
        <path d={bars.join('')} />
      </svg>
      <span class="hidden">{count} in five minutes</span>
    </>
  );
}

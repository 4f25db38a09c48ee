import type { ComponentChildren } from 'preact';
import { useRef, useId, useState } from 'preact/hooks';
import type { ReachAnswer, ReachPlanAnswer, ReachPlanRequest } from '../../messages.ts';
import { usePage } from '../parts/page-context.ts';
import { counted, Sign, Text, type Tone } from '../parts/words.tsx';
import { withQuery } from '../state/place.ts';
import { type Cell, columnName, isAskedFor, type Shown } from './reach-cells.ts';
import { commandLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import { YamlInput } from '../parts/view-parts.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { post } from '../state/session.ts';

/** How verdicts are told. */
export const verdicts: Readonly<
  Record<Cell['verdict'], { readonly tone: Tone; readonly sign: string; readonly words: string }>
> = {
  open: { tone: 'quiet', sign: '·', words: 'open: nothing isolates the Pods' },
  allowed: { tone: 'good', sign: '✓', words: 'a rule allows' },
  denied: { tone: 'bad', sign: '✗', words: 'denied' },
  differs: { tone: 'warn', sign: '½', words: 'Pods differ' },
  unknown: { tone: 'quiet', sign: '?', words: 'objects do not tell' },
  unasked: { tone: 'quiet', sign: '', words: '' },
};

export function VerdictSign({ verdict }: { readonly verdict: Cell['verdict'] }) {
  return <Sign {...verdicts[verdict]} />;
}

/** `tried 3 times in the last 5 minutes`; empty: nothing came. */
export function markWords({ tried, used }: Pick<Shown, 'tried' | 'used'>): string {
  const words = [
    ...(tried === undefined ? [] : [`${counted(tried, 'time')} dropped or refused`]),
    ...(used === undefined ? [] : [counted(used, 'connection')]),
  ];
  return words.length === 0 ? '' : `${words.join(', ')} in the last 5 minutes`;
}

/** What decides a cell. @param way a link for each. */
export function Deciders(props: {
  readonly cell: Cell;
  readonly way?: (decider: Cell['deciders'][number]) => ComponentChildren;
}) {
  return (
    <ul class="deciders">
      {props.cell.deciders.map((decider) => {
        const { verdict, object, field, message } = decider;
        return (
          <li key={`${verdict} ${object ?? ''} ${field ?? ''} ${message}`} class="decider">
            <VerdictSign verdict={verdict} /> <span class="hidden">{verdict}: </span>
            {object !== undefined && (
              <strong>
                <Text>{object}</Text>
              </strong>
            )}{' '}
            {field !== undefined && <bdi class="code">{field}</bdi>} <Text>{message}</Text>{' '}
            {props.way?.(decider)}
          </li>
        );
      })}
    </ul>
  );
}

const steps: Readonly<Record<string, readonly [number, number]>> = {
  ...{ ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] },
};

/** Rows that open connections, columns that are connected to. One cell is reached by Tab, the others by arrows. */
export function ReachMatrix(props: {
  readonly answer: ReachAnswer;
  readonly cells: readonly Shown[];
  readonly selected: string;
}) {
  const { place, go } = usePage();
  const { answer, cells, selected } = props;
  const { namespace, sources, destinations } = answer;
  const body = useRef<HTMLTableSectionElement>(null);
  const short = (name: string): string => name.replace(`/${namespace}/`, '/');
  const width = destinations.length;
  const entry = Math.max(
    0,
    cells.findIndex(({ key }) => key === selected),
  );
  const move = (event: KeyboardEvent, row: number, column: number): void => {
    const [down, right] = steps[event.key] ?? [0, 0];
    if (down === 0 && right === 0) return;
    event.preventDefault();
    const next = body.current?.rows[row + down]?.cells[column + right + 1];
    next?.querySelector('button')?.focus();
  };
  return (
    <div class="matrix" role="group" aria-label="matrix: who reaches whom" tabIndex={0}>
      <table aria-label="who reaches whom">
        <thead>
          <tr>
            <th scope="col" class="corner">
              from <span aria-hidden="true">\</span> to
            </th>
            {destinations.map((column) => (
              <th key={columnName(column)} scope="col">
                <span class="turned">
                  <Text>{short(columnName(column))}</Text>
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {sources.map(({ name }, row) => (
            <tr key={name}>
              <th scope="row">
                <Text>{short(name)}</Text>
              </th>
              {cells.slice(row * width, (row + 1) * width).map((shown, column) => (
                <td key={shown.key}>
                  <CellButton
                    shown={shown}
                    isSelected={shown.key === selected}
                    isEntry={row * width + column === entry}
                    isFaded={!isAskedFor(place.query['show'], shown)}
                    onKeyDown={(event) => move(event, row, column)}
                    onSelect={() => go(withQuery(place, { sel: shown.key }), true)}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function CellButton(props: {
  readonly shown: Shown;
  readonly isSelected: boolean;
  readonly isEntry: boolean;
  /** It is not what the filter asks for. */
  readonly isFaded: boolean;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  readonly onSelect: () => void;
}) {
  const {
    shown: { source, destination, cell, change, tried, used },
    isSelected,
  } = props;
  const came = markWords(props.shown);
  const next = change?.after.verdict;
  const planned = next === undefined ? '' : `, planned: ${next}`;
  return (
    <button
      type="button"
      class={`cell ${cell.verdict} ${change === undefined ? '' : 'changes'} ${props.isFaded ? 'faded' : ''}`}
      aria-label={`${source} to ${destination}: ${cell.verdict}${planned}${came && `, ${came}`}`}
      aria-pressed={isSelected}
      tabIndex={props.isEntry ? 0 : -1}
      onKeyDown={props.onKeyDown}
      onClick={props.onSelect}
    >
      <VerdictSign verdict={cell.verdict} />
      {next !== undefined && (
        <>
          <span aria-hidden="true">→</span>
          <VerdictSign verdict={next} />
        </>
      )}
      {tried !== undefined && <span aria-hidden="true">•</span>}
      {used !== undefined && <span aria-hidden="true">◦</span>}
    </button>
  );
}

/** To begin with: what most begin with. */
const example = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: default-deny-ingress
spec:
  podSelector: {}
  policyTypes: [Ingress]
`;

/** NetworkPolicies, tried without writing anything. */
export function ReachPlan(props: {
  readonly ns: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly planned: ReachPlanAnswer | undefined;
  readonly onPlan: (planned: ReachPlanAnswer | undefined) => void;
}) {
  const { ns, protocol, planned, onPlan } = props;
  const { rows } = usePage();
  const id = useId();
  const [yaml, setYaml] = useState(example);
  const [deleted, setDeleted] = useState('');
  const [problem, setProblem] = useState<string>();
  const [isAsking, setAsking] = useState(false);
  const [what, setWhat] = useState('-f policy.yaml');
  const names = rows
    .all('policy')
    .filter(({ namespace }) => namespace === ns)
    .map(({ name }) => name)
    .toSorted();
  const plan = (edit: Pick<ReachPlanRequest, 'yaml' | 'delete'>, flags: string): void => {
    setAsking(true);
    setWhat(flags);
    setProblem(undefined);
    post('/data/reach/plan', { namespace: ns, protocol, ...edit })
      .then(onPlan, (cause: unknown) => {
        onPlan(undefined);
        setProblem(cause instanceof Error ? cause.message : String(cause));
      })
      .finally(() => setAsking(false));
  };
  return (
    <section class="reach-plan" aria-label="plan of a policy">
      <label for={id}>
        NetworkPolicies as they would be <span class="muted">(nothing is written)</span>
      </label>
      <YamlInput id={id} yaml={yaml} onInput={setYaml} />
      <p class="buttons">
        <button
          type="button"
          class="primary"
          disabled={isAsking}
          onClick={() => plan({ yaml }, '-f policy.yaml')}
        >
          Plan
        </button>
        {names.length > 0 && (
          <>
            <label class="field small">
              <span>or without</span>
              <select value={deleted} onChange={({ currentTarget }) => setDeleted(currentTarget.value)}>
                <option value="">choose a policy</option>
                {names.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
            <button
              type="button"
              disabled={isAsking || deleted === ''}
              onClick={() => plan({ yaml: '', delete: [deleted] }, `--delete ${deleted}`)}
            >
              Plan its deletion
            </button>
          </>
        )}
      </p>
      {problem !== undefined && (
        <p class="notice bad" role="alert">
          <Text>{problem}</Text>
        </p>
      )}
      {planned !== undefined && (
        <div role="status">
          <Planned planned={planned} />
          <Command
            line={commandLine(
              ...['servicenet', 'trace', ...(rows.cluster?.clusterFlags ?? []), '-n', ns, '--matrix'],
              ...(protocol === 'TCP' ? [] : ['--protocol', protocol]),
              ...what.split(' '),
            )}
          />
        </div>
      )}
    </section>
  );
}

function Planned({ planned: { changes, problems } }: { readonly planned: ReachPlanAnswer }) {
  const changed = changes.filter(({ before, after }) => before.verdict !== after.verdict);
  const others = changes.length - changed.length;
  return (
    <>
      {problems.map((problem) => (
        <p key={problem} class="notice">
          <Sign tone="warn" sign="!" /> <Text>{problem}</Text>
        </p>
      ))}
      <p>
        {changed.length === 0 ? (
          <>
            <Sign tone="good" sign="✓" /> No verdict changes.
          </>
        ) : (
          `${counted(changed.length, 'cell')} would change.`
        )}
        {others > 0 && ` ${counted(others, 'more cell')} would be decided by others, to the same verdict.`}
      </p>
      {changed.length > 0 && (
        <Table
          name="cells that would change"
          class="planned"
          rows={changed.map((change) => ({ ...change, key: `${change.source} ${change.destination}` }))}
          columns={[
            { title: 'From', class: 'wide', cell: ({ source }) => <Text>{source}</Text> },
            { title: 'To', class: 'wide', cell: ({ destination }) => <Text>{destination}</Text> },
            {
              title: 'Before',
              class: 'nowrap',
              cell: ({ before }) => (
                <>
                  <VerdictSign verdict={before.verdict} /> {before.verdict}
                </>
              ),
            },
            {
              title: 'After',
              class: 'nowrap',
              cell: ({ after }) => (
                <>
                  <VerdictSign verdict={after.verdict} /> {after.verdict}
                </>
              ),
            },
            { title: 'Decided by', class: 'wide', cell: ({ after }) => <Deciders cell={after} /> },
          ]}
        />
      )}
    </>
  );
}

import { useId, useState } from 'preact/hooks';
import type { ReachPlanAnswer, ReachPlanRequest } from '../../messages.ts';
import { commandLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import { usePage } from '../parts/page-context.ts';
import { YamlInput } from '../parts/view-parts.tsx';
import { Table } from '../parts/virtual-list.tsx';
import { counted, Sign, Text } from '../parts/words.tsx';
import { post } from '../state/session.ts';
import { Deciders, VerdictSign } from './reach-matrix.tsx';

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

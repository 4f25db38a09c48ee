import { firstFew } from '../../objects/lists.ts';
import type { Finding } from '../../controllers/service-allocation/plan-audit.ts';
import { keyOf, type ObjectKey, splitKey, type ObjectName } from '../../objects/meta.ts';
import type {
  AnnouncerRow,
  HttpRuleRow,
  NodeRow,
  PodRow,
  PolicyRow,
  PoolRow,
  ProblemRow,
  ServiceRow,
} from './rows.ts';
import type { Trouble } from './trouble.ts';

/** What is wrong in a cluster, of all that is shown. */

export interface ProblemSources {
  readonly services: readonly ServiceRow[];
  readonly pods: readonly PodRow[];
  readonly nodes: readonly NodeRow[];
  readonly pools: readonly PoolRow[];
  readonly announcers: readonly AnnouncerRow[];
  readonly httpRules: readonly HttpRuleRow[];
  readonly policies: readonly PolicyRow[];
  /** Of an audit of addresses and node ports. */
  readonly findings: readonly Finding[];
  /** Since when something is wrong with a Service that has a trouble. */
  readonly serviceSince: (key: ObjectKey) => string | undefined;
  /** The same of a Pod. */
  readonly podSince: (key: ObjectKey) => string | undefined;
}

/** An Ingress of another class is another router's business. */
const notOurs = 'OtherIngressClass';

/** One row for each object and reason; the Pods of a workload are one. */
export function problemRows(sources: ProblemSources): readonly ProblemRow[] {
  const { services, nodes, pools, announcers, httpRules, policies, findings } = sources;
  const rows = [
    ...services.flatMap(({ key, namespace, name, trouble }) => {
      const about = { kind: 'Service', namespace, name };
      return trouble === undefined ? [] : [problem(about, trouble, sources.serviceSince(key))];
    }),
    ...ofWorkloads(sources),
    ...nodes.flatMap(({ name, trouble, since }) => {
      const about = { kind: 'Node', namespace: '', name };
      return trouble === undefined ? [] : [problem(about, trouble, since)];
    }),
    ...pools.flatMap(({ name, problems }) => {
      const about = { kind: 'AddressPool', namespace: '', name };
      const message = firstFew(problems, '; ');
      return problems.length === 0 ? [] : [problem(about, { reason: 'InvalidSpec', message }, undefined)];
    }),
    ...announcers.flatMap(({ node, refused }) =>
      refused.map(({ address, reason, message }) => {
        const about = { kind: 'Node', namespace: '', name: node };
        return problem(about, { reason, message: `${address}: ${message}` }, undefined);
      }),
    ),
    ...httpRules.flatMap(({ source, host, trouble }) => {
      if (trouble === undefined || trouble.reason === notOurs) return [];
      const { reason, message } = trouble;
      const at = host === '' ? '' : `host ${host}: `;
      return [problem(source, { reason, message: `${at}${message}` }, undefined)];
    }),
    ...policies.flatMap(({ namespace, name, trouble, created }) => {
      const about = { kind: 'NetworkPolicy', namespace, name };
      return trouble === undefined ? [] : [problem(about, trouble, created === '' ? undefined : created)];
    }),
    ...findings.map(({ kind, key, reason, message }) => {
      const { namespace, name } = splitKey(key);
      return problem({ kind, namespace, name }, { reason, message }, undefined);
    }),
  ];
  // Of several of one key, such as two hosts of an Ingress, the first is told.
  return [...Map.groupBy(rows, ({ key }) => key).values()].flatMap(([first]) => first ?? []);
}

function problem(about: ObjectName, { reason, message }: Trouble, since: string | undefined): ProblemRow {
  const key = `${reason} ${about.kind} ${keyOf({ metadata: about })}`;
  return { key, about, reason, message, ...(since === undefined ? {} : { since }) };
}

function ofWorkloads({ pods, podSince }: ProblemSources): readonly ProblemRow[] {
  const troubled = pods.flatMap((row) => (row.trouble === undefined ? [] : [{ row, trouble: row.trouble }]));
  const groups = Map.groupBy(troubled, ({ row, trouble }) => `${trouble.reason} ${row.workload}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group.toSorted((a, b) => (a.row.key < b.row.key ? -1 : 1));
    if (first === undefined) return [];
    const { row, trouble } = first;
    const others = group.length - 1;
    const more =
      others === 0 ? '' : `, and ${others} more ${others === 1 ? 'Pod' : 'Pods'} of ${row.workload}`;
    const since = group.flatMap(({ row: { key } }) => podSince(key) ?? []).toSorted()[0];
    const about = { kind: 'Pod', namespace: row.namespace, name: row.name };
    return [
      {
        ...problem(about, { reason: trouble.reason, message: `${trouble.message}${more}` }, since),
        // The Pod that is named may be another one, of the same problem.
        key: `${trouble.reason} ${row.workload}`,
      },
    ];
  });
}

import { joinKey, type ObjectKey, splitKey, type ObjectName } from '../../objects/meta.ts';
import type {
  AddressRow,
  EventRow,
  FlowGroupRow,
  NodeRow,
  PodRow,
  PolicyRow,
  PoolRow,
  ProblemRow,
  ServiceRow,
} from '../../view/rows/rows.ts';
import type { Trouble, Why } from '../../view/rows/trouble.ts';
import { rowsIn } from '../../view/stored-rows.ts';
import { quoted } from '../own-command.ts';
import type { Content } from './lists.ts';
import { eventText, nodeState, objectText, usageText } from './words.ts';
import type { Look, Tab } from './state.ts';
import type { Line, Style } from './text.ts';

/** All that is known about one row, as lines. Pure. */

const blank: Line = { text: '' };
/** Events that are shown of an object, the newest. */
const mostEvents = 20;

/** @param key of the row of the list that is looked at. */
export function detailsOf(content: Content, { tab }: Pick<Look, 'tab'>, key: string): readonly Line[] {
  const { tables, flows } = content;
  const kind = kinds[tab];
  if (kind !== undefined) return aboutObject(content, { kind, ...splitKey(key) });
  if (tab === 'addresses') return aboutAddress(content, key);
  if (tab === 'flows')
    return of(
      flows?.groups.find((group) => group.key === key),
      aboutFlow,
    );
  if (tab === 'problems') return of(tables.problem.get(key)?.row, (row) => aboutProblem(content, row));
  return of(tables.event.get(key)?.row, aboutEvent);
}

/** What the rows of a list are. */
const kinds: Readonly<Partial<Record<Tab, string>>> = {
  ...{ services: 'Service', pods: 'Pod', nodes: 'Node', policies: 'NetworkPolicy' },
};

function of<Row>(row: Row | undefined, lines: (row: Row) => readonly Line[]): readonly Line[] {
  return row === undefined ? [{ text: 'This is not there any more.', style: 'dim' }] : lines(row);
}

function head(text: string): Line {
  return { text, style: 'bold', isCopied: true };
}

const factColumns = 14;

function fact(name: string, value: string, style?: Style): Line {
  const text = `${name.padEnd(factColumns - 1)} ${value === '' ? '-' : value}`;
  return { text, indent: factColumns, ...(style === undefined ? {} : { style }) };
}

function aboutFlow(group: FlowGroupRow): readonly Line[] {
  const { from, service, to, protocol, outcomeText, time, count, perSecond, decidedBy, way } = group;
  return [
    head(`${from} → ${service || to}`),
    blank,
    fact('outcome', outcomeText),
    fact('decided by', decidedBy),
    fact('to', to),
    fact('protocol', protocol),
    fact('last', time),
    fact('5 minutes', `${count}, now ${perSecond} a second`),
    ...section(
      'Try',
      way === undefined
        ? []
        : [{ text: `  servicenet trace ${[way.from, way.to].map(quoted).join(' ')}`, isCopied: true }],
    ),
  ];
}

/** Lines under a heading; nothing where there are none. */
function section(title: string, lines: readonly Line[]): readonly Line[] {
  return lines.length === 0 ? [] : [blank, { text: title, style: 'bold' }, ...lines];
}

function item(text: string, style?: Style): Line {
  return { text: `  ${text}`, indent: 4, ...(style === undefined ? {} : { style }) };
}

/** The chain of conditions to the first that is not met, as on the page. */
function whyLines(title: string, why: Why | undefined): readonly Line[] {
  if (why === undefined) return [];
  return [
    { text: `${title}: ${why.reason}`, style: 'red', indent: 2 },
    ...why.checks.map(({ isMet, message }) =>
      item(`${isMet ? '✓' : '✗'} ${message}`, isMet ? undefined : 'red'),
    ),
    blank,
  ];
}

function troubleLines(trouble: Trouble | undefined): readonly Line[] {
  if (trouble === undefined) return [];
  return [{ text: troubleText(trouble), style: 'red', indent: 2 }, blank];
}

function troubleText({ reason, message }: Trouble): string {
  return message === '' ? reason : `${reason}: ${message}`;
}

function eventLines(content: Content, isAbout: (about: ObjectName) => boolean): readonly Line[] {
  const found = rowsIn(content.tables.event).filter(({ about }) => isAbout(about));
  const newest = found.toSorted((a, b) => (a.time < b.time ? 1 : -1)).slice(0, mostEvents);
  return section(
    'Events',
    newest.map((event) => item(eventText(event), event.warning ? 'yellow' : undefined)),
  );
}

/** A command that says more. */
function command(...words: readonly string[]): readonly Line[] {
  return [blank, { text: `  ${words.map(quoted).join(' ')}`, style: 'dim', isCopied: true }];
}

function isNamed(about: ObjectName, kind: string, key: ObjectKey): boolean {
  const { namespace, name } = splitKey(key);
  return about.kind === kind && about.name === name && (about.namespace === namespace || namespace === '');
}

function aboutService(content: Content, row: ServiceRow): readonly Line[] {
  const { key, namespace, name, type, clusterIP, external, ports, selector, trouble, labels } = row;
  const detail = content.detailOf(key);
  const isExplained = row.whyNoEndpoint !== undefined || row.whyNoAddress !== undefined;
  const pairs = Object.entries(selector ?? {}).map(([label, value]) => `${label}=${value}`);
  const isOfIt = (about: ObjectName): boolean =>
    isNamed(about, 'Service', key) ||
    (about.kind === 'Pod' &&
      content.tables.pod.get(joinKey(about.namespace, about.name))?.row.services.includes(key) === true);
  return [
    head(objectText({ kind: 'Service', namespace, name })),
    blank,
    ...whyLines('Why no endpoint', row.whyNoEndpoint),
    ...whyLines('Why no address', row.whyNoAddress),
    ...(isExplained ? [] : troubleLines(trouble)),
    fact('Type', type),
    fact('Cluster IP', clusterIP.replaceAll(',', ', ')),
    fact('External', external.replaceAll(',', ', ')),
    ...(detail === undefined ? [fact('Ports', ports.replaceAll(',', ', '))] : []),
    fact('Selector', selector === undefined ? 'none: others write its slices' : pairs.join(', ')),
    fact(
      'Labels',
      Object.entries(labels)
        .map(([label, value]) => `${label}=${value}`)
        .join(', '),
    ),
    ...(detail?.settings ?? []).map(({ field, value }) => item(`${field}: ${value}`)),
    ...section('Ports', (detail?.ports ?? []).map(portLine)),
    ...section(
      'Endpoints, those that are not ready first',
      (detail?.endpoints ?? []).map(
        ({ address, pod = '', node = '', ready, serving, terminating, trouble: its }) => {
          const state = ready ? 'ready' : terminating ? 'terminating' : 'not ready';
          const more =
            its === undefined ? (serving || ready ? '' : ', not serving') : `: ${troubleText(its)}`;
          const words = [ready ? '●' : '○', address, pod, node].filter((word) => word !== '');
          return item(`${words.join('  ')}  ${state}${more}`, ready ? undefined : 'red');
        },
      ),
    ),
    ...section(
      'Conditions',
      (detail?.conditions ?? []).map(({ type: of, status, reason, message }) =>
        item(`${of} ${status} ${reason}: ${message}`),
      ),
    ),
    ...section(
      'Pools',
      (detail?.pools ?? []).map(({ pool, isFit, message }) =>
        item(`${isFit ? '✓' : '✗'} ${pool}: ${message}`),
      ),
    ),
    ...section(
      'Names',
      (detail?.dnsNames ?? []).map((each) => item(each)),
    ),
    ...section(
      'Led to by',
      (detail?.ledToBy ?? []).map((each) => item(each)),
    ),
    ...eventLines(content, isOfIt),
    ...command('kubectl', '-n', namespace, 'describe', 'service', name),
  ];
}

function portLine({
  name,
  protocol,
  port,
  nodePort,
  targetPort,
  targets,
}: NonNullable<ReturnType<Content['detailOf']>>['ports'][number]): Line {
  const outside = nodePort === undefined ? '' : `, node port ${nodePort}`;
  const found = targets.map(
    ({ port: target, endpoints }) => `${target} of ${counted(endpoints, 'endpoint')}`,
  );
  const leads = found.length === 0 ? '' : `: ${found.join(', ')}`;
  return item(`${port}/${protocol}${name === '' ? '' : ` ${name}`} → ${targetPort}${leads}${outside}`);
}

/** `1 Pod`, `2 Pods`. */
export function counted(count: number, one: string): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : `${one}s`}`;
}

function aboutPod(content: Content, row: PodRow): readonly Line[] {
  const { key, namespace, name, state, addresses, node, workload, services, restarts, labels, trouble } = row;
  return [
    head(objectText({ kind: 'Pod', namespace, name })),
    blank,
    ...troubleLines(trouble),
    fact('State', state),
    fact('Addresses', `${addresses.join(', ') || 'none yet'}${row.hostNetwork ? ' (of its node)' : ''}`),
    fact('Node', node ?? 'not scheduled'),
    fact('Workload', workload),
    fact('Services', services.join(', ') || 'in no slice'),
    fact('Restarts', String(restarts)),
    fact(
      'Labels',
      Object.entries(labels)
        .map(([label, value]) => `${label}=${value}`)
        .join(', '),
    ),
    fact('Created', row.created),
    ...eventLines(content, (about) => isNamed(about, 'Pod', key)),
    ...command('kubectl', '-n', namespace, 'describe', 'pod', name),
  ];
}

function aboutNode(content: Content, row: NodeRow): readonly Line[] {
  const { key, name, addresses, zone, podCIDRs, pods, since, trouble } = row;
  const { tables } = content;
  const agent = tables.announcer.get(name)?.row;
  const on = rowsIn(tables.pod).filter(({ node }) => node === name);
  const sorted = on.toSorted(
    (a, b) => Number(a.trouble === undefined) - Number(b.trouble === undefined) || (a.key < b.key ? -1 : 1),
  );
  return [
    head(objectText({ kind: 'Node', namespace: '', name })),
    blank,
    ...troubleLines(trouble),
    fact('State', `${nodeState(row)}${since === undefined ? '' : `, since ${since}`}`),
    fact('Pods', String(pods)),
    fact('Addresses', addresses.join(', ')),
    fact('Pod CIDRs', podCIDRs.join(', ')),
    ...(zone === undefined ? [] : [fact('Zone', zone)]),
    ...(agent === undefined
      ? []
      : [
          fact('Announces', agent.announced.join(', '), agent.isAlive ? undefined : 'red'),
          ...(agent.sessions.length === 0 ? [] : [fact('BGP peers', agent.sessions.join(', '))]),
          ...agent.refused.map(({ address, reason, message }) =>
            fact('Refuses', `${address}: ${troubleText({ reason, message })}`, 'red'),
          ),
        ]),
    ...section(
      'Pods, those with problems first',
      sorted.map(({ key: pod, state, trouble: its }) =>
        item(
          `${pod}  ${state}${its === undefined ? '' : `: ${troubleText(its)}`}`,
          its === undefined ? undefined : 'red',
        ),
      ),
    ),
    ...eventLines(content, (about) => isNamed(about, 'Node', key)),
    ...command('kubectl', 'describe', 'node', name),
  ];
}

function aboutPolicy(content: Content, row: PolicyRow): readonly Line[] {
  const { key, namespace, name, selector, isolates, trouble } = row;
  return [
    head(objectText({ kind: 'NetworkPolicy', namespace, name })),
    blank,
    ...troubleLines(trouble),
    fact('Pods', selector === '' ? 'all of the namespace' : selector),
    ...isolates.map(({ direction, rules }) =>
      fact(
        direction === 'ingress' ? 'Ingress' : 'Egress',
        rules === 0
          ? 'nothing is allowed'
          : `what ${counted(rules, 'rule')} of spec.${direction} allow${rules === 1 ? 's' : ''}`,
      ),
    ),
    ...eventLines(content, (about) => isNamed(about, 'NetworkPolicy', key)),
    ...command('kubectl', '-n', namespace, 'describe', 'networkpolicy', name),
  ];
}

/** @param key `address 192.0.2.1`: the kind of row, and its key. */
function aboutAddress(content: Content, key: string): readonly Line[] {
  const { tables } = content;
  const [kind = ''] = key.split(' ', 1);
  const rest = key.slice(kind.length + 1);
  switch (kind) {
    case 'waiting':
      return aboutObject(content, { kind: 'Service', ...splitKey(rest) });
    case 'pool':
      return aboutObject(content, { kind: 'AddressPool', namespace: '', name: rest });
    case 'address':
      return of(tables.address.get(rest)?.row, aboutAssigned);
    default:
      return of(tables.egressAddress.get(rest)?.row, ({ address, egressIP, node }) => [
        head(`egress address ${address}`),
        blank,
        fact('EgressIP', egressIP),
        fact('Node', node ?? 'none', node === undefined ? 'red' : undefined),
        ...command('kubectl', 'describe', 'egressip', egressIP),
      ]);
  }
}

function aboutPool({ name, addresses, families, problems }: PoolRow): readonly Line[] {
  return [
    head(objectText({ kind: 'AddressPool', namespace: '', name })),
    blank,
    ...problems.map((message): Line => ({ text: message, style: 'red', indent: 2 })),
    ...(problems.length === 0 ? [] : [blank]),
    fact('Addresses', addresses.join(', ')),
    ...families.map((family) =>
      fact(
        family.family,
        `${usageText(family)}, ${family.free.toLocaleString('en-US')} free, ${family.quarantined} quarantined`,
      ),
    ),
    ...command('kubectl', 'describe', 'addresspool', name),
  ];
}

function aboutAssigned({ address, pool, holders, reservedFor }: AddressRow): readonly Line[] {
  return [
    head(`address ${address}`),
    blank,
    fact('Pool', pool ?? 'none'),
    ...(reservedFor === undefined ? [] : [fact('Reserved for', reservedFor)]),
    ...section(
      'Services',
      holders.map(({ service, ports, announced = 'no agent has said where it is announced' }) =>
        item(`${service}  ${ports.join(', ')}  ${announced}`),
      ),
    ),
  ];
}

function aboutProblem(content: Content, row: ProblemRow): readonly Line[] {
  const { about, since } = row;
  const lines = aboutObject(content, about);
  return [
    head(`${row.reason}  ${objectText(about)}`),
    blank,
    { text: row.message, style: 'red', indent: 2 },
    ...(since === undefined ? [] : [fact('Since', since)]),
    ...(lines.length === 0 ? [] : [blank, ...lines]),
  ];
}

function aboutObject(content: Content, { kind, namespace, name }: ObjectName): readonly Line[] {
  const { tables } = content;
  const key = joinKey(namespace, name);
  switch (kind) {
    case 'Service':
      return of(tables.service.get(key)?.row, (row) => aboutService(content, row));
    case 'Pod':
      return of(tables.pod.get(key)?.row, (row) => aboutPod(content, row));
    case 'Node':
      return of(tables.node.get(key)?.row, (row) => aboutNode(content, row));
    case 'NetworkPolicy':
      return of(tables.policy.get(key)?.row, (row) => aboutPolicy(content, row));
    case 'AddressPool':
      return of(tables.pool.get(key)?.row, aboutPool);
    default:
      return [];
  }
}

function aboutEvent({ about, time, count, warning, reason, message, source }: EventRow): readonly Line[] {
  return [
    head(`${reason}  ${objectText(about)}`),
    blank,
    { text: message, indent: 2, ...(warning ? { style: 'yellow' as const } : {}) },
    blank,
    fact('Type', warning ? 'Warning' : 'Normal'),
    fact('Last seen', time),
    fact('Times', String(count)),
    fact('Recorded by', source),
  ];
}

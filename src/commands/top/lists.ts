import { firstFew } from '../../objects/lists.ts';
import { type ObjectKey, splitKey } from '../../objects/meta.ts';
import { historyText } from '../../network/flows/groups.ts';
import type { PresentFlows } from '../../page/flow-watch.ts';
import type { FollowStatus } from '../../view/follower.ts';
import { rowsIn, type Tables } from '../../view/stored-rows.ts';
import type {
  AddressRow,
  EgressAddressRow,
  EventRow,
  FlowGroupRow,
  NamespaceRow,
  NodeRow,
  PodRow,
  PolicyRow,
  PoolRow,
  ProblemRow,
  ServiceDetailRow,
  ServiceRow,
  WaitingRow,
} from '../../view/rows/rows.ts';
import { isFoundIn, labelTexts } from '../../view/rows/search.ts';
import { type ListName, listOf, type Look, type Target } from './state.ts';
import type { Line } from './text.ts';
import { eventText, nodeState, objectText, usageText } from './words.ts';

/** The rows of each list of the live view, from those that the page has too. Pure. */

/** Which Pod of a Service answered last. */
export interface LastAnswer {
  readonly service: ObjectKey;
  /** Its name. */
  readonly pod: string;
  /** How much it has answered in all, and all Pods of the Service together. */
  readonly count: number;
  readonly all: number;
}

/** What there is to show. */
export interface Content {
  readonly tables: Tables;
  readonly status: FollowStatus;
  /** Of Services whose Pods have answered something, the latest first; empty where that is not known. */
  readonly answers: readonly LastAnswer[];
  readonly detailOf: (service: ObjectKey) => ServiceDetailRow | undefined;
  /** What was answered to the question; undefined: it is being asked. */
  readonly answer: readonly Line[] | undefined;
  /** While they are looked at. */
  readonly flows: Pick<PresentFlows, 'watch' | 'groups'> | undefined;
}

/** @param counts how much each Pod of the Service has answered, the last one last. */
export function lastAnswer(service: ObjectKey, counts: ReadonlyMap<ObjectKey, number>): LastAnswer {
  const [pod, count] = [...counts].at(-1) ?? ['', 0];
  let all = 0;
  for (const each of counts.values()) all += each;
  return { service, pod: splitKey(pod).name, count, all };
}

export interface Column {
  readonly title: string;
  /** Longer cells take several lines. Default: no limit. */
  readonly most?: number;
  /** Where there is no room, columns go in the order of these numbers; one without stays. */
  readonly goes?: number;
}

export interface ListRow {
  readonly key: string;
  /** One for each column; one of a list without columns is text that goes on in further lines. */
  readonly cells: readonly string[];
  readonly isTroubled: boolean;
}

export interface List {
  /** Empty: rows are running text. */
  readonly columns: readonly Column[];
  readonly rows: readonly ListRow[];
  /** How many there are without the filter. */
  readonly count: number;
}

/** A row with what it is sorted and found by. */
interface Entry extends ListRow {
  /** Empty: of the whole cluster. */
  readonly namespaces: readonly string[];
  /** What a search finds beside the cells. */
  readonly texts: readonly string[];
  /** Entries of equal trouble are in this order. */
  readonly order: string;
}

/** The list that is looked at. @param now milliseconds since 1970. */
export function listFor(content: Content, look: Look): List {
  const name = listOf(look);
  const {
    columns,
    entries,
    isByTime = false,
  } = lists[name](content.tables, look.target, content.flows?.groups ?? []);
  const { namespace, filter, isProblemsFirst } = look;
  const isChoice = name === 'namespaces' || name === 'sources';
  const within = entries.filter(
    ({ namespaces }) =>
      namespace === undefined || isChoice || namespaces.length === 0 || namespaces.includes(namespace),
  );
  const found = within.filter(({ cells, texts }) => isChoice || isFoundIn([...cells, ...texts], filter));
  const rank = ({ isTroubled }: Entry): number => (isProblemsFirst && !isByTime && isTroubled ? 0 : 1);
  const sorted = found.toSorted((a, b) => {
    if (isByTime) return a.order < b.order ? 1 : a.order > b.order ? -1 : 0;
    return rank(a) - rank(b) || numeric.compare(a.order, b.order);
  });
  return { columns, rows: sorted, count: within.length };
}

/** `192.0.2.9` is before `192.0.2.10`. */
const numeric = new Intl.Collator('en', { numeric: true });

interface Entries {
  readonly columns: readonly Column[];
  readonly entries: readonly Entry[];
  /** The newest first, whatever is wrong. */
  readonly isByTime?: boolean;
}

type Lists = Readonly<
  Record<ListName, (tables: Tables, target: Target | undefined, flows: readonly FlowGroupRow[]) => Entries>
>;

const lists: Lists = {
  services: (tables) => ({
    columns: [
      { title: 'SERVICE', most: 48 },
      { title: 'TYPE', goes: 1 },
      { title: 'CLUSTER-IP', most: 39, goes: 3 },
      { title: 'EXTERNAL-IP', most: 39, goes: 4 },
      { title: 'PORT(S)', most: 24, goes: 2 },
      { title: 'READY' },
      { title: 'PROBLEM', most: 32, goes: 5 },
    ],
    entries: rowsIn(tables.service).map(serviceEntry),
  }),
  pods: (tables) => ({
    columns: [
      { title: 'POD', most: 48 },
      { title: 'STATE' },
      { title: 'ADDRESS', most: 39, goes: 3 },
      { title: 'NODE', most: 24, goes: 2 },
      { title: 'RESTARTS', goes: 1 },
      { title: 'PROBLEM', most: 32, goes: 4 },
    ],
    entries: rowsIn(tables.pod).map(podEntry),
  }),
  nodes: (tables) => ({
    columns: [
      { title: 'NODE', most: 48 },
      { title: 'STATE' },
      { title: 'PODS', goes: 4 },
      { title: 'ADDRESSES', most: 39, goes: 3 },
      { title: 'ZONE', most: 24, goes: 2 },
      { title: 'POD-CIDRS', most: 39, goes: 1 },
    ],
    entries: rowsIn(tables.node).map(nodeEntry),
  }),
  policies: (tables) => ({
    columns: [
      { title: 'POLICY', most: 48 },
      { title: 'PODS', most: 32, goes: 2 },
      { title: 'ISOLATES', goes: 1 },
      { title: 'PROBLEM', most: 32, goes: 3 },
    ],
    entries: rowsIn(tables.policy).map(policyEntry),
  }),
  addresses: (tables) => ({
    columns: [
      { title: 'ADDRESS', most: 43 },
      { title: 'OF', most: 48 },
      { title: 'POOL', most: 24, goes: 1 },
      { title: 'WHERE', most: 32, goes: 2 },
      { title: 'PROBLEM', most: 32, goes: 3 },
    ],
    entries: [
      ...rowsIn(tables.waiting).map(waitingEntry),
      ...rowsIn(tables.pool).map(poolEntry),
      ...rowsIn(tables.address).map(addressEntry),
      ...rowsIn(tables.egressAddress).map(egressEntry),
    ],
  }),
  flows: (_tables, _target, flows) => ({
    columns: [
      { title: 'FROM', most: 40 },
      { title: 'SERVICE', most: 40 },
      { title: 'TO', most: 40, goes: 2 },
      { title: 'OUTCOME' },
      { title: '/S', goes: 3 },
      { title: '5 MIN', goes: 1 },
      { title: 'DECIDED BY', most: 48, goes: 4 },
    ],
    entries: flows.map(flowEntry),
  }),
  problems: (tables) => ({
    columns: [],
    entries: rowsIn(tables.problem).map(problemEntry),
    isByTime: true,
  }),
  events: (tables) => ({ columns: [], entries: rowsIn(tables.event).map(eventEntry), isByTime: true }),
  namespaces: (tables) => ({
    columns: [{ title: 'NAMESPACE', most: 63 }, { title: 'SERVICES' }, { title: 'PODS' }],
    entries: [allNamespaces(rowsIn(tables.namespace)), ...rowsIn(tables.namespace).map(namespaceEntry)],
  }),
  sources: (tables, target) => ({
    columns: [{ title: 'FROM', most: 63 }, { title: 'WHAT' }],
    entries: sourceEntries(tables, target),
  }),
};

/** Ports that a cell names. */
const mostPorts = 2;

/** `80/TCP,443/TCP and 98 more`: the details have all. */
function fewPorts(ports: string): string {
  const all = ports.split(',');
  const more = all.length - mostPorts;
  return more <= 0 ? ports : `${all.slice(0, mostPorts).join(',')} and ${more} more`;
}

function serviceEntry(row: ServiceRow): Entry {
  const { key, namespace, type, clusterIP, external, ports, endpoints, trouble, labels, selector = {} } = row;
  const ready = endpoints === undefined ? '-' : `${endpoints.ready}/${endpoints.total}`;
  return {
    ...{ key, namespaces: [namespace], order: key, isTroubled: trouble !== undefined },
    cells: [key, type, clusterIP, external, fewPorts(ports), ready, trouble?.reason ?? ''],
    texts: [ports, trouble?.message ?? '', ...labelTexts(labels), ...labelTexts(selector)],
  };
}

function podEntry(row: PodRow): Entry {
  const { key, namespace, state, addresses, node = '', restarts, trouble, labels, workload, services } = row;
  return {
    ...{ key, namespaces: [namespace], order: key, isTroubled: trouble !== undefined },
    cells: [key, state, addresses.join(','), node, String(restarts), trouble?.reason ?? ''],
    texts: [trouble?.message ?? '', workload, ...services, ...labelTexts(labels)],
  };
}

function nodeEntry(row: NodeRow): Entry {
  const { key, pods, addresses, zone = '', podCIDRs, trouble } = row;
  return {
    ...{ key, namespaces: [], order: key, isTroubled: trouble !== undefined },
    cells: [key, nodeState(row), String(pods), addresses.join(','), zone, podCIDRs.join(',')],
    texts: [trouble?.reason ?? '', trouble?.message ?? ''],
  };
}

function policyEntry({ key, namespace, selector, isolates, trouble }: PolicyRow): Entry {
  const directions = isolates.map(({ direction }) => direction).join(', ');
  return {
    ...{ key, namespaces: [namespace], order: key, isTroubled: trouble !== undefined },
    cells: [key, selector === '' ? 'all' : selector, directions, trouble?.reason ?? ''],
    texts: [trouble?.message ?? ''],
  };
}

function waitingEntry({ key, service, reason, message }: WaitingRow): Entry {
  return {
    ...{
      key: `waiting ${key}`,
      namespaces: [splitKey(service).namespace],
      order: `1 ${key}`,
      isTroubled: true,
    },
    cells: ['<pending>', service, '', '', reason],
    texts: [message],
  };
}

/** @param index among all: they come the worst and busiest first. */
function flowEntry(group: FlowGroupRow, index: number): Entry {
  const { key, from, service, to, outcome, outcomeText, perSecond, history, decidedBy, protocol } = group;
  return {
    ...{ key, namespaces: [from, service, to].flatMap(namespaceIn), order: String(index) },
    isTroubled: outcome !== 'connected' && outcome !== 'opened',
    cells: [from, service, to, outcomeText, String(perSecond), historyText(history), decidedBy],
    texts: [protocol],
  };
}

/** Of `deploy/shop/cart`; other places have none. */
function namespaceIn(place: string): readonly string[] {
  const [, namespace, name] = place.split('/');
  return namespace === undefined || name === undefined ? [] : [namespace];
}

function poolEntry({ key, name, addresses, families, problems }: PoolRow): Entry {
  return {
    ...{ key: `pool ${key}`, namespaces: [], order: `2 ${key}`, isTroubled: problems.length > 0 },
    cells: [
      firstFew(addresses, ','),
      'AddressPool',
      name,
      families.map((family) => `${family.family} ${usageText(family)}`).join(', '),
      problems.length > 0 ? 'InvalidSpec' : '',
    ],
    texts: [...addresses, ...problems],
  };
}

function addressEntry({ key, address, pool = '', holders, reservedFor }: AddressRow): Entry {
  const services = holders.map(({ service }) => service);
  const all = reservedFor === undefined ? services : [...services, reservedFor];
  const where = new Set(holders.flatMap(({ announced }) => announced ?? []));
  return {
    ...{ key: `address ${key}`, namespaces: all.map((each) => splitKey(each).namespace), order: `3 ${key}` },
    isTroubled: false,
    cells: [
      address,
      services.length === 0 && reservedFor !== undefined
        ? `reserved for ${reservedFor}`
        : services.join(', '),
      pool,
      [...where].join(', '),
      '',
    ],
    texts: [],
  };
}

function egressEntry({ key, address, egressIP, node }: EgressAddressRow): Entry {
  return {
    ...{ key: `egress ${key}`, namespaces: [], order: `4 ${key}`, isTroubled: node === undefined },
    cells: [address, `EgressIP ${egressIP}`, '', node ?? 'on no node', ''],
    texts: ['egress'],
  };
}

function problemEntry({ key, about, reason, message, since = '' }: ProblemRow): Entry {
  return {
    ...{ key, namespaces: about.namespace === '' ? [] : [about.namespace], order: since, isTroubled: true },
    cells: [`${reason}  ${objectText(about)}  ${message}`],
    texts: [],
  };
}

function eventEntry(row: EventRow): Entry {
  const { key, time, about, warning, source } = row;
  const namespaces = about.namespace === '' ? [] : [about.namespace];
  return { key, namespaces, order: time, isTroubled: warning, cells: [eventText(row)], texts: [source] };
}

function allNamespaces(rows: readonly NamespaceRow[]): Entry {
  const sum = (of: (row: NamespaceRow) => number): string =>
    String(rows.reduce((total, row) => total + of(row), 0));
  const cells = ['all', sum(({ services }) => services), sum(({ pods }) => pods)];
  return { key: '', namespaces: [], order: '', isTroubled: false, cells, texts: [] };
}

function namespaceEntry({ key, name, services, pods }: NamespaceRow): Entry {
  const cells = [name, String(services), String(pods)];
  return { key, namespaces: [], order: name, isTroubled: false, cells, texts: [] };
}

/** Where a connection may come from: first what is likely to be asked for. */
function sourceEntries(tables: Tables, target: Target | undefined): readonly Entry[] {
  const to = target === undefined ? '' : splitTarget(target);
  const isBalanced = tables.service.get(to)?.row.type === 'LoadBalancer';
  const entry = (key: string, what: string, order: string): Entry => ({
    ...{ key, namespaces: [], order, isTroubled: false, cells: [key, what], texts: [] },
  });
  return [
    entry('outside', 'a machine that is not of the cluster', isBalanced ? '0' : '4'),
    ...rowsIn(tables.workload).map(({ key, namespace, ready, pods }) => {
      const isNear = namespace === splitKey(to).namespace;
      return entry(key, `${ready} of ${pods} ready`, `${isNear ? '1' : '2'} ${key}`);
    }),
    ...rowsIn(tables.node).map(({ name }) => entry(`node/${name}`, 'node', `3 ${name}`)),
  ];
}

/** The key of a Service or Pod. */
function splitTarget({ to }: Target): ObjectKey {
  return to.replace(/^\w+\//, '').replace(/:\d+$/, '');
}

/** A Service's first port of TCP, or else its first one; that of a flow. */
export function targetOf(
  { tables, flows }: Pick<Content, 'tables' | 'flows'>,
  { tab }: Pick<Look, 'tab'>,
  key: string,
): Target | undefined {
  if (tab === 'flows') return flows?.groups.find((group) => group.key === key)?.way;
  if (tab === 'pods') return tables.pod.has(key) ? { to: `pod/${key}`, protocol: 'TCP' } : undefined;
  const name = tab === 'addresses' ? key.replace(/^waiting /, '') : key;
  const service = tab === 'services' || tab === 'addresses' ? tables.service.get(name)?.row : undefined;
  if (service === undefined) return undefined;
  const ports = service.ports.split(',');
  const port = ports.find((each) => each.endsWith('/TCP')) ?? ports[0] ?? '';
  const protocol = protocols.find((each) => port.endsWith(`/${each}`));
  // An ExternalName may have none.
  if (protocol === undefined) return { to: `svc/${name}`, protocol: 'TCP' };
  return { to: `svc/${name}:${Number.parseInt(port)}`, protocol };
}

const protocols = ['TCP', 'UDP', 'SCTP'] as const;

import { ipFamilies, type IPFamily } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import { joinKey, keyOf } from '../../objects/meta.ts';
import { isFinished, lastingPorts, workloadOf } from '../../objects/pods.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import { addressesOfNode, addressesOfPod, type ClusterView } from './cluster-view.ts';
import { type OtherEnd, ReachClasses } from './reach-classes.ts';
import type { TraceSource } from './trace.ts';

/** Rows and columns of who reaches whom, and the ends of connections that they stand for. */

/** A row: who opens connections. */
export interface ReachSource {
  /** `deployment/shop/cart`, `pod/shop/cart-1`, `namespace/other` (all its Pods), `nodes`. */
  readonly name: string;
  /** How many Pods, or nodes. */
  readonly count: number;
}

/** A column: who is connected to. */
export interface ReachDestination extends ReachSource {
  /** Absent: all ports of the Pods of another namespace. `outside` has one too. */
  readonly port?: number;
}

/** What is asked for. */
export interface ReachQuestion {
  readonly namespace: string;
  readonly protocol: Protocol;
  /** At which all are asked; undefined: those to which Services lead, and those that containers declare. */
  readonly port?: number | undefined;
  /** What is one row and one column. */
  readonly by: 'workload' | 'pod';
  /** Part of the names of rows; undefined: all. */
  readonly from?: string | undefined;
  /** Part of the names of columns. */
  readonly to?: string | undefined;
  /** Rows, and columns, at most. */
  readonly most?: number;
}

/** Of the machine outside, where no port is given. */
const outsidePort = 443;

/** An end of connections. */
interface End {
  /** The same for an end that is source and destination. */
  readonly key: string;
  /** As `servicenet trace` takes it; without a port. */
  readonly name: string;
  /** What is alike of all ends of this class, by where the other end is: see {@link ReachClasses}. */
  readonly class: Readonly<Record<OtherEnd, string>>;
  readonly node: string;
}

export interface SourceEnd extends End {
  readonly source: TraceSource;
  readonly family: IPFamily;
  /** Its address is its node's: Pods of that node are reached in any case. */
  readonly isOfNode: boolean;
}

export interface DestinationEnd extends End {
  readonly address: string;
  /** Of sources of this one alone; undefined: of all. */
  readonly onlyFor: IPFamily | undefined;
}

/** Ends of one class, of a row. */
export type Sources = readonly SourceEnd[];

/** Ends of one class at one port, of a column. */
export interface Target {
  readonly port: number;
  readonly ends: readonly DestinationEnd[];
  readonly isTranslated: boolean;
}

export interface Row extends ReachSource {
  /** Whether it is of the namespace that is asked about. */
  readonly is: OtherEnd;
  /** By the columns that are asked. */
  readonly groups: Readonly<Record<OtherEnd, readonly Sources[]>>;
}

export interface Column extends ReachDestination {
  readonly is: OtherEnd;
  /** By the rows that ask. */
  readonly targets: Readonly<Record<OtherEnd, readonly Target[]>>;
}

const eachEnd = ['own', 'others'] as const;

/** Rows and columns that are shown, and how many there are. */
export interface ReachTable {
  readonly rows: readonly Row[];
  readonly columns: readonly Column[];
  readonly total: { readonly sources: number; readonly destinations: number };
}

/** The rows and columns of a question, in steps. */
export function* reachTableSteps(
  view: ClusterView,
  question: ReachQuestion,
): Generator<undefined, ReachTable, undefined> {
  const { namespace, from, to, most = Infinity } = question;
  const pods = yield* podsByKeySteps(view);
  const isWithin = (pod: Pod): boolean => pod.metadata.namespace === namespace;
  const named = question.by === 'pod' ? podName : workloadName;
  const own = groupsOf('own', pods.filter(isWithin), named);
  yield;
  const others = pods.filter((pod) => !isWithin(pod));
  const groups = [
    ...own,
    ...groupsOf('others', others, ({ metadata }) => `namespace/${metadata.namespace ?? ''}`),
  ];
  yield;
  const has = (part: string | undefined, column: ReachDestination): boolean =>
    part === undefined || destinationText(column).includes(part);
  const rows = [...groups, nodes].filter((row) => has(from, { ...row, count: 0 }));
  const all = yield* portGroupSteps(groups, yield* podPortsSteps(view, question));
  all.push({ ...outside, members: [], port: question.port ?? outsidePort });
  const columns = all.filter((column) => has(to, { ...column, count: 0 }));
  yield;
  const classes = new ReachClasses(view, namespace);
  yield;
  const table: { rows: Row[]; columns: Column[] } = { rows: [], columns: [] };
  for (const row of rows.slice(0, most)) {
    table.rows.push(
      row === nodes ? rowOf(nodes, nodeSources(view, classes)) : yield* podRowSteps(row, classes),
    );
  }
  for (const column of columns.slice(0, most)) {
    table.columns.push(
      column.name === outside.name
        ? outsideColumn(view, column.port ?? outsidePort)
        : yield* podColumnSteps(column, question.protocol, classes),
    );
  }
  return { ...table, total: { sources: rows.length, destinations: columns.length } };
}

/** A column's name as `servicenet trace` takes it: `deployment/shop/cart:8080`. */
export function destinationText({ name, port }: ReachDestination): string {
  return port === undefined ? name : `${name}:${port}`;
}

/** Pods that are one row. */
interface Group {
  readonly name: string;
  readonly is: OtherEnd;
  readonly members: readonly Pod[];
}

/** Pods that are one column, each at its ports. */
interface PortGroup {
  readonly name: string;
  readonly is: OtherEnd;
  readonly port?: number;
  readonly members: readonly { readonly pod: Pod; readonly ports: readonly number[] }[];
}

const nodes: Group = { name: 'nodes', is: 'others', members: [] };
const outside = { name: 'outside', is: 'others' } as const;

/** Pods, or EndpointSlices, that are looked at in one step. */
const eachStep = 200;

/** The Pods that may be reached, by their keys. */
function* podsByKeySteps({ objects }: ClusterView): Generator<undefined, readonly Pod[], undefined> {
  const found: { readonly key: string; readonly pod: Pod }[] = [];
  for (const [index, pod] of objects.pods.entries()) {
    if (index % eachStep === 0) yield;
    if (!isFinished(pod) && addressesOfPod(pod).length > 0) found.push({ key: keyOf(pod), pod });
  }
  yield;
  found.sort((a, b) => (a.key < b.key ? -1 : 1));
  yield;
  return found.map(({ pod }) => pod);
}

/** The columns of all groups. */
function* portGroupSteps(
  groups: readonly Group[],
  portsOf: (pod: Pod) => readonly number[],
): Generator<undefined, PortGroup[], undefined> {
  const columns: PortGroup[] = [];
  let count = 0;
  for (const group of groups) {
    const members: { readonly pod: Pod; readonly ports: readonly number[] }[] = [];
    for (const pod of group.members) {
      if (count++ % eachStep === 0) yield;
      const ports = portsOf(pod);
      if (ports.length > 0) members.push({ pod, ports });
    }
    pushAll(columns, columnsOf(group, members));
  }
  return columns;
}

function columnsOf({ name, is }: Group, all: PortGroup['members']): readonly PortGroup[] {
  if (is === 'others') return all.length === 0 ? [] : [{ name, is, members: all }];
  const numbers = [...new Set(all.flatMap(({ ports }) => ports))].toSorted((a, b) => a - b);
  return numbers.map((port) => ({
    ...{ name, is, port },
    members: all.filter(({ ports }) => ports.includes(port)).map(({ pod }) => ({ pod, ports: [port] })),
  }));
}

function* podRowSteps(group: Group, classes: ReachClasses): Generator<undefined, Row, undefined> {
  const ends: SourceEnd[] = [];
  for (const pod of group.members) {
    ends.push(sourceOf(pod, classes));
    yield;
  }
  return rowOf(group, ends);
}

function rowOf({ name, is }: Group, ends: Sources): Row {
  const groups = (to: OtherEnd): readonly Sources[] => [
    ...Map.groupBy(ends, (end) => end.class[to]).values(),
  ];
  return { name, is, count: ends.length, groups: { own: groups('own'), others: groups('others') } };
}

function* podColumnSteps(
  { name, is, port, members }: PortGroup,
  protocol: Protocol,
  classes: ReachClasses,
): Generator<undefined, Column, undefined> {
  const atPort = new Map<number, EndsAtPort>();
  for (const { pod, ports } of members) {
    const end = destinationOf(pod, classes);
    for (const number of ports) {
      const ends = atPort.get(number) ?? { translated: [], others: [] };
      atPort.set(number, ends);
      ends[classes.isTranslated(end.address, protocol, number) ? 'translated' : 'others'].push(end);
    }
    yield;
  }
  const targets = [...atPort].map(([number, ends]) => targetsOf(ends, number));
  const [own, others] = eachEnd.map((from) => targets.flatMap((each) => each[from]));
  return {
    ...{ name, is, count: members.length, targets: { own: own ?? [], others: others ?? [] } },
    ...(port === undefined ? {} : { port }),
  };
}

function byOtherEnd(classOf: (end: OtherEnd) => string): End['class'] {
  return { own: classOf('own'), others: classOf('others') };
}

function podName(pod: Pod): string {
  return `pod/${keyOf(pod)}`;
}

function workloadName(pod: Pod): string {
  const { kind, name } = workloadOf(pod) ?? { kind: 'pod', name: pod.metadata.name ?? '' };
  return `${kind.toLowerCase()}/${joinKey(pod.metadata.namespace ?? '', name)}`;
}

function groupsOf(is: OtherEnd, pods: readonly Pod[], nameOf: (pod: Pod) => string): readonly Group[] {
  return [...Map.groupBy(pods, nameOf)]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, members]) => ({ name, is, members }));
}

function sourceOf(pod: Pod, classes: ReachClasses): SourceEnd {
  return {
    ...{ key: keyOf(pod), name: podName(pod), class: byOtherEnd((to) => classes.ofSource(pod, to)) },
    ...{ source: { kind: 'pod', pod }, node: pod.spec.nodeName ?? '' },
    ...{ family: addressesOfPod(pod)[0]?.family ?? 'IPv4', isOfNode: pod.spec.hostNetwork === true },
  };
}

function nodeSources(view: ClusterView, classes: ReachClasses): readonly SourceEnd[] {
  return view.objects.nodes.flatMap((node): SourceEnd[] => {
    const [address] = addressesOfNode(node);
    const name = node.metadata.name ?? '';
    if (address === undefined) return [];
    const { family } = address;
    const end = { key: `node ${name}`, name: `node/${name}`, node: name };
    const of = byOtherEnd(() => classes.ofNode(node));
    return [{ ...end, class: of, source: { kind: 'node', node }, family, isOfNode: true }];
  });
}

function destinationOf(pod: Pod, classes: ReachClasses): DestinationEnd {
  const address = addressesOfPod(pod)[0]?.canonical ?? '';
  return {
    ...{ key: keyOf(pod), name: podName(pod), class: byOtherEnd((from) => classes.ofDestination(pod, from)) },
    ...{ address, node: pod.spec.nodeName ?? '', onlyFor: undefined },
  };
}

/** The ends of a column at one port: those that a Service may translate, and the others. */
interface EndsAtPort {
  readonly translated: DestinationEnd[];
  readonly others: DestinationEnd[];
}

function targetsOf({ translated, others }: EndsAtPort, port: number): Column['targets'] {
  const targets = (from: OtherEnd): readonly Target[] => [
    ...translated.map((end) => ({ port, ends: [end], isTranslated: true })),
    ...[...Map.groupBy(others, (end) => end.class[from]).values()].map((group) => ({
      ...{ port, ends: group, isTranslated: false },
    })),
  ];
  return { own: targets('own'), others: targets('others') };
}

/** A machine that is not of the cluster, at an address of each family. */
function outsideColumn(view: ClusterView, port: number): Column {
  const ends = ipFamilies.flatMap((family): DestinationEnd[] => {
    const address = view.outsideAddress(family);
    const end = { key: 'outside', name: 'outside', node: '', onlyFor: family };
    const of = byOtherEnd(() => `outside ${family}`);
    return address === undefined ? [] : [{ ...end, class: of, address }];
  });
  const targets = ends.map((end) => ({ port, ends: [end], isTranslated: false }));
  return { name: 'outside', is: 'others', count: 1, port, targets: { own: targets, others: [] } };
}

/** The ports to which Services lead, and those that containers declare. */
function* podPortsSteps(
  { objects }: ClusterView,
  { protocol, port: given }: ReachQuestion,
): Generator<undefined, (pod: Pod) => readonly number[], undefined> {
  if (given !== undefined) return () => [given];
  const ofServices = new Map<string, Set<number>>();
  for (const [index, { metadata, endpoints, ports }] of objects.slices.entries()) {
    if (index % eachStep === 0) yield;
    const numbers = (ports ?? [])
      .filter((each) => (each.protocol ?? 'TCP') === protocol)
      .flatMap((each) => each.port ?? []);
    for (const address of (endpoints ?? []).flatMap((each) => each.addresses)) {
      const key = `${metadata.namespace ?? ''} ${address}`;
      const known = ofServices.get(key) ?? new Set();
      ofServices.set(key, known);
      for (const number of numbers) known.add(number);
    }
  }
  return ({ metadata, spec, status }) => {
    const found = new Set<number>();
    for (const { ip = '' } of status.podIPs ?? []) {
      for (const port of ofServices.get(`${metadata.namespace ?? ''} ${ip}`) ?? []) found.add(port);
    }
    for (const each of lastingPorts(spec)) {
      if ((each.protocol ?? 'TCP') === protocol) found.add(each.containerPort);
    }
    return [...found];
  };
}

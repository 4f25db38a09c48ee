import type {
  TrafficPolicy,
  PlannedEndpoint,
  Action,
  Destination,
  ServicePortPlan,
} from '../../network/forwarding/forwarding-plan.ts';
import {
  addChain,
  addRule,
  assign,
  type Command,
  concat,
  type NftExpression,
  field,
  jump,
  match,
  type SetName,
  type Element,
  type ElementValue,
  type KeyPart,
  disjointRanges,
} from './elements.ts';
import { type LayoutOptions, nodePortKey, podSource, serviceIPKey } from './layout.ts';
import { masqueradeBit } from './marks.ts';

/**
 * A chain that leads to one of a number of endpoints. It names no Service: there is one for each number, and a Service
 * port whose number changes goes to another chain. Such chains are made when they are first needed and never deleted.
 */
export interface ServiceChain {
  /** By what the destination is known. */
  readonly by: DestinationKey;
  readonly to: TrafficPolicy;
  readonly masquerade: MasqueradedSources;
  /** The number of endpoints, at least 1. */
  readonly endpoints: number;
  /** Seconds; undefined: without session affinity. */
  readonly affinitySeconds: number | undefined;
}

export type DestinationKey = 'service-ips' | 'node-ports';

/** The sources that are masqueraded with the node's address. */
export type MasqueradedSources = 'none' | 'all' | 'all-but-pods';

function serviceChainName({ by, to, masquerade, endpoints, affinitySeconds }: ServiceChain): string {
  const name = ['pick', endpointList(by, to), String(endpoints)];
  if (masquerade !== 'none') name.push('masquerade', masquerade);
  if (affinitySeconds !== undefined) name.push('affinity', String(affinitySeconds));
  return name.join('-');
}

/** The map with the endpoints that such chains lead to. */
export function endpointsMap(by: DestinationKey, to: TrafficPolicy): SetName {
  return `${endpointList(by, to)}-endpoints`;
}

/** The map with the marks of endpoints, for session affinity. */
export function endpointMarksMap(by: DestinationKey, to: TrafficPolicy): SetName {
  return `${endpointList(by, to)}-endpoint-marks`;
}

function endpointList(by: DestinationKey, to: TrafficPolicy): EndpointList {
  const list = to === 'Cluster' ? 'cluster' : 'local';
  return by === 'service-ips' ? list : `node-port-${list}`;
}

type EndpointList = 'cluster' | 'local' | 'node-port-cluster' | 'node-port-local';

/** A chain by its name, and its rules. */
export interface ChainDefinition {
  readonly name: string;
  readonly commands: readonly Command[];
}

/** The chain, after those that it needs. */
export function serviceChainDefinitions(
  chain: ServiceChain,
  options: LayoutOptions,
): readonly ChainDefinition[] {
  const { family } = options;
  const { by, to, endpoints, affinitySeconds } = chain;
  const draw = assign(field.connectionMark, { numgen: { mode: 'random', mod: endpoints } });
  const translate = {
    dnat: {
      family,
      addr: { map: { key: markedDestination(chain, options), data: `@${endpointsMap(by, to)}` } },
    },
  };
  const before = masqueradeRules(chain.masquerade, options);
  if (affinitySeconds === undefined) {
    return [define(options, serviceChainName(chain), [...before, [draw, translate]])];
  }
  const find = findChainDefinition(chain, options);
  const keep = {
    set: {
      op: 'update',
      elem: { elem: { val: clientAndMark(options), timeout: affinitySeconds } },
      set: '@affinity',
    },
  };
  const definition = define(options, serviceChainName(chain), [
    ...before,
    [jump(find.name)],
    [match(field.connectionMark, 0), draw, markOfSlot(chain, options)],
    [keep],
    [translate],
  ]);
  return [find, definition];
}

/**
 * Sets the connection mark to that of the first endpoint that the client keeps; 0: none. As kube-proxy, it asks for one
 * endpoint after the other. Chains exist for powers of two: slots that a Service port does not have match nothing.
 */
function findChainDefinition(chain: ServiceChain, options: LayoutOptions): ChainDefinition {
  let slots = 1;
  while (slots < chain.endpoints) slots *= 2;
  const rules = [];
  for (let slot = 0; slot < slots; slot++) {
    rules.push([
      assign(field.connectionMark, slot),
      markOfSlot(chain, options),
      match(clientAndMark(options), '@affinity'),
      { return: null },
    ]);
  }
  rules.push([assign(field.connectionMark, 0)]);
  return define(options, `find-${endpointList(chain.by, chain.to)}-${slots}`, rules);
}

function masqueradeRules(
  masquerade: MasqueradedSources,
  options: LayoutOptions,
): readonly (readonly NftExpression[])[] {
  const mark = assign(field.packetMark, { '|': [field.packetMark, masqueradeBit(options.markMask)] });
  if (masquerade === 'none') return [];
  const sources = masquerade === 'all-but-pods' ? podSource(options, '!=') : undefined;
  return [sources === undefined ? [mark] : [sources, mark]];
}

/** Replaces the slot in the connection mark by the mark of its endpoint. */
function markOfSlot(chain: ServiceChain, options: LayoutOptions): NftExpression {
  const data = `@${endpointMarksMap(chain.by, chain.to)}`;
  return assign(field.connectionMark, { map: { key: markedDestination(chain, options), data } });
}

function markedDestination({ by }: ServiceChain, { family }: LayoutOptions): NftExpression {
  return concat(...(by === 'service-ips' ? serviceIPKey(family) : nodePortKey), field.connectionMark);
}

function clientAndMark({ family }: LayoutOptions): NftExpression {
  return concat(field.sourceAddress(family), field.connectionMark);
}

function define(
  { family }: LayoutOptions,
  name: string,
  rules: readonly (readonly NftExpression[])[],
): ChainDefinition {
  return { name, commands: [addChain(family, name), ...rules.map((rule) => addRule(family, name, ...rule))] };
}

/** Below are slots. */
const firstMark = 2 ** 31;

/**
 * One connection mark for each endpoint of a Service port with session affinity: 2^31 to 2^32-1. It depends on the
 * Service port and the endpoint alone, so that clients keep their endpoint whatever else changes, also over a restart.
 * Marks are unique in the list; where two Service ports share one, a client of the one may get an endpoint of the other
 * Service port assigned, if that has the mark as well: its own, in any case.
 *
 * @param endpoints as the plan has them: where two would have one mark, the order decides.
 */
export function endpointMarks(
  portId: string,
  endpoints: readonly PlannedEndpoint[],
): ReadonlyMap<PlannedEndpoint, number> {
  const marks = new Map<PlannedEndpoint, number>();
  const taken = new Set<number>();
  for (const endpoint of endpoints) {
    let mark = firstMark + (hash(`${portId} ${endpoint.address} ${endpoint.port}`) >>> 1);
    while (taken.has(mark)) mark = mark === 2 ** 32 - 1 ? firstMark : mark + 1;
    taken.add(mark);
    marks.set(endpoint, mark);
  }
  return marks;
}

/** FNV-1a, 32 bits, with the final mixing of MurmurHash3. */
function hash(text: string): number {
  let value = 0x811c_9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x0100_0193);
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2_ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

/** A Service port, and the order of its endpoints in the kernel. */
export interface ProgrammedPort {
  readonly port: ServicePortPlan;
  readonly clusterSlots: readonly PlannedEndpoint[];
  readonly localSlots: readonly PlannedEndpoint[];
}

/** The elements of a Service port itself. */
export interface PortElements {
  readonly elements: readonly Element[];
  /** By name. */
  readonly chains: ReadonlyMap<string, ServiceChain>;
}

type Forward = Extract<Action, { readonly action: 'forward' }>;

/** The elements that lead to the endpoints of a Service port, or refuse, and the chains to which they lead. */
export function routeElements(programmed: ProgrammedPort): PortElements {
  const elements: Element[] = [];
  const chains = new Map<string, ServiceChain>();
  for (const destination of programmed.port.destinations) {
    addEndpoints(programmed, destination, elements);
    addVerdicts(programmed, destination, elements, chains);
  }
  return { elements, chains };
}

/** The elements for the sources that may connect to a Service port. */
export function sourceRangeElements({ port }: ProgrammedPort): readonly Element[] {
  const { service } = port;
  return port.destinations.flatMap((destination): readonly Element[] => {
    const { sourceRanges } = destination;
    if (sourceRanges === undefined) return [];
    const { key } = destinationElementKey(port, destination);
    const allowed = disjointRanges(sourceRanges).map((range): Element => ({
      ...{ set: 'allowed-sources', key: [...key, range], service },
    }));
    return [...allowed, { set: 'restricted-service-ips', key, service }];
  });
}

/** The policies whose endpoints a destination leads to. */
export function policiesOf({ actions: { pod, node, other } }: Destination): readonly TrafficPolicy[] {
  const actions = [pod, node, other];
  return policies.filter((to) => actions.some((action) => action.action === 'forward' && action.to === to));
}

const policies = ['Cluster', 'Local'] as const;

/** The elements that Service ports may have in common. */
export function sharedElements({ port }: ProgrammedPort): readonly Element[] {
  const elements: Element[] = [{ set: 'cluster-ips', key: [port.clusterIP] }];
  for (const endpoints of [port.clusterEndpoints, port.localEndpoints]) {
    for (const { address, isLocal } of endpoints) {
      if (isLocal) elements.push({ set: 'hairpin-ips', key: [address, address] });
    }
  }
  return elements;
}

/** The key of a destination in the sets. */
function destinationElementKey(
  port: ServicePortPlan,
  { address, port: number }: Destination,
): { readonly by: DestinationKey; readonly key: readonly KeyPart[] } {
  const protocol = port.protocol.toLowerCase();
  return address === undefined
    ? { by: 'node-ports', key: [protocol, number] }
    : { by: 'service-ips', key: [address, protocol, number] };
}

/** Adds the elements of verdict maps: one for a map at most. */
export function addVerdicts(
  programmed: ProgrammedPort,
  destination: Destination,
  elements: Element[],
  chains: Map<string, ServiceChain>,
): void {
  const { port } = programmed;
  const { service } = port;
  const { by, key } = destinationElementKey(port, destination);
  const { pod, node, other } = destination.actions;

  const leadTo = (to: TrafficPolicy, masquerade: MasqueradedSources): ElementValue => {
    const { affinitySeconds } = port;
    const chain = { by, to, masquerade, endpoints: slotsOf(programmed, to).length, affinitySeconds };
    const name = serviceChainName(chain);
    chains.set(name, chain);
    return { goto: name };
  };
  const common = commonVerdict(pod, node, other);
  if (common !== undefined) {
    elements.push({ set: by, key, value: leadTo(common.to, common.masquerade), service });
  } else if (policiesOf(destination).length > 0) {
    elements.push({ set: by, key, value: { goto: `${by}-by-source` }, service });
    const sources = [
      [pod, 'from-pods'],
      [node, 'from-node'],
      [other, 'from-others'],
    ] as const;
    for (const [action, from] of sources) {
      if (action.action !== 'forward') continue;
      const value = leadTo(action.to, action.masquerade ? 'all' : 'none');
      elements.push({ set: `${by}-${from}`, key, value, service });
    }
  }
  const refusal = [other, node, pod].find((action) => action.action !== 'forward');
  if (refusal !== undefined) {
    const value = refusal.action === 'reject' ? { goto: 'reject' } : 'drop';
    elements.push({ set: `refused-${by}`, key, value, service });
  }
}

/** What one chain can say for all sources alike, but for the masquerading of Pods; undefined where it cannot. */
function commonVerdict(
  pod: Action,
  node: Action,
  other: Action,
): { to: TrafficPolicy; masquerade: MasqueradedSources } | undefined {
  if (pod.action !== 'forward' || !isSame(node, other) || node.to !== pod.to) return undefined;
  if (pod.masquerade === node.masquerade) return { to: pod.to, masquerade: pod.masquerade ? 'all' : 'none' };
  return pod.masquerade ? undefined : { to: pod.to, masquerade: 'all-but-pods' };
}

function isSame(node: Action, other: Action): node is Forward {
  return (
    node.action === 'forward' &&
    other.action === 'forward' &&
    node.to === other.to &&
    node.masquerade === other.masquerade
  );
}

function addEndpoints(programmed: ProgrammedPort, destination: Destination, elements: Element[]): void {
  const { port } = programmed;
  const { service } = port;
  const { by, key } = destinationElementKey(port, destination);
  for (const to of policiesOf(destination)) {
    const marks =
      port.affinitySeconds === undefined
        ? undefined
        : endpointMarks(port.id, to === 'Cluster' ? port.clusterEndpoints : port.localEndpoints);
    slotsOf(programmed, to).forEach((endpoint, slot) => {
      const mark = marks?.get(endpoint);
      const value = [endpoint.address, endpoint.port] as const;
      elements.push({ set: endpointsMap(by, to), key: [...key, mark ?? slot], value, service });
      if (mark === undefined) return;
      elements.push({ set: endpointMarksMap(by, to), key: [...key, slot], value: [mark], service });
    });
  }
}

function slotsOf(
  { clusterSlots, localSlots }: ProgrammedPort,
  to: TrafficPolicy,
): readonly PlannedEndpoint[] {
  return to === 'Cluster' ? clusterSlots : localSlots;
}

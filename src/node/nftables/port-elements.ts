import type {
  Action,
  Destination,
  PlannedEndpoint,
  ServicePortPlan,
  TrafficPolicy,
} from '../../network/forwarding/forwarding-plan.ts';
import type { Element, ElementValue, KeyPart } from './elements.ts';
import { endpointMarks } from './endpoint-mark.ts';
import { disjointRanges } from './ranges.ts';
import {
  type DestinationKey,
  endpointMarksMap,
  endpointsMap,
  type MasqueradedSources,
  type PickChain,
  pickChainName,
} from './pick-chain.ts';

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
  readonly chains: ReadonlyMap<string, PickChain>;
}

type Forward = Extract<Action, { readonly action: 'forward' }>;

/** The elements that lead to the endpoints of a Service port, or refuse, and the chains to which they lead. */
export function routeElements(programmed: ProgrammedPort): PortElements {
  const elements: Element[] = [];
  const chains = new Map<string, PickChain>();
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
  chains: Map<string, PickChain>,
): void {
  const { port } = programmed;
  const { service } = port;
  const { by, key } = destinationElementKey(port, destination);
  const { pod, node, other } = destination.actions;

  const pick = (to: TrafficPolicy, masquerade: MasqueradedSources): ElementValue => {
    const { affinitySeconds } = port;
    const chain = { by, to, masquerade, endpoints: slotsOf(programmed, to).length, affinitySeconds };
    const name = pickChainName(chain);
    chains.set(name, chain);
    return { goto: name };
  };
  const common = commonVerdict(pod, node, other);
  if (common !== undefined) {
    elements.push({ set: by, key, value: pick(common.to, common.masquerade), service });
  } else if (policiesOf(destination).length > 0) {
    elements.push({ set: by, key, value: { goto: `${by}-by-source` }, service });
    const sources = [
      [pod, 'from-pods'],
      [node, 'from-node'],
      [other, 'from-others'],
    ] as const;
    for (const [action, from] of sources) {
      if (action.action !== 'forward') continue;
      const value = pick(action.to, action.masquerade ? 'all' : 'none');
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

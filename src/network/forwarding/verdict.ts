import { parseAddress, parseCidr } from '../../objects/address.ts';
import {
  type Destination,
  destinationKey,
  type DestinationOwner,
  type ForwardingPlan,
  type NodeFamilyPlan,
  type PlannedEndpoint,
  type Protocol,
  type ServicePortPlan,
  type Source,
} from './forwarding-plan.ts';
import { cidrContains, isLoopback } from './node-plan.ts';

/** The first packet of a connection, as it reaches the node. */
export interface Packet {
  /** The source: the result of {@link sourceOf} where Pods are recognised by their addresses. */
  readonly source: Source;
  readonly sourceAddress: string;
  readonly protocol: Protocol;
  /** An address of the same family. */
  readonly destinationAddress: string;
  readonly destinationPort: number;
}

/** The verdict on a packet, and on the connection that it opens. */
export type Verdict = ForwardVerdict | RefusedVerdict | { readonly verdict: 'pass' };

export interface ForwardVerdict {
  readonly verdict: 'forward';
  readonly port: ServicePortPlan;
  readonly destination: Destination;
  /** One of them, each as likely as the other; never empty. */
  readonly candidates: readonly Candidate[];
  /** Seconds for which the client goes to the same candidate; undefined: each connection chooses anew. */
  readonly affinitySeconds: number | undefined;
}

/** An endpoint that a connection may go to. */
export interface Candidate {
  readonly endpoint: PlannedEndpoint;
  /** It sees the node as the client. */
  readonly masquerade: boolean;
}

export interface RefusedVerdict {
  readonly verdict: 'reject' | 'drop';
  readonly reason: RefusalReason;
  /** Absent where the packet belongs to no Service port. */
  readonly port?: ServicePortPlan;
}

type RefusalReason =
  /** Reject: no endpoint is usable anywhere. */
  | 'NoEndpoints'
  /** Drop: the policy is Local, and no endpoint is usable on this node. */
  | 'NoLocalEndpoints'
  /** Drop: outside of the source ranges. */
  | 'SourceNotAllowed'
  /** Reject: a cluster IP, but not one of its ports. */
  | 'UnknownPort'
  /** Drop: in a range of cluster IPs, but of no Service. */
  | 'UnknownClusterIP';

/** The words for a refusal. @param on the node that refuses. */
export function refusalText(reason: RefusalReason, on: string): string {
  return refusals[reason](on);
}

const refusals: Record<RefusalReason, (on: string) => string> = {
  NoEndpoints: () => 'the Service has no endpoint',
  NoLocalEndpoints: (on) => `the traffic policy is Local, and ${on} has no endpoint`,
  SourceNotAllowed: () => 'the source is not in spec.loadBalancerSourceRanges',
  UnknownPort: () => 'the Service does not have this port',
  UnknownClusterIP: () => 'no Service has this cluster IP',
};

/** The plan's verdict on a packet. `pass`: the plan does not apply. Text that is no address passes. */
export function verdictFor(plan: ForwardingPlan, packet: Packet): Verdict {
  const source = parseAddress(packet.sourceAddress);
  const destination = parseAddress(packet.destinationAddress);
  const family = plan.node.families.find(({ family }) => family === destination?.family);
  if (source === undefined || destination === undefined || family === undefined) return { verdict: 'pass' };
  const address = destination.canonical;
  const owner = ownerOf(plan, family, packet, address);
  if (owner !== undefined) return verdictOf(owner, packet.source, source.canonical);
  if (plan.clusterIPs.has(address)) return { verdict: 'reject', reason: 'UnknownPort' };
  if (family.serviceCIDRs.some((cidr) => isWithin(address, cidr))) {
    return { verdict: 'drop', reason: 'UnknownClusterIP' };
  }
  return { verdict: 'pass' };
}

/** Addresses of Services go before node ports: an external IP may be an address of the node. */
function ownerOf(
  plan: ForwardingPlan,
  family: NodeFamilyPlan,
  { protocol, destinationPort }: Packet,
  address: string,
): DestinationOwner | undefined {
  const direct = plan.destinations.get(destinationKey(family.family, protocol, address, destinationPort));
  if (direct !== undefined || !hasNodePorts(family, address)) return direct;
  return plan.destinations.get(destinationKey(family.family, protocol, undefined, destinationPort));
}

/** Node ports answer at the address; never at loopback, which the plan has not. */
function hasNodePorts({ nodePortAddresses, nodeAddresses }: NodeFamilyPlan, address: string): boolean {
  return (nodePortAddresses === 'all' ? nodeAddresses : nodePortAddresses).includes(address);
}

function verdictOf({ port, destination }: DestinationOwner, source: Source, sourceAddress: string): Verdict {
  const { sourceRanges } = destination;
  if (sourceRanges !== undefined && !sourceRanges.some((cidr) => isWithin(sourceAddress, cidr))) {
    return { verdict: 'drop', reason: 'SourceNotAllowed', port };
  }
  const action = destination.actions[source];
  switch (action.action) {
    case 'reject':
      return { verdict: 'reject', reason: 'NoEndpoints', port };
    case 'drop':
      return { verdict: 'drop', reason: 'NoLocalEndpoints', port };
    case 'forward': {
      const endpoints = action.to === 'Cluster' ? port.clusterEndpoints : port.localEndpoints;
      const candidates = endpoints.map((endpoint) => ({
        endpoint,
        masquerade: action.masquerade || (endpoint.isLocal && endpoint.address === sourceAddress),
      }));
      return {
        verdict: 'forward',
        port,
        destination,
        candidates,
        affinitySeconds: port.affinitySeconds,
      };
    }
  }
}

/** The source of a packet by its address alone: right where the plan recognises Pods by CIDR or not at all. */
export function sourceOf(plan: ForwardingPlan, sourceAddress: string): Source {
  const parsed = parseAddress(sourceAddress);
  const family = plan.node.families.find(({ family }) => family === parsed?.family);
  if (parsed === undefined || family === undefined) return 'other';
  const { podDetection, nodeAddresses } = family;
  const isPod =
    podDetection?.by === 'cidr' && podDetection.cidrs.some((cidr) => isWithin(parsed.canonical, cidr));
  if (isPod) return 'pod';
  return isLoopback(parsed) || nodeAddresses.includes(parsed.canonical) ? 'node' : 'other';
}

function isWithin(address: string, cidr: string): boolean {
  const parsedAddress = parseAddress(address);
  const parsedCidr = parseCidr(cidr);
  return parsedAddress !== undefined && parsedCidr !== undefined && cidrContains(parsedCidr, parsedAddress);
}

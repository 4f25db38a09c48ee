import { type IPFamily, parseAddress, parseCidr } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ForwardingPlan, NodeFamilyPlan, ServicePlan } from './forwarding-plan.ts';
import { cidrContains } from './node-plan.ts';
import type { ServiceChange } from './planner.ts';

/** A UDP flow in connection tracking. Addresses are canonical text. */
export interface UdpFlow {
  readonly family: IPFamily;
  /** Where the client sends to, before any translation. */
  readonly destination: string;
  readonly port: number;
  /** Where answers are expected from: the endpoint, or the destination itself where nothing was translated. */
  readonly replySource: string;
  readonly replyPort: number;
}

/** What a Service answers on by UDP. */
export interface UdpDestination {
  readonly family: IPFamily;
  /** Undefined for node ports. */
  readonly address: string | undefined;
  readonly port: number;
}

/** A UDP port of a Service has come, has gone, or its endpoints or destinations have changed. */
export function mayLeaveStaleFlows(changes: readonly ServiceChange[]): boolean {
  return changes.some(({ before, after }) => !jsonEqual(udpPorts(before), udpPorts(after)));
}

function udpPorts(plan: ServicePlan | undefined): ServicePlan['ports'] {
  return plan?.ports.filter(({ protocol }) => protocol === 'UDP') ?? [];
}

/** The UDP destinations that Services had before the changes. Where they still have them, {@link staleFlows} sees it. */
export function formerDestinations(changes: readonly ServiceChange[]): readonly UdpDestination[] {
  return changes.flatMap(({ before }) =>
    udpPorts(before).flatMap(({ family, destinations }) =>
      destinations.map(({ address, port }) => ({ family, address, port })),
    ),
  );
}

/**
 * Which flows are stale: those to a UDP destination of a Service whose answers would not come from one of the Service
 * port's serving endpoints, at its port (`pkg/proxy/conntrack/cleanup.go`), and those that were translated for a
 * destination that no Service has any more. A client that keeps its source port would otherwise stay with an endpoint
 * that is gone, or with whatever gets its address next, or with none where its first datagram came before there was one.
 * Policies and topology do not matter. Where no endpoint serves, only translated flows are stale: others are refused
 * anyway, or are not the Service's. Unlike there, a node port's flows are those to the node alone.
 *
 * @param former destinations that Services had. Every cluster IP that no Service has counts as such.
 */
export function staleFlows(
  plan: ForwardingPlan,
  former: Iterable<UdpDestination>,
  flows: Iterable<UdpFlow>,
): readonly UdpFlow[] {
  const serving = servingByDestination(plan, former);
  const nodes = new Map(plan.node.families.map((node) => [node.family, ownAddresses(node)]));
  const stale = new Map<string, UdpFlow>();
  for (const flow of flows) {
    const node = nodes.get(flow.family);
    if (node === undefined) continue;
    const { family, destination, port, replySource, replyPort } = flow;
    const isTranslated = destination !== replySource || port !== replyPort;
    const endpoints =
      serving.get(destinationText(family, destination, port)) ??
      (node.hasNodePorts(destination, isTranslated)
        ? serving.get(destinationText(family, undefined, port))
        : undefined) ??
      (isTranslated && node.hasClusterIP(destination) ? noEndpoints : undefined);
    if (endpoints === undefined) continue;
    const from = sourceText(replySource, replyPort);
    if (endpoints.size === 0 ? !isTranslated : endpoints.has(from)) continue;
    stale.set(`${destinationText(family, destination, port)} ${from}`, flow);
  }
  return [...stale.values()];
}

const noEndpoints: ReadonlySet<string> = new Set();

/** The addresses and ports of the endpoints that serve, by {@link destinationText}; none for former destinations. */
function servingByDestination(
  { services }: ForwardingPlan,
  former: Iterable<UdpDestination>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const serving = new Map<string, ReadonlySet<string>>();
  for (const { family, address, port } of former) {
    serving.set(destinationText(family, address, port), noEndpoints);
  }
  for (const { ports } of services.values()) {
    for (const { family, servingEndpoints, destinations } of ports) {
      if (servingEndpoints === undefined) continue;
      const sources = new Set(servingEndpoints.map((each) => sourceText(each.address, each.port)));
      for (const { address, port } of destinations) {
        serving.set(destinationText(family, address, port), sources);
      }
    }
  }
  return serving;
}

/** Which addresses are the node's, and which are cluster IPs. */
function ownAddresses({ nodePortAddresses, nodeAddresses, serviceCIDRs }: NodeFamilyPlan) {
  const cidrs = serviceCIDRs.flatMap((cidr) => parseCidr(cidr) ?? []);
  return {
    /** Addresses come to a node unnoticed: what was translated at a node port's number was the node's. */
    hasNodePorts: (address: string, isTranslated: boolean): boolean =>
      nodePortAddresses === 'all'
        ? isTranslated || nodeAddresses.includes(address)
        : nodePortAddresses.includes(address),
    hasClusterIP: (address: string): boolean => {
      const parsed = parseAddress(address);
      return parsed !== undefined && cidrs.some((cidr) => cidrContains(cidr, parsed));
    },
  };
}

function sourceText(address: string, port: number): string {
  return `${address} ${port}`;
}

function destinationText(family: IPFamily, address: string | undefined, port: number): string {
  return `${address ?? family} ${port}`;
}

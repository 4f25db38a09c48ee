import type { IPFamily } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ForwardingPlan } from './forwarding-plan.ts';
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

/** Flows to delete: all that have this destination, port and source of answers with its port. */
export interface StaleFlows extends Omit<UdpFlow, 'destination'> {
  /** Undefined for node ports: any. */
  readonly destination: string | undefined;
}

/** A UDP port of a Service has come, or its endpoints or destinations have changed. */
export function mayLeaveStaleFlows(changes: readonly ServiceChange[]): boolean {
  return changes.some(({ before, after }) =>
    after?.ports.some(
      (port) =>
        port.protocol === 'UDP' &&
        !jsonEqual(
          port,
          before?.ports.find(({ id }) => id === port.id),
        ),
    ),
  );
}

/**
 * Which flows are stale (`pkg/proxy/conntrack/cleanup.go`): those to a UDP destination of a Service, or to any address
 * at a UDP node port, whose answers would not come from one of the Service port's serving endpoints, at its port. A client that keeps
 * its source port would otherwise stay with an endpoint that is gone, or with no endpoint where its first datagram came
 * before there was one. Policies and topology do not matter, and where no endpoint serves, nothing is stale.
 */
export function staleFlows(plan: ForwardingPlan, flows: Iterable<UdpFlow>): readonly StaleFlows[] {
  const serving = servingByDestination(plan);
  if (serving.size === 0) return [];
  const stale = new Map<string, StaleFlows>();
  for (const { family, destination, port, replySource, replyPort } of flows) {
    const from = sourceText(replySource, replyPort);
    for (const to of [destination, undefined]) {
      const key = destinationText(family, to, port);
      if (serving.get(key)?.has(from) !== false) continue;
      stale.set(`${key} ${from}`, { family, destination: to, port, replySource, replyPort });
    }
  }
  return [...stale.values()];
}

/** The addresses and ports of the endpoints that serve, by {@link destinationText}. */
function servingByDestination({ services }: ForwardingPlan): ReadonlyMap<string, ReadonlySet<string>> {
  const serving = new Map<string, ReadonlySet<string>>();
  for (const { ports } of services.values()) {
    for (const { family, servingEndpoints = [], destinations } of ports) {
      if (servingEndpoints.length === 0) continue;
      const sources = new Set(servingEndpoints.map((each) => sourceText(each.address, each.port)));
      for (const { address, port } of destinations) {
        serving.set(destinationText(family, address, port), sources);
      }
    }
  }
  return serving;
}

function sourceText(address: string, port: number): string {
  return `${address} ${port}`;
}

function destinationText(family: IPFamily, address: string | undefined, port: number): string {
  return `${address ?? family} ${port}`;
}

/** A matcher of NetworkPolicies written from the API's documentation alone, object by object, for comparison. */
import type { LabelSelector } from '../../../../src/objects/meta.ts';
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../../../src/objects/types/networking.generated.ts';

export interface BrutePod {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly address: string;
  readonly node: string;
  readonly hostNetwork: boolean;
  readonly ports: readonly { name: string; protocol: string; containerPort: number }[];
}

export interface BruteWorld {
  readonly namespaces: Record<string, Record<string, string>>;
  readonly policies: readonly NetworkPolicy[];
}

function selects(selector: LabelSelector, labels: Record<string, string>): boolean {
  const pairs = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return (
    pairs &&
    (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
      const value = labels[key];
      if (operator === 'In') return value !== undefined && values.includes(value);
      if (operator === 'NotIn') return value === undefined || !values.includes(value);
      return (operator === 'Exists') === (value !== undefined);
    })
  );
}

/** IPv4 only. */
function inBlock(cidr: string, address: string): boolean {
  const [network = '', bits = '32'] = cidr.split('/');
  const bitsOf = (text: string): string =>
    text
      .split('.')
      .map((part) => Number(part).toString(2).padStart(8, '0'))
      .join('');
  return bitsOf(network).slice(0, Number(bits)) === bitsOf(address).slice(0, Number(bits));
}

function peerHolds(
  world: BruteWorld,
  policyNamespace: string,
  peer: NetworkPolicyPeer,
  other: BrutePod | string,
): boolean {
  if (peer.ipBlock !== undefined) {
    const address = typeof other === 'string' ? other : other.address;
    return (
      inBlock(peer.ipBlock.cidr, address) &&
      !(peer.ipBlock.except ?? []).some((except) => inBlock(except, address))
    );
  }
  if (typeof other === 'string' || other.hostNetwork) return false;
  if (peer.namespaceSelector === undefined && other.namespace !== policyNamespace) return false;
  if (
    peer.namespaceSelector !== undefined &&
    !selects(peer.namespaceSelector, world.namespaces[other.namespace] ?? {})
  ) {
    return false;
  }
  return peer.podSelector === undefined || selects(peer.podSelector, other.labels);
}

function portHolds(
  wanted: NetworkPolicyPort,
  protocol: string,
  port: number,
  destination: BrutePod | string,
): boolean {
  if ((wanted.protocol ?? 'TCP') !== protocol) return false;
  if (wanted.port === undefined) return true;
  if (typeof wanted.port === 'number') return port >= wanted.port && port <= (wanted.endPort ?? wanted.port);
  // Pods of the host network are known by their node's address alone.
  if (typeof destination === 'string' || destination.hostNetwork) return false;
  return destination.ports.some(
    (each) => each.name === wanted.port && each.protocol === protocol && each.containerPort === port,
  );
}

/** Whether a connection is allowed in one direction. A text is an address that no Pod has. */
export function bruteForce(
  world: BruteWorld,
  direction: 'Ingress' | 'Egress',
  source: BrutePod | string,
  destination: BrutePod | string,
  protocol: string,
  port: number,
): boolean {
  const [subject, other] = direction === 'Ingress' ? [destination, source] : [source, destination];
  if (typeof subject === 'string' || subject.hostNetwork) return true;
  if (typeof other !== 'string' && other.namespace === subject.namespace && other.name === subject.name)
    return true;
  if (
    direction === 'Ingress' &&
    typeof other !== 'string' &&
    other.hostNetwork &&
    other.node === subject.node
  ) {
    return true;
  }
  let isolated = false;
  for (const { metadata, spec } of world.policies) {
    if (metadata.namespace !== subject.namespace || !selects(spec.podSelector, subject.labels)) continue;
    const types = spec.policyTypes ?? ['Ingress', ...((spec.egress ?? []).length > 0 ? ['Egress'] : [])];
    if (!types.includes(direction)) continue;
    isolated = true;
    const rules =
      direction === 'Ingress'
        ? (spec.ingress ?? []).map(({ from = [], ports = [] }) => ({ peers: from, ports }))
        : (spec.egress ?? []).map(({ to = [], ports = [] }) => ({ peers: to, ports }));
    for (const { peers, ports } of rules) {
      const peerMatches =
        peers.length === 0 || peers.some((peer) => peerHolds(world, metadata.namespace ?? '', peer, other));
      const portMatches =
        ports.length === 0 || ports.some((each) => portHolds(each, protocol, port, destination));
      if (peerMatches && portMatches) return true;
    }
  }
  return !isolated;
}

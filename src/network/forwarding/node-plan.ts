import { type ParsedAddress, type ParsedCidr, ipFamilies } from '../../objects/address.ts';
import { addressBits } from '../../objects/address.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { NodeFamilyPlan, NodePlan, PodDetection } from './forwarding-plan.ts';
import type { ForwardingNode, ForwardingOptions } from './options.ts';

const zoneLabel = 'topology.kubernetes.io/zone';

/** The plan for the node as a whole. */
export function planNode(node: ForwardingNode, options: ForwardingOptions): NodePlan {
  const zone = node.labels[zoneLabel];
  return {
    name: node.name,
    zone: zone === '' ? undefined : zone,
    families: ipFamilies
      .filter((family) => options.families.includes(family))
      .map((family) => planNodeFamily(family, node, options)),
  };
}

function planNodeFamily(family: IPFamily, node: ForwardingNode, options: ForwardingOptions): NodeFamilyPlan {
  return {
    family,
    primaryAddress: node.primaryAddresses.find((address) => address.family === family)?.canonical,
    nodePortAddresses: nodePortAddresses(family, node, options),
    nodeAddresses: texts(
      [...node.primaryAddresses, ...node.interfaceAddresses].filter(
        (address) => address.family === family && !isLoopback(address),
      ),
    ),
    serviceCIDRs: texts(options.serviceCIDRs.filter((cidr) => cidr.family === family)),
    podDetection: podDetection(family, options),
  };
}

/** `--nodeport-addresses` (`util/nodeport_addresses.go`): a family without a CIDR of its own, or with a /0, answers everywhere. */
function nodePortAddresses(
  family: IPFamily,
  node: ForwardingNode,
  options: ForwardingOptions,
): 'all' | readonly string[] {
  const reachable = (addresses: readonly ParsedAddress[]): readonly ParsedAddress[] =>
    addresses.filter((address) => address.family === family && !isLoopback(address));
  if (options.nodePortAddresses === 'primary') return texts(reachable(node.primaryAddresses));
  const cidrs = options.nodePortAddresses.filter((cidr) => cidr.family === family);
  if (cidrs.length === 0 || cidrs.some((cidr) => cidr.prefixLength === 0)) return 'all';
  return texts(
    reachable(node.interfaceAddresses).filter((address) => cidrs.some((cidr) => cidrContains(cidr, address))),
  );
}

function podDetection(family: IPFamily, options: ForwardingOptions): PodDetection | undefined {
  const { podDetection } = options;
  if (podDetection?.by !== 'cidr') return podDetection;
  const cidrs = texts(podDetection.cidrs.filter((cidr) => cidr.family === family));
  return cidrs.length === 0 ? undefined : { by: 'cidr', cidrs };
}

/** True when a CIDR holds an address of its family. */
export function cidrContains(cidr: ParsedCidr, address: Pick<ParsedAddress, 'family' | 'value'>): boolean {
  if (cidr.family !== address.family) return false;
  const hostBits = BigInt(addressBits(cidr.family) - cidr.prefixLength);
  return address.value >> hostBits === cidr.network >> hostBits;
}

/** True for 127.0.0.0/8 and ::1, where node ports never answer. */
export function isLoopback(address: ParsedAddress): boolean {
  return address.family === 'IPv4' ? address.value >> 24n === 127n : address.value === 1n;
}

function texts(parsed: readonly { readonly canonical: string }[]): readonly string[] {
  return [...new Set(parsed.map(({ canonical }) => canonical))].sort();
}

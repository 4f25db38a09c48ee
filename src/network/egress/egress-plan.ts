import { type IPFamily, parseAddress, type ParsedCidr } from '../../objects/address.ts';
import type { AddressedPod } from '../policy/pod-set.ts';
import { type EgressExit, egressFor, type EgressRule } from './egress-rules.ts';

/** A Node as far as the way to it is concerned. */
export interface EgressPeer {
  readonly name: string;
  readonly podCIDRs: readonly ParsedCidr[];
  /** All its addresses, canonical. */
  readonly addresses: readonly string[];
}

/** What one node does with what Pods send out of the cluster. */
export interface EgressPlan {
  /**
   * By the address of a Pod of this node: the nodes by which its connections leave, sorted; each connection by one of
   * them. Those that leave by this node alone are left out.
   */
  readonly leave: ReadonlyMap<string, readonly string[]>;
  /** By the address of a Pod of any node: the address that its connections have which leave by this node. */
  readonly sources: ReadonlyMap<string, string>;
  /** Destinations that are inside of the cluster: Pods and nodes. CIDRs. */
  readonly inside: readonly string[];
}

/** What {@link planEgress} plans from. */
export interface EgressInput {
  readonly nodeName: string;
  readonly rules: readonly EgressRule[];
  /** All of the cluster; of two with one address, the later one has it. */
  readonly pods: Iterable<AddressedPod>;
  readonly nodes: readonly EgressPeer[];
  /** The ranges of Pods, beside those of the nodes. */
  readonly clusterCIDRs: readonly ParsedCidr[];
}

/** Plans what a node does; without a rule, nothing. */
export function planEgress({ nodeName, rules, pods, nodes, clusterCIDRs }: EgressInput): EgressPlan {
  const leave = new Map<string, readonly string[]>();
  const sources = new Map<string, string>();
  if (rules.every(({ exits }) => exits.length === 0)) return { leave, sources, inside: [] };
  const known = new Set(nodes.map(({ name }) => name));
  for (const { pod, addresses } of pods) {
    for (const address of addresses) {
      leave.delete(address);
      sources.delete(address);
      const family = familyOf(address);
      if (family === undefined) continue;
      const exits = egressFor(pod, family, rules).filter(({ node }) => known.has(node));
      const own = exits.find(({ node }) => node === nodeName);
      if (own !== undefined) sources.set(address, own.address);
      const by = nodesOf(exits);
      if (pod.node === nodeName && by.some((node) => node !== nodeName)) leave.set(address, by);
    }
  }
  const inside = [...clusterCIDRs, ...nodes.flatMap(({ podCIDRs }) => podCIDRs)].map(
    ({ canonical }) => canonical,
  );
  for (const { addresses } of nodes) for (const address of addresses) inside.push(hostCidr(address));
  return { leave, sources, inside: [...new Set(inside)].toSorted() };
}

function nodesOf(exits: readonly EgressExit[]): readonly string[] {
  return [...new Set(exits.map(({ node }) => node))].toSorted();
}

function familyOf(address: string): IPFamily | undefined {
  return parseAddress(address)?.family;
}

function hostCidr(address: string): string {
  return `${address}/${familyOf(address) === 'IPv6' ? 128 : 32}`;
}

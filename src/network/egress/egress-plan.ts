import { type IPFamily, parseAddress, type ParsedCidr } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { AddressedPod } from '../policy/pod-set.ts';
import { marksOf, type QoSMark, type QoSRules } from './egress-qos.ts';
import { egressChoice, type EgressExit, type EgressRule } from './egress-rules.ts';

/** A Node as far as the way to it is concerned. */
export interface EgressPeer {
  readonly name: string;
  readonly podCIDRs: readonly ParsedCidr[];
  /** All its addresses, canonical. */
  readonly addresses: readonly string[];
}

/** The treatment on one node of packets from Pods out of the cluster. */
export interface EgressPlan {
  /**
   * By the address of a Pod of this node: the nodes by which its connections leave, sorted; each connection by one of
   * them. Those that leave by this node alone are left out.
   */
  readonly leave: ReadonlyMap<string, readonly string[]>;
  /** By the address of a Pod of any node: the address that its connections have which leave by this node. */
  readonly sources: ReadonlyMap<string, string>;
  /** Destinations that are inside of the cluster for `leave` and `sources`: Pods and nodes. CIDRs. */
  readonly inside: readonly string[];
  /** By the address of a Pod of this node: the DSCP values of what it sends, the first that has the destination; one at least. */
  readonly marks: ReadonlyMap<string, readonly QoSMark[]>;
  /** By the key of a Pod of this node: the EgressIP that serves it, and those that would. */
  readonly standbys: ReadonlyMap<
    ObjectKey,
    { readonly servedBy: string; readonly standby: readonly string[] }
  >;
}

/** The inputs of {@link planEgress}. */
export interface EgressInput {
  readonly nodeName: string;
  readonly rules: readonly EgressRule[];
  /** By namespace. */
  readonly qos: ReadonlyMap<string, QoSRules>;
  /** All of the cluster; of two with one address, the later one has it. */
  readonly pods: Iterable<AddressedPod>;
  readonly nodes: readonly EgressPeer[];
  /** The ranges of Pods, beside those of the nodes. */
  readonly clusterCIDRs: readonly ParsedCidr[];
}

/** Plans what a node does; without objects, nothing. */
export function planEgress(input: EgressInput): EgressPlan {
  const { nodeName, rules, qos, pods, nodes } = input;
  const leave = new Map<string, readonly string[]>();
  const sources = new Map<string, string>();
  const marks = new Map<string, readonly QoSMark[]>();
  const standbys = new Map<ObjectKey, { servedBy: string; standby: readonly string[] }>();
  const hasExits = rules.some(({ exits }) => exits.length > 0);
  if (!hasExits && qos.size === 0) return { leave, sources, inside: [], marks, standbys };
  const known = new Set(nodes.map(({ name }) => name));
  for (const { pod, addresses } of pods) {
    const isOwn = pod.node === nodeName;
    const ofNamespace = qos.get(pod.namespace);
    const { servedBy, standby } = egressChoice(pod, rules);
    if (isOwn && servedBy !== undefined && standby.length > 0) {
      standbys.set(pod.key, { servedBy: servedBy.name, standby });
    }
    for (const address of addresses) {
      for (const map of [leave, sources, marks]) map.delete(address);
      const family = familyOf(address);
      if (family === undefined) continue;
      const exits = (servedBy?.exits ?? []).filter((exit) => exit.family === family && known.has(exit.node));
      const own = exits.find(({ node }) => node === nodeName);
      if (own !== undefined) sources.set(address, own.address);
      const by = nodesOf(exits);
      if (isOwn && by.some((node) => node !== nodeName)) leave.set(address, by);
      const marked = isOwn && ofNamespace !== undefined ? marksOf(pod, family, ofNamespace) : [];
      if (marked.length > 0) marks.set(address, marked);
    }
  }
  return { leave, sources, inside: hasExits ? insideOf(input) : [], marks, standbys };
}

function insideOf({ nodes, clusterCIDRs }: EgressInput): readonly string[] {
  const inside = [...clusterCIDRs, ...nodes.flatMap(({ podCIDRs }) => podCIDRs)].map(
    ({ canonical }) => canonical,
  );
  for (const { addresses } of nodes) for (const address of addresses) inside.push(hostCidr(address));
  return [...new Set(inside)].toSorted();
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

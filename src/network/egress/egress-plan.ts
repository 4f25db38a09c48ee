import {
  type IPFamily,
  type ParsedAddress,
  type ParsedCidr,
  parseCidr,
  parseAddress,
} from '../../objects/address.ts';
import {
  matchesLabels,
  type ParsedLabelSelector,
  readLabelSelector,
} from '../../objects/selectors/labels.ts';
import type { EgressQoS, EgressIP } from '../../objects/types/openshift.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import type { PolicyPod } from '../policy/network-policy.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { AddressedPod } from '../policy/policy-plan.ts';

/**
 * How what Pods send leaves the cluster: by EgressIPs, and with the DSCP values of EgressQoSes of OVN-Kubernetes
 * (`go-controller/pkg/ovn/egressqos.go`).
 */

/** One rule. The first that matches decides: no packet is marked by two. */
export interface QoSRule {
  /** 0 to 63. */
  readonly dscp: number;
  /** Undefined: every destination of both families, inside of the cluster too. */
  readonly to: ParsedCidr | undefined;
  /** Undefined: all Pods of the namespace. */
  readonly pods: ParsedLabelSelector | undefined;
}

/** One EgressQoS, parsed; with problems, none of its rules is in force. */
export interface QoSRules {
  readonly namespace: string;
  readonly rules: readonly QoSRule[];
  readonly problems: readonly string[];
}

/** A destination, and the DSCP value of what is sent there. */
export type QoSMark = Pick<QoSRule, 'dscp' | 'to'>;

/** More have no priority left (`maxEgressQoSRules` of OVN-Kubernetes). */
const maxRules = 1000;
/** The only name that an EgressQoS may have. */
const onlyName = 'default';

/** Reads an EgressQoS: one rule that does not parse keeps all of them out of force. Undefined: its name makes it none. */
export function qosRules({ metadata, spec }: EgressQoS): QoSRules | undefined {
  if (metadata.name !== onlyName) return undefined;
  const problems: string[] = [];
  if (spec.egress.length > maxRules) {
    problems.push(`cannot create EgressQoS with ${spec.egress.length} rules - maximum is ${maxRules}`);
  }
  const rules = spec.egress.slice(0, maxRules).map(({ dscp, dstCIDR, podSelector }, index): QoSRule => {
    const to = dstCIDR === undefined ? undefined : parseCidr(dstCIDR);
    if (dstCIDR !== undefined && to === undefined) problems.push(`invalid CIDR address: ${dstCIDR}`);
    const path = `spec.egress[${index}].podSelector`;
    const pods = readLabelSelector(podSelector, { path, consequence: 'no rule is in force' }, problems);
    return { dscp, to, pods };
  });
  return { namespace: metadata.namespace ?? '', rules: problems.length > 0 ? [] : rules, problems };
}

/** The DSCP value of what a Pod sends to an address, and the rule that decides; undefined: it stays as the Pod sets it. */
export function dscpFor(
  pod: PolicyPod,
  destination: ParsedAddress,
  { rules }: Pick<QoSRules, 'rules'>,
): { readonly dscp: number; readonly rule: number } | undefined {
  if (pod.hostNetwork) return undefined;
  const rule = rules.findIndex(
    ({ to, pods }) => isSelected(pods, pod) && (to === undefined || cidrContains(to, destination)),
  );
  const found = rules[rule];
  return found === undefined ? undefined : { dscp: found.dscp, rule };
}

/** The marks of a Pod's packets of a family, in order: the first with the destination decides. */
export function marksOf(
  pod: PolicyPod,
  family: IPFamily,
  { rules }: Pick<QoSRules, 'rules'>,
): readonly QoSMark[] {
  if (pod.hostNetwork) return [];
  const marks: QoSMark[] = [];
  for (const { dscp, to, pods } of rules) {
    if (!isSelected(pods, pod) || (to !== undefined && to.family !== family)) continue;
    marks.push({ dscp, to });
    if (to === undefined) break;
  }
  return marks;
}

function isSelected(selector: ParsedLabelSelector | undefined, { labels }: PolicyPod): boolean {
  return selector === undefined || matchesLabels(selector, labels);
}

/** A way out of the cluster: by this node, from this address. */
export interface EgressExit {
  /** Canonical. */
  readonly address: string;
  readonly family: IPFamily;
  readonly node: string;
}

/** An EgressIP as far as Pods are concerned. */
export interface EgressRule {
  readonly name: string;
  readonly namespaces: ParsedLabelSelector;
  /** Undefined: all Pods of the namespaces. */
  readonly pods: ParsedLabelSelector | undefined;
  /** The assignments in its status. */
  readonly exits: readonly EgressExit[];
}

/** Which EgressIP serves a Pod. */
export interface EgressChoice {
  /** Undefined: none. */
  readonly servedBy: EgressRule | undefined;
  /** Names of those that would, and do not. */
  readonly standby: readonly string[];
}

/**
 * Reads EgressIPs, the oldest first. A selector that does not parse selects nothing.
 *
 * @param said receives `<name>: <problem>`.
 */
export function egressRules(objects: Iterable<EgressIP>, said: string[] = []): readonly EgressRule[] {
  return [...objects].sort(byAge).map(({ metadata, spec, status }) => {
    const { name = '' } = metadata;
    const problems: string[] = [];
    const read = (selector: EgressIP['spec']['podSelector'], path: string): ParsedLabelSelector | undefined =>
      readLabelSelector(selector, { path, consequence: 'no Pod is selected' }, problems);
    const rule: EgressRule = {
      name,
      namespaces: read(spec.namespaceSelector, 'spec.namespaceSelector') ?? 'nothing',
      pods: read(spec.podSelector, 'spec.podSelector'),
      exits: (status?.items ?? []).flatMap(({ egressIP, node }) => {
        const address = parseAddress(egressIP);
        return address === undefined ? [] : [{ address: address.canonical, family: address.family, node }];
      }),
    };
    for (const problem of problems) said.push(`${name}: ${problem}`);
    return rule;
  });
}

/** The order in which EgressIPs get addresses and Pods: the oldest first, then by name. */
export function byAge(a: EgressIP, b: EgressIP): number {
  const key = ({ metadata }: EgressIP): string =>
    `${metadata.creationTimestamp ?? ''} ${metadata.name ?? ''}`;
  return key(a) < key(b) ? -1 : 1;
}

/**
 * Which EgressIP serves a Pod: the oldest of those that select it and have an address. OVN-Kubernetes serves it by the one
 * that it has handled first.
 *
 * @param rules in the order of {@link egressRules}.
 */
export function egressChoice(pod: PolicyPod, rules: readonly EgressRule[]): EgressChoice {
  if (pod.hostNetwork) return { servedBy: undefined, standby: [] };
  const [servedBy, ...others] = rules.filter((rule) => rule.exits.length > 0 && selects(rule, pod));
  return { servedBy, standby: others.map(({ name }) => name) };
}

function selects({ namespaces, pods }: EgressRule, pod: PolicyPod): boolean {
  return (
    matchesLabels(namespaces, pod.namespaceLabels) && (pods === undefined || matchesLabels(pods, pod.labels))
  );
}

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

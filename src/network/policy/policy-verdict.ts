import { type ParsedAddress, parseAddress, type IPFamily } from '../../objects/address.ts';
import {
  matchesLabels,
  type ParsedLabelSelector,
  renderLabelSelector,
} from '../../objects/selectors/labels.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import type {
  PolicyConnection,
  PolicyPod,
  PolicySide,
  Direction,
  PolicyPeer,
  PolicyPort,
  NetworkPolicyRule,
  PolicyRules,
} from './network-policy.ts';
import type { AddressedPod } from './policy-plan.ts';

/** The verdict of the policies at one end. */
export interface DirectionVerdict {
  readonly allowed: boolean;
  readonly reason: DirectionReason;
  /** The policies that isolate the Pod in this direction, in the order that they were given. */
  readonly policies: readonly PolicyMatch[];
}

export type DirectionReason =
  /** Policies apply to Pods alone. */
  | 'NotAPod'
  /** Pods of the node's own network are exempt. */
  | 'HostNetwork'
  /** A Pod always reaches itself. */
  | 'SamePod'
  /** A node always reaches its own Pods. */
  | 'OwnNode'
  /** No policy selects the Pod in this direction. */
  | 'NotIsolated'
  /** A rule of a policy matches. */
  | 'Allowed'
  /** Policies select the Pod, and no rule of them matches. */
  | 'NoRuleMatches';

/** The verdict of one policy. */
export interface PolicyMatch {
  readonly policy: ObjectKey;
  /** The first rule that matches; undefined: none does. */
  readonly rule: RuleMatch | undefined;
}

/** Where in a policy a connection is allowed. */
export interface RuleMatch {
  readonly index: number;
  /** The item of `from` or `to`; undefined: there are none, and every peer matches. */
  readonly peer: number | undefined;
  /** The item of `ports`; undefined: there are none, and every port matches. */
  readonly port: number | undefined;
}

/**
 * The verdict of NetworkPolicies on a connection: it has to be allowed by `egress` at its source and by `ingress`
 * at its destination. Replies are always allowed.
 *
 * @param policies of all namespaces.
 */
export function directionVerdict(
  policies: readonly PolicyRules[],
  connection: PolicyConnection,
  direction: Direction,
): DirectionVerdict {
  const subject = direction === 'egress' ? connection.source : connection.destination;
  const exemption = exemptionOf(subject, connection, direction);
  if (exemption !== undefined || subject.kind !== 'pod') {
    return { allowed: true, reason: exemption ?? 'NotAPod', policies: [] };
  }
  const matches = policies
    .filter((policy) => isolates(policy, subject, direction))
    .map((policy) => ({ policy: policy.key, rule: ruleOf(policy, connection, direction) }));
  if (matches.length === 0) return { allowed: true, reason: 'NotIsolated', policies: [] };
  const allowed = matches.some(({ rule }) => rule !== undefined);
  return { allowed, reason: allowed ? 'Allowed' : 'NoRuleMatches', policies: matches };
}

function exemptionOf(
  subject: PolicySide,
  { source, destination }: PolicyConnection,
  direction: Direction,
): DirectionReason | undefined {
  if (subject.kind !== 'pod') return 'NotAPod';
  if (subject.hostNetwork) return 'HostNetwork';
  if (source.kind === 'pod' && destination.kind === 'pod' && source.key === destination.key) return 'SamePod';
  // Probes are always allowed; what a Pod in the node's network sends cannot be distinguished from the node's own.
  if (direction === 'ingress' && nodeOf(source) === subject.node) return 'OwnNode';
  return undefined;
}

/** The node whose own network a connection comes from. */
function nodeOf(source: PolicySide): string | undefined {
  if (source.kind === 'node') return source.name;
  return source.kind === 'pod' && source.hostNetwork ? source.node : undefined;
}

/** True when a policy isolates a Pod, which is not in its node's network, in a direction. */
function isolates(policy: PolicyRules, pod: PolicyPod, direction: Direction): boolean {
  return (
    policy[direction] !== undefined &&
    policy.namespace === pod.namespace &&
    matchesLabels(policy.podSelector, pod.labels)
  );
}

function ruleOf(
  policy: PolicyRules,
  connection: PolicyConnection,
  direction: Direction,
): RuleMatch | undefined {
  for (const [index, rule] of (policy[direction] ?? []).entries()) {
    const match = matchOf(rule, policy.namespace, connection, direction);
    if (match !== undefined) return { index, ...match };
  }
  return undefined;
}

function matchOf(
  { peers, ports }: NetworkPolicyRule,
  namespace: string,
  connection: PolicyConnection,
  direction: Direction,
): Omit<RuleMatch, 'index'> | undefined {
  const { source, sourceAddress, destination, destinationAddress } = connection;
  const [side, address] =
    direction === 'ingress' ? [source, sourceAddress] : [destination, destinationAddress];
  const peer = peers === 'all' ? -1 : peers.findIndex((each) => peerMatches(each, namespace, side, address));
  const port = ports === 'all' ? -1 : ports.findIndex((each) => portMatches(each, connection));
  if ((peer === -1 && peers !== 'all') || (port === -1 && ports !== 'all')) return undefined;
  return { peer: peers === 'all' ? undefined : peer, port: ports === 'all' ? undefined : port };
}

function peerMatches(peer: PolicyPeer, namespace: string, side: PolicySide, address: string): boolean {
  if (peer.kind === 'ipBlock') {
    const parsed = parseAddress(address);
    return parsed !== undefined && blockContains(peer, parsed);
  }
  // A Pod of the host network has its node's address: nothing shows that it is a Pod.
  if (side.kind !== 'pod' || side.hostNetwork) return false;
  const isNamespace =
    peer.namespaceSelector === undefined
      ? side.namespace === namespace
      : matchesLabels(peer.namespaceSelector, side.namespaceLabels);
  return isNamespace && (peer.podSelector === undefined || matchesLabels(peer.podSelector, side.labels));
}

/** Whether an address is in the block, and in none of its exceptions. */
function blockContains(
  { cidr, except }: Extract<PolicyPeer, { kind: 'ipBlock' }>,
  address: ParsedAddress,
): boolean {
  return (
    cidr !== undefined &&
    cidrContains(cidr, address) &&
    !except.some((excepted) => cidrContains(excepted, address))
  );
}

/**
 * Names are those of the destination's containers: each Pod may have another number. The address of a Pod of the host
 * network is its node's, and does not show the Pod.
 */
function portMatches(wanted: PolicyPort, { destination, protocol, port }: PolicyConnection): boolean {
  if (wanted.protocol !== protocol) return false;
  if (wanted.port === 'any') return true;
  if (!('name' in wanted.port)) return wanted.port.first <= port && port <= wanted.port.last;
  const { name } = wanted.port;
  return (
    destination.kind === 'pod' &&
    !destination.hostNetwork &&
    destination.ports.some((each) => each.name === name && each.protocol === protocol && each.port === port)
  );
}

/** Peers of policies as questions to Pods, and as parts of the names of sets. */

/** Whether a peer of a policy of the namespace matches a Pod. */
export function podMatcher(peer: PolicyPeer, namespace: string): (pod: PolicyPod) => boolean {
  if (peer.kind !== 'pods') return () => false;
  const { namespaceSelector, podSelector } = peer;
  return (pod) =>
    (namespaceSelector === undefined
      ? pod.namespace === namespace
      : matchesLabels(namespaceSelector, pod.namespaceLabels)) &&
    (podSelector === undefined || matchesLabels(podSelector, pod.labels));
}

/** The only namespace that a peer has Pods of; undefined: it may have Pods of all. */
export function onlyNamespaceOf(peer: PolicyPeer, namespace: string): string | undefined {
  return peer.kind === 'pods' && peer.namespaceSelector === undefined ? namespace : undefined;
}

/** The parts by which two peers are the same: Pods, or a block of addresses. */
export function peerKey(peer: PolicyPeer, namespace: string): readonly string[] {
  if (peer.kind !== 'pods') {
    return ['block', peer.cidr?.canonical ?? '', ...peer.except.map(({ canonical }) => canonical)];
  }
  const { namespaceSelector, podSelector } = peer;
  const of = namespaceSelector === undefined ? ['in', namespace] : ['of', selectorText(namespaceSelector)];
  return [...of, podSelector === undefined ? 'all' : selectorText(podSelector)];
}

function selectorText(selector: ParsedLabelSelector): string {
  return selector === 'nothing' ? '!' : `=${renderLabelSelector(selector)}`;
}

/** The addresses of a Pod of one family. */
export function podAddressesOf({ addresses }: AddressedPod, family: IPFamily): readonly string[] {
  return addresses.filter((address) => isOfFamily(address, family));
}

/** Whether an address is of the family. */
export function isOfFamily(address: string, family: IPFamily): boolean {
  return address.includes(':') === (family === 'IPv6');
}

/** Whether a block has an address. */
export function blockHas(peer: PolicyPeer, address: string): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && peer.kind === 'ipBlock' && blockContains(peer, parsed);
}

/** Peers of policies as questions to Pods, and as parts of the names of sets. */
import { type IPFamily, parseAddress } from '../../objects/address.ts';
import { matchesLabels, type ParsedLabelSelector, renderLabelSelector } from '../../objects/labels/labels.ts';
import type { PolicyPod } from './connection.ts';
import type { PolicyPeer } from './network-policy.ts';
import type { AddressedPod } from './pod-set.ts';
import { blockContains } from './policy-verdict.ts';

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
export function scopeOf(peer: PolicyPeer, namespace: string): string | undefined {
  return peer.kind === 'pods' && peer.namespaceSelector === undefined ? namespace : undefined;
}

/** The parts by which two peers are the same: Pods, or a block of addresses. */
export function podsOf(peer: PolicyPeer, namespace: string): readonly string[] {
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
  return addresses.filter((address) => isOf(address, family));
}

/** Whether an address is of the family. */
export function isOf(address: string, family: IPFamily): boolean {
  return address.includes(':') === (family === 'IPv6');
}

/** Whether a block has an address. */
export function blockHas(peer: PolicyPeer, address: string): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && peer.kind === 'ipBlock' && blockContains(peer, parsed);
}

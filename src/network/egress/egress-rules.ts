import { type IPFamily, parseAddress } from '../../objects/address.ts';
import { matchesLabels, type ParsedLabelSelector, readLabelSelector } from '../../objects/labels/labels.ts';
import type { EgressIP } from '../../objects/types/ovn.ts';
import type { PolicyPod } from '../policy/connection.ts';

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

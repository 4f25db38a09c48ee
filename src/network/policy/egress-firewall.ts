/** EgressFirewall of OVN-Kubernetes: what Pods of a namespace reach outside of the cluster (`pkg/ovn/egressfirewall.go`). */
import { parseAddress, type ParsedAddress, type ParsedCidr, parseCidr } from '../../objects/address.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { Labels } from '../../objects/labels/label-requirement.ts';
import {
  compileLabelSelector,
  matchesLabels,
  type ParsedLabelSelector,
} from '../../objects/labels/labels.ts';
import type { EgressFirewall, EgressFirewallRule } from '../../objects/types/ovn.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** One EgressFirewall, parsed; with problems, none of its rules is in force. */
export interface FirewallRules {
  readonly key: ObjectKey;
  readonly namespace: string;
  readonly rules: readonly FirewallRule[];
  readonly problems: readonly string[];
}

/** One rule; the first that matches decides. */
export interface FirewallRule {
  readonly allow: boolean;
  /** Undefined: every protocol and port. Port 0: every port of the protocol. */
  readonly ports: readonly { readonly protocol: string; readonly port: number }[] | undefined;
  readonly to:
    | { readonly kind: 'cidr'; readonly cidr: ParsedCidr }
    | { readonly kind: 'nodes'; readonly selector: ParsedLabelSelector }
    | { readonly kind: 'name'; readonly name: string };
}

/** The objects that rules refer to. */
export interface FirewallSurroundings {
  /** The ranges of Pods: no rule is about what is in them. */
  readonly clusterCidrs: readonly ParsedCidr[];
  readonly nodes: readonly { readonly labels: Labels; readonly addresses: readonly string[] }[];
  /** Addresses by DNS name, in lower case and without a dot at the end. A name that is not there was not found. */
  readonly names: ReadonlyMap<string, readonly string[]>;
}

/** The verdict of an EgressFirewall on a connection. */
export interface FirewallVerdict {
  readonly allowed: boolean;
  readonly reason: 'InClusterNetwork' | 'RuleMatches' | 'NoRuleMatches' | 'NotInForce';
  /** The rule that decided. */
  readonly rule: number | undefined;
  /** The first rule before that one which would say the opposite, if its name, that was not found, had the address. */
  readonly notFound: number | undefined;
}

/** Rules behind this one have no priority left (`egressFirewallStartPriority`). */
const maxRules = 8000;
/** The only name that an EgressFirewall may have. */
const onlyName = 'default';

/** Reads an EgressFirewall: one rule that does not parse keeps all of them out of force. */
export function firewallRules(firewall: EgressFirewall): FirewallRules {
  const problems: string[] = [];
  const { name, namespace = '' } = firewall.metadata;
  const given = firewall.spec.egress ?? [];
  if (name !== onlyName) problems.push(`an EgressFirewall has to be called ${onlyName}`);
  const rules = given.slice(0, maxRules + 1).flatMap((rule) => {
    const problem = problemOf(rule);
    if (problem === undefined) return readRule(rule) ?? [];
    problems.push(
      `cannot create EgressFirewall Rule to destination ${rule.to.cidrSelector ?? ''} for namespace ${namespace}: ${problem}`,
    );
    return [];
  });
  if (given.length > maxRules + 1) {
    problems.push(
      `egressFirewall for namespace ${namespace} has too many rules, max allowed number is ${maxRules}`,
    );
  }
  return { key: keyOf(firewall), namespace, rules: problems.length > 0 ? [] : rules, problems };
}

/** Why a rule cannot be made, in OVN-Kubernetes' words (`pkg/util/egressfirewall.go`); undefined: it can. */
function problemOf({ to: { cidrSelector, dnsName, nodeSelector } }: EgressFirewallRule): string | undefined {
  if (dnsName !== undefined) {
    return dnsName.includes('*')
      ? `wildcard dns name is not supported as rule destination, ${dnsName}`
      : undefined;
  }
  if (cidrSelector !== undefined) {
    return parseCidr(cidrSelector) === undefined ? `invalid CIDR address: ${cidrSelector}` : undefined;
  }
  if (nodeSelector === undefined) return 'one of cidrSelector, dnsName and nodeSelector is required';
  try {
    compileLabelSelector(nodeSelector);
    return undefined;
  } catch (error) {
    const why = errorMessage(error);
    return `rule destination has invalid node selector, err: ${why}`;
  }
}

function readRule({ type, ports, to }: EgressFirewallRule): FirewallRule | undefined {
  const target = readTarget(to);
  // Entries of other protocols are passed over; a rule with none left matches no port.
  return target === undefined
    ? undefined
    : {
        allow: type === 'Allow',
        // The schema asks for a port; objects may be older than it.
        ports:
          ports === undefined || ports.length === 0
            ? undefined
            : ports.map(({ protocol, port = 0 }) => ({ protocol, port })),
        to: target,
      };
}

function readTarget({
  cidrSelector,
  dnsName,
  nodeSelector,
}: EgressFirewallRule['to']): FirewallRule['to'] | undefined {
  if (dnsName !== undefined) return { kind: 'name', name: dnsName.toLowerCase().replace(/\.$/, '') };
  const cidr = cidrSelector === undefined ? undefined : parseCidr(cidrSelector);
  if (cidr !== undefined) return { kind: 'cidr', cidr };
  return nodeSelector === undefined
    ? undefined
    : { kind: 'nodes', selector: compileLabelSelector(nodeSelector) };
}

/** Judges a connection of a Pod of the firewall's namespace that is not in its node's network. */
export function firewallVerdict(
  { rules, problems }: FirewallRules,
  connection: { readonly destinationAddress: string; readonly protocol: Protocol; readonly port: number },
  surroundings: FirewallSurroundings,
): FirewallVerdict {
  const undecided = { allowed: true, rule: undefined, notFound: undefined };
  if (problems.length > 0) return { ...undecided, reason: 'NotInForce' };
  const address = parseAddress(connection.destinationAddress);
  if (address === undefined || surroundings.clusterCidrs.some((cidr) => cidrContains(cidr, address))) {
    return { ...undecided, reason: 'InClusterNetwork' };
  }
  const index = rules.findIndex(
    (rule) => hasPort(rule, connection) && reaches(rule.to, address, surroundings),
  );
  const found = rules[index];
  const allowed = found?.allow ?? true;
  const doubt = rules
    .slice(0, found === undefined ? rules.length : index)
    .findIndex(
      (rule) =>
        rule.allow !== allowed &&
        rule.to.kind === 'name' &&
        !surroundings.names.has(rule.to.name) &&
        hasPort(rule, connection),
    );
  const notFound = doubt === -1 ? undefined : doubt;
  return found === undefined
    ? { allowed, reason: 'NoRuleMatches', rule: undefined, notFound }
    : { allowed, reason: 'RuleMatches', rule: index, notFound };
}

function hasPort(
  { ports }: FirewallRule,
  wanted: { readonly protocol: Protocol; readonly port: number },
): boolean {
  return (
    ports === undefined ||
    ports.some(({ protocol, port }) => protocol === wanted.protocol && (port === 0 || port === wanted.port))
  );
}

function reaches(
  to: FirewallRule['to'],
  address: ParsedAddress,
  surroundings: FirewallSurroundings,
): boolean {
  const isOne = (texts: readonly string[]): boolean =>
    texts.some((text) => parseAddress(text)?.canonical === address.canonical);
  switch (to.kind) {
    case 'cidr':
      return cidrContains(to.cidr, address);
    case 'nodes':
      return surroundings.nodes.some(
        ({ labels, addresses }) => matchesLabels(to.selector, labels) && isOne(addresses),
      );
    case 'name':
      return isOne(surroundings.names.get(to.name) ?? []);
  }
}

import {
  parseAddress,
  type ParsedAddress,
  type ParsedCidr,
  parseCidr,
  addressBits,
  formatAddress,
  type IPFamily,
  ipFamilies,
} from '../../objects/address.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Labels } from '../../objects/selectors/label-selector.ts';
import {
  compileLabelSelector,
  matchesLabels,
  type ParsedLabelSelector,
} from '../../objects/selectors/labels.ts';
import type { EgressFirewall, EgressFirewallRule } from '../../objects/types/openshift.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import { errorMessage } from '../../objects/status.ts';
import { jsonEqual } from '../../objects/json.ts';
import { mergeSpans, type Span } from '../../objects/address.ts';
import { portRanges, type FilterRule, type FilterSet } from './policy-plan.ts';

/** EgressFirewall of OVN-Kubernetes: what Pods of a namespace reach outside of the cluster (`pkg/ovn/egressfirewall.go`). */

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

/** EgressFirewalls as chains and sets of a node's filter. */

/** One chain for all Pods of a namespace, and the sets that it names. */
export interface FirewallFilter {
  readonly chain: string;
  readonly rules: readonly FilterRule[];
  readonly sets: ReadonlyMap<string, FilterSet>;
}

/** Neighbouring rules with the same action and ports: their order does not matter. */
interface Step {
  readonly allow: boolean;
  /** Elements of a set of ports; undefined: every protocol and port. */
  readonly ports: readonly string[] | undefined;
  readonly to: Record<IPFamily, Span[]>;
}

/** Ranges of one set: it is written by one message, which may not be larger than a socket's buffer. */
const rangesPerSet = 1000;

/** The filter of an EgressFirewall; undefined: none. @param hash never the same for two texts, and valid in names. */
export function firewallFilter(
  { rules }: FirewallRules,
  surroundings: FirewallSurroundings,
  hash: (text: string) => string,
): FirewallFilter | undefined {
  const steps = stepsOf(rules, surroundings);
  if (steps.length === 0) return undefined;
  const sets = new Map<string, FilterSet>();
  const named = (prefix: string, set: FilterSet): string => {
    const name = `${prefix}-${hash(JSON.stringify([...set.elements]))}`;
    sets.set(name, set);
    return name;
  };
  const filter = [
    { allow: true, ports: undefined, to: spansOf(surroundings.clusterCidrs) },
    ...steps,
  ].flatMap(({ allow, ports, to }) =>
    ipFamilies.flatMap((family) =>
      chunks(mergeSpans(to[family])).map((spans): FilterRule => {
        const elements = new Set(spans.map((span) => rangeText(span, family)));
        return {
          ...{ kind: 'firewall', allow, family },
          to: named('ranges', { kind: 'range', family, elements }),
          ports: ports && named('ports', { kind: 'port', family: undefined, elements: new Set(ports) }),
        };
      }),
    ),
  );
  return { chain: `firewall-${hash(JSON.stringify(filter))}`, rules: filter, sets };
}

function stepsOf(rules: readonly FirewallRule[], surroundings: FirewallSurroundings): readonly Step[] {
  const steps: Step[] = [];
  for (const rule of rules) {
    const to = targetOf(rule, surroundings);
    const ports = portsOf(rule);
    if (ports?.length === 0 || ipFamilies.every((family) => to[family].length === 0)) continue;
    const last = steps.at(-1);
    if (last === undefined || last.allow !== rule.allow || !jsonEqual(last.ports, ports)) {
      steps.push({ allow: rule.allow, ports, to });
    } else {
      for (const family of ipFamilies) for (const span of to[family]) last.to[family].push(span);
    }
  }
  return steps;
}

/** Entries of protocols that are none are passed over. */
function portsOf({ ports }: FirewallRule): readonly string[] | undefined {
  return (
    ports &&
    portRanges(
      ports.flatMap(({ protocol, port }) =>
        protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP'
          ? [{ protocol, first: port, last: port === 0 ? 65_535 : port }]
          : [],
      ),
    )
  );
}

function targetOf({ to }: FirewallRule, { nodes, names }: FirewallSurroundings): Record<IPFamily, Span[]> {
  switch (to.kind) {
    case 'cidr':
      return spansOf([to.cidr]);
    case 'nodes':
      return addressSpans(
        nodes.flatMap(({ labels, addresses }) => (matchesLabels(to.selector, labels) ? addresses : [])),
      );
    case 'name':
      return addressSpans(names.get(to.name) ?? []);
  }
}

function addressSpans(texts: readonly string[]): Record<IPFamily, Span[]> {
  const spans: Record<IPFamily, Span[]> = { IPv4: [], IPv6: [] };
  for (const { family, value } of texts.flatMap((text) => parseAddress(text) ?? [])) {
    spans[family].push({ first: value, last: value });
  }
  return spans;
}

function spansOf(cidrs: readonly ParsedCidr[]): Record<IPFamily, Span[]> {
  const spans: Record<IPFamily, Span[]> = { IPv4: [], IPv6: [] };
  for (const { family, network, prefixLength } of cidrs) {
    const size = 1n << BigInt(addressBits(family) - prefixLength);
    spans[family].push({ first: network, last: network + size - 1n });
  }
  return spans;
}

function rangeText({ first, last }: Span, family: IPFamily): string {
  return `${formatAddress(family, first)}-${formatAddress(family, last)}`;
}

function chunks(spans: readonly Span[]): readonly (readonly Span[])[] {
  const count = Math.ceil(spans.length / rangesPerSet);
  return Array.from({ length: count }, (_, i) => spans.slice(i * rangesPerSet, (i + 1) * rangesPerSet));
}

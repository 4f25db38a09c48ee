/** EgressFirewalls as chains and sets of a node's filter. */
import {
  addressBits,
  formatAddress,
  type IPFamily,
  type ParsedCidr,
  parseAddress,
  ipFamilies,
} from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import { matchesLabels } from '../../objects/labels/labels.ts';
import { mergeSpans, type Span } from '../../objects/spans.ts';
import type { FirewallRule, FirewallRules, FirewallSurroundings } from './egress-firewall.ts';
import { portRanges } from './filter-ranges.ts';
import type { FilterRule, FilterSet } from './policy-plan.ts';

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

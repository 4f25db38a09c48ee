/** The table `inet servicenet-policy` in nft's JSON: what is always there, and what a plan brings. */
import type { Direction } from '../../network/policy/network-policy.ts';
import type { FilterRule, FilterSet, FilterStage } from '../../network/policy/policy-plan.ts';
import {
  type Command,
  concat,
  field,
  goto,
  jump,
  match,
  type NftExpression,
  type NftFamily,
  verdictOf,
} from '../nftables/elements.ts';
import { type DeniedSet, deniedSetsText, recordDenied } from '../nftables/denied.ts';
import { nftFamily } from '../nftables/writer.ts';

/** Ours alone. */
export const policyTable = { family: 'inet', name: 'servicenet-policy' } as const;

const inTable = { family: policyTable.family, table: policyTable.name };

/** By the address of a Pod of the node, where a connection to (ingress) or from it (egress) is judged. */
export const subjectMaps = [
  'ingress-4',
  'ingress-6',
  'egress-4',
  'egress-6',
  'firewall-4',
  'firewall-6',
] as const;

/** The map that has an address. */
export function subjectMap(stage: FilterStage, address: string): (typeof subjectMaps)[number] {
  return `${stage}-${address.includes(':') ? '6' : '4'}`;
}

/** nft's name of a family. */
const protocols: readonly {
  readonly suffix: '4' | '6';
  readonly family: NftFamily;
  readonly type: string;
}[] = [
  { suffix: '4', family: 'ip', type: 'ipv4_addr' },
  { suffix: '6', family: 'ip6', type: 'ipv6_addr' },
];

/**
 * Policies are about what the node forwards, and about what its Pods send to itself. What the node itself sends is not
 * filtered: a node always reaches its Pods, as the probes of its kubelet need it. Egress comes first, then ingress: what
 * one allows the other sees.
 */
const hooks = [
  { name: 'forward-egress', hook: 'forward', prio: 10, stage: 'egress' },
  { name: 'input-egress', hook: 'input', prio: 10, stage: 'egress' },
  { name: 'forward-firewall', hook: 'forward', prio: 15, stage: 'firewall' },
  { name: 'input-firewall', hook: 'input', prio: 15, stage: 'firewall' },
  { name: 'forward-ingress', hook: 'forward', prio: 20, stage: 'ingress' },
] as const;

const icmpv6Type: NftExpression = { payload: { protocol: 'icmpv6', field: 'type' } };

/**
 * Without these, a Pod and its node, and Pods that share a bridge, do not find each other (RFC 4861): they belong to no
 * connection. Nothing routes them: receivers check their hop limit.
 */
const neighbourDiscovery = [
  'nd-router-solicit',
  'nd-router-advert',
  'nd-neighbor-solicit',
  'nd-neighbor-advert',
];

const accept = { accept: null } as const;

/** The packets that the table drops, where they are recorded. */
export const deniedByPolicies: readonly DeniedSet[] = protocols.map(({ suffix, family }) => ({
  ...{ family: policyTable.family, table: policyTable.name },
  ...{ name: `dropped-${suffix}`, packets: family },
}));

/** Records a packet, and drops it. */
const droppedChain = 'dropped';

/** The table with nothing but the sets of dropped packets, in nft's own language. */
export function recordingTableText(): string {
  const name = `${policyTable.family} ${policyTable.name}`;
  return `add table ${name}\ndelete table ${name}\nadd table ${name}\n${deniedSetsText(deniedByPolicies)}`;
}

/** What drops a packet. */
function dropOf(recordsDrops: boolean): NftExpression {
  return recordsDrops ? goto(droppedChain) : { drop: null };
}

/** The table as it is without a policy. @param recordsDrops after {@link recordingTableText}. */
export function baseCommands(recordsDrops = false): Command[] {
  const maps = subjectMaps.map((name) => ({
    add: { map: { ...inTable, name, type: name.endsWith('4') ? 'ipv4_addr' : 'ipv6_addr', map: 'verdict' } },
  }));
  const self = protocols.map(({ suffix, type }) => ({
    add: { set: { ...inTable, name: `self-${suffix}`, type: [type, type] } },
  }));
  const chains = hooks.flatMap((each): Command[] => {
    const { name, hook, prio } = each;
    const chain = { ...inTable, name, type: 'filter', hook, prio, policy: 'accept' };
    return [{ add: { chain } }, ...hookRules(each).map((expr) => addRule(name, ...expr))];
  });
  const table = { table: policyTable };
  const recording = recordsDrops
    ? [
        { add: { chain: { ...inTable, name: droppedChain } } },
        ...deniedByPolicies.map((set) => recordDenied(set, droppedChain)),
        addRule(droppedChain, { drop: null }),
      ]
    : // Anew, where a part of it was missing.
      [{ add: table }, { delete: table }, { add: table }];
  return [...recording, ...maps, ...self, ...chains];
}

function hookRules({ stage }: (typeof hooks)[number]): readonly (readonly NftExpression[])[] {
  return [
    [match({ ct: { key: 'state' } }, ['established', 'related'], 'in'), accept],
    [match(icmpv6Type, { set: neighbourDiscovery }), accept],
    ...protocols.map(({ suffix, family }) => {
      const ends = concat(field.sourceAddress(family), field.destinationAddress(family));
      return [match(ends, `@self-${suffix}`), accept];
    }),
    ...protocols.map(({ suffix, family }) => [
      verdictOf(subjectAddress(stage, family), `${stage}-${suffix}`),
    ]),
  ];
}

function subjectAddress(stage: FilterStage, family: NftFamily): NftExpression {
  return stage === 'ingress' ? field.destinationAddress(family) : field.sourceAddress(family);
}

function otherAddress(direction: Direction, family: NftFamily): NftExpression {
  return direction === 'ingress' ? field.sourceAddress(family) : field.destinationAddress(family);
}

function addRule(chain: string, ...expr: readonly NftExpression[]): Command {
  return { add: { rule: { ...inTable, chain, expr } } };
}

/** The chains that are always there, and how many rules each has. */
export function baseChains(recordsDrops: boolean): ReadonlyMap<string, number> {
  return new Map([
    ...hooks.map((each) => [each.name, hookRules(each).length] as const),
    ...(recordsDrops ? [[droppedChain, deniedByPolicies.length + 1] as const] : []),
  ]);
}

/** Whether the elements of a set are a part of its name. */
export function isFixed({ kind }: FilterSet): boolean {
  return kind === 'range' || kind === 'port';
}

/** Makes a set with elements. */
export function createSet(name: string, { kind, family }: FilterSet, elements: ReadonlySet<string>): Command {
  const address = family === 'IPv6' ? 'ipv6_addr' : 'ipv4_addr';
  const type = {
    address,
    range: address,
    port: ['inet_proto', 'inet_service'],
    endpoint: [address, 'inet_proto', 'inet_service'],
    self: [address, address],
  }[kind];
  const flags = kind === 'range' || kind === 'port' ? { flags: ['interval'] } : {};
  const elem = [...elements].map((element) =>
    kind === 'port' ? portElement(element) : rangeElement(element),
  );
  return { add: { set: { ...inTable, name, type, ...flags, ...(elem.length === 0 ? {} : { elem }) } } };
}

/** An element of a set that follows Pods. */
export function podElement({ kind }: FilterSet, element: string): NftExpression {
  if (kind === 'self') return concat(element, element);
  if (kind === 'address') return element;
  const [address = '', protocol = '', port = ''] = element.split(' ');
  return concat(address, protocol, Number(port));
}

function rangeElement(element: string): NftExpression {
  const [first = '', last = ''] = element.split('-');
  return first === last ? first : { range: [first, last] };
}

function portElement(element: string): NftExpression {
  const [protocol = '', ports = ''] = element.split(' ');
  const [first = 0, last = 0] = ports.split('-').map(Number);
  return concat(protocol, first === last ? first : { range: [first, last] });
}

/** Adds elements to a set or map, or deletes them. */
export function elementCommand(
  verb: 'add' | 'delete',
  name: string,
  elem: readonly NftExpression[],
): Command {
  return { [verb]: { element: { ...inTable, name, elem } } };
}

/** An element of a {@link subjectMaps}. */
export function subjectElement(address: string, chain: string): NftExpression {
  return [address, goto(chain)];
}

/** Makes a chain with its rules. */
export function chainCommands(
  name: string,
  rules: readonly FilterRule[],
  sets: ReadonlyMap<string, FilterSet>,
  recordsDrops = false,
): Command[] {
  return [
    { add: { chain: { ...inTable, name } } },
    // There may be a part of it.
    { flush: { chain: { ...inTable, name } } },
    ...rules.map((rule) => addRule(name, ...expressions(rule, sets, dropOf(recordsDrops)))),
  ];
}

function expressions(
  rule: FilterRule,
  sets: ReadonlyMap<string, FilterSet>,
  drop: NftExpression,
): readonly NftExpression[] {
  switch (rule.kind) {
    case 'policy':
      return [jump(rule.chain)];
    case 'drop':
      return [drop];
    case 'firewall': {
      const { allow, family, to, ports } = rule;
      const reaches = match(field.destinationAddress(nftFamily(family)), `@${to}`);
      const verdict: NftExpression = allow ? accept : drop;
      return [reaches, ...(ports === undefined ? [] : [portMatch(ports)]), verdict];
    }
    case 'allow': {
      const { direction, family, peers, ports, endpoints } = rule;
      const matches: NftExpression[] = [];
      const own = family === undefined ? undefined : nftFamily(family);
      if (own !== undefined) {
        if (peers !== undefined) matches.push(match(otherAddress(direction, own), `@${peers}`));
        if (endpoints !== undefined) {
          const key = concat(field.destinationAddress(own), field.protocol, field.destinationPort);
          matches.push(match(key, `@${endpoints}`));
        }
        if (peers === undefined && endpoints === undefined) {
          matches.push(match({ meta: { key: 'nfproto' } }, family === 'IPv4' ? 'ipv4' : 'ipv6'));
        }
      }
      if (ports !== undefined && sets.has(ports)) {
        matches.push(portMatch(ports));
      }
      return [...matches, accept];
    }
  }
}

function portMatch(set: string): NftExpression {
  return match(concat(field.protocol, field.destinationPort), `@${set}`);
}

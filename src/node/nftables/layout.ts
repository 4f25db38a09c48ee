import { createHash } from 'node:crypto';
import type { PodDetection } from '../../network/forwarding/forwarding-plan.ts';
import {
  addChain,
  addRule,
  assign,
  type Command,
  concat,
  droppedChain,
  type NftExpression,
  field,
  goto,
  jump,
  match,
  type NftFamily,
  tableName,
  verdictOf,
} from './elements.ts';
import { type DeniedSet, deniedSetsText, recordDenied } from './denied.ts';
import { masqueradeBit } from './marks.ts';
import { addSet, endpointMaps, type SetName, setNames, tableText } from './elements.ts';

/** The inputs of a node's rules besides their sets. */
export interface LayoutOptions {
  readonly family: NftFamily;
  /** The bits of the packet mark that are ours ({@link masqueradeBit}). */
  readonly markMask: number;
  readonly podDetection: PodDetection | undefined;
  /** Node ports answer at every address of the node but loopback's, or at those of the set `node-port-ips`. */
  readonly nodePortsEverywhere: boolean;
  /** The kernel counts what it drops and refuses ({@link deniedServices}). */
  readonly recordsDrops: boolean;
}

/** The packets that the table of a family drops or refuses, where they are recorded. */
export function deniedServices(family: NftFamily): readonly [dropped: DeniedSet, refused: DeniedSet] {
  const inTable = { family, table: tableName, packets: family };
  return [
    { ...inTable, name: 'dropped' },
    { ...inTable, name: 'refused' },
  ];
}

const newConnection = match({ ct: { key: 'state' } }, 'new', 'in');

/** The packet comes from an address of the node. */
const fromNode = match({ fib: { result: 'type', flags: 'saddr' } }, 'local');

/** The statements that match packets from Pods, or from all others. None where Pods cannot be recognised. */
export function podSource(
  { family, podDetection }: LayoutOptions,
  op: '==' | '!=',
): NftExpression | undefined {
  switch (podDetection?.by) {
    case undefined:
      return undefined;
    case 'cidr':
      return match(field.sourceAddress(family), '@pod-cidrs', op);
    case 'bridge':
      return match({ meta: { key: 'iifname' } }, podDetection.interface, op);
    case 'interfacePrefix':
      return match({ meta: { key: 'iifname' } }, `${podDetection.prefix}*`, op);
  }
}

/** The key of the sets called `…-ips`. */
export function serviceIPKey(family: NftFamily): readonly NftExpression[] {
  return [field.destinationAddress(family), field.protocol, field.destinationPort];
}

/** The key of the sets called `…-node-ports`. */
export const nodePortKey: readonly NftExpression[] = [field.protocol, field.destinationPort];

/**
 * The table without what Services put into it. A packet's way:
 *
 *     prerouting, output   -110  drop what the source ranges of its destination leave out
 *                          -100  services: destination → pick-…: draw a slot, DNAT to its endpoint
 *                           -99  take the slot off the connection mark
 *     input, forward, output 0   no DNAT happened: reject, drop, or it is no Service's
 *     postrouting            100 masquerade by mark; hairpin
 *
 * Only the first packet of a connection comes through the chains of type nat.
 */
export function tableLayout(options: LayoutOptions): TableLayout {
  const { family, recordsDrops } = options;
  const text = `${tableText(family)}${recordsDrops ? deniedSetsText(deniedServices(family)) : ''}`;
  const commands = tableCommands(options);
  const hash = createHash('sha256').update(text).update(JSON.stringify(commands)).digest('hex').slice(0, 16);
  const name = `layout-${hash}`;
  return { name, text, commands: [...commands, addChain(family, name)] };
}

/** The table is made by two transactions: first the text, then the commands. The chain of the name comes last. */
export interface TableLayout {
  /** The name of an empty chain, by which the version of the rules is recognised. */
  readonly name: string;
  readonly text: string;
  readonly commands: readonly Command[];
}

function tableCommands(options: LayoutOptions): readonly Command[] {
  const { family, recordsDrops } = options;
  const [dropped, refused] = deniedServices(family);
  const drop = recordsDrops ? goto(droppedChain) : { drop: null };
  const chain = (name: string, ...rules: readonly (readonly NftExpression[])[]): readonly Command[] => [
    addChain(family, name),
    ...rules.map((rule) => addRule(family, name, ...rule)),
  ];
  const hook = (
    [name, type, at, priority]: readonly [string, 'filter' | 'nat', string, number],
    ...rules: readonly (readonly NftExpression[])[]
  ): readonly Command[] => [
    {
      add: {
        chain: { family, table: tableName, name, type, hook: at, prio: priority, policy: 'accept' },
      },
    },
    ...rules.map((rule) => addRule(family, name, ...rule)),
  ];
  const toServiceIP = concat(...serviceIPKey(family));
  const toNodePort = concat(...nodePortKey);
  const atNodePort = nodePortAddress(options);
  const destination = field.destinationAddress(family);
  const bySource = (what: 'service-ips' | 'node-ports', key: NftExpression): readonly Command[] => {
    const pods = podSource(options, '==');
    return [
      ...chain(`${what}-from-pods`, [verdictOf(key, `${what}-from-pods`)]),
      ...chain(`${what}-from-node`, [verdictOf(key, `${what}-from-node`)]),
      ...chain(
        `${what}-by-source`,
        ...(pods === undefined ? [] : [[pods, goto(`${what}-from-pods`)]]),
        [fromNode, goto(`${what}-from-node`)],
        [verdictOf(key, `${what}-from-others`)],
      ),
    ];
  };
  const refusal =
    family === 'ip'
      ? { reject: { type: 'icmp', expr: 'port-unreachable' } }
      : { reject: { type: 'icmpv6', expr: 'port-unreachable' } };
  const masquerade = masqueradeBit(options.markMask);
  return [
    ...setNames.filter((name) => !isEndpointMap(name)).map((name) => addSet(family, name)),
    addSet(family, 'affinity'),

    ...(recordsDrops
      ? [
          addChain(family, droppedChain),
          recordDenied(dropped, droppedChain),
          addRule(family, droppedChain, { drop: null }),
        ]
      : []),
    ...chain('source-ranges', [
      match(toServiceIP, '@restricted-service-ips'),
      match(concat(...serviceIPKey(family), field.sourceAddress(family)), '@allowed-sources', '!='),
      drop,
    ]),
    ...hook(['filter-prerouting', 'filter', 'prerouting', -110], [newConnection, jump('source-ranges')]),
    ...hook(['filter-output-before-nat', 'filter', 'output', -110], [newConnection, jump('source-ranges')]),

    ...bySource('service-ips', toServiceIP),
    ...bySource('node-ports', toNodePort),
    ...chain(
      'services',
      [verdictOf(toServiceIP, 'service-ips')],
      [...atNodePort, verdictOf(toNodePort, 'node-ports')],
    ),
    ...hook(['nat-prerouting', 'nat', 'prerouting', -100], [jump('services')]),
    ...hook(['nat-output', 'nat', 'output', -100], [jump('services')]),

    ...chain('forget-slot', [
      match({ ct: { key: 'status' } }, 'dnat', 'in'),
      assign(field.connectionMark, 0),
    ]),
    ...hook(
      ['filter-prerouting-after-nat', 'filter', 'prerouting', -99],
      [newConnection, jump('forget-slot')],
    ),
    ...hook(['filter-output-after-nat', 'filter', 'output', -99], [newConnection, jump('forget-slot')]),

    // While connect() holds its socket, Linux takes a reset, but an ICMPv6 error only with the next SYN, a second later.
    addChain(family, 'reject'),
    ...(recordsDrops ? [recordDenied(refused, 'reject')] : []),
    addRule(family, 'reject', match(field.protocol, 'tcp'), { reject: { type: 'tcp reset' } }),
    addRule(family, 'reject', refusal),
    ...chain('refused', [verdictOf(toServiceIP, 'refused-service-ips')]),
    ...chain(
      'unused-cluster-ips',
      [match(destination, '@cluster-ips'), goto('reject')],
      [match(destination, '@service-cidrs'), drop],
    ),
    ...hook(
      ['filter-input', 'filter', 'input', 0],
      [newConnection, ...atNodePort, verdictOf(toNodePort, 'refused-node-ports')],
      [newConnection, jump('refused')],
    ),
    ...hook(
      ['filter-forward', 'filter', 'forward', 0],
      [newConnection, jump('refused')],
      [newConnection, jump('unused-cluster-ips')],
    ),
    ...hook(
      ['filter-output', 'filter', 'output', 0],
      [newConnection, jump('refused')],
      [newConnection, jump('unused-cluster-ips')],
    ),

    ...hook(
      ['nat-postrouting', 'nat', 'postrouting', 100],
      [
        match({ '&': [field.packetMark, masquerade] }, 0, '!='),
        assign(field.packetMark, { '&': [field.packetMark, ~masquerade >>> 0] }),
        { masquerade: { flags: 'fully-random' } },
      ],
      [
        match({ ct: { key: 'status' } }, 'dnat', 'in'),
        match(concat(field.sourceAddress(family), destination), '@hairpin-ips'),
        { masquerade: { flags: 'fully-random' } },
      ],
    ),
  ];
}

/** The statements that match packets to the addresses at which node ports answer. */
function nodePortAddress({ family, nodePortsEverywhere }: LayoutOptions): readonly NftExpression[] {
  const destination = field.destinationAddress(family);
  if (!nodePortsEverywhere) return [match(destination, '@node-port-ips')];
  const loopback = family === 'ip' ? { prefix: { addr: '127.0.0.0', len: 8 } } : '::1';
  return [match({ fib: { result: 'type', flags: 'daddr' } }, 'local'), match(destination, loopback, '!=')];
}

function isEndpointMap(name: SetName): boolean {
  return endpointMaps.some((other) => other === name);
}

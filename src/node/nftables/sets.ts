import type { Command, NftFamily } from './commands.ts';
import { tableName } from './commands.ts';

/** The type of a key's or value's part; `address` is the table's family's. */
type Part = 'address' | 'inet_proto' | 'inet_service' | 'mark';

interface SetDefinition {
  readonly key: readonly Part[];
  /** A map: to what. Otherwise it is a set. */
  readonly value?: readonly Part[] | 'verdict';
  /** Elements may be prefixes. */
  readonly interval?: true;
  /** Packets add elements, with a timeout each. */
  readonly timeout?: true;
}

/** Elements of a set that packets fill: beyond, clients draw anew each time. About 100 bytes each. */
const clientLimit = 1 << 20;

const serviceIP = ['address', 'inet_proto', 'inet_service'] as const;
const nodePort = ['inet_proto', 'inet_service'] as const;
const endpoint = ['address', 'inet_service'] as const;

/**
 * The sets and maps that hold what changes with Services: the rules around them never change. What is called
 * `…-ips` is keyed by the packet's destination, what is called `…-node-ports` by its protocol and port alone.
 */
export const setDefinitions = {
  /** → the chain that picks an endpoint. */
  'service-ips': { key: serviceIP, value: 'verdict' },
  'node-ports': { key: nodePort, value: 'verdict' },

  /** The same for destinations that treat sources in different ways. */
  'service-ips-from-pods': { key: serviceIP, value: 'verdict' },
  'service-ips-from-node': { key: serviceIP, value: 'verdict' },
  'service-ips-from-others': { key: serviceIP, value: 'verdict' },
  'node-ports-from-pods': { key: nodePort, value: 'verdict' },
  'node-ports-from-node': { key: nodePort, value: 'verdict' },
  'node-ports-from-others': { key: nodePort, value: 'verdict' },

  /** Destination and slot → endpoint. Slots go from 0 to one less than there are endpoints. */
  'cluster-endpoints': { key: [...serviceIP, 'mark'], value: endpoint },
  'local-endpoints': { key: [...serviceIP, 'mark'], value: endpoint },
  'node-port-cluster-endpoints': { key: [...nodePort, 'mark'], value: endpoint },
  'node-port-local-endpoints': { key: [...nodePort, 'mark'], value: endpoint },

  /**
   * Destination and slot → the mark of the endpoint (`endpoint-mark.ts`), for Service ports with session affinity: their
   * endpoints are filed under these marks above, instead of slots.
   */
  'cluster-endpoint-marks': { key: [...serviceIP, 'mark'], value: ['mark'] },
  'local-endpoint-marks': { key: [...serviceIP, 'mark'], value: ['mark'] },
  'node-port-cluster-endpoint-marks': { key: [...nodePort, 'mark'], value: ['mark'] },
  'node-port-local-endpoint-marks': { key: [...nodePort, 'mark'], value: ['mark'] },
  /** Clients and the endpoints that they keep. The kernel fills it. */
  affinity: { key: ['address', 'mark'], timeout: true },

  /** → reject or drop, for connections that no chain above has led to an endpoint. */
  'refused-service-ips': { key: serviceIP, value: 'verdict' },
  'refused-node-ports': { key: nodePort, value: 'verdict' },

  /** Destinations that only some sources may connect to, and these sources. */
  'restricted-service-ips': { key: serviceIP },
  'allowed-sources': { key: [...serviceIP, 'address'], interval: true },

  /** Every cluster IP: other ports of it are rejected. */
  'cluster-ips': { key: ['address'] },
  /** Packets to these ranges that are no Service's are dropped. */
  'service-cidrs': { key: ['address'], interval: true },
  /** The addresses of node ports; unused if they answer at every address of the node. */
  'node-port-ips': { key: ['address'] },
  /** Sources that are Pods, where they are known by address. */
  'pod-cidrs': { key: ['address'], interval: true },
  /** Local endpoints, twice: a connection from such an address to itself is masqueraded. */
  'hairpin-ips': { key: ['address', 'address'] },
} as const satisfies Record<string, SetDefinition>;

export type SetName = Exclude<keyof typeof setDefinitions, 'affinity'>;

/** The maps whose values are addresses and ports. */
export const endpointMaps = [
  'cluster-endpoints',
  'local-endpoints',
  'node-port-cluster-endpoints',
  'node-port-local-endpoints',
] as const satisfies readonly SetName[];

/** Those that we fill, in the order in which elements are added: endpoints come before the verdicts that lead to them. */
export const setNames: readonly SetName[] = [
  ...endpointMaps,
  ...(['cluster-endpoint-marks', 'local-endpoint-marks'] as const),
  ...(['node-port-cluster-endpoint-marks', 'node-port-local-endpoint-marks'] as const),
  ...(['hairpin-ips', 'allowed-sources', 'restricted-service-ips'] as const),
  ...(['pod-cidrs', 'node-port-ips', 'cluster-ips', 'service-cidrs'] as const),
  ...(['service-ips-from-pods', 'service-ips-from-node', 'service-ips-from-others', 'service-ips'] as const),
  ...(['node-ports-from-pods', 'node-ports-from-node', 'node-ports-from-others', 'node-ports'] as const),
  ...(['refused-service-ips', 'refused-node-ports'] as const),
];

/** With the one that packets fill. */
export const allSetNames: readonly string[] = [...setNames, 'affinity'];

export function isNftMap(name: SetName): boolean {
  return 'value' in setDefinitions[name];
}

/** Whether keys begin with a destination: an address, protocol and port, or a protocol and node port. */
export function ofDestinations(name: SetName): boolean {
  const { key }: SetDefinition = setDefinitions[name];
  return key.includes('inet_service');
}

/** Which part of a key is a protocol; -1: none. */
export function protocolIndex(name: SetName): number {
  const { key }: SetDefinition = setDefinitions[name];
  return key.indexOf('inet_proto');
}

/** Whether elements may be prefixes. */
export function hasRanges(name: SetName): boolean {
  const { interval }: SetDefinition = setDefinitions[name];
  return interval === true;
}

/** Whether values are chains, or verdicts. */
export function isVerdictMap(name: SetName): boolean {
  const { value }: SetDefinition = setDefinitions[name];
  return value === 'verdict';
}

/** The command that makes a set, or a map to verdicts or marks. */
export function addSet(family: NftFamily, name: keyof typeof setDefinitions): Command {
  const { key, value, interval, timeout }: SetDefinition = setDefinitions[name];
  const types = key.map((part) => typeOf(family, part));
  const common = {
    family,
    table: tableName,
    name,
    type: types.length === 1 ? (types[0] ?? '') : types,
    ...(interval === true ? { flags: ['interval'] } : {}),
    ...(timeout === true ? { flags: ['timeout'], size: clientLimit } : {}),
  };
  if (value === undefined) return { add: { set: common } };
  return { add: { map: { ...common, map: value === 'verdict' ? value : typesText(family, value) } } };
}

/**
 * Makes the table with its maps to endpoints only. This alone is text: up to nft 1.0.9, JSON cannot declare maps to
 * concatenations.
 */
export function tableText(family: NftFamily): string {
  const maps = endpointMaps.map((name) => {
    const { key, value } = setDefinitions[name];
    const type = `${typesText(family, key)} : ${typesText(family, value)}`;
    return `add map ${family} ${tableName} ${name} { type ${type}; }\n`;
  });
  return `add table ${family} ${tableName}\n${maps.join('')}`;
}

function typesText(family: NftFamily, parts: readonly Part[]): string {
  return parts.map((part) => typeOf(family, part)).join(' . ');
}

function typeOf(family: NftFamily, part: Part): string {
  if (part !== 'address') return part;
  return family === 'ip' ? 'ipv4_addr' : 'ipv6_addr';
}

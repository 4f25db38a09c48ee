import { isRecord, isStringList } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { AddressPoolSpec } from '../../objects/types/servicenet.ts';
import { readYaml } from '../../client/yaml.ts';
import { parseAddressRange } from '../../allocation/address-range.ts';
import { formatAddress } from '../../objects/address.ts';
import {
  importedAddresses,
  maxEntries,
  noteOthers,
  objectsAt,
  selectorsAt,
  asPools,
  type ForeignPool,
  namespacesNamed,
  type Imported,
} from './imported.ts';
import {
  Advertisements,
  announcingOfConfig,
  bgpOf,
  importPeers,
  laterName,
  type MetalLBAnnouncing,
} from './metallb-announce.ts';
import { errorMessage } from '../../objects/status.ts';

const known = ['addresses', 'autoAssign', 'avoidBuggyIPs', 'serviceAllocation'];
const knownOfAllocation = ['priority', 'namespaces', 'namespaceSelectors', 'serviceSelectors'];

/** MetalLB's IPAddressPools (`metallb.io/v1beta1`) as AddressPools, with how they are announced; and its BGPPeers. */
export function importMetalLB(objects: readonly KubeObject[], announcing: MetalLBAnnouncing): Imported {
  const notes: string[] = [];
  const { peers, names } = importPeers(announcing.bgpPeers, notes);
  const advertisements = new Advertisements(announcing, names, notes);
  const pools = objects.map((object): ForeignPool => {
    const { name, spec } = poolOf(object.metadata.name ?? '', Reflect.get(object, 'spec'), notes);
    return { name, spec: { ...spec, announce: advertisements.of(object) } };
  });
  const made = asPools(pools, notes);
  // An advertisement for several pools is read for each of them.
  return { pools: made, peers, notes: [...new Set(notes)] };
}

/**
 * The ConfigMap of MetalLB before 0.13 as AddressPools: the `address-pools` of its `config`.
 *
 * @throws {Error} when its `config` is not valid YAML.
 */
export function importMetalLBConfig(configMap: KubeObject): Imported {
  const data: unknown = Reflect.get(configMap, 'data');
  const text: unknown = isRecord(data) ? data['config'] : undefined;
  const config = configOf(typeof text === 'string' ? text : '');
  const settings = isRecord(config) ? config : {};
  const notes: string[] = [];
  noteOthers('config', settings, ['address-pools', 'peers', 'bgp-communities'], notes);
  const { peers, communities } = announcingOfConfig(settings, notes);
  const pools = objectsAt(settings['address-pools']).map((pool) => {
    const {
      name,
      addresses,
      'auto-assign': autoAssign,
      'avoid-buggy-ips': avoidBuggyIPs,
      protocol,
      'bgp-advertisements': advertisements,
      ...others
    } = pool;
    const owner = typeof name === 'string' ? name : '';
    const { spec } = poolOf(owner, { addresses, autoAssign, avoidBuggyIPs, ...others }, notes);
    const [first = {}, ...more] = objectsAt(advertisements);
    if (more.length > 0)
      notes.push(`${owner}: has several bgp-advertisements; an AddressPool has one: the first was imported`);
    const renamed = Object.fromEntries(Object.entries(first).map(([key, value]) => [laterName(key), value]));
    if (protocol !== 'bgp') return { name: owner, spec: { ...spec, announce: { layer2: {} } } };
    const bgp = bgpOf(owner, renamed, communities, peers.names, notes);
    return { name: owner, spec: { ...spec, announce: bgp === undefined ? {} : { bgp } } };
  });
  if (pools.length === 0) notes.push('config: has no address-pools');
  return { pools: asPools(pools, notes), peers: peers.peers, notes };
}

function configOf(text: string): unknown {
  try {
    return readYaml(text)[0];
  } catch (error) {
    const why = errorMessage(error);
    throw new Error(`the ConfigMap's config is no YAML: ${why}`, { cause: error });
  }
}

function poolOf(name: string, value: unknown, notes: string[]): ForeignPool {
  const spec = isRecord(value) ? value : {};
  const addresses = importedAddresses(name, isStringList(spec['addresses']) ? spec['addresses'] : [], notes);
  noteOthers(name, spec, known, notes);
  const exclude = spec['avoidBuggyIPs'] === true ? buggyAddresses(name, addresses, notes) : [];
  const allocation = isRecord(spec['serviceAllocation']) ? spec['serviceAllocation'] : {};
  noteOthers(name, allocation, knownOfAllocation, notes);
  const pool: AddressPoolSpec = {
    addresses,
    ...(spec['autoAssign'] === false ? { autoAssign: false } : {}),
    ...(exclude.length > 0 ? { exclude } : {}),
    ...priorityOf(allocation['priority']),
    ...selectorsOf(name, allocation, notes),
  };
  return { name, spec: pool };
}

/** The IPv4 addresses of a pool that end in .0 or .255 (MetalLB `internal/allocator`, `ipConfusesBuggyFirmwares`). */
function buggyAddresses(name: string, addresses: readonly string[], notes: string[]): string[] {
  const found = new Set<string>();
  for (const text of addresses) {
    const range = parseAddressRange(text);
    if (range?.family !== 'IPv4') continue;
    for (let net = range.first & ~0xffn; net <= range.last; net += 0x100n) {
      for (const value of [net, net + 0xffn]) {
        if (value < range.first || value > range.last) continue;
        if (found.size === maxEntries) {
          const what = `avoidBuggyIPs: only the first ${maxEntries} addresses`;
          notes.push(
            `${name}: ${what} that end in .0 or .255 are in spec.exclude, which has no more entries`,
          );
          return [...found];
        }
        found.add(formatAddress('IPv4', value));
      }
    }
  }
  return [...found];
}

/** In MetalLB 1 is the highest priority and 0 is none; an AddressPool with a higher number is tried first. */
function priorityOf(value: unknown): Pick<AddressPoolSpec, 'priority'> {
  return typeof value === 'number' && Number.isInteger(value) && value > 0
    ? { priority: 1_000_000 - Math.min(value, 1_000_000) }
    : {};
}

function selectorsOf(
  name: string,
  allocation: Record<string, unknown>,
  notes: string[],
): Pick<AddressPoolSpec, 'namespaceSelector' | 'serviceSelector'> {
  const names = isStringList(allocation['namespaces']) ? allocation['namespaces'] : [];
  const byNamespace = selectorsAt(allocation['namespaceSelectors']);
  if (names.length > 0) byNamespace.unshift(namespacesNamed(names));
  const byService = selectorsAt(allocation['serviceSelectors']);
  for (const [what, list] of [
    ['namespaces', byNamespace],
    ['Services', byService],
  ] as const) {
    if (list.length > 1) {
      notes.push(
        `${name}: selects ${what} by any of ${list.length} selectors; an AddressPool has one, so only the first was taken`,
      );
    }
  }
  const [namespaceSelector] = byNamespace;
  const [serviceSelector] = byService;
  return {
    ...(namespaceSelector === undefined ? {} : { namespaceSelector }),
    ...(serviceSelector === undefined ? {} : { serviceSelector }),
  };
}

import { isRecord, isStringList } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { AddressPoolSpec } from '../../objects/servicenet.ts';
import { readYaml } from '../../client/yaml.ts';
import { importedAddresses, noteOthers, objectsAt, selectorsAt } from './foreign.ts';
import { asPools, type ForeignPool, namespacesNamed, type Imported } from './imported.ts';

const known = ['addresses', 'autoAssign', 'avoidBuggyIPs', 'serviceAllocation'];
const knownOfAllocation = ['priority', 'namespaces', 'namespaceSelectors', 'serviceSelectors'];

/** MetalLB's IPAddressPools (`metallb.io/v1beta1`) as AddressPools. */
export function importMetalLB(objects: readonly KubeObject[]): Imported {
  const notes: string[] = [];
  const pools = objects.map((object) =>
    poolOf(object.metadata.name ?? '', Reflect.get(object, 'spec'), notes),
  );
  return { pools: asPools(pools, notes), notes };
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
  noteOthers('config', settings, ['address-pools'], notes);
  const pools = objectsAt(settings['address-pools']).map((pool) => {
    const {
      name,
      addresses,
      'auto-assign': autoAssign,
      'avoid-buggy-ips': avoidBuggyIPs,
      protocol: _protocol,
      ...others
    } = pool;
    // protocol and bgp-advertisements are about announcing, which pools do not configure.
    const spec = { addresses, autoAssign, avoidBuggyIPs, ...others };
    return poolOf(typeof name === 'string' ? name : '', spec, notes);
  });
  if (pools.length === 0) notes.push('config: has no address-pools');
  return { pools: asPools(pools, notes), notes };
}

function configOf(text: string): unknown {
  try {
    return readYaml(text)[0];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`the ConfigMap's config is no YAML: ${why}`, { cause: error });
  }
}

function poolOf(name: string, value: unknown, notes: string[]): ForeignPool {
  const spec = isRecord(value) ? value : {};
  const addresses = importedAddresses(name, isStringList(spec['addresses']) ? spec['addresses'] : [], notes);
  noteOthers(name, spec, known, notes);
  if (spec['avoidBuggyIPs'] === true) {
    notes.push(
      `${name}: avoidBuggyIPs became avoidFirstLast; list further .0 and .255 addresses in spec.exclude`,
    );
  }
  const allocation = isRecord(spec['serviceAllocation']) ? spec['serviceAllocation'] : {};
  noteOthers(name, allocation, knownOfAllocation, notes);
  const pool: AddressPoolSpec = {
    addresses,
    ...(spec['autoAssign'] === false ? { autoAssign: false } : {}),
    ...(spec['avoidBuggyIPs'] === true ? { avoidFirstLast: true } : {}),
    ...priorityOf(allocation['priority']),
    ...selectorsOf(name, allocation, notes),
  };
  return { name, spec: pool };
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

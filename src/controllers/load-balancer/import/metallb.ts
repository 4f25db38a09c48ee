import { isRecord, isStringList } from '../../../objects/json.ts';
import type { KubeObject, LabelSelector } from '../../../objects/meta.ts';
import type { AddressPool, AddressPoolSpec } from '../pool.ts';
import { isLabelSelector, objectsAt } from './foreign.ts';
import { namespacesNamed, poolObject, type Imported } from './imported.ts';

/** MetalLB's IPAddressPools (`metallb.io/v1beta1`) as AddressPools. */
export function importMetalLB(objects: readonly KubeObject[]): Imported {
  const notes: string[] = [];
  return { pools: objects.map((object) => poolOf(object, notes)), notes };
}

function poolOf(object: KubeObject, notes: string[]): AddressPool {
  const name = object.metadata.name ?? '';
  const value: unknown = Reflect.get(object, 'spec');
  const spec = isRecord(value) ? value : {};
  const addresses = isStringList(spec['addresses']) ? spec['addresses'] : [];
  if (addresses.length === 0) notes.push(`${name}: has no addresses`);
  if (spec['avoidBuggyIPs'] === true) {
    notes.push(
      `${name}: avoidBuggyIPs became avoidFirstLast; list further .0 and .255 addresses in spec.exclude`,
    );
  }
  const allocation = isRecord(spec['serviceAllocation']) ? spec['serviceAllocation'] : {};
  return poolObject(name, {
    addresses,
    ...(spec['autoAssign'] === false ? { autoAssign: false } : {}),
    ...(spec['avoidBuggyIPs'] === true ? { avoidFirstLast: true } : {}),
    ...priorityOf(allocation['priority']),
    ...selectorsOf(name, allocation, notes),
  });
}

/** 1 is MetalLB's best and 0 its worst; ours is higher first. */
function priorityOf(value: unknown): Pick<AddressPoolSpec, 'priority'> {
  return typeof value === 'number' && value > 0 ? { priority: 1_000_000 - Math.min(value, 1_000_000) } : {};
}

function selectorsOf(
  name: string,
  allocation: Record<string, unknown>,
  notes: string[],
): Pick<AddressPoolSpec, 'namespaceSelector' | 'serviceSelector'> {
  const names = isStringList(allocation['namespaces']) ? allocation['namespaces'] : [];
  const byNamespace: LabelSelector[] = objectsAt(allocation['namespaceSelectors']).filter(isLabelSelector);
  if (names.length > 0) byNamespace.unshift(namespacesNamed(names));
  const byService = objectsAt(allocation['serviceSelectors']).filter(isLabelSelector);
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

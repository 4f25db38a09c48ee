import { isRecord } from '../../objects/json.ts';
import type { KubeObject, LabelSelector } from '../../objects/meta.ts';
import type { AddressPoolSpec } from '../../objects/types/servicenet.ts';
import { importedAddresses, noteOthers, objectsAt, readSelector } from './foreign.ts';
import { asPools, type ForeignPool, namespacesNamed, type Imported } from './imported.ts';

/** Labels for the namespace and the name of a Service in Cilium's selectors. */
const pseudoNamespace = 'io.kubernetes.service.namespace';
const pseudoName = 'io.kubernetes.service.name';

const known = ['blocks', 'cidrs', 'disabled', 'allowFirstLastIPs', 'serviceSelector'];

/** Cilium's CiliumLoadBalancerIPPools (`cilium.io/v2`, `v2alpha1`) as AddressPools. */
export function importCilium(objects: readonly KubeObject[]): Imported {
  const notes: string[] = [];
  const pools = objects.map((object) => poolOf(object, notes));
  return { pools: asPools(pools, notes), peers: [], notes };
}

function poolOf(object: KubeObject, notes: string[]): ForeignPool {
  const name = object.metadata.name ?? '';
  const value: unknown = Reflect.get(object, 'spec');
  const spec = isRecord(value) ? value : {};
  const blocks = objectsAt(spec['blocks'] ?? spec['cidrs']).flatMap((block) => blockText(block));
  const addresses = importedAddresses(name, blocks, notes);
  noteOthers(name, spec, known, notes);
  if (spec['disabled'] === true)
    notes.push(`${name}: was disabled; it became a pool that assigns only on request`);
  const pool: AddressPoolSpec = {
    addresses,
    ...(spec['disabled'] === true ? { autoAssign: false } : {}),
    ...(spec['allowFirstLastIPs'] === 'No' ? { avoidFirstLast: true } : {}),
    ...selectorsOf(name, spec['serviceSelector'], notes),
  };
  return { name, spec: pool };
}

function blockText({ cidr, start, stop }: Record<string, unknown>): string[] {
  if (typeof cidr === 'string') return [cidr];
  if (typeof start !== 'string') return [];
  return [`${start}-${typeof stop === 'string' && stop !== '' ? stop : start}`];
}

function selectorsOf(
  name: string,
  value: unknown,
  notes: string[],
): Pick<AddressPoolSpec, 'namespaceSelector' | 'serviceSelector'> {
  if (value === undefined || value === null) return {};
  const selector = readSelector(value);
  const labels = new Map(Object.entries(selector.matchLabels ?? {}));
  const namespace = labels.get(pseudoNamespace);
  labels.delete(pseudoNamespace);
  const namespaces = (selector.matchExpressions ?? []).filter(
    ({ key, operator }) => key === pseudoNamespace && operator === 'In',
  );
  const rest = (selector.matchExpressions ?? []).filter((expression) => !namespaces.includes(expression));
  if (labels.has(pseudoName) || rest.some(({ key }) => key === pseudoName || key === pseudoNamespace)) {
    notes.push(`${name}: selects Services by name; use spec.reservations, or label those Services`);
  }
  const named = [
    ...(namespace === undefined ? [] : [[namespace]]),
    ...namespaces.map(({ values }) => values ?? []),
  ];
  const [first, ...others] = named;
  const names = first?.filter((one) => others.every((list) => list.includes(one)));
  const serviceSelector: LabelSelector = {
    ...(labels.size === 0 ? {} : { matchLabels: Object.fromEntries(labels) }),
    ...(rest.length === 0 ? {} : { matchExpressions: rest }),
  };
  return {
    ...(names === undefined ? {} : { namespaceSelector: namespacesNamed(names) }),
    ...(Object.keys(serviceSelector).length === 0 ? {} : { serviceSelector }),
  };
}

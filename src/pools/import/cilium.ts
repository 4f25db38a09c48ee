import { isRecord } from '../../objects/json.ts';
import type { KubeObject, LabelSelector } from '../../objects/meta.ts';
import type { AddressPool, AddressPoolSpec } from '../../controllers/load-balancer/pool.ts';
import { isLabelSelector, noteOthers, objectsAt } from './foreign.ts';
import { namespacesNamed, poolObject, type Imported } from './imported.ts';

/** The labels by which Cilium selects a Service's own namespace and name. */
const pseudoNamespace = 'io.kubernetes.service.namespace';
const pseudoName = 'io.kubernetes.service.name';

const known = ['blocks', 'cidrs', 'disabled', 'allowFirstLastIPs', 'serviceSelector'];

/** Cilium's CiliumLoadBalancerIPPools (`cilium.io/v2`, `v2alpha1`) as AddressPools. */
export function importCilium(objects: readonly KubeObject[]): Imported {
  const notes: string[] = [];
  return { pools: objects.map((object) => poolOf(object, notes)), notes };
}

function poolOf(object: KubeObject, notes: string[]): AddressPool {
  const name = object.metadata.name ?? '';
  const value: unknown = Reflect.get(object, 'spec');
  const spec = isRecord(value) ? value : {};
  const addresses = objectsAt(spec['blocks'] ?? spec['cidrs']).flatMap((block) => blockText(block));
  noteOthers(name, spec, known, notes);
  if (addresses.length === 0) notes.push(`${name}: has no blocks`);
  if (spec['disabled'] === true)
    notes.push(`${name}: was disabled; it became a pool that assigns only on request`);
  return poolObject(name, {
    addresses,
    ...(spec['disabled'] === true ? { autoAssign: false } : {}),
    ...(spec['allowFirstLastIPs'] === 'No' ? { avoidFirstLast: true } : {}),
    ...selectorsOf(name, spec['serviceSelector'], notes),
  });
}

function blockText({ cidr, start, stop }: Record<string, unknown>): string[] {
  if (typeof cidr === 'string') return [cidr];
  if (typeof start !== 'string') return [];
  return [`${start}-${typeof stop === 'string' && stop !== '' ? stop : start}`];
}

function selectorsOf(
  name: string,
  selector: unknown,
  notes: string[],
): Pick<AddressPoolSpec, 'namespaceSelector' | 'serviceSelector'> {
  if (!isLabelSelector(selector)) return {};
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
  const [first] = namespaces;
  const names = namespace === undefined ? first?.values : [namespace];
  const serviceSelector: LabelSelector = {
    ...(labels.size === 0 ? {} : { matchLabels: Object.fromEntries(labels) }),
    ...(rest.length === 0 ? {} : { matchExpressions: rest }),
  };
  return {
    ...(names === undefined ? {} : { namespaceSelector: namespacesNamed(names) }),
    ...(Object.keys(serviceSelector).length === 0 ? {} : { serviceSelector }),
  };
}

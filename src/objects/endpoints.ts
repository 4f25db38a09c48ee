import { isRecord, isStringList } from './json.ts';
import { type IPFamily, parseAddress } from './address.ts';
import type { ObjectMeta } from './meta.ts';
import type { EndpointAddress, EndpointSubset } from './types/core.generated.ts';
import type { Endpoint, EndpointPort, EndpointSlice } from './types/discovery.generated.ts';

/** The label of an EndpointSlice with the name of its Service. */
export const serviceNameLabel = 'kubernetes.io/service-name';

/** True for subsets in the shape that all readers rely on. */
export function isEndpointSubset(value: unknown): value is EndpointSubset {
  if (!isRecord(value)) return false;
  const { addresses, notReadyAddresses, ports } = value;
  return (
    [addresses, notReadyAddresses].every((list) => isListOf(list, isAddress)) && isListOf(ports, isRecord)
  );
}

function isAddress(value: unknown): value is EndpointAddress {
  if (!isRecord(value) || typeof value['ip'] !== 'string') return false;
  return value['targetRef'] === undefined || isRecord(value['targetRef']);
}

/** True for a list of such items, or none. */
function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.every(isItem));
}

/** Adds what kube-apiserver always sends: both lists, and the conditions of each endpoint. */
export function completeSlice(slice: object): void {
  for (const list of ['endpoints', 'ports']) {
    if (Reflect.get(slice, list) === undefined) Reflect.set(slice, list, null);
  }
  const endpoints: unknown = Reflect.get(slice, 'endpoints');
  if (!Array.isArray(endpoints)) return;
  for (const endpoint of endpoints) if (isRecord(endpoint)) endpoint['conditions'] ??= {};
}

/** True for endpoints in the shape that all readers rely on. */
export function isSliceEndpoint(value: unknown): value is Endpoint {
  if (!isRecord(value) || !isStringList(value['addresses'])) return false;
  const { conditions, targetRef, hints } = value;
  return (
    isRecord(conditions) &&
    (targetRef === undefined || isRecord(targetRef)) &&
    (hints === undefined || isRecord(hints))
  );
}

/**
 * The EndpointSlices of a Service without a selector, for a program that is no Pod: one a family.
 *
 * @param service of which the slices have name, namespace and labels.
 * @param managedBy the value of the label `endpointslice.kubernetes.io/managed-by`.
 * @param addresses where the program answers.
 */
export function slicesWithoutPods(
  { name = '', namespace = '', labels = {} }: ObjectMeta,
  managedBy: string,
  families: readonly IPFamily[],
  addresses: readonly string[],
  ports: readonly EndpointPort[],
): readonly EndpointSlice[] {
  return families.map((family) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${family.toLowerCase()}`,
      namespace,
      labels: {
        ...labels,
        [serviceNameLabel]: name,
        'endpointslice.kubernetes.io/managed-by': managedBy,
      },
    },
    addressType: family,
    endpoints: addresses
      .filter((address) => parseAddress(address)?.family === family)
      .map((address) => ({
        addresses: [address],
        conditions: { ready: true, serving: true, terminating: false },
      })),
    ports: [...ports],
  }));
}

/** The conditions of an endpoint (discovery/v1 EndpointConditions), where a condition that is absent has a meaning. */
type Conditions = Pick<Endpoint, 'conditions'>;

/** Whether an endpoint takes new connections. Absent counts as ready; publishNotReadyAddresses is in it. */
export function isReady({ conditions }: Conditions): boolean {
  return conditions?.ready ?? true;
}

/** Whether an endpoint answers, also while it terminates. Absent counts as serving (kube-proxy, `endpointslicecache.go`). */
export function isServing({ conditions }: Conditions): boolean {
  return conditions?.serving ?? true;
}

/** Whether the Pod of an endpoint is being deleted. Absent: it is not. */
export function isTerminating({ conditions }: Conditions): boolean {
  return conditions?.terminating ?? false;
}

/** Whether an endpoint says that it is ready: only such get topology hints (k8s.io/endpointslice `topologycache`). */
export function saysReady({ conditions }: Conditions): boolean {
  return conditions?.ready === true;
}

/**
 * How well an endpoint serves: 3 takes new connections, 2 those that find none of the former, while it terminates
 * (KEP-1669), 1 only such as it has already, 0 none. Two Pods may have one address: of a host's network while one is
 * replaced, or given out again. Then the one that serves best counts, wherever the other stands.
 */
export function servingRank(endpoint: Conditions): number {
  if (isReady(endpoint)) return 3;
  if (!isServing(endpoint)) return 0;
  return isTerminating(endpoint) ? 2 : 1;
}

/** The endpoints that new connections go to: those that are ready, or, where none is, those that drain. */
export function chosenEndpoints<T>(
  endpoints: readonly T[],
  conditionsOf: (endpoint: T) => Conditions,
): readonly T[] {
  const ready = endpoints.filter((endpoint) => isReady(conditionsOf(endpoint)));
  if (ready.length > 0) return ready;
  return endpoints.filter((endpoint) => servingRank(conditionsOf(endpoint)) === 2);
}

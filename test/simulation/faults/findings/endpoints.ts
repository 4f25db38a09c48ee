import { isIPv6 } from 'node:net';
import { planEndpoints } from '../../../../src/controllers/service-endpoints/endpoints/plan.ts';
import { planSlices } from '../../../../src/controllers/service-endpoints/slices/plan.ts';
import { planMirror } from '../../../../src/controllers/service-endpoints/endpoint-slice-mirroring/plan.ts';
import type {
  EndpointSubset,
  Endpoints,
  Pod,
  Service,
} from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import { skipMirrorLabel } from '../actors/mirrored.ts';
import { keyOf, type Snapshot } from './snapshot.ts';

/** `--max-endpoints-per-slice` of the instances: few, so that there are several slices. */
export const maxEndpointsPerSlice = 4;

const managers = {
  selected: 'endpointslice-controller.k8s.io',
  mirrored: 'endpointslicemirroring-controller.k8s.io',
};

/** Endpoints and slices that are not what Services, Pods and users say: once by what they are for, once by the planners. */
export function endpointsFindings(snapshot: Snapshot, collects: boolean): string[] {
  const { services, pods, endpoints, slices } = snapshot;
  const found: string[] = [];
  const byKey = new Map(services.map((service) => [keyOf(service), service]));
  const endpointsOf = new Map(endpoints.map((object) => [keyOf(object), object]));
  const slicesOf = Map.groupBy(slices, ownerOf);
  for (const [key, service] of byKey) {
    const own = slicesOf.get(key) ?? [];
    const mirrored = own.filter((slice) => isManagedBy(slice, managers.mirrored));
    const object = endpointsOf.get(key);
    const hasSelector = Object.keys(service.spec.selector ?? {}).length > 0;
    if (hasSelector) {
      const selected = selectedBy(service, pods);
      const others = own.filter((slice) => isManagedBy(slice, managers.selected));
      found.push(...unselected(service, selected, object, others));
      found.push(...unplanned(service, selected, object, others));
    }
    const source = hasSelector || object === undefined || isOptedOut(object) ? undefined : object;
    found.push(...unmirrored(key, source, mirrored));
  }
  for (const key of endpointsOf.keys())
    if (!byKey.has(key)) found.push(`${key}: Endpoints without a Service`);
  for (const [key, own] of slicesOf) {
    if (byKey.has(key)) continue;
    for (const slice of own) {
      // Those of the controller itself are the garbage collector's to remove.
      if (collects || isManagedBy(slice, managers.mirrored)) found.push(`${key}: a slice without a Service`);
    }
  }
  return found;
}

/** What differs from the addresses of the Pods, family by family. */
function unselected(
  service: Service,
  pods: readonly Pod[],
  object: Endpoints | undefined,
  slices: readonly EndpointSlice[],
): string[] {
  const key = keyOf(service);
  const families = service.spec.ipFamilies ?? [];
  // It waits for an address: nothing says yet which family it is of.
  if (families.length === 0) return [];
  const wanted = pods.flatMap(({ status }) => {
    const ready =
      status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
    return (status.podIPs ?? []).map(({ ip }) => `${ip} 8080 ${ready ? 'ready' : 'not ready'}`);
  });
  const [primary = ''] = families;
  return [
    ...differing(
      `${key}: Endpoints`,
      wanted.filter((text) => familyOf(text) === primary),
      textsOf(object),
    ),
    ...differing(
      `${key}: slices`,
      wanted.filter((text) => families.includes(familyOf(text))),
      slices.flatMap(textsIn),
    ),
    ...slices
      .filter(({ endpoints }) => (endpoints?.length ?? 0) > maxEndpointsPerSlice)
      .map(() => `${key}: a slice is too long`),
  ];
}

/** What differs from the Endpoints that a user wrote; without any nothing is mirrored. */
function unmirrored(key: string, source: Endpoints | undefined, slices: readonly EndpointSlice[]): string[] {
  const uid = source?.metadata.uid;
  return [
    ...differing(`${key}: mirror`, textsOf(source), slices.flatMap(textsIn)),
    ...slices
      .filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid !== uid)
      .map(() => `${key}: a mirror of other Endpoints`),
    ...(source === undefined ? [] : unplannedMirror(key, source, slices)),
  ];
}

/** Writes that the planners would make now. */
function unplanned(
  service: Service,
  pods: readonly Pod[],
  existing: Endpoints | undefined,
  slices: readonly EndpointSlice[],
): string[] {
  const key = keyOf(service);
  const { write } = planEndpoints({ service, pods, existing, triggerTime: undefined });
  const planned = planSlices({
    service,
    pods,
    existing: slices,
    placeOf: () => ({}),
    zones: undefined,
    hadTopologyHints: false,
    triggerTime: undefined,
    maxPerSlice: maxEndpointsPerSlice,
  });
  const count = planned.create.length + planned.update.length + planned.delete.length;
  return [
    ...(write === 'none' ? [] : [`${key}: its Endpoints are to be written: ${write}`]),
    ...(count === 0 ? [] : [`${key}: its EndpointSlices are to be written`]),
  ];
}

function unplannedMirror(key: string, endpoints: Endpoints, existing: readonly EndpointSlice[]): string[] {
  const planned = planMirror({ endpoints, existing, maxPerSubset: 1000 });
  const count = planned.create.length + planned.update.length + planned.delete.length;
  return count === 0 ? [] : [`${key}: its mirror is to be written`];
}

function differing(what: string, wanted: readonly string[], present: readonly string[]): string[] {
  const [should, is] = [wanted, present].map((list) => [...list].sort().join(', '));
  return should === is ? [] : [`${what} should have [${should ?? ''}], and have [${is ?? ''}]`];
}

function selectedBy({ spec, metadata }: Service, pods: readonly Pod[]): Pod[] {
  const selector = Object.entries(spec.selector ?? {});
  return pods.filter(
    (pod) =>
      pod.metadata.namespace === metadata.namespace &&
      selector.every(([key, value]) => pod.metadata.labels?.[key] === value),
  );
}

/** `address port ready`, each once: what is said to be both ready and not is not (`RepackSubsets`). */
function textsOf(object: Endpoints | undefined): string[] {
  const texts = new Set((object?.subsets ?? []).flatMap(subsetTexts));
  return [...texts].filter((text) => !texts.has(text.replace(/ ready$/, ' not ready')));
}

function subsetTexts({ addresses = [], notReadyAddresses = [], ports = [] }: EndpointSubset): string[] {
  return ports.flatMap(({ port }) => [
    ...addresses.map(({ ip }) => `${canonical(ip)} ${port} ready`),
    ...notReadyAddresses.map(({ ip }) => `${canonical(ip)} ${port} not ready`),
  ]);
}

function textsIn({ endpoints, ports }: EndpointSlice): string[] {
  return (endpoints ?? []).flatMap(({ addresses, conditions }) =>
    (ports ?? []).map(
      ({ port = 0 }) => `${addresses.join()} ${port} ${conditions?.ready === true ? 'ready' : 'not ready'}`,
    ),
  );
}

/** As a URL has it: the same address may be written in several ways. */
function canonical(ip: string): string {
  return isIPv6(ip) ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip;
}

function familyOf(text: string): string {
  return isIPv6(text.split(' ')[0] ?? '') ? 'IPv6' : 'IPv4';
}

function ownerOf({ metadata }: EndpointSlice): string {
  return `${metadata.namespace ?? ''}/${metadata.labels?.['kubernetes.io/service-name'] ?? ''}`;
}

function isManagedBy({ metadata }: EndpointSlice, manager: string): boolean {
  return metadata.labels?.['endpointslice.kubernetes.io/managed-by'] === manager;
}

function isOptedOut({ metadata }: Endpoints): boolean {
  return metadata.labels?.[skipMirrorLabel] === 'true';
}

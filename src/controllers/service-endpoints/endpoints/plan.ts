/**
 * Plans the Endpoints of a Service (pkg/controller/endpoint, `endpoints_controller.go`). Pure: from a Service, Pods and
 * the existing object it computes one write or none.
 */
import { isPodReady, isPodTerminating } from '../../../objects/pods.ts';
import type {
  EndpointAddress,
  EndpointPort,
  Endpoints,
  Pod,
  Service,
  EndpointSubset,
} from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { canonicalIP, mayBackService, podReference, publishedHostname } from '../pod.ts';
import { clusterIPOf, isHeadless, namedFamilies, portsOf } from '../service.ts';
import { resolvePorts } from '../target-port.ts';
import { withTriggerTime } from '../trigger-time.ts';
import { type Offer, repack, sameSubsets } from './repack.ts';
import { headlessLabel } from '../../../network/forwarding/service-key.ts';

const managedByLabel = 'endpoints.kubernetes.io/managed-by';
const managedBy = 'endpoint-controller';
const overCapacityAnnotation = 'endpoints.kubernetes.io/over-capacity';

/** The input of a plan. */
export interface EndpointsInput {
  /** A Service with a selector, not of type ExternalName. */
  service: Service;
  /** The Pods of its namespace that its selector matches. */
  pods: readonly Pod[];
  /** The Endpoints of that name as it is now. */
  existing: Endpoints | undefined;
  /** The trigger time to write with changes (RFC 3339). */
  triggerTime: string | undefined;
}

/** The write of a plan, or none. `update` carries the resourceVersion of the object it replaces. */
export type EndpointsPlan = { write: 'none' } | { write: 'create' | 'update'; endpoints: Endpoints };

/** Plans the Endpoints of one Service. */
export function planEndpoints({ service, pods, existing, triggerTime }: EndpointsInput): EndpointsPlan {
  const all = repack(offersOf(service, pods));
  const cut = truncate(all);
  const subsets = cut ?? all;
  const labels = labelsOf(service);

  const { [overCapacityAnnotation]: capacity, ...annotations } = existing?.metadata.annotations ?? {};
  const wanted = cut === undefined ? undefined : 'truncated';
  if (
    existing !== undefined &&
    capacity === wanted &&
    jsonEqual(withoutHeadless(existing.metadata.labels), withoutHeadless(labels)) &&
    sameSubsets(existing.subsets ?? [], subsets)
  ) {
    return { write: 'none' };
  }

  const { annotations: _replaced, ...metadata } = existing?.metadata ?? {
    name: service.metadata.name ?? '',
    namespace: service.metadata.namespace ?? '',
  };
  const noted = withTriggerTime(
    wanted === undefined ? annotations : { ...annotations, [overCapacityAnnotation]: wanted },
    triggerTime,
  );
  return {
    write: existing === undefined ? 'create' : 'update',
    endpoints: {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { ...metadata, labels, ...(noted === undefined ? {} : { annotations: noted }) },
      ...(subsets.length === 0 ? {} : { subsets }),
    },
  };
}

/** True when an endpoints controller, ours or another, made them: hand-made ones lack the label. */
export function isManagedEndpoints({ metadata }: Endpoints): boolean {
  return metadata.labels?.[managedByLabel] === managedBy;
}

/** The Service's labels, and two of the controller's own. */
function labelsOf(service: Service): Record<string, string> {
  const labels = withoutHeadless(service.metadata.labels);
  if (isHeadless(service)) labels[headlessLabel] = '';
  labels[managedByLabel] = managedBy;
  return labels;
}

/** The headless label alone causes no write: kube-controller-manager leaves it out of its comparison. */
function withoutHeadless(labels: Readonly<Record<string, string>> | undefined): Record<string, string> {
  const { [headlessLabel]: _ignored, ...rest } = labels ?? {};
  return rest;
}

function* offersOf(service: Service, pods: readonly Pod[]): Generator<Offer> {
  const publishAll = service.spec.publishNotReadyAddresses === true;
  const portless = portsOf(service).length === 0;
  if (portless && !isHeadless(service)) return;
  for (const pod of pods) {
    if (!mayBackService(pod) || (isPodTerminating(pod) && !publishAll)) continue;
    const address = addressOf(service, pod);
    if (address === undefined) continue;
    const ready = publishAll || isPodReady(pod);
    if (portless) yield { address, port: undefined, ready };
    for (const resolved of resolvePorts(service, pod)) {
      const { name, ...rest } = resolved;
      const port: EndpointPort = name === '' ? rest : { name, ...rest };
      yield { address, port, ready };
    }
  }
}

/** The Pod's first address of the Service's primary family. */
function addressOf(service: Service, pod: Pod): EndpointAddress | undefined {
  const family = primaryFamily(service, pod);
  for (const { ip } of pod.status.podIPs ?? []) {
    const parsed = canonicalIP(ip);
    if (parsed?.family !== family) continue;
    const hostname = publishedHostname(pod, service);
    return {
      ip: parsed.ip,
      ...(hostname === undefined ? {} : { hostname }),
      // Set even when it is empty: kube-controller-manager sends it too, and the API server refuses the write.
      nodeName: pod.spec.nodeName ?? '',
      targetRef: podReference(pod),
    };
  }
  return undefined;
}

/** `ipFamilies[0]`; without it the family of the clusterIP, or for headless Services that of the Pod's own address. */
function primaryFamily(service: Service, pod: Pod): string {
  const [first] = namedFamilies(service);
  if (first !== undefined) return first;
  return canonicalIP(clusterIPOf(service) ?? pod.status.podIP ?? '')?.family ?? 'IPv4';
}

/** The most addresses that one Endpoints object may hold (`maxCapacity` of the endpoints controller). */
const maxAddresses = 1000;

/**
 * Cuts subsets to at most {@link maxAddresses} addresses: ready ones come before those that are not, and each subset
 * keeps a share in proportion to its size, rounded up, so that the last ones may keep less. Undefined when all fit.
 */
function truncate(subsets: readonly EndpointSubset[]): EndpointSubset[] | undefined {
  let ready = 0;
  let notReady = 0;
  for (const subset of subsets) {
    ready += subset.addresses?.length ?? 0;
    notReady += subset.notReadyAddresses?.length ?? 0;
  }
  if (ready + notReady <= maxAddresses) return undefined;

  const cutReady = ready > maxAddresses;
  const room = cutReady ? maxAddresses : maxAddresses - ready;
  const total = cutReady ? ready : notReady;
  let left = room;
  const result: EndpointSubset[] = [];
  for (const subset of subsets) {
    const { addresses = [], notReadyAddresses = [], ports } = subset;
    const cut = cutReady ? addresses : notReadyAddresses;
    const kept = cut.slice(0, Math.min(left, Math.ceil((cut.length / total) * room)));
    left -= kept.length;
    const keptReady = cutReady ? kept : addresses;
    const keptNotReady = cutReady ? [] : kept;
    // A subset without addresses is invalid.
    if (keptReady.length + keptNotReady.length === 0) continue;
    result.push({
      ...(keptReady.length === 0 ? {} : { addresses: keptReady }),
      ...(keptNotReady.length === 0 ? {} : { notReadyAddresses: keptNotReady }),
      ...(ports === undefined ? {} : { ports }),
    });
  }
  return result;
}

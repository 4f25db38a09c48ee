import { announcedConditionOf } from '../../controllers/announcement-status/plan.ts';
import { type PoolFit, waitsFor } from '../../pools/plan.ts';
import { whyNoEndpoint } from '../../network/forwarding/why-no-endpoint.ts';
import { loadBalancerReadyCondition } from '../../network/announcing/assigned-addresses.ts';
import { readAssigned } from '../../controllers/load-balancer/status.ts';
import { isReady, isTerminating } from '../../objects/endpoints.ts';
import { scalarAt, textAt } from '../../objects/json.ts';
import { conditionOf, keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Pod, Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { sliceRow } from './pods.ts';
import type {
  ServiceColumns,
  ServiceDetailRow,
  ServiceEndpoint,
  ServicePortRow,
  ServiceRow,
} from './rows.ts';
import type { Trouble, Why } from './trouble.ts';

/** Services as rows. */

/** The columns of a Service. Of two families the primary one is counted, as both have the same Pods. */
export function serviceColumns(service: Service, slices: readonly EndpointSlice[]): ServiceColumns {
  const { metadata, spec, status } = service;
  const clusterIPs = spec.clusterIPs ?? [];
  const family = spec.ipFamilies?.[0];
  const counted = slices.filter((slice) => family === undefined || slice.addressType === family);
  let ready = 0;
  let total = 0;
  for (const { endpoints } of counted) {
    for (const endpoint of endpoints ?? []) {
      if (isTerminating(endpoint)) continue;
      total++;
      if (isReady(endpoint)) ready++;
    }
  }
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    type: clusterIPs[0] === 'None' ? 'Headless' : (spec.type ?? ''),
    clusterIP: clusterIPs.join(',') || '<none>',
    external: externalAddresses(spec, status),
    ports: (spec.ports ?? []).map(port).join(',') || '<none>',
    endpoints: spec.type === 'ExternalName' ? undefined : { ready, total },
  };
}

/** The column EXTERNAL-IP, as kubectl prints it. */
export function externalAddresses(spec: Service['spec'], status: Service['status']): string {
  if (spec.type === 'ExternalName') return spec.externalName ?? '';
  const ingress = (status.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip ?? hostname ?? '');
  const all = [...ingress, ...(spec.externalIPs ?? [])];
  if (all.length > 0) return all.join(',');
  return spec.type === 'LoadBalancer' ? '<pending>' : '<none>';
}

/** `80:30080/TCP`. */
export function port({
  port: number,
  nodePort,
  protocol,
}: {
  port: number;
  nodePort?: number;
  protocol?: string;
}): string {
  return `${number}${nodePort === undefined || nodePort === 0 ? '' : `:${nodePort}`}/${protocol ?? 'TCP'}`;
}

/**
 * The row of a Service.
 *
 * @param slices of the Service.
 * @param pods of its namespace; asked only where no endpoint is ready. Undefined: they or the slices are not known, and
 *   so is why there is none.
 */
export function serviceRow(
  service: Service,
  slices: readonly EndpointSlice[],
  pods: (() => readonly Pod[]) | undefined,
): ServiceRow {
  const { metadata, spec } = service;
  const columns = serviceColumns(service, slices);
  const noEndpoint =
    pods === undefined || columns.endpoints === undefined || columns.endpoints.ready > 0
      ? undefined
      : whyNoEndpoint(service, pods(), slices);
  const noAddress = whyNoAddress(service, columns);
  const trouble = noEndpoint ?? noAddress ?? announcementTrouble(service);
  const pools = poolsOf(service);
  return {
    key: keyOf(service),
    ...columns,
    labels: metadata.labels ?? {},
    ...(spec.selector === undefined ? {} : { selector: spec.selector }),
    ...(pools.length === 0 ? {} : { pools }),
    ...(trouble === undefined ? {} : { trouble: { reason: trouble.reason, message: trouble.message } }),
    ...(noEndpoint === undefined ? {} : { whyNoEndpoint: noEndpoint }),
    ...(noAddress === undefined ? {} : { whyNoAddress: noAddress }),
    created: metadata.creationTimestamp ?? '',
  };
}

/** In the words of `servicenet pools`. */
function whyNoAddress(service: Service, { external }: ServiceColumns): Why | undefined {
  if (service.spec.type !== 'LoadBalancer' || external !== '<pending>') return undefined;
  const { reason, message } = waitsFor(service);
  const checks = [
    { isMet: true, message: 'its type is LoadBalancer' },
    ...(loadBalancerReadyCondition(service) === undefined
      ? []
      : [{ isMet: true, message: 'a controller has looked at it' }]),
    { isMet: false, message },
  ];
  return { reason, message, checks };
}

/** Agents that could announce its addresses, and do not. Where none run or none shall, that is the user's choice. */
function announcementTrouble(service: Service): Trouble | undefined {
  const condition = announcedConditionOf(service);
  if (condition?.status !== 'False' || ['NoAgent', 'AnnouncingOff', 'Pending'].includes(condition.reason))
    return undefined;
  return { reason: condition.reason, message: condition.message };
}

function poolsOf(service: Service): string[] {
  const assigned = readAssigned(loadBalancerReadyCondition(service)?.message ?? '');
  return [...new Set(assigned.flatMap(({ origin }) => (origin === undefined ? [] : [origin.pool])))];
}

/** What the view of one Service asks beside its objects. */
export interface DetailSources {
  readonly clusterDomain: string;
  readonly pools: readonly PoolFit[];
  readonly ledToBy: readonly string[];
  /** Of a Pod. */
  readonly troubleOf: (pod: ObjectKey) => Trouble | undefined;
}

const maxNames = 100;

export function serviceDetailRow(
  service: Service,
  slices: readonly EndpointSlice[],
  { clusterDomain, pools, ledToBy, troubleOf }: DetailSources,
): ServiceDetailRow {
  const { metadata, spec, status } = service;
  const own = `${metadata.name ?? ''}.${metadata.namespace ?? ''}.svc.${clusterDomain}`;
  const names = spec.clusterIP === 'None' ? slices.flatMap(({ endpoints }) => namesOf(endpoints, own)) : [];
  const endpoints = slices.flatMap((slice) =>
    sliceRow(slice).endpoints.map((endpoint): ServiceEndpoint => {
      const trouble = endpoint.ready || endpoint.pod === undefined ? undefined : troubleOf(endpoint.pod);
      return { ...endpoint, slice: keyOf(slice), ...(trouble === undefined ? {} : { trouble }) };
    }),
  );
  return {
    key: keyOf(service),
    dnsNames: [own, ...new Set(names)].slice(0, maxNames),
    ports: (spec.ports ?? []).map((one) => portRow(one, slices)),
    endpoints: endpoints.toSorted(
      (a, b) => Number(a.ready) - Number(b.ready) || (a.address < b.address ? -1 : 1),
    ),
    settings: settingsOf(service),
    conditions: (status.conditions ?? []).map(
      ({ type, status: is, reason, message, lastTransitionTime: since }) => ({
        ...{ type, status: is, reason, message, since },
      }),
    ),
    ...(spec.type === 'LoadBalancer' ? { pools } : {}),
    ledToBy,
  };
}

function namesOf(endpoints: EndpointSlice['endpoints'], own: string): readonly string[] {
  return (endpoints ?? []).flatMap(({ hostname }) => (hostname === undefined ? [] : [`${hostname}.${own}`]));
}

function portRow(
  {
    name = '',
    protocol = 'TCP',
    port: number,
    nodePort,
    appProtocol,
    targetPort,
  }: NonNullable<Service['spec']['ports']>[number],
  slices: readonly EndpointSlice[],
): ServicePortRow {
  const found = new Map<number, number>();
  for (const { ports, endpoints } of slices) {
    for (const one of ports ?? []) {
      if ((one.name ?? '') !== name || one.port === undefined) continue;
      found.set(one.port, (found.get(one.port) ?? 0) + (endpoints ?? []).length);
    }
  }
  return {
    ...{ name, protocol, port: number, targetPort: String(targetPort ?? number) },
    ...(nodePort === undefined || nodePort === 0 ? {} : { nodePort }),
    ...(appProtocol === undefined ? {} : { appProtocol }),
    targets: [...found].map(([target, count]) => ({ port: target, endpoints: count })),
  };
}

/** Fields with the values that they have where nothing is set. */
const usual: Readonly<Record<string, string>> = {
  externalTrafficPolicy: 'Cluster',
  internalTrafficPolicy: 'Cluster',
  sessionAffinity: 'None',
  publishNotReadyAddresses: 'false',
  allocateLoadBalancerNodePorts: 'true',
  ipFamilyPolicy: 'SingleStack',
};
const told = [
  ...Object.keys(usual),
  ...['trafficDistribution', 'loadBalancerClass', 'loadBalancerSourceRanges', 'externalIPs'],
  ...['healthCheckNodePort', 'externalName'],
];

function settingsOf(service: Service): ServiceDetailRow['settings'] {
  const fields = told.flatMap((name) => {
    const value: unknown = Reflect.get(service.spec, name);
    if (value === undefined || value === 0) return [];
    const text = Array.isArray(value)
      ? value.join(', ')
      : (scalarAt(service.spec, name) ?? String(value === true));
    return text === '' || text === usual[name] ? [] : [{ field: `spec.${name}`, value: text }];
  });
  const seconds = service.spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  return seconds === undefined
    ? fields
    : [...fields, { field: 'spec.sessionAffinityConfig.clientIP.timeoutSeconds', value: String(seconds) }];
}

/**
 * Since when something is wrong with a Service, by its conditions, or by those of the Pods that it selects.
 *
 * @param pods that explain why it has no endpoint; none where that is not its trouble.
 */
export function troubledSince(service: Service, pods: readonly Pod[]): string | undefined {
  const conditions = [loadBalancerReadyCondition(service), announcedConditionOf(service)];
  const failed = conditions.find((condition) => condition?.status === 'False');
  const wanted = Object.entries(service.spec.selector ?? {});
  const times = pods
    .filter(({ metadata }) => wanted.every(([key, value]) => metadata.labels?.[key] === value))
    .flatMap(({ status }) => textAt(conditionOf(status.conditions, 'Ready'), 'lastTransitionTime') || []);
  return times.toSorted().at(-1) ?? failed?.lastTransitionTime ?? service.metadata.creationTimestamp;
}

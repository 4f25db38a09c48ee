import { conditionOf, joinKey, type OwnerReference } from '../../objects/meta.ts';
import { parseAddress } from '../../objects/address.ts';
import type { Service, ServicePort } from '../../objects/types/core.generated.ts';
import type { EndpointPort } from '../../objects/types/discovery.generated.ts';
import type { Gateway } from '../../objects/types/gateway.ts';
import { loadBalancerReady } from '../announcing/assigned-addresses.ts';
import type { GatewayState, PlannedPort } from './plan.ts';

/**
 * The Service of type LoadBalancer of a Gateway (GEP-1762): its addresses are the Gateway's, and its target ports are where
 * routers listen for each port of the Gateway.
 */

/** On everything that is made for a Gateway (GEP-1762). */
export const gatewayNameLabel = 'gateway.networking.k8s.io/gateway-name';
const classNameLabel = 'gateway.networking.k8s.io/gateway-class-name';
/** Which addresses the Service gets, as for every Service of type LoadBalancer. */
const addressesAnnotation = 'servicenet.dev/addresses';

/** Ports of routers for those of Gateways: below those that systems choose themselves, and below node ports. */
const firstPort = 21_000;
const lastPort = 29_999;

/** `<gateway>-<class>` as the name of a Service: 63 characters, no dots. */
export function gatewayServiceName({ metadata: { name = '' }, spec }: Gateway): string {
  let short = `${name}-${spec.gatewayClassName}`.replaceAll('.', '-').slice(0, 63);
  while (short.endsWith('-')) short = short.slice(0, -1);
  return short;
}

export function isServiceOf({ metadata }: Service, gateway: Gateway): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === gateway.metadata.uid);
}

/** The protocol of a port's Service, and its number: `TCP 80`. */
export function portKey({ protocol, port }: Pick<PlannedPort, 'protocol' | 'port'>): string {
  return `${protocol === 'UDP' ? 'UDP' : 'TCP'} ${port}`;
}

/** Where routers listen for each port of a Gateway, by {@link portKey}. */
export function routerPorts(service: Service | undefined): ReadonlyMap<string, number> {
  return new Map(
    (service?.spec.ports ?? []).flatMap(({ protocol = 'TCP', port, targetPort }) =>
      typeof targetPort === 'number' ? [[`${protocol} ${port}`, targetPort] as const] : [],
    ),
  );
}

/** What is written of a Service, by server-side apply. */
export type AppliedService = Pick<Service, 'apiVersion' | 'kind' | 'metadata'> & {
  readonly spec: Partial<Service['spec']>;
};

/**
 * The Service of a Gateway.
 *
 * @param ports of the plan. Without any there is none.
 * @param present the Service as it is: its ports keep their target ports.
 * @param taken target ports of the Services of other Gateways.
 */
export function gatewayService(
  gateway: Gateway,
  ports: readonly PlannedPort[],
  present: Service | undefined,
  taken: ReadonlySet<number>,
): AppliedService | undefined {
  const { metadata, spec } = gateway;
  if (ports.length === 0) return undefined;
  const kept = routerPorts(present);
  const used = new Set([...taken, ...kept.values()]);
  let next = firstPort;
  const free = (): number => {
    while (used.has(next) && next < lastPort) next++;
    used.add(next);
    return next;
  };
  const asked = (spec.addresses ?? []).flatMap(({ type = 'IPAddress', value = '' }) =>
    type === 'IPAddress' && value !== '' ? [value] : [],
  );
  const { labels, annotations } = spec.infrastructure ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: gatewayServiceName(gateway),
      namespace: metadata.namespace ?? '',
      labels: {
        ...labels,
        [gatewayNameLabel]: metadata.name ?? '',
        [classNameLabel]: spec.gatewayClassName,
      },
      annotations: {
        ...annotations,
        ...(asked.length === 0 ? {} : { [addressesAnnotation]: asked.join(',') }),
      },
      ownerReferences: [ownerOf(gateway)],
    },
    spec: {
      type: 'LoadBalancer',
      ipFamilyPolicy: 'PreferDualStack',
      ports: ports.map((one): ServicePort => {
        const key = portKey(one);
        const [protocol = ''] = key.split(' ');
        return {
          name: key.toLowerCase().replace(' ', '-'),
          protocol,
          port: one.port,
          targetPort: kept.get(key) ?? free(),
        };
      }),
    },
  };
}

/** The ports of the slices of such a Service. */
export function slicePorts({ spec }: AppliedService): EndpointPort[] {
  return (spec.ports ?? []).flatMap(({ name = '', protocol = 'TCP', targetPort }) =>
    typeof targetPort === 'number' ? { name, protocol, port: targetPort } : [],
  );
}

export function ownerOf({ metadata: { name = '', uid = '' } }: Gateway): OwnerReference {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    ...{ name, uid, controller: true, blockOwnerDeletion: true },
  };
}

/** The addresses of a Gateway by its Service. Of those that the Gateway asks for, others are not said. */
export function gatewayState(gateway: Gateway, service: Service | undefined): GatewayState {
  if (service === undefined) return { addresses: [], addressProblem: undefined };
  if (!isServiceOf(service, gateway)) {
    const key = joinKey(service.metadata.namespace ?? '', service.metadata.name ?? '');
    return { addresses: [], addressProblem: `the Service ${key} is there, and not of this Gateway` };
  }
  const asked = (gateway.spec.addresses ?? []).flatMap(({ type = 'IPAddress', value = '' }) =>
    type === 'IPAddress' && value !== '' ? [parseAddress(value)?.canonical ?? value] : [],
  );
  const addresses = (service.status.loadBalancer?.ingress ?? []).flatMap(({ ip = '', hostname = '' }) => {
    if (ip !== '') return { type: 'IPAddress', value: ip } as const;
    return hostname === '' ? [] : ({ type: 'Hostname', value: hostname } as const);
  });
  const said = asked.length === 0 ? addresses : addresses.filter(({ value }) => asked.includes(value));
  const ready = conditionOf(service.status.conditions, loadBalancerReady);
  const missing = asked.filter((value) => !addresses.some((one) => one.value === value));
  const addressProblem =
    ready?.status === 'False' || (missing.length > 0 && addresses.length > 0)
      ? (ready?.message ?? `${missing.join(', ')} cannot be had`)
      : undefined;
  return { addresses: said, addressProblem };
}

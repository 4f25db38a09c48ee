import { chosenEndpoints } from '../../objects/endpoints.ts';
import { compareText } from '../../objects/formats/go-text.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { Endpoint, EndpointSlice } from '../../objects/types/discovery.generated.ts';
import type { Backend, RuleSource } from './rules.ts';

/** Where the requests of a backend may go. */
export interface BackendEndpoints {
  readonly endpoints: readonly HttpEndpoint[];
  /** Whether the Service's port has the appProtocol `kubernetes.io/h2c`: HTTP/2 without TLS. */
  readonly isH2c: boolean;
  /** Why there is none. */
  readonly problem: 'NoService' | 'NoPort' | 'NoEndpoints' | 'ExternalName' | undefined;
}

/** A Pod's port, or what else a slice names. */
export interface HttpEndpoint {
  readonly address: string;
  readonly port: number;
}

const nowhere = (problem: BackendEndpoints['problem']): BackendEndpoints => ({
  endpoints: [],
  isH2c: false,
  problem,
});

/**
 * The endpoints of a backend ({@link chosenEndpoints}).
 *
 * @param kind of the object that names the backend: a Route of OpenShift names a port of the endpoints, all others one of
 *   the Service.
 * @param slices of the Service.
 */
export function backendEndpoints(
  { port }: Pick<Backend, 'port'>,
  kind: RuleSource['kind'],
  service: Pick<Service, 'spec'> | undefined,
  slices: readonly EndpointSlice[],
): BackendEndpoints {
  if (service === undefined) return nowhere('NoService');
  // A name that whoever writes the Service chooses could lead to what only the router reaches.
  if (service.spec.type === 'ExternalName') return nowhere('ExternalName');
  const transport = kind === 'UDPRoute' ? 'UDP' : 'TCP';
  const ports = (service.spec.ports ?? []).filter(({ protocol = 'TCP' }) => protocol === transport);
  const servicePort =
    kind === 'Route'
      ? ports.find((one) => port === undefined || one.name === port || one.targetPort === port)
      : ports.find((one) => one.name === port || one.port === port);
  const byEndpoint = kind === 'Route' && port !== undefined;
  if (servicePort === undefined && !byEndpoint) return nowhere('NoPort');
  const found: (HttpEndpoint & { readonly source: Endpoint })[] = [];
  let hasPort = false;
  for (const slice of slices) {
    if (slice.addressType !== 'IPv4' && slice.addressType !== 'IPv6') continue;
    for (const one of slice.ports ?? []) {
      const isMeant = byEndpoint
        ? one.name === port || one.port === port
        : (one.name ?? '') === (servicePort?.name ?? '');
      if (!isMeant || one.port === undefined || (one.protocol ?? 'TCP') !== transport) continue;
      hasPort = true;
      for (const endpoint of slice.endpoints ?? []) {
        const [address] = endpoint.addresses;
        if (address !== undefined) found.push({ address, port: one.port, source: endpoint });
      }
    }
  }
  const endpoints = distinct(chosenEndpoints(found, ({ source }) => source));
  if (endpoints.length === 0)
    return nowhere(byEndpoint && !hasPort && slices.length > 0 ? 'NoPort' : 'NoEndpoints');
  return { endpoints, isH2c: servicePort?.appProtocol === 'kubernetes.io/h2c', problem: undefined };
}

/** Sorted; slices overlap while their controller moves endpoints between them. */
function distinct(endpoints: readonly HttpEndpoint[]): HttpEndpoint[] {
  const byName = new Map(
    endpoints.map(({ address, port }) => [`${address} ${port}`, { address, port }] as const),
  );
  return [...byName.values()].sort((a, b) => compareText(a.address, b.address) || a.port - b.port);
}

/** The largest weight of an endpoint, as HAProxy has it. */
const maxWeight = 256;

/** A Service among those of a rule. */
export interface WeightedService {
  /** 0: gets nothing. */
  readonly weight: number;
  /** The number of its usable endpoints. */
  readonly endpoints: number;
}

/**
 * The weight of each endpoint of each Service, 0 to 256: a Service's weight is shared by its endpoints, and scaled so that
 * the largest is 256. Fractions are cut, to 1 at least. One active Service alone: 1 (`router.go`,
 * `calculateServiceWeights`, of the router of OpenShift).
 *
 * @returns one weight for each Service, in their order; all 0 where nothing can be reached.
 */
export function endpointWeights(services: readonly WeightedService[]): number[] {
  const shares = services.map(({ weight, endpoints }) => (endpoints > 0 ? weight / endpoints : 0));
  if (shares.filter((share) => share > 0).length === 1) return shares.map((share) => (share > 0 ? 1 : 0));
  const largest = shares.reduce((most, share) => Math.max(most, share), 0);
  return shares.map((share) => (share > 0 ? Math.max(1, Math.floor((share * maxWeight) / largest)) : 0));
}

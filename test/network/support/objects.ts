import type { ForwardingNode, ForwardingOptions } from '../../../src/network/forwarding/node-plan.ts';
import {
  parseAddress,
  type ParsedAddress,
  parseCidr,
  type ParsedCidr,
} from '../../../src/objects/address.ts';
import type { EndpointConditions, EndpointSlice } from '../../../src/objects/types/discovery.generated.ts';
import type { IPFamily } from '../../../src/objects/address.ts';
import type { Service, ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import { defaultMarkMask } from '../../../src/node/nftables/marks.ts';
import type { Addresses } from './network.ts';

/** A Service `shop/<name>`; without a type, a ClusterIP. */
export function service(spec: ServiceSpec, name = 'web', ingress: readonly string[] = []): Service {
  const [clusterIP] = spec.clusterIPs ?? [];
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'shop', name },
    spec: { type: 'ClusterIP', ...(clusterIP === undefined ? {} : { clusterIP }), ...spec },
    status: { loadBalancer: { ingress: ingress.map((ip) => ({ ip })) } },
  };
}

/** An endpoint of a test. */
export interface TestEndpoint extends EndpointConditions {
  readonly address: string;
  readonly node: string;
}

/** A slice of Service `shop/<name>` with one unnamed port of each protocol given. */
export function endpointSlice(
  addressType: IPFamily,
  endpoints: readonly TestEndpoint[],
  port: number,
  name = 'web',
  protocols: readonly string[] = ['TCP'],
): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace: 'shop',
      name: `${name}-${addressType.toLowerCase()}`,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType,
    endpoints: endpoints.map(({ address, node, ...conditions }) => ({
      addresses: [address],
      conditions: { ready: true, ...conditions },
      nodeName: node,
    })),
    ports: protocols.map((protocol) => ({
      name: protocols.length > 1 ? protocol.toLowerCase() : '',
      port,
      protocol,
    })),
  };
}

export function forwardingNode(name: string, { IPv4, IPv6 }: Addresses): ForwardingNode {
  const own = [address(IPv4), address(IPv6)];
  return { name, labels: {}, primaryAddresses: own, interfaceAddresses: own };
}

/** Of the clusters in `network.ts`. */
export const forwardingOptions: ForwardingOptions = {
  families: ['IPv4', 'IPv6'],
  masqueradeAll: false,
  nodePortAddresses: 'primary',
  serviceCIDRs: [cidr('10.96.0.0/16'), cidr('fd00:96::/112')],
  podDetection: { by: 'cidr', cidrs: [cidr('10.244.0.0/16'), cidr('fd00:244::/32')] },
  allowExternalIPs: true,
};

/** What flags say of an agent, for tests that do not change it. */
export const agentOptions = { minSyncMs: 50, fullSyncMs: 3_600_000, markMask: defaultMarkMask } as const;

function address(text: string): ParsedAddress {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(`no address: ${text}`);
  return parsed;
}

function cidr(text: string): ParsedCidr {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`no CIDR: ${text}`);
  return parsed;
}

import type {
  EndpointSlice,
  Endpoint as SliceEndpoint,
} from '../../../../src/objects/types/discovery.generated.ts';
import {
  parseAddress,
  parseCidr,
  type ParsedAddress,
  type ParsedCidr,
} from '../../../../src/objects/address.ts';
import type { ServiceStatus } from '../../../../src/objects/types/core.generated.ts';
import type { Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { ForwardingPlan, ServicePortPlan } from '../../../../src/network/forwarding/forwarding-plan.ts';
import { planForwarding } from '../../../../src/network/forwarding/planner.ts';
import type { ForwardingNode, ForwardingOptions } from '../../../../src/network/forwarding/node-plan.ts';
import { sourceOf, verdictFor, type Verdict } from '../../../../src/network/forwarding/verdict.ts';

/** The picture that the tests share: this node is `here`, in zone `a`; Pods of the cluster are in 10.1.0.0/16. */
export const ownNodeIP = '192.0.2.1';
export const localPodIP = '10.1.0.9';
export const outsideClient = '198.51.100.7';
export const serviceIP = '10.96.0.10';

/** Reads an address that the test knows to be one. */
function address(text: string): ParsedAddress {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(`${text} is no address`);
  return parsed;
}

/** Reads a CIDR that the test knows to be one. */
export function cidr(text: string): ParsedCidr {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`${text} is no CIDR`);
  return parsed;
}

export function node(change: Partial<ForwardingNode> = {}): ForwardingNode {
  return {
    name: 'here',
    labels: { 'topology.kubernetes.io/zone': 'a' },
    primaryAddresses: [address(ownNodeIP), address('2001:db8::1')],
    interfaceAddresses: ['127.0.0.1', ownNodeIP, '203.0.113.1', '::1', '2001:db8::1'].map(address),
    ...change,
  };
}

export function options(change: Partial<ForwardingOptions> = {}): ForwardingOptions {
  return {
    families: ['IPv4', 'IPv6'],
    masqueradeAll: false,
    nodePortAddresses: 'primary',
    serviceCIDRs: [cidr('10.96.0.0/16'), cidr('fd00:96::/108')],
    podDetection: { by: 'cidr', cidrs: [cidr('10.1.0.0/16'), cidr('fd00:1::/64')] },
    allowExternalIPs: true,
    ...change,
  };
}

/** A Service `default/web` with port `http` 80/TCP at {@link serviceIP}. */
export function service(
  spec: Partial<ServiceSpec> = {},
  {
    name = 'web',
    labels = {},
    created = '2026-01-01T00:00:00Z',
    status = {},
  }: { name?: string; labels?: Record<string, string>; created?: string; status?: ServiceStatus } = {},
): Service {
  return {
    metadata: { namespace: 'default', name, labels, creationTimestamp: created },
    spec: {
      type: 'ClusterIP',
      clusterIP: serviceIP,
      clusterIPs: [spec.clusterIP ?? serviceIP],
      ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
      ...spec,
    },
    status,
  };
}

/** Status with load balancer addresses. */
export function ingress(...ips: string[]): ServiceStatus {
  return { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } };
}

/** A slice of `default/web` whose endpoints serve `http` at 8080. */
export function slice(
  endpoints: SliceEndpoint[],
  change: Partial<EndpointSlice> = {},
  { name = 'web-1', of = 'web', labels = {} } = {},
): EndpointSlice {
  return {
    metadata: { namespace: 'default', name, labels: { 'kubernetes.io/service-name': of, ...labels } },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints,
    ...change,
  };
}

/** An endpoint on another node, ready unless its conditions say otherwise. */
export function endpoint(ip: string, change: Partial<SliceEndpoint> = {}): SliceEndpoint {
  return { addresses: [ip], conditions: { ready: true }, nodeName: 'elsewhere', ...change };
}

/** An endpoint on this node. */
export function local(ip: string, change: Partial<SliceEndpoint> = {}): SliceEndpoint {
  return endpoint(ip, { nodeName: 'here', ...change });
}

export const terminatingEndpoint = { ready: false, serving: true, terminating: true };
export const goneEndpoint = { ready: false, serving: false, terminating: true };
export const notReadyEndpoint = { ready: false, serving: true, terminating: false };

export function plan(
  services: Service | Service[],
  slices: EndpointSlice[],
  change: Partial<ForwardingOptions> = {},
  nodeChange: Partial<ForwardingNode> = {},
): ForwardingPlan {
  return planForwarding([services].flat(), slices, node(nodeChange), options(change));
}

/** The only Service port of a plan. */
export function onlyPort(planned: ForwardingPlan): ServicePortPlan {
  const ports = [...planned.services.values()].flatMap((one) => one.ports);
  const [port] = ports;
  if (port === undefined || ports.length > 1) throw new Error(`${ports.length} ports`);
  return port;
}

/** Addresses of a list of endpoints. */
export function ips(endpoints: readonly { readonly address: string }[]): string[] {
  return endpoints.map((one) => one.address);
}

/** What happens to a packet `from` → `to`, in the words of {@link told}. The sender is known by its address. */
export function flow(planned: ForwardingPlan, from: string, to: string, port: number): string {
  const source = sourceOf(planned, from);
  return told(
    verdictFor(planned, {
      source,
      sourceAddress: from,
      protocol: 'TCP',
      destinationAddress: to,
      destinationPort: port,
    }),
  );
}

/** `10.1.0.1:8080, 10.1.1.1:8080*` (`*`: masqueraded), `reject NoEndpoints`, `pass`. */
export function told(verdict: Verdict): string {
  switch (verdict.verdict) {
    case 'forward':
      return verdict.candidates
        .map((one) => `${one.endpoint.address}:${one.endpoint.port}${one.masquerade ? '*' : ''}`)
        .join(', ');
    case 'pass':
      return 'pass';
    default:
      return `${verdict.verdict} ${verdict.reason}`;
  }
}

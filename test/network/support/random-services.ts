import fc from 'fast-check';
import type { IPFamily } from '../../../src/objects/address.ts';
import type { Service, ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../src/objects/types/discovery.generated.ts';
import type { TestNetwork } from './network.ts';
import { endpointSlice, service } from './objects.ts';

const families = ['IPv4', 'IPv6'] as const satisfies readonly IPFamily[];

/** The Pods that random Services may have as endpoints, with their nodes. */
export const pods = { 'a-1': 'node-1', 'b-1': 'node-1', 'c-2': 'node-2' } as const;
const podNames = ['a-1', 'b-1', 'c-2'] as const;
export const targetPorts = [8080, 8081] as const;

const endpoints = fc.uniqueArray(
  fc.record({
    pod: fc.constantFrom(...podNames),
    ready: fc.boolean(),
    serving: fc.boolean(),
    terminating: fc.boolean(),
  }),
  { maxLength: 3, selector: ({ pod }) => pod },
);

/** A Service and its endpoints. */
export interface RandomService {
  readonly type: string;
  readonly internalTrafficPolicy: string;
  readonly externalTrafficPolicy: string;
  readonly sessionAffinity: string;
  readonly hasExternalIP: boolean;
  readonly ranges: readonly string[];
  readonly protocols: readonly string[];
  readonly targetPort: number;
  readonly endpoints: readonly {
    readonly pod: keyof typeof pods;
    readonly ready: boolean;
    readonly serving: boolean;
    readonly terminating: boolean;
  }[];
}

/** One or two Services with anything that matters to forwarding. */
export const randomServices: fc.Arbitrary<readonly RandomService[]> = fc.array(
  fc.record({
    type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
    internalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    sessionAffinity: fc.constantFrom('None', 'ClientIP'),
    hasExternalIP: fc.boolean(),
    ranges: fc.constantFrom<readonly string[]>(
      [],
      ['10.244.1.0/24', 'fd00:244:1::/64', '10.244.0.0/16'],
      ['192.0.2.2/32', '2001:db8::2/128'],
      ['203.0.113.0/24'],
    ),
    protocols: fc.constantFrom(['TCP'], ['UDP'], ['TCP', 'UDP']),
    targetPort: fc.constantFrom(...targetPorts),
    endpoints,
  }),
  { minLength: 1, maxLength: 2 },
);

/** They are called web-1 and web-2. */
export function servicesOf(specs: readonly RandomService[]): readonly Service[] {
  return specs.map(({ ranges, hasExternalIP, protocols, targetPort, endpoints: _, ...rest }, index) => {
    const number = index + 1;
    const isBalanced = rest.type === 'LoadBalancer';
    const spec: ServiceSpec = {
      ...rest,
      clusterIPs: [`10.96.0.${number}`, `fd00:96::${number}`],
      ports: protocols.map((protocol) => ({
        ...{ name: protocols.length > 1 ? protocol.toLowerCase() : '', protocol, port: 80, targetPort },
        ...(rest.type === 'ClusterIP' ? {} : { nodePort: 30_000 + number }),
      })),
      ...(hasExternalIP ? { externalIPs: [`203.0.113.${number}`] } : {}),
      ...(isBalanced ? { loadBalancerSourceRanges: [...ranges] } : {}),
    };
    return service(spec, `web-${number}`, isBalanced ? [`203.0.113.${number + 100}`] : []);
  });
}

export function slicesOf(specs: readonly RandomService[], network: TestNetwork): readonly EndpointSlice[] {
  return specs.flatMap(({ endpoints, protocols, targetPort }, index) =>
    families.map((family) => {
      const located = endpoints.map(({ pod, ...conditions }) => ({
        ...{ address: network.at(pod).addresses[family], node: pods[pod] },
        ...conditions,
      }));
      return endpointSlice(family, located, targetPort, `web-${index + 1}`, protocols);
    }),
  );
}

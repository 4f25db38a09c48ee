/** Services, Pods and Nodes to plan with, in the shape in which an API server gives them. */
import type { Node, Pod, Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';

export function service(spec: Partial<ServiceSpec> = {}, metadata: Service['metadata'] = {}): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'web',
      namespace: 'ns',
      uid: 'service-uid',
      resourceVersion: '1',
      creationTimestamp: '2026-01-02T03:04:05Z',
      ...metadata,
    },
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.96.0.1',
      ipFamilies: ['IPv4'],
      selector: { app: 'web' },
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
      ...spec,
    },
    status: { loadBalancer: {} },
  };
}

/** What a sample Pod may differ in. */
export interface PodTraits {
  ips?: string[];
  ready?: boolean | undefined;
  node?: string;
  phase?: string;
  terminating?: boolean;
  labels?: Record<string, string>;
  transition?: string;
  spec?: Partial<Pod['spec']>;
  uid?: string;
}

export function pod(name: string, traits: PodTraits = {}): Pod {
  const { ips = ['10.1.0.1'], ready = true, node = 'n1', phase = 'Running' } = traits;
  const [first] = ips;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'ns',
      uid: traits.uid ?? `uid-${name}`,
      resourceVersion: '7',
      labels: traits.labels ?? { app: 'web' },
      ...(traits.terminating === true ? { deletionTimestamp: '2026-01-02T04:00:00Z' } : {}),
    },
    spec: { ...(node === '' ? {} : { nodeName: node }), ...traits.spec },
    status: {
      phase,
      ...(first === undefined ? {} : { podIP: first, podIPs: ips.map((ip) => ({ ip })) }),
      conditions: [
        {
          type: 'Ready',
          status: ready ? 'True' : 'False',
          ...(traits.transition === undefined ? {} : { lastTransitionTime: traits.transition }),
        },
      ],
    },
  };
}

export function node(name: string, zone: string | undefined, cpu = '4', ready = true): Node {
  return {
    metadata: { name, ...(zone === undefined ? {} : { labels: { 'topology.kubernetes.io/zone': zone } }) },
    spec: {},
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }], allocatable: { cpu } },
  };
}

/** `count` ready Pods with addresses of their own. */
export function pods(count: number, traits: PodTraits = {}): Pod[] {
  return Array.from({ length: count }, (_, i) =>
    pod(`p${i}`, { ips: [`10.1.${i >> 8}.${i & 255}`], ...traits }),
  );
}

import { expect, test } from 'vitest';
import { wantedChecks } from '../../../../../src/platforms/openshift/connectivity-check/generator.ts';

const namespace = 'openshift-network-diagnostics';
const pod = (name: string, nodeName: string | undefined, app = 'network-check-source') => ({
  metadata: { namespace, name, labels: { app } },
  spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
  status: {},
});
const node = (name: string) =>
  [name, { metadata: { name, uid: `uid-${name}` }, spec: {}, status: {} }] as const;
const service = (key: string, clusterIPs: string[], ports: { port: number; targetPort?: number }[] = []) =>
  [key, { metadata: {}, spec: { clusterIP: clusterIPs[0] ?? '', clusterIPs, ports }, status: {} }] as const;

test('there is one from each scheduled source to each target', () => {
  const checks = wantedChecks({
    pods: [
      pod('source-1', 'a.example.com'),
      pod('pending', undefined),
      pod('target', 'a.example.com', 'network-check-target'),
    ],
    nodes: new Map([node('a.example.com')]),
    services: new Map([
      service('default/kubernetes', ['10.0.0.1', 'fd00::1']),
      service('openshift-kube-apiserver/apiserver', ['10.0.0.2'], [{ port: 8443, targetPort: 6443 }]),
      service('openshift-apiserver/api', ['10.0.0.3'], [{ port: 443, targetPort: 8443 }]),
      service(`${namespace}/network-check-target`, ['None']),
    ]),
    endpoints: new Map([
      [
        'openshift-kube-apiserver/apiserver',
        {
          metadata: {},
          subsets: [{ addresses: [{ ip: '192.0.2.1', nodeName: 'b.example.com' }], ports: [{ port: 6443 }] }],
        },
      ],
      [
        `${namespace}/network-check-target`,
        { metadata: {}, subsets: [{ addresses: [{ ip: 'fd00::9' }], ports: [{ port: 8080 }] }] },
      ],
    ]),
  });
  expect(checks.map(({ metadata, spec }) => [metadata.name, spec.targetEndpoint])).toEqual(
    [
      ['kubernetes-default-service-cluster-0', '10.0.0.1:443'],
      ['kubernetes-default-service-cluster-1', '[fd00::1]:443'],
      ['kubernetes-apiserver-service-cluster', '10.0.0.2:8443'],
      ['kubernetes-apiserver-endpoint-b', '192.0.2.1:6443'],
      ['openshift-apiserver-service-cluster', '10.0.0.3:443'],
      ['network-check-target-service-cluster', 'network-check-target:80'],
      ['network-check-target-fd00--9', '[fd00::9]:8080'],
    ].map(([name, endpoint]) => [`network-check-source-a-to-${name ?? ''}`, endpoint]),
  );
  expect(checks[0]).toMatchObject({
    metadata: {
      namespace,
      labels: { 'networking.openshift.io/managedBy': 'oc-connectivity-check-controller' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'a.example.com', uid: 'uid-a.example.com' }],
    },
    spec: { sourcePod: 'source-1' },
  });
});

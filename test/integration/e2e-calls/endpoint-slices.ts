import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { at, conditionStatus, listAt, numberAt, textAt } from '../../../src/objects/json.ts';
import { apiOperations } from '../../support/api-operations.ts';
import { type E2eCluster, poll } from '../../support/e2e-cluster.ts';
import { agnhostContainer, agnhostPod, createSync, ServiceJig } from '../../support/service-jig.ts';
import { twoPods } from '../../support/two-pods.ts';

/** The calls of e2e tests of EndpointSlices, their controller, and Service CIDRs; titles are theirs. */
export function endpointSlices(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  const jigOf = async (name: string): Promise<ServiceJig> =>
    new ServiceJig(cluster, await cluster.namespace('endpointslice'), name);

  test('[sig-network] EndpointSlice should create and delete EndpointSlices for a Service with a selector that matches no pods', async () => {
    const jig = await jigOf('example-empty-selector');
    const selector = { 'does-not-match-anything': 'endpoints-and-endpoint-slices-should-still-be-created' };
    await jig.create({ selector, ports: [{ name: 'example', port: 80, protocol: 'TCP' }] });
    const [slice] = await jig.slicesUntil(() => true);
    expect(at(slice, 'metadata', 'labels', 'endpointslice.kubernetes.io/managed-by')).toBe(
      'endpointslice-controller.k8s.io',
    );
    expect(listAt(slice, 'endpoints')).toEqual([]);
    await cluster.resource('services', jig.namespace).delete(jig.name);
    const labelSelector = `kubernetes.io/service-name=${jig.name}`;
    const slices = cluster.resource('endpointSlices', jig.namespace);
    await poll(async () => listAt(await slices.list({ labelSelector }), 'items').length === 0);
  });

  /** `expectEndpointSlices`: what Slices say, as `name=port: address → Pod`, once there are so many endpoints. */
  async function endpointLines(
    namespace: string,
    name: string,
    slices: number,
    endpoints: number,
  ): Promise<string[]> {
    const found = await new ServiceJig(cluster, namespace, name).slicesUntil((each) => {
      const count = each.flatMap((slice) => listAt(slice, 'endpoints')).length;
      return each.length >= slices && count >= endpoints;
    });
    const lines = found.flatMap((slice) =>
      listAt(slice, 'endpoints').flatMap((endpoint) =>
        listAt(slice, 'ports').map((port) => {
          const { kind, uid } = {
            kind: textAt(endpoint, 'targetRef', 'kind'),
            uid: textAt(endpoint, 'targetRef', 'uid'),
          };
          const address = `${String(listAt(endpoint, 'addresses')[0])} → ${kind} ${uid}`;
          return `${textAt(port, 'name')}=${numberAt(port, 'port')} ${textAt(port, 'protocol')}: ${address}`;
        }),
      ),
    );
    return lines.sort();
  }

  test('[sig-network] EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service', async () => {
    const namespace = await cluster.namespace('endpointslice');
    const { reference1, reference2, ip1, ip2 } = await twoPods(cluster, namespace);
    const line = (port: string, ip: string, { kind, uid }: JsonRecord): string =>
      `${port} TCP: ${ip} → ${String(kind)} ${String(uid)}`;
    expect(await endpointLines(namespace, 'example-int-port', 1, 1)).toEqual([
      line('example=3000', ip1, reference1),
    ]);
    const both = [line('http=3000', ip1, reference1), line('http=3001', ip2, reference2)];
    expect(await endpointLines(namespace, 'example-named-port', 2, 2)).toEqual(both);

    const slices = cluster.resource('endpointSlices', namespace);
    const list = await slices.list({ labelSelector: 'kubernetes.io/service-name=example-named-port' });
    for (const item of listAt(list, 'items')) await slices.delete(textAt(item, 'metadata', 'name'));
    expect(await endpointLines(namespace, 'example-named-port', 2, 2)).toEqual(both);
  });

  test('[sig-network] EndpointSlice should support creating EndpointSlice API operations', async () => {
    const namespace = await cluster.namespace('endpointslice');
    const object = {
      metadata: { generateName: 'e2e-example-ing' },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['1.2.3.4', '5.6.7.8'] }, { addresses: ['2.2.3.4', '6.6.7.8'] }],
    };
    await apiOperations(cluster, { kind: 'endpointSlices', namespace, objects: [object, object, object] });
  });

  test.each([
    ['multiple ports', [['pod-handle-http-request', 8090, 9090]]],
    [
      'multiple endpoint IPs',
      [
        ['pod1-handle-http-request', 8090],
        ['pod2-handle-http-request', 8090],
      ],
    ],
  ] as const)(
    '[sig-network] EndpointSlice should support a Service with %s specified in multiple EndpointSlices',
    async (_title, pods) => {
      const jig = await jigOf('example-custom-endpoints');
      const ports = [80, 81].map((port) => ({ name: `port${port}`, port, protocol: 'TCP' }));
      await jig.create({ selector: {}, ports });
      const targets: [address: string, port: number][] = [];
      for (const [name, ...numbers] of pods) {
        const containers = numbers.map((containerPort) =>
          agnhostContainer(
            `container-handle-${containerPort}-request`,
            [{ containerPort, protocol: 'TCP' }],
            'netexec',
          ),
        );
        const pod = await createSync(cluster, jig.namespace, agnhostPod(name, containers));
        for (const number of numbers) targets.push([textAt(pod, 'status', 'podIP'), number]);
      }
      const labels = {
        'kubernetes.io/service-name': jig.name,
        'endpointslice.kubernetes.io/managed-by': `e2e-test${jig.namespace}`,
      };
      for (const [i, [address, port]] of targets.entries()) {
        const made = await cluster.resource('endpointSlices', jig.namespace).create({
          ...{ metadata: { generateName: 'e2e-custom-slice', labels }, addressType: 'IPv4' },
          endpoints: [{ addresses: [address], conditions: { ready: true } }],
          ports: [{ name: `port${80 + i}`, port, protocol: 'TCP' }],
        });
        expect(textAt(made, 'metadata', 'name')).toMatch(/^e2e-custom-slice.{5}$/);
      }
      // Nothing else writes Slices of a Service without a selector.
      const found = await jig.slicesUntil((slices) => slices.length === 2);
      expect(
        new Set(
          found.flatMap((slice) => listAt(slice, 'endpoints').flatMap((each) => listAt(each, 'addresses'))),
        ),
      ).toEqual(new Set(targets.map(([address]) => address)));
    },
  );

  test('[sig-network] Service CIDRs should create Services and serve on different Service CIDRs', async () => {
    const cidrs = cluster.resource('serviceCidrs');
    const name = 'test-svc-cidr';
    await cidrs.create({ metadata: { name }, spec: { cidrs: ['203.0.113.0/24'] } });
    const isReady = (found: JsonRecord): boolean =>
      conditionStatus(listAt(found, 'status', 'conditions'), 'Ready') === 'True';
    await poll(async () => isReady(await cidrs.get(name)));
    const jig = await jigOf('cidr1-test');
    const ports = [{ port: 80, name: 'http', protocol: 'TCP', targetPort: 9376 }];
    const made = await jig.create({ clusterIP: '203.0.113.10', type: 'NodePort', ports });
    expect(textAt(made, 'spec', 'clusterIP')).toBe('203.0.113.10');
    await jig.run(2);
    await jig.endpointCount(2);
    // Their clean-up: the Service first; the range goes when its last address is free.
    await cluster.resource('services', jig.namespace).delete(jig.name);
    await cidrs.delete(name);
    await poll(async () =>
      cidrs.get(name).then(
        () => false,
        () => true,
      ),
    );
  });
}

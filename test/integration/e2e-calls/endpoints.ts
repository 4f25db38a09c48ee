import { beforeAll, expect, test } from 'vitest';
import { isRecord, type JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { versionOf } from '../../support/api-operations.ts';
import { type E2eCluster, poll } from '../../support/e2e-cluster.ts';
import {
  agnhostContainer,
  agnhostPod,
  createSync,
  runDeployment,
  ServiceJig,
} from '../../support/service-jig.ts';
import { twoPods } from '../../support/two-pods.ts';

/** The calls of e2e tests of Endpoints, their controller and their mirroring; titles are theirs. */
export function endpoints(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  test('[sig-network] Endpoints should test the lifecycle of an Endpoint', async () => {
    const endpoints = cluster.resource('endpoints', await cluster.namespace('endpoints'));
    const everywhere = cluster.resource('endpoints');
    const name = 'testservice';
    const selector = { labelSelector: 'test-endpoint-static=true' };
    const seen = async (since: unknown, type: string): Promise<unknown> =>
      endpoints.until(textAt(since, 'metadata', 'resourceVersion'), selector, (event) => {
        return (
          event.type === type && textAt(event.object, 'metadata', 'labels', 'test-endpoint-static') === 'true'
        );
      });
    const label = (object: JsonRecord): string => textAt(object, 'metadata', 'labels', 'test-service');

    const before = await everywhere.list(selector);
    const made = await endpoints.create({
      metadata: { name, labels: { 'test-endpoint-static': 'true' } },
      subsets: [{ addresses: [{ ip: '10.0.0.24' }], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] }],
    });
    await seen(before, 'ADDED');

    const list = await everywhere.list(selector);
    const found = recordAt(listAt(list, 'items').find((item) => textAt(item, 'metadata', 'name') === name));
    const metadata = recordAt(found, 'metadata');
    const labels = { ...recordAt(metadata, 'labels'), 'test-service': 'updated' };
    await endpoints.update({ ...found, metadata: { ...metadata, labels } });
    await seen(list, 'MODIFIED');
    const updated = await endpoints.get(name);
    expect(label(updated)).toBe('updated');

    const subsets = [{ addresses: [{ ip: '10.0.0.25' }], ports: [{ name: 'http-test', port: 8080 }] }];
    const patch = { metadata: { labels: { 'test-service': 'patched' } }, subsets };
    const patched = await endpoints.patch(name, 'strategic-merge', patch);
    expect(versionOf(patched) > versionOf(made)).toBe(true);
    await seen(updated, 'MODIFIED');
    const read = await endpoints.get(name);
    expect([label(read), read['subsets']]).toEqual([
      'patched',
      [{ addresses: [{ ip: '10.0.0.25' }], ports: [{ name: 'http-test', port: 8080, protocol: 'TCP' }] }],
    ]);

    await endpoints.deleteCollection(selector);
    await seen(read, 'DELETED');
    await expect(endpoints.get(name)).rejects.toMatchObject({ code: 404 });
  });

  test('[sig-network] EndpointsController should create and delete Endpoints for a Service with a selector that matches no pods', async () => {
    const namespace = await cluster.namespace('endpoints');
    const name = 'example-empty-selector';
    const selector = { 'does-not-match-anything': 'endpoints-and-endpoint-slices-should-still-be-created' };
    const ports = [{ name: 'example', port: 80, protocol: 'TCP' }];
    const services = cluster.resource('services', namespace);
    await services.create({ metadata: { name }, spec: { selector, ports } });
    const endpoints = async (): Promise<string> =>
      cluster
        .resource('endpoints', namespace)
        .get(name)
        .then(
          () => 'there',
          (error: unknown) => (isRecord(error) ? textAt(error, 'reason') : ''),
        );
    await poll(async () => (await endpoints()) === 'there');
    await services.delete(name);
    await poll(async () => (await endpoints()) === 'NotFound');
  });

  /** `hasMatchingEndpoints`: the subsets once there are so many of them, with so many addresses. */
  async function subsetsOf(
    namespace: string,
    name: string,
    counts: readonly number[],
  ): Promise<readonly unknown[]> {
    let subsets: readonly unknown[] = [];
    await poll(async () => {
      const list = await cluster.resource('endpoints', namespace).list();
      const found = listAt(list, 'items').find((item) => textAt(item, 'metadata', 'name') === name);
      subsets = listAt(found, 'subsets');
      const addresses = subsets.flatMap((subset) => [
        ...listAt(subset, 'addresses'),
        ...listAt(subset, 'notReadyAddresses'),
      ]);
      return subsets.length === counts[0] && addresses.length === counts[1];
    });
    return subsets;
  }

  test('[sig-network] EndpointsController should create Endpoints for Pods matching a Service', async () => {
    const namespace = await cluster.namespace('endpoints');
    const { reference1, reference2, ip1, ip2 } = await twoPods(cluster, namespace);
    const single = await subsetsOf(namespace, 'example-int-port', [1, 1]);
    const address = (ip: string, targetRef: JsonRecord): JsonRecord => ({ ip, targetRef });
    const ports = (name: string, port: number): JsonRecord[] => [{ name, port, protocol: 'TCP' }];
    expect(single).toMatchObject([{ addresses: [address(ip1, reference1)], ports: ports('example', 3000) }]);
    const named = await subsetsOf(namespace, 'example-named-port', [2, 2]);
    expect(
      [...named].sort(
        (a, b) => numberAt(listAt(a, 'ports')[0], 'port') - numberAt(listAt(b, 'ports')[0], 'port'),
      ),
    ).toMatchObject([
      { addresses: [address(ip1, reference1)], ports: ports('http', 3000) },
      { addresses: [address(ip2, reference2)], ports: ports('http', 3001) },
    ]);
  });

  test('[sig-network] EndpointSliceMirroring should mirror a custom Endpoints resource through create update and delete', async () => {
    const jig = new ServiceJig(
      cluster,
      await cluster.namespace('endpointslicemirroring'),
      'example-custom-endpoints',
    );
    await jig.create({ selector: {}, ports: [{ name: 'example', port: 80, protocol: 'TCP' }] });
    const endpoints = cluster.resource('endpoints', jig.namespace);
    // Never read again: it is put without a resource version.
    const custom = (ip: string): JsonRecord => ({
      metadata: { name: jig.name },
      subsets: [{ ports: [{ port: 80 }], addresses: [{ ip }] }],
    });
    const mirrored = async (ip: string): Promise<void> => {
      await jig.slicesUntil((slices) => {
        const [slice] = slices;
        const addresses = listAt(slice, 'endpoints').flatMap((endpoint) => listAt(endpoint, 'addresses'));
        const ports = listAt(slice, 'ports').map((port) => numberAt(port, 'port'));
        return slices.length === 1 && addresses.join() === ip && ports.join() === '80';
      });
    };
    await endpoints.create(custom('10.1.2.3'));
    await mirrored('10.1.2.3');
    await endpoints.update(custom('10.2.3.4'));
    await mirrored('10.2.3.4');
    await endpoints.delete(jig.name);
    await noSlices(jig);
  });

  async function noSlices({ namespace, name }: ServiceJig): Promise<void> {
    const labelSelector = `kubernetes.io/service-name=${name}`;
    const slices = cluster.resource('endpointSlices', namespace);
    await poll(async () => listAt(await slices.list({ labelSelector }), 'items').length === 0);
  }

  test('[sig-network] EndpointSliceMirroring should mirror a custom Endpoint with multiple subsets and same IP address', async () => {
    const jig = new ServiceJig(
      cluster,
      await cluster.namespace('endpointslicemirroring'),
      'example-custom-endpoints',
    );
    const ports = [80, 81].map((port) => ({ name: `port${port}`, port, protocol: 'TCP' }));
    await jig.create({ selector: {}, ports });
    const containers = [8090, 9090].map((containerPort) =>
      agnhostContainer(
        `container-handle-${containerPort}-request`,
        [{ containerPort, protocol: 'TCP' }],
        'netexec',
      ),
    );
    const pod = await createSync(cluster, jig.namespace, agnhostPod('pod-handle-http-request', containers));
    const ip = textAt(pod, 'status', 'podIP');
    const subset = (name: string, port: number): JsonRecord => ({
      ports: [{ name, port }],
      addresses: [{ ip }],
    });
    const endpoints = cluster.resource('endpoints', jig.namespace);
    await endpoints.create({
      metadata: { name: jig.name },
      subsets: [subset('port80', 8090), subset('port81', 9090)],
    });
    // The API server packs subsets of the same addresses into one (`RepackSubsets`); the order of ports is a hash's.
    const [slice] = await jig.slicesUntil((slices) => slices.length === 1);
    expect(listAt(slice, 'endpoints')).toMatchObject([{ addresses: [ip] }]);
    const portLines = listAt(slice, 'ports').map(
      (port) => `${textAt(port, 'name')} ${numberAt(port, 'port')}`,
    );
    expect(new Set(portLines)).toEqual(new Set(['port80 8090', 'port81 9090']));
    await endpoints.delete(jig.name);
    await noSlices(jig);
  });

  test('[sig-network] Service endpoints latency should not be very high', async () => {
    const namespace = await cluster.namespace('svc-latency');
    const name = 'svc-latency-rc';
    await runDeployment(cluster, namespace, name, { name }, 1);
    const watch = await cluster.resource('endpoints', namespace).watch({
      ...{ sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true },
    });
    const services = cluster.resource('services', namespace);
    const waiting = new Set<string>();
    const create = async (): Promise<void> => {
      const ports = [{ protocol: 'TCP', port: 80 }];
      const spec = { ports, selector: { name }, type: 'ClusterIP', sessionAffinity: 'None' };
      waiting.add(
        textAt(
          await services.create({ metadata: { generateName: 'latency-svc-' }, spec }),
          'metadata',
          'name',
        ),
      );
    };
    // Theirs makes two hundred, fifteen at a time; how long it took is not judged here.
    const count = 45;
    const filled = new Set<string>();
    for (let made = 0; made < count; made += 15) {
      await Promise.all(Array.from({ length: Math.min(15, count - made) }, create));
      await watch.until(({ object }) => {
        const addresses = listAt(object, 'subsets').flatMap((subset) => listAt(subset, 'addresses'));
        if (addresses.length === 1) filled.add(textAt(object, 'metadata', 'name'));
        return [...waiting].every((each) => filled.has(each));
      });
    }
    watch.stop();
    expect(filled.size).toBe(count);
  });
}

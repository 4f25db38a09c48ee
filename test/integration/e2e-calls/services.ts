import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';
import { call } from '../../support/test-server.ts';
import type { TypedEvent } from '../../support/typed-client.ts';
import type { TypedResource } from '../../support/typed-resource.ts';

/** The calls of the e2e tests of Services that need no Pods; titles are theirs. */
export function services(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  const nameOf = (object: unknown): string => textAt(object, 'metadata', 'name');

  test('[sig-network] Services should find a service from listing all namespaces', async () => {
    const list = await cluster.resource('services').list();
    const found = listAt(list, 'items').map(
      (item) => `${textAt(item, 'metadata', 'namespace')}/${nameOf(item)}`,
    );
    expect(found).toContain('default/kubernetes');
  });

  test('[sig-network] Services should complete a service status lifecycle', async () => {
    const namespace = await cluster.namespace('services');
    const services = cluster.resource('services', namespace);
    const name = 'test-service-abcde';
    const labelSelector = 'test-service-static=true';
    const start = await cluster.resource('services').list({ labelSelector });
    const since = textAt(start, 'metadata', 'resourceVersion');
    // Each wait starts over from the first list: what was seen before comes again.
    const until = async (condition: (service: JsonRecord, type: string) => boolean): Promise<TypedEvent> =>
      services.until(since, { labelSelector }, ({ type, object }) => {
        return nameOf(object) === name && condition(object, type);
      });

    await services.create({
      metadata: { name, labels: { 'test-service-static': 'true' } },
      spec: {
        type: 'LoadBalancer',
        ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 80 }],
        loadBalancerClass: 'example.com/internal-vip',
      },
    });
    await until((service) => textAt(service, 'metadata', 'labels', 'test-service-static') === 'true');

    const path = `/api/v1/namespaces/${namespace}/services/${name}/status`;
    const read = await call(cluster.server.client, 'GET', path);
    expect(read.body).toMatchObject({ kind: 'Service', status: { loadBalancer: {} } });

    const patch = {
      metadata: { annotations: { patchedstatus: 'true' } },
      status: { loadBalancer: { ingress: [{ ip: '203.0.113.1' }] } },
    };
    const patched = await services.patch(name, 'merge', patch, 'status');
    expect(recordAt(patched, 'status')).toEqual({
      loadBalancer: { ingress: [{ ip: '203.0.113.1', ipMode: 'VIP' }] },
    });
    const isPatched = (service: JsonRecord): boolean =>
      textAt(service, 'metadata', 'annotations', 'patchedstatus') === 'true';
    await until(isPatched);

    // Go's zero time.
    const condition = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Set from e2e test' };
    const updated = await services.retryOnConflict(
      name,
      (service) => ({
        ...service,
        status: { ...recordAt(service, 'status'), conditions: [{ ...condition, lastTransitionTime: null }] },
      }),
      'status',
    );
    expect(listAt(updated, 'status', 'conditions')).toMatchObject([condition]);
    await until(
      (service) =>
        isPatched(service) &&
        listAt(service, 'status', 'conditions').some((each) => textAt(each, 'message') === condition.message),
    );

    // What Go writes of a Service that has labels only.
    const labels = {
      metadata: { labels: { 'test-service': 'patched' } },
      spec: {},
      status: { loadBalancer: {} },
    };
    await services.patch(name, 'strategic-merge', labels);
    await until((service) => textAt(service, 'metadata', 'labels', 'test-service') === 'patched');

    await services.delete(name);
    await until((_service, type) => type === 'DELETED');
  });

  test('[sig-network] Services should delete a collection of services', async () => {
    const namespace = await cluster.namespace('services');
    const services = cluster.resource('services', namespace);
    for (const [letter, label, port] of [
      ['a', 'delete', 8001],
      ['b', 'delete', 8002],
      ['c', 'keep', 8003],
    ] as const) {
      await services.create({
        metadata: { name: `e2e-svc-${letter}-abcde`, labels: { 'e2e-test-service': label } },
        spec: { type: 'ClusterIP', ports: [{ name: 'http', protocol: 'TCP', port, targetPort: port }] },
      });
    }
    expect(listAt(await services.list(), 'items')).toHaveLength(3);
    // The dynamic client: JSON, and DeleteOptions of v1 in the body.
    const deleted = await call(cluster.server.client, 'DELETE', `/api/v1/namespaces/${namespace}/services`, {
      query: { labelSelector: 'e2e-test-service=delete' },
      body: { kind: 'DeleteOptions', apiVersion: 'v1' },
    });
    expect(deleted.status).toBe(200);
    expect(listAt(await services.list(), 'items').map(nameOf)).toEqual(['e2e-svc-c-abcde']);
  });

  /** `BuildServiceSpec` of type NodePort; 0: the server chooses. */
  const nodePortService = (name: string, nodePort = 0): JsonRecord => ({
    metadata: { name },
    spec: {
      selector: { testid: `${name}-1` },
      type: 'NodePort',
      ports: [{ port: 80, targetPort: 80, nodePort }],
    },
  });

  /** The one node port that a Service has. */
  function nodePortOf(service: JsonRecord): number {
    expect(textAt(service, 'spec', 'type')).toBe('NodePort');
    const ports = listAt(service, 'spec', 'ports');
    expect(ports).toHaveLength(1);
    const nodePort = numberAt(ports[0], 'nodePort');
    expect(nodePort >= 30000 && nodePort <= 32767).toBe(true);
    return nodePort;
  }

  const servicesOf = async (): Promise<TypedResource> =>
    cluster.resource('services', await cluster.namespace('services'));

  test('[sig-network] Services should prevent NodePort collisions', async () => {
    const services = await servicesOf();
    const port = nodePortOf(await services.create(nodePortService('nodeport-collision-1')));
    const second = nodePortService('nodeport-collision-2', port);
    await expect(services.create(second)).rejects.toThrow(new RegExp(`${port}.*port is already allocated`));
    await services.delete('nodeport-collision-1');
    expect(nodePortOf(await services.create(second))).toBe(port);
  });

  test('[sig-network] Services should check NodePort out-of-range', async () => {
    const services = await servicesOf();
    const name = 'nodeport-range-test';
    for (const port of [1, 42, 29999, 32768, 65535]) {
      nodePortOf(await services.create(nodePortService(name)));
      const refused = new RegExp(`${port}.*port is not in the valid range`);
      const moved = services.retryOnConflict(name, (service) => {
        const [first] = listAt(service, 'spec', 'ports');
        const ports = [{ ...recordAt(first), nodePort: port }];
        return { ...service, spec: { ...recordAt(service, 'spec'), ports } };
      });
      await expect(moved).rejects.toThrow(refused);
      await services.delete(name);
      await expect(services.create(nodePortService(name, port))).rejects.toThrow(refused);
    }
  });

  test('[sig-network] Services should release NodePorts on delete', async () => {
    const services = await servicesOf();
    // Ports of the lower band are asked for; one that is taken is Invalid, and another is tried.
    await services.create(nodePortService('other', 30010));
    const taken = services.create(nodePortService('nodeport-reuse', 30010));
    await expect(taken).rejects.toMatchObject({ code: 422, reason: 'Invalid' });
    nodePortOf(await services.create(nodePortService('nodeport-reuse', 30011)));
    await services.delete('nodeport-reuse');
    expect(nodePortOf(await services.create(nodePortService('nodeport-reuse', 30011)))).toBe(30011);
    await services.delete('nodeport-reuse');
    await expect(services.delete('nodeport-reuse')).rejects.toMatchObject({ code: 404, reason: 'NotFound' });
  });
}

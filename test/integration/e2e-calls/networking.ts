import { beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { at, listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { annotated, apiOperations } from '../../support/api-operations.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';
import { call } from '../../support/test-server.ts';
import type { TypedResource } from '../../support/typed-resource.ts';

/** The calls of e2e tests of networking.k8s.io kinds and of the API server's own Service; titles are theirs. */
export function networking(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  const backend = (name: string, number: number): JsonRecord => ({ service: { name, port: { number } } });

  test('[sig-network] Ingress API should support creating Ingress API operations', async () => {
    const namespace = await cluster.namespace('ingress');
    const rule = (host: string): JsonRecord => {
      const path = { path: '/', pathType: 'ImplementationSpecific', backend: backend('test-backend', 8080) };
      return { host, http: { paths: [path] } };
    };
    const objects = ['host1.bar.com', 'host2.bar.com', 'host3.bar.com'].map((host) => ({
      metadata: { generateName: 'e2e-example-ing' },
      spec: { defaultBackend: backend('default-backend', 8080), rules: [rule(host)] },
      status: { loadBalancer: {} },
    }));
    const changeStatus = async (ingresses: TypedResource, made: JsonRecord): Promise<void> => {
      const name = textAt(made, 'metadata', 'name');
      const loadBalancer = { ingress: [{ ip: '169.1.1.1' }] };
      const patch = { metadata: { annotations: { patchedstatus: 'true' } }, status: { loadBalancer } };
      const patched = await ingresses.patch(name, 'merge', patch, 'status');
      expect(at(patched, 'status')).toEqual({ loadBalancer });
      expect(textAt(patched, 'metadata', 'annotations', 'patchedstatus')).toBe('true');
      const status = { loadBalancer: { ingress: [{ ip: '169.1.1.2' }] } };
      const updated = await ingresses.retryOnConflict(name, (object) => ({ ...object, status }), 'status');
      expect(updated['status']).toEqual(status);
      // The dynamic client reads JSON.
      const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/ingresses/${name}/status`;
      const read = await call(cluster.server.client, 'GET', path);
      expect(textAt(read.body, 'metadata', 'uid')).toBe(textAt(made, 'metadata', 'uid'));
    };
    await apiOperations(cluster, { kind: 'ingresses', namespace, objects, changeStatus });
  });

  test('[sig-network] IngressClass API should support creating IngressClass API operations', async () => {
    const objects = ['ingressclass1', 'ingressclass2', 'ingressclass3'].map((name) => ({
      metadata: { name },
      spec: { controller: 'example.com/controller' },
    }));
    await apiOperations(cluster, { kind: 'ingressClasses', namespace: undefined, objects });
  });

  /** What `GenNetworkPolicy` makes of rules. */
  const netpol = (generateName: string, spec: JsonRecord): JsonRecord => ({
    metadata: { generateName },
    spec: { podSelector: { matchLabels: { 'pod-name': 'test-pod' } }, ...spec },
  });

  test('[sig-network] Netpol API should support creating NetworkPolicy API operations', async () => {
    const from = {
      podSelector: { matchLabels: { 'pod-name': 'client-a' } },
      namespaceSelector: { matchLabels: { 'ns-name': 'pod-b' } },
    };
    const object = netpol('e2e-example-netpol', { ingress: [{ from: [from] }] });
    const namespace = await cluster.namespace('netpol');
    await apiOperations(cluster, { kind: 'networkPolicies', namespace, objects: [object, object, object] });
  });

  test('[sig-network] Netpol API should support creating NetworkPolicy API with endport field', async () => {
    const policies = cluster.resource('networkPolicies', await cluster.namespace('netpol'));
    const create = async (port: JsonRecord): Promise<JsonRecord> => {
      const egress = [{ ports: [{ ...port, endPort: 20000 }] }];
      return policies.create(netpol('e2e-example-netpol-endport-validate', { egress }));
    };
    for (const port of [{}, { port: 'serve-80' }, { port: 30000 }]) {
      await expect(create(port)).rejects.toMatchObject({ code: 422, reason: 'Invalid' });
    }
    for (const port of [20000, 10000]) {
      const made = await create({ port });
      expect(listAt(made, 'spec', 'egress')).toEqual([
        { ports: [{ protocol: 'TCP', port, endPort: 20000 }] },
      ]);
    }
    await policies.deleteCollection({ labelSelector: '!nothing' });
    expect(listAt(await policies.list(), 'items')).toEqual([]);
  });

  test('[sig-network] ServiceCIDR and IPAddress API should support ServiceCIDR API operations', async () => {
    const cidrs = cluster.resource('serviceCidrs');
    expect(listAt(await cidrs.get('kubernetes'), 'spec', 'cidrs')).toEqual(['10.96.0.0/16']);
    const patched = await cidrs.patch('kubernetes', 'merge', {
      metadata: { annotations: { patched: 'true' } },
    });
    expect(textAt(patched, 'metadata', 'annotations', 'patched')).toBe('true');
    const updated = await cidrs.retryOnConflict('kubernetes', (object) => annotated(object, 'updated'));
    expect(textAt(updated, 'metadata', 'annotations', 'updated')).toBe('true');
    const list = await cidrs.list();
    expect(listAt(list, 'items').length).toBeGreaterThan(0);
    const watch = await cidrs.watch({});
    expect((await watch.next()).type).toBe('ADDED');
    watch.stop();
  });

  test('[sig-network] ServiceCIDR and IPAddress API should support IPAddress API operations', async () => {
    const addresses = cluster.resource('ipAddresses');
    const parentRef = { group: 'mygroup', resource: 'myresources', namespace: 'foo', name: 'bar' };
    const [v4, v6] = ['255.255.255.255', 'fe80::42:1dff:fe84:f9e2'];
    await addresses.create({ metadata: { name: v4, labels: { type: 'broadcast' } }, spec: { parentRef } });
    await addresses.create({ metadata: { name: v6, labels: { type: 'link-local' } }, spec: { parentRef } });
    const patched = await addresses.patch(v4, 'merge', { metadata: { annotations: { patched: 'true' } } });
    expect(textAt(patched, 'metadata', 'annotations', 'patched')).toBe('true');
    const updated = await addresses.retryOnConflict(v4, (object) => annotated(object, 'updated'));
    expect(textAt(updated, 'metadata', 'annotations', 'updated')).toBe('true');
    expect(at(await addresses.get(v4), 'spec', 'parentRef')).toEqual(parentRef);
    const broadcast = { labelSelector: 'type=broadcast' };
    expect(listAt(await addresses.list(broadcast), 'items')).toHaveLength(1);
    const watch = await addresses.watch(broadcast);
    expect(textAt((await watch.next()).object, 'metadata', 'name')).toBe(v4);
    watch.stop();
    await addresses.delete(v4);
    const local = { labelSelector: 'type=link-local' };
    await addresses.deleteCollection(local);
    expect(listAt(await addresses.list(local), 'items')).toEqual([]);
  });

  describe('the default IngressClass', () => {
    const classes = (): TypedResource => cluster.resource('ingressClasses');
    const makeClass = async (
      name: string,
      isDefault: boolean,
      spec: JsonRecord = {},
    ): Promise<JsonRecord> => {
      const annotations = isDefault ? { 'ingressclass.kubernetes.io/is-default-class': 'true' } : {};
      const labels = { ingressclass: 'ingressclass-1', 'special-label': 'generic' };
      return classes().create({
        metadata: { name, labels, annotations },
        spec: { controller: 'example.com/controller', ...spec },
      });
    };
    /** The class that the server gives an Ingress. The first one: a real admission plugin may see classes later. */
    const givenClass = async (): Promise<unknown> => {
      const ingresses = cluster.resource('ingresses', await cluster.namespace('ingressclass'));
      const spec = { defaultBackend: backend('defaultbackend', 80) };
      return at(await ingresses.create({ metadata: { name: 'ingress1' }, spec }), 'spec', 'ingressClassName');
    };

    test('[sig-network] IngressClass [Feature:Ingress] should set default value on new IngressClass [Serial]', async () => {
      await makeClass('ingressclass1', true);
      expect(await givenClass()).toBe('ingressclass1');
      await classes().delete('ingressclass1');
    });

    test('[sig-network] IngressClass [Feature:Ingress] should not set default value if no default IngressClass [Serial]', async () => {
      await makeClass('ingressclass1', false);
      expect(await givenClass()).toBeUndefined();
      await classes().delete('ingressclass1');
    });

    test('[sig-network] IngressClass [Feature:Ingress] should choose the one with the later CreationTimestamp, if equal the one with the lower name when two ingressClasses are marked as default [Serial]', async () => {
      const first = await makeClass('ingressclass1', true);
      const second = await makeClass('ingressclass2', true);
      const [earlier, later] = [first, second].map((each) => textAt(each, 'metadata', 'creationTimestamp'));
      expect(await givenClass()).toBe(earlier === later ? 'ingressclass1' : 'ingressclass2');
      await classes().delete('ingressclass1');
      await classes().delete('ingressclass2');
    });

    test('[sig-network] IngressClass [Feature:Ingress] should allow IngressClass to have Namespace-scoped parameters [Serial]', async () => {
      const parameters = {
        ...{ scope: 'Namespace', namespace: 'foo-ns' },
        ...{ kind: 'fookind', name: 'fooname', apiGroup: 'example.com' },
      };
      const made = await makeClass('ingressclass1', false, { parameters });
      expect(at(made, 'spec', 'parameters')).toEqual(parameters);
      await classes().delete('ingressclass1');
    });
  });

  test('[sig-network] API Server should provide secure master service', async () => {
    const service = await cluster.resource('services', 'default').get('kubernetes');
    expect(listAt(service, 'spec', 'ports')).toMatchObject([{ name: 'https', port: 443 }]);
  });

  test('[sig-network] API Server should have Endpoints and EndpointSlices pointing to API Server', async () => {
    await cluster.resource('services', 'default').get('kubernetes');
    const endpoints = await cluster.resource('endpoints', 'default').get('kubernetes');
    const labelSelector = 'kubernetes.io/service-name=kubernetes';
    const slices = await cluster.resource('endpointSlices', 'default').list({ labelSelector });
    const ports = (groups: readonly unknown[]): number[] =>
      groups.flatMap((group) => listAt(group, 'ports').map((port) => numberAt(port, 'port')));
    const subsets = listAt(endpoints, 'subsets');
    const items = listAt(slices, 'items').filter((slice) => textAt(slice, 'addressType') === 'IPv4');
    const addresses = items.flatMap((slice) =>
      listAt(slice, 'endpoints').flatMap((endpoint) => listAt(endpoint, 'addresses')),
    );
    expect(addresses).toEqual(
      subsets.flatMap((subset) => listAt(subset, 'addresses').map((address) => textAt(address, 'ip'))),
    );
    expect(addresses.length).toBeGreaterThan(0);
    expect(ports(items)).toEqual(ports(subsets));
  });

  test('[sig-network] Networking should provide unchanging, static URL paths for kubernetes api services', async () => {
    // Raw answers, whatever they are in: the client asks for protobuf and takes anything.
    for (const path of ['/healthz', '/api', '/apis', '/metrics', '/openapi/v2', '/version']) {
      const headers = { accept: 'application/vnd.kubernetes.protobuf, */*' };
      const response = await cluster.server.client.request('GET', path, { headers });
      expect([path, response.status, response.bytes.length > 0]).toEqual([path, 200, true]);
    }
    const version = await cluster.server.client.request('GET', '/version');
    expect(recordAt(version.json())['gitVersion']).toMatch(/^v1\.37\./);
  });
}

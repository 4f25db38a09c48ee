import {
  ApiException,
  ApisApi,
  AppsV1Api,
  AuthorizationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  DiscoveryV1Api,
  KubeConfig,
  KubernetesObjectApi,
  loadYaml,
  makeInformer,
  NetworkingV1Api,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  type V1Ingress,
  type V1Service,
  VersionApi,
  Watch,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';

/** `@kubernetes/client-node` as people use it, configured with the kubeconfig that the server gives. */
let server: TestServer;
let config: KubeConfig;
let core: CoreV1Api;
let namespace = '';
let made = 0;

beforeAll(async () => {
  server = await startApiServer();
  config = new KubeConfig();
  config.loadFromString(server.kubeconfig);
  core = config.makeApiClient(CoreV1Api);
});
beforeEach(async () => {
  namespace = await makeNamespace(server, `client-node-${++made}`);
});
afterAll(async () => server.stop());

const service = (name: string): V1Service =>
  loadYaml(`
apiVersion: v1
kind: Service
metadata: {name: ${name}, labels: {app: web}}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
`);
const create = async (name: string): Promise<V1Service> =>
  core.createNamespacedService({ namespace, body: service(name) });

/** What a promise is rejected with. */
async function refused(promise: Promise<unknown>): Promise<{ code: number; body: unknown }> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ApiException) return { code: error.code, body: error.body as unknown };
    throw error;
  }
  throw new Error('it was not refused');
}

describe('CoreV1Api', () => {
  test('creates, reads, lists, replaces and deletes Services', async () => {
    const created = await create('web');
    expect(created.spec?.clusterIP).toMatch(/^10\.96\./);
    expect(created.metadata?.creationTimestamp).toBeInstanceOf(Date);
    const read = await core.readNamespacedService({ namespace, name: 'web' });
    expect(read.spec).toEqual(created.spec);
    await create('other');
    const list = await core.listNamespacedService({ namespace, limit: 1 });
    expect([list.items.length, list.metadata?.remainingItemCount]).toEqual([1, 1]);
    const everywhere = await core.listServiceForAllNamespaces({
      fieldSelector: `metadata.namespace=${namespace}`,
    });
    expect(everywhere.items).toHaveLength(2);
    if (read.metadata !== undefined) read.metadata.annotations = { seen: 'yes' };
    const replaced = await core.replaceNamespacedService({ namespace, name: 'web', body: read });
    expect(replaced.metadata?.annotations).toEqual({ seen: 'yes' });
    await core.deleteNamespacedService({ namespace, name: 'web' });
    expect((await refused(core.readNamespacedService({ namespace, name: 'web' }))).code).toBe(404);
    await core.deleteCollectionNamespacedService({ namespace });
    expect((await core.listNamespacedService({ namespace })).items).toEqual([]);
  });

  test('patches in all four ways', async () => {
    await create('web');
    const patch = async (type: PatchStrategy, body: unknown, more: object = {}): Promise<V1Service> =>
      core.patchNamespacedService(
        { namespace, name: 'web', body, ...more },
        setHeaderOptions('Content-Type', type),
      );
    const strategic = await patch(PatchStrategy.StrategicMergePatch, {
      spec: { ports: [{ port: 81, name: 'b' }] },
    });
    expect(strategic.spec?.ports?.map(({ port }) => port)).toEqual([81, 80]);
    const merged = await patch(PatchStrategy.MergePatch, { metadata: { labels: { app: null, x: 'y' } } });
    expect(merged.metadata?.labels).toEqual({ x: 'y' });
    const json = await patch(PatchStrategy.JsonPatch, [{ op: 'remove', path: '/spec/ports/0' }]);
    expect(json.spec?.ports).toHaveLength(1);
    const applied = await patch(
      PatchStrategy.ServerSideApply,
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', labels: { by: 'apply' } } },
      { fieldManager: 'tests' },
    );
    expect(applied.metadata?.labels).toEqual({ x: 'y', by: 'apply' });
    expect(applied.metadata?.managedFields?.[0]).toMatchObject({ manager: 'tests', operation: 'Apply' });
  });

  test('tells what is wrong in a Status', async () => {
    await create('web');
    const again = await refused(create('web'));
    expect(again.code).toBe(409);
    expect(JSON.parse(String(again.body))).toMatchObject({ kind: 'Status', reason: 'AlreadyExists' });
    const invalid = await refused(
      core.createNamespacedService({
        namespace,
        body: loadYaml('{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 0}]}}'),
      }),
    );
    expect(invalid.code).toBe(422);
    expect(String(invalid.body)).toContain('must be between 1 and 65535, inclusive');
  });
});

describe('Watch', () => {
  test('follows changes from a revision, and can be aborted', async () => {
    const { metadata } = await core.listNamespacedService({ namespace });
    const seen: string[] = [];
    let controller: AbortController | undefined;
    const ended = new Promise<void>((resolve, reject) => {
      new Watch(config)
        .watch(
          `/api/v1/namespaces/${namespace}/services`,
          { resourceVersion: metadata?.resourceVersion, allowWatchBookmarks: true },
          (phase: string, object: V1Service) => {
            seen.push(`${phase} ${object.metadata?.name ?? ''}`);
            if (phase === 'DELETED') controller?.abort();
          },
          () => resolve(),
        )
        .then((opened) => (controller = opened))
        .catch(reject);
    });
    await create('web');
    await core.deleteNamespacedService({ namespace, name: 'web' });
    await ended;
    expect(seen).toEqual(['ADDED web', 'DELETED web']);
  });

  test('an informer keeps a cache that follows', async () => {
    await create('before');
    const informer = makeInformer<V1Service>(config, `/api/v1/namespaces/${namespace}/services`, async () =>
      core.listNamespacedService({ namespace }),
    );
    const waiting = new Map<string, () => void>();
    const happens = async (what: string): Promise<void> =>
      new Promise((resolve) => waiting.set(what, resolve));
    const tell = (verb: string) => (object: V1Service) =>
      waiting.get(`${verb} ${object.metadata?.name ?? ''}`)?.();
    informer.on('add', tell('add'));
    informer.on('delete', tell('delete'));
    const before = happens('add before');
    await informer.start();
    await before;
    const added = happens('add after');
    await create('after');
    await added;
    expect(informer.list(namespace).map(({ metadata }) => metadata?.name)).toEqual(['before', 'after']);
    const deleted = happens('delete before');
    await core.deleteNamespacedService({ namespace, name: 'before' });
    await deleted;
    expect(informer.get('before', namespace)).toBeUndefined();
    await informer.stop();
  });
});

describe('KubernetesObjectApi', () => {
  test('applies, reads and deletes objects of any kind by discovery', async () => {
    const objects = KubernetesObjectApi.makeApiClient(config);
    const settings = (data: string): V1ConfigMap =>
      loadYaml(
        `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: ${namespace}}, data: ${data}}`,
      );
    const apply = async (object: V1ConfigMap): Promise<V1ConfigMap> =>
      objects.patch(object, undefined, undefined, 'tests', false, PatchStrategy.ServerSideApply);
    await apply(settings('{a: b}'));
    expect((await apply(settings('{c: d}'))).data).toEqual({ c: 'd' });
    const ingress = {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'web', namespace } },
      spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
    };
    await objects.create(ingress);
    const list = await objects.list('networking.k8s.io/v1', 'Ingress', namespace);
    expect(list.items).toHaveLength(1);
    await objects.delete(ingress);
    expect((await refused(objects.read({ ...ingress, metadata: { name: 'web', namespace } }))).code).toBe(
      404,
    );
  });
});

describe('other APIs', () => {
  test('discovery, version and reviews', async () => {
    expect((await config.makeApiClient(VersionApi).getCode()).gitVersion).toMatch(/^v1\.37\./);
    const groups = await config.makeApiClient(ApisApi).getAPIVersions();
    expect(groups.groups.map(({ name }) => name)).toContain('discovery.k8s.io');
    const review = await config.makeApiClient(AuthorizationV1Api).createSelfSubjectAccessReview({
      body: loadYaml(`
apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
spec: {resourceAttributes: {verb: create, resource: services, namespace: ${namespace}}}
`),
    });
    expect(review.status?.allowed).toBe(true);
  });

  test('EndpointSlices, Ingresses, Deployments and their scale', async () => {
    const slices = config.makeApiClient(DiscoveryV1Api);
    const slice = await slices.createNamespacedEndpointSlice({
      namespace,
      body: loadYaml(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a}
addressType: IPv6
endpoints: [{addresses: ['fd00::1'], conditions: {ready: true}}]
ports: [{name: http, port: 80}]
`),
    });
    expect(slice.ports?.[0]?.protocol).toBe('TCP');
    const networking = config.makeApiClient(NetworkingV1Api);
    const ingress = (status: string): V1Ingress =>
      loadYaml(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a}
spec: {defaultBackend: {service: {name: a, port: {name: http}}}}
status: ${status}
`);
    await networking.createNamespacedIngress({ namespace, body: ingress('{}') });
    const status = await networking.replaceNamespacedIngressStatus({
      namespace,
      name: 'a',
      body: ingress('{loadBalancer: {ingress: [{ip: 192.0.2.1}]}}'),
    });
    expect(status.status?.loadBalancer?.ingress?.[0]?.ip).toBe('192.0.2.1');
    const apps = config.makeApiClient(AppsV1Api);
    await apps.createNamespacedDeployment({
      namespace,
      body: loadYaml(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}
`),
    });
    const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'a' });
    if (scale.spec !== undefined) scale.spec.replicas = 4;
    await apps.replaceNamespacedDeploymentScale({ namespace, name: 'a', body: scale });
    expect((await apps.readNamespacedDeployment({ namespace, name: 'a' })).spec?.replicas).toBe(4);
  });

  test('custom objects, as soon as they are defined', async () => {
    const group = `${namespace}.example.com`;
    const properties = { spec: { type: 'object', properties: { size: { type: 'integer', default: 3 } } } };
    await server.client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: {
        metadata: { name: `widgets.${group}` },
        spec: {
          ...{ group, scope: 'Namespaced', names: { plural: 'widgets', kind: 'Widget' } },
          versions: [
            {
              ...{ name: 'v1', served: true, storage: true },
              schema: { openAPIV3Schema: { type: 'object', properties } },
            },
          ],
        },
      },
    });
    const custom = config.makeApiClient(CustomObjectsApi);
    const where = { group, version: 'v1', namespace, plural: 'widgets' };
    const widget: unknown = await custom.createNamespacedCustomObject({
      ...where,
      body: { apiVersion: `${group}/v1`, kind: 'Widget', metadata: { name: 'w' }, spec: { bogus: 1 } },
    });
    expect(widget).toMatchObject({ spec: { size: 3 } });
    expect(widget).not.toHaveProperty('spec.bogus');
    await custom.deleteNamespacedCustomObject({ ...where, name: 'w' });
    const list: unknown = await custom.listNamespacedCustomObject(where);
    expect(list).toMatchObject({ items: [] });
  });
});

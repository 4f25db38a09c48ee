import { fixedAuthority } from '../support/certificates.ts';
import { expect, it } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { ContestedCluster } from '../support/contested-cluster.ts';
import { itemsOf } from '../support/with-controllers.ts';

const core = '/api/v1/namespaces/default';
const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const addresses = '/apis/networking.k8s.io/v1/ipaddresses';
const cidrs = '/apis/networking.k8s.io/v1/servicecidrs';
const pools = '/apis/servicenet.dev/v1alpha1/addresspools';
const ports = [{ port: 80 }];
const selector = { app: 'web' };
/** Milliseconds: each write that is refused is tried again, ever later. */
const timeout = 300_000;

async function runContested(controller: string): Promise<ContestedCluster> {
  const cluster = await ContestedCluster.start();
  cluster.run(controller);
  return cluster;
}

async function runPod(cluster: ContestedCluster, name: string, podIP: string): Promise<void> {
  const containers = [{ name: 'c', image: 'i' }];
  await cluster.create(`${core}/pods`, {
    metadata: { name, labels: selector },
    spec: { nodeName: 'n', containers },
  });
  const conditions = [{ type: 'Ready', status: 'True' }];
  const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }], conditions };
  await cluster.merge(`${core}/pods/${name}/status`, { status });
}

function slicesOfWeb(body: JsonRecord): JsonRecord[] {
  return itemsOf(body).filter(
    (slice) => at(slice, 'metadata', 'labels', 'kubernetes.io/service-name') === 'web',
  );
}

const headless = (name: string, spec: JsonRecord = {}): JsonRecord => ({
  metadata: { name },
  spec: { clusterIP: 'None', ports, ...spec },
});

it('endpoints-controller', { timeout }, async () => {
  const cluster = await runContested('endpoints-controller');
  await cluster.create(`${core}/services`, headless('web', { selector }));
  await cluster.until(`${core}/endpoints/web`, (_, status) => status === 200);
  await runPod(cluster, 'p', '10.1.0.1');
  await cluster.until(`${core}/endpoints/web`, (body) => listAt(body, 'subsets').length === 1);
  await cluster.remove(`${core}/services/web`);
  await cluster.untilGone(`${core}/endpoints/web`);
  await cluster.untilRefused(['endpoints-controller PUT endpoints', 'endpoints-controller DELETE endpoints']);
});

it('endpointslice-controller', { timeout }, async () => {
  const cluster = await runContested('endpointslice-controller');
  const count = (wanted: number): Promise<JsonRecord> =>
    cluster.until(
      slices,
      (body) => slicesOfWeb(body).filter((slice) => listAt(slice, 'endpoints').length > 0).length === wanted,
    );
  await cluster.create('/api/v1/nodes', { metadata: { name: 'n' } });
  await cluster.create(`${core}/services`, headless('web', { selector, ipFamilies: ['IPv4'] }));
  await runPod(cluster, 'p', '10.1.0.1');
  await count(1);
  await cluster.merge(`${core}/pods/p/status`, {
    status: { conditions: [{ type: 'Ready', status: 'False' }] },
  });
  await runPod(cluster, 'q', '10.1.0.2');
  await count(2);
  const isAt = (slice: JsonRecord): boolean =>
    listAt(slice, 'ports').some((each) => at(each, 'port') === 8080);
  await cluster.merge(`${core}/services/web`, { spec: { ports: [{ port: 80, targetPort: 8080 }] } });
  await cluster.until(slices, (body) => slicesOfWeb(body).every(isAt));
  await cluster.remove(`${core}/pods/q`, { gracePeriodSeconds: 0 });
  await count(1);
  await cluster.untilRefused([
    'endpointslice-controller PUT endpointslices',
    'endpointslice-controller DELETE endpointslices',
  ]);
});

it('endpointslice-mirroring-controller', { timeout }, async () => {
  const cluster = await runContested('endpointslice-mirroring-controller');
  const mirror = (condition: (mirrors: readonly JsonRecord[]) => boolean): Promise<JsonRecord> =>
    cluster.until(slices, (body) => condition(slicesOfWeb(body)));
  const subsets = (ip: string): readonly JsonRecord[] => [{ addresses: [{ ip }], ports }];
  await cluster.create(`${core}/services`, headless('web'));
  await cluster.create(`${core}/endpoints`, { metadata: { name: 'web' }, subsets: subsets('10.9.0.1') });
  await mirror(({ length }) => length === 1);
  await cluster.merge(`${core}/endpoints/web`, { subsets: subsets('10.9.0.2') });
  await mirror((all) => JSON.stringify(all).includes('"10.9.0.2"'));
  const labels = { 'endpointslice.kubernetes.io/skip-mirror': 'true' };
  await cluster.merge(`${core}/endpoints/web`, { metadata: { labels } });
  await mirror(({ length }) => length === 0);
  await cluster.untilRefused([
    'endpointslice-mirroring-controller PUT endpointslices',
    'endpointslice-mirroring-controller DELETE endpointslices',
  ]);
});

it('service-allocation-controller', { timeout }, async () => {
  const cluster = await runContested('service-allocation-controller');
  const isServed = (body: JsonRecord): boolean => textAt(body, 'spec', 'clusterIP') !== '';
  // Two of these have all the node ports.
  for (const name of ['a', 'b', 'c'])
    await cluster.create(`${core}/services`, { metadata: { name }, spec: { type: 'NodePort', ports } });
  await cluster.until(`${core}/services`, (body) => {
    const all = itemsOf(body).filter((service) => at(service, 'spec', 'type') === 'NodePort');
    const reported = all.filter((service) => listAt(service, 'status', 'conditions').length > 0);
    return all.filter(isServed).length === 2 && reported.length === 1;
  });
  await cluster.remove(`${core}/services/a`);
  await cluster.remove(`${core}/services/b`);
  await cluster.until(`${core}/services/c`, isServed);
  await cluster.untilRefused([
    'service-allocation-controller PATCH services',
    'service-allocation-controller PATCH services/status',
    'service-allocation-controller DELETE ipaddresses',
  ]);
  const isHeld = (object: JsonRecord): boolean => at(object, 'spec', 'parentRef', 'name') === 'c';
  const body = await cluster.until(addresses, (all) => itemsOf(all).some(isHeld));
  expect(itemsOf(body).filter(isHeld)).toHaveLength(1);
});

it('load-balancer-controller', { timeout }, async () => {
  const cluster = await runContested('load-balancer-controller');
  const count = (name: string, wanted: number): Promise<JsonRecord> =>
    cluster.until(
      `${core}/services/${name}`,
      (body) => listAt(body, 'status', 'loadBalancer', 'ingress').length === wanted,
    );
  await cluster.until(pools, (_, status) => status === 200);
  const type = { apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool' };
  await cluster.create(pools, { ...type, metadata: { name: 'p' }, spec: { addresses: ['192.0.2.1/32'] } });
  await cluster.create(`${core}/services`, {
    metadata: { name: 's' },
    spec: { type: 'LoadBalancer', ports },
  });
  await count('s', 1);
  await cluster.merge(`${core}/services/s`, { spec: { type: 'ClusterIP' } });
  await count('s', 0);
  await cluster.untilRefused([
    'load-balancer-controller PATCH services/status',
    'load-balancer-controller PUT addresspools/status',
  ]);
});

it('service-cidr-controller', { timeout }, async () => {
  const cluster = await runContested('service-cidr-controller');
  await cluster.create(cidrs, { metadata: { name: 'more' }, spec: { cidrs: ['10.97.0.0/24'] } });
  await cluster.until(
    `${cidrs}/more`,
    (body) =>
      listAt(body, 'metadata', 'finalizers').length === 1 &&
      listAt(body, 'status', 'conditions').length === 1,
  );
  await cluster.remove(`${cidrs}/more`);
  await cluster.untilGone(`${cidrs}/more`);
  await cluster.untilRefused([
    'service-cidr-controller PATCH servicecidrs',
    'service-cidr-controller PUT servicecidrs/status',
  ]);
});

it('garbage-collector-controller', { timeout }, async () => {
  const cluster = await runContested('garbage-collector-controller');
  const configMaps = `${core}/configmaps`;
  const reference = async (name: string): Promise<JsonRecord> => {
    const { metadata } = await cluster.create(configMaps, { metadata: { name } });
    return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: at(metadata, 'uid') };
  };
  const [first, second] = [await reference('first'), await reference('second')];
  const own = (name: string, ownerReferences: readonly JsonRecord[]): Promise<JsonRecord> =>
    cluster.create(configMaps, { metadata: { name, ownerReferences } });
  await own('both', [first, second]);
  await own('one', [first]);
  await cluster.remove(`${configMaps}/first`);
  await cluster.untilGone(`${configMaps}/one`);
  const isOrphan = (body: JsonRecord): boolean => listAt(body, 'metadata', 'ownerReferences').length === 0;
  await cluster.until(
    `${configMaps}/both`,
    (body) => listAt(body, 'metadata', 'ownerReferences').length === 1,
  );
  await cluster.remove(`${configMaps}/second`, { propagationPolicy: 'Orphan' });
  await cluster.untilGone(`${configMaps}/second`);
  await cluster.until(`${configMaps}/both`, isOrphan);
  await cluster.untilRefused([
    'garbage-collector-controller PATCH configmaps',
    'garbage-collector-controller DELETE configmaps',
  ]);
});

it('namespace-controller', { timeout }, async () => {
  const cluster = await runContested('namespace-controller');
  await cluster.create('/api/v1/namespaces', { metadata: { name: 'full' } });
  const held = { metadata: { name: 'held', finalizers: ['example.com/held'] } };
  await cluster.create('/api/v1/namespaces/full/configmaps', held);
  await cluster.remove('/api/v1/namespaces/full');
  await cluster.until('/api/v1/namespaces/full', (body) => listAt(body, 'status', 'conditions').length > 0);
  await cluster.merge('/api/v1/namespaces/full/configmaps/held', { metadata: { finalizers: null } });
  await cluster.untilGone('/api/v1/namespaces/full');
  await cluster.untilRefused([
    'namespace-controller PUT namespaces/status',
    'namespace-controller PUT namespaces/finalize',
  ]);
});

it('root-ca-certificate-publisher-controller', { timeout }, async () => {
  const cluster = await runContested('root-ca-certificate-publisher-controller');
  const map = `${core}/configmaps/kube-root-ca.crt`;
  await cluster.until(map, (_, status) => status === 200);
  await cluster.merge(map, { data: { 'ca.crt': 'another' } });
  await cluster.until(map, (body) => at(body, 'data', 'ca.crt') === fixedAuthority);
  await cluster.untilRefused(['root-ca-certificate-publisher-controller PUT configmaps']);
});

it('persistentvolumeclaim-protection-controller', { timeout }, async () => {
  const name = 'persistentvolumeclaim-protection-controller';
  const cluster = await runContested(name);
  const claims = `${core}/persistentvolumeclaims`;
  const resources = { requests: { storage: '1Gi' } };
  await cluster.create(claims, {
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources },
  });
  await cluster.remove(`${claims}/data`);
  await cluster.untilGone(`${claims}/data`);
  await cluster.untilRefused([`${name} PUT persistentvolumeclaims`]);
});

it('persistentvolume-protection-controller', { timeout }, async () => {
  const name = 'persistentvolume-protection-controller';
  const cluster = await runContested(name);
  const volumes = '/api/v1/persistentvolumes';
  await cluster.create(volumes, {
    metadata: { name: 'disk' },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/mnt' } },
  });
  await cluster.remove(`${volumes}/disk`);
  await cluster.untilGone(`${volumes}/disk`);
  await cluster.untilRefused([`${name} PUT persistentvolumes`]);
});

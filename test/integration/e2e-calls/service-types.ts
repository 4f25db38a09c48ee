import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { at, listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';
import { type Hostnames, serveHostnames } from '../../support/serve-hostnames.ts';
import { ServiceJig } from '../../support/service-jig.ts';

/**
 * The API part of the e2e tests of Services that change types, ports, labels and session affinity; titles are theirs.
 * What they send to Pods is left out: behind simulated Pods nothing listens.
 */
export function serviceTypes(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  const http = [{ port: 80, name: 'http', protocol: 'TCP', targetPort: 9376 }];
  const jigOf = async (name: string): Promise<ServiceJig> =>
    new ServiceJig(cluster, await cluster.namespace('services'), name);

  /** `StartServeHostnameService`: a Service, and a Deployment behind it. */
  const serve = async (
    jig: ServiceJig,
    name: string,
    spec: JsonRecord = {},
    labels = {},
  ): Promise<Hostnames> => serveHostnames(cluster, jig.namespace, { name, spec, labels });

  test('[sig-network] Services should be able to create a functioning NodePort service', async () => {
    const jig = await jigOf('nodeport-test');
    await jig.create({ type: 'NodePort', ports: http });
    await jig.run(2);
    await jig.endpointCount(2);
    for (const node of await cluster.readySchedulableNodes()) {
      const types = listAt(node, 'status', 'addresses').map((address) => textAt(address, 'type'));
      expect(types).toContain('InternalIP');
    }
  });

  test('[sig-network] Services should be possible to connect to a service via ExternalIP when the external IP is not assigned to a node', async () => {
    const jig = await jigOf('externalip-test');
    const made = await jig.create({ type: 'ClusterIP', externalIPs: ['203.0.113.250'], ports: http });
    expect(listAt(made, 'spec', 'externalIPs')).toEqual(['203.0.113.250']);
    await jig.run(2);
    await jig.endpointCount(2);
  });

  test('[sig-network] Services should be able to update service type to NodePort listening on same port number but different protocols', async () => {
    const jig = await jigOf('nodeport-update-service');
    await jig.create();
    const tcp = { name: 'tcp-port', port: 80, protocol: 'TCP', targetPort: 9376 };
    const first = await jig.update((spec) => ({ ...spec, type: 'NodePort', ports: [tcp] }));
    await jig.run(2);
    const udp = { ...tcp, name: 'udp-port', protocol: 'UDP' };
    const both = await jig.update((spec) => ({ ...spec, type: 'NodePort', ports: [tcp, udp] }));
    await jig.endpointCount(2);
    const [kept, added] = listAt(both, 'spec', 'ports').map((port) => numberAt(port, 'nodePort'));
    // A port that is sent without its node port keeps it.
    expect([kept, added !== 0]).toEqual([numberAt(listAt(first, 'spec', 'ports')[0], 'nodePort'), true]);
  });

  test.each(['ClusterIP', 'NodePort'])(
    '[sig-network] Services should be able to change the type from ExternalName to %s',
    async (type) => {
      const jig = await jigOf('externalname-service');
      const made = await jig.createExternalName();
      expect([at(made, 'spec', 'clusterIPs'), at(made, 'spec', 'ipFamilies')]).toEqual([
        undefined,
        undefined,
      ]);
      await jig.update((spec) => ({ ...spec, type, externalName: '', ports: http }));
      await jig.run(2);
      await jig.endpointCount(2);
    },
  );

  test.each(['ClusterIP', 'NodePort'])(
    '[sig-network] Services should be able to change the type from %s to ExternalName',
    async (type) => {
      const jig = await jigOf(`${type.toLowerCase()}-service`);
      const made = await jig.create({ type });
      const address = textAt(made, 'spec', 'clusterIP');
      await serve(jig, 'externalsvc');
      const externalName = `externalsvc.${jig.namespace}.svc.cluster.local`;
      // Everything that only the old type has is still in what is put.
      const changed = await jig.update((spec) => ({ ...spec, type: 'ExternalName', externalName }));
      expect(textAt(changed, 'spec', 'externalName')).toBe(externalName);
      expect([textAt(changed, 'spec', 'clusterIP'), listAt(changed, 'spec', 'clusterIPs')]).toEqual(['', []]);
      // The address and the node port are free again.
      const taker = new ServiceJig(cluster, jig.namespace, 'taker');
      const nodePort = numberAt(listAt(made, 'spec', 'ports')[0], 'nodePort');
      const ports = [{ port: 80, protocol: 'TCP', nodePort }];
      await taker.create({ type, clusterIP: address, ports });
    },
  );

  const affinity = (service: JsonRecord): unknown[] => [
    at(service, 'spec', 'sessionAffinity'),
    at(service, 'spec', 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds'),
  ];

  /** What tests of session affinity make first: three Pods behind a Service with affinity. */
  async function withAffinity(
    name: string,
    type: string,
    spec: JsonRecord = {},
  ): Promise<[ServiceJig, JsonRecord]> {
    const jig = await jigOf(name);
    const { pods } = await serve(jig, name, { type, sessionAffinity: 'ClientIP', ...spec });
    await jig.endpointCount(3);
    expect(pods).toHaveLength(3);
    const service = await cluster.resource('services', jig.namespace).get(name);
    expect(listAt(service, 'spec', 'ipFamilies')).toEqual(['IPv4']);
    return [jig, service];
  }

  test.each([
    ['service with type clusterIP', 'affinity-clusterip', 'ClusterIP'],
    ['NodePort service', 'affinity-nodeport', 'NodePort'],
  ])(
    '[sig-network] Services should have session affinity work for %s [LinuxOnly]',
    async (_title, name, type) => {
      const [, service] = await withAffinity(name, type);
      expect(affinity(service)).toEqual(['ClientIP', 10800]);
    },
  );

  test.each([
    ['service with type clusterIP', 'affinity-clusterip-timeout', 'ClusterIP'],
    ['NodePort service', 'affinity-nodeport-timeout', 'NodePort'],
  ])(
    '[sig-network] Services should have session affinity timeout work for %s [LinuxOnly]',
    async (_title, name, type) => {
      const sessionAffinityConfig = { clientIP: { timeoutSeconds: 125 } };
      const [, service] = await withAffinity(name, type, { sessionAffinityConfig });
      expect(affinity(service)).toEqual(['ClientIP', 125]);
    },
  );

  test.each([
    ['service with type clusterIP', 'affinity-clusterip-transition', 'ClusterIP'],
    ['NodePort service', 'affinity-nodeport-transition', 'NodePort'],
  ])(
    '[sig-network] Services should be able to switch session affinity for %s [LinuxOnly]',
    async (_title, name, type) => {
      const [jig] = await withAffinity(name, type);
      // The timeout of before is still in what is put; without affinity the server takes it out.
      const off = await jig.update((spec) => ({ ...spec, sessionAffinity: 'None' }));
      expect(affinity(off)).toEqual(['None', undefined]);
      const on = await jig.update((spec) => ({ ...spec, sessionAffinity: 'ClientIP' }));
      expect(affinity(on)).toEqual(['ClientIP', 10800]);
    },
  );

  test.each([
    ['service-proxy-name', 'foo-bar'],
    ['headless', ''],
  ])('[sig-network] Services should implement service.kubernetes.io/%s', async (name, value) => {
    const label = `service.kubernetes.io/${name}`;
    const jig = await jigOf(`${name}-toggled`);
    const disabled = await serve(jig, `${name}-disabled`, {}, { [label]: value });
    const toggled = await serve(jig, jig.name);
    expect(new Set([disabled.clusterIP, toggled.clusterIP]).size).toBe(2);
    const relabel = async (labels: JsonRecord): Promise<JsonRecord> =>
      jig.updateObject((service) => ({ ...service, metadata: { ...recordAt(service, 'metadata'), labels } }));
    // What proxies ask for, and so what is up.
    const labelSelector = '!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name';
    const services = cluster.resource('services', jig.namespace);
    const up = async (): Promise<string[]> =>
      listAt(await services.list({ labelSelector }), 'items').map((each) => textAt(each, 'metadata', 'name'));
    expect(await up()).toEqual([jig.name]);
    expect(textAt(await relabel({ [label]: value }), 'spec', 'clusterIP')).toBe(toggled.clusterIP);
    expect(await up()).toEqual([]);
    expect(at(await relabel({}), 'metadata', 'labels')).toBeUndefined();
    expect(await up()).toEqual([jig.name]);
    await jig.endpointCount(3);
  });

  test('[sig-network] Services should serve endpoints on same port and different protocol for internal traffic on Type LoadBalancer', async () => {
    const jig = await jigOf('multiprotocol-lb-test');
    const ports = [
      { name: 'portname1', port: 80, targetPort: 'svc1', protocol: 'TCP' },
      { name: 'portname2', port: 80, targetPort: 'svc2', protocol: 'UDP' },
    ];
    await jig.create({ type: 'LoadBalancer', sessionAffinity: 'None', ports });
    await jig.pod('pod1', [
      { name: 'svc1', containerPort: 100, protocol: 'TCP' },
      { name: 'svc2', containerPort: 100, protocol: 'UDP' },
    ]);
    await jig.endpointPorts([
      { name: 'portname1', protocol: 'TCP', target: 'pod1', port: 100 },
      { name: 'portname2', protocol: 'UDP', target: 'pod1', port: 100 },
    ]);
  });

  test('[sig-network] Services should implement NodePort and HealthCheckNodePort correctly when ExternalTrafficPolicy changes', async () => {
    const jig = await jigOf('external-local-update');
    const asked = 30042;
    const made = await jig.create({
      ...{ type: 'LoadBalancer', sessionAffinity: 'None' },
      ...{ externalTrafficPolicy: 'Local', healthCheckNodePort: asked },
    });
    expect(numberAt(made, 'spec', 'healthCheckNodePort')).toBe(asked);
    const nodePort = numberAt(listAt(made, 'spec', 'ports')[0], 'nodePort');
    await jig.run(1);
    const [slice] = await jig.slicesUntil((slices) =>
      slices.some((each) => listAt(each, 'endpoints').length === 1),
    );
    const node = textAt(listAt(slice, 'endpoints')[0], 'nodeName');
    expect((await cluster.readySchedulableNodes()).map((each) => textAt(each, 'metadata', 'name'))).toContain(
      node,
    );

    const spread = await jig.update((spec) => ({ ...spec, externalTrafficPolicy: 'Cluster' }));
    expect(numberAt(spread, 'spec', 'healthCheckNodePort')).toBe(0);
    const local = await jig.update((spec) => {
      return { ...spec, externalTrafficPolicy: 'Local', healthCheckNodePort: asked };
    });
    expect(numberAt(local, 'spec', 'healthCheckNodePort')).toBe(asked);
    expect(numberAt(listAt(local, 'spec', 'ports')[0], 'nodePort')).toBe(nodePort);
  });
}

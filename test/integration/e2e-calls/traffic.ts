import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { at, listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { type E2eCluster, poll } from '../../support/e2e-cluster.ts';
import {
  agnhostContainer,
  agnhostPod,
  createSync,
  onNode,
  podUntil,
  ServiceJig,
} from '../../support/service-jig.ts';

/**
 * The calls that e2e tests of traffic make before anything is sent (dns.go, hostport.go, conntrack.go,
 * framework/network).
 */
export function traffic(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  test('[sig-network] DNS should provide DNS for ExternalName services', async () => {
    const namespace = await cluster.namespace('dns');
    const services = cluster.resource('services', namespace);
    const name = 'dns-test-service-3';
    await services.create({
      metadata: { name },
      spec: { type: 'ExternalName', externalName: 'foo.example.com' },
    });
    const update = async (change: JsonRecord): Promise<JsonRecord> =>
      services.retryOnConflict(name, (each) => ({ ...each, spec: { ...recordAt(each, 'spec'), ...change } }));
    expect(await update({ externalName: 'bar.example.com' })).toHaveProperty(
      'spec.externalName',
      'bar.example.com',
    );
    // The name is still in what is put, and stays: the type does not take it along.
    const ports = [{ port: 80, name: 'http', protocol: 'TCP' }];
    const changed = await update({ type: 'ClusterIP', ports });
    expect(changed).toMatchObject({ spec: { type: 'ClusterIP', externalName: 'bar.example.com' } });
    const prober = agnhostPod('dns-test', [agnhostContainer('webserver', [], 'test-webserver')], {
      spec: { hostname: 'dns-querier-2', subdomain: 'dns-test-service-2' },
    });
    await createSync(cluster, namespace, prober);
    expect(textAt(await services.get(name), 'spec', 'clusterIP')).toMatch(/^10\./);
    await services.delete(name);
  });

  test('[sig-network] DNS should support configurable pod DNS nameservers', async () => {
    const namespace = await cluster.namespace('dns');
    const dnsConfig = { nameservers: ['1.1.1.1'], searches: ['resolv.conf.local'] };
    const pod = agnhostPod('test-dns-nameservers', [agnhostContainer('agnhost-container')], {
      spec: { dnsPolicy: 'None', dnsConfig },
    });
    const ready = await createSync(cluster, namespace, pod);
    expect(at(ready, 'spec', 'dnsConfig')).toEqual(dnsConfig);
    await cluster.resource('pods', namespace).delete('test-dns-nameservers', { gracePeriodSeconds: 0 });
  });

  test('[sig-network] HostPort validates that there is no conflict between pods with same hostPort but different hostIP and protocol [LinuxOnly]', async () => {
    const namespace = await cluster.namespace('hostport');
    const [node] = await cluster.readySchedulableNodes();
    const nodeName = textAt(node, 'metadata', 'name');
    const hostIP = textAt(
      listAt(node, 'status', 'addresses').find((each) => textAt(each, 'type') === 'InternalIP'),
      'address',
    );
    const readinessProbe = { httpGet: { path: '/hostname', port: 8080, scheme: 'HTTP' } };
    for (const [name, ip, protocol] of [
      ['pod1', '127.0.0.1', 'TCP'],
      ['pod2', hostIP, 'TCP'],
      ['pod3', hostIP, 'UDP'],
    ] as const) {
      const ports = [{ hostPort: 54323, containerPort: 8080, protocol, hostIP: ip }];
      const server = agnhostContainer('agnhost', ports, 'netexec', '--http-port=8080', '--udp-port=8080');
      const ready = await createSync(cluster, namespace, {
        metadata: { name },
        spec: { containers: [{ ...server, readinessProbe }], nodeName },
      });
      expect(listAt(listAt(ready, 'spec', 'containers')[0], 'ports')).toEqual(ports);
    }
    const host = { hostNetwork: true, nodeName };
    const exec = agnhostPod('e2e-host-exec', [agnhostContainer('e2e-host-exec')], { spec: host });
    expect(textAt(await createSync(cluster, namespace, exec), 'status', 'podIP')).toBe(hostIP);
  });

  test.each([
    ['server pod cycles for a NodePort service', 'NodePort', 2],
    ['server pod cycles for a ClusterIP service', 'ClusterIP', 2],
    ['initial unready endpoints get ready', 'ClusterIP', 1],
  ])(
    '[sig-network] Conntrack should be able to preserve UDP traffic when %s',
    async (_title, type, backends) => {
      const jig = new ServiceJig(cluster, await cluster.namespace('conntrack'), 'svc-udp');
      const [client, server] = (await cluster.readySchedulableNodes()).map((node) =>
        onNode(textAt(node, 'metadata', 'name')),
      );
      await jig.create({ type, ports: [{ port: 80, name: 'udp', protocol: 'UDP', targetPort: 80 }] });
      const probe = { ...agnhostContainer('pod-client'), command: ['/bin/sh', '-c', 'date'] };
      await createSync(cluster, jig.namespace, agnhostPod('pod-client', [probe], { spec: client ?? {} }));
      const command = ['/bin/sh', '-c', 'echo Pausing start. && sleep 15'];
      const init = { name: 'init', image: 'registry.k8s.io/e2e-test-images/busybox:1.37.0-1', command };
      for (let backend = 1; backend <= backends; backend++) {
        const name = `pod-server-${backend}`;
        const container = agnhostContainer('agnhost-container', [], 'netexec', '--udp-port=80');
        const spec = { ...server, ...(backends === 1 ? { initContainers: [init] } : {}) };
        const pod = agnhostPod(name, [container], { labels: jig.labels, spec });
        await createSync(cluster, jig.namespace, pod);
        if (backend > 1) await cluster.resource('pods', jig.namespace).delete('pod-server-1');
        await jig.endpointPorts([{ name: 'udp', protocol: 'UDP', target: name, port: 80 }]);
      }
    },
  );

  /** `createNetShellPodSpec`. */
  function netShell(name: string, hostname: string, labels: JsonRecord): JsonRecord {
    const ports = [
      { name: 'http', containerPort: 8080 },
      { name: 'udp', containerPort: 8081, protocol: 'UDP' },
    ];
    const probe = {
      ...{ initialDelaySeconds: 10, timeoutSeconds: 30, periodSeconds: 10 },
      ...{ successThreshold: 1, failureThreshold: 3, httpGet: { path: '/healthz', port: 8080 } },
    };
    const container = agnhostContainer('webserver', ports, 'netexec', '--http-port=8080', '--udp-port=8081');
    return {
      metadata: { name, labels },
      spec: {
        containers: [{ ...container, livenessProbe: probe, readinessProbe: probe }],
        nodeSelector: { 'kubernetes.io/hostname': hostname },
      },
    };
  }

  test('the framework makes Pods and Services to send traffic between (NewNetworkingTestConfig)', async () => {
    const namespace = await cluster.namespace('nettest');
    const selector = { [`selector-${namespace}`]: 'true' };
    const nodes = await cluster.readySchedulableNodes();
    const servers = nodes.map((node, index) =>
      netShell(`netserver-${index}`, textAt(node, 'metadata', 'labels', 'kubernetes.io/hostname'), selector),
    );
    const ready = await Promise.all(servers.map((pod) => createSync(cluster, namespace, pod)));
    expect(ready.map((pod) => textAt(pod, 'spec', 'nodeName'))).toEqual(
      nodes.map((node) => textAt(node, 'metadata', 'name')),
    );
    const pods = cluster.resource('pods', namespace);
    const client = agnhostContainer('webserver', [{ name: 'http', containerPort: 8080 }], 'netexec');
    await pods.create({ metadata: { name: 'test-container-pod' }, spec: { containers: [client] } });
    await pods.create(
      agnhostPod('host-test-container-pod', [agnhostContainer('agnhost-container')], {
        spec: { hostNetwork: true },
      }),
    );
    for (const name of ['test-container-pod', 'host-test-container-pod'])
      await podUntil(cluster, namespace, name, (pod) => textAt(pod, 'status', 'phase') === 'Running');

    const ports = [
      { port: 80, name: 'http', protocol: 'TCP', targetPort: 8080 },
      { port: 90, name: 'udp', protocol: 'UDP', targetPort: 8081 },
    ];
    const services = cluster.resource('services', namespace);
    const jigs = [];
    for (const [name, sessionAffinity] of [
      ['node-port-service', 'None'],
      ['session-affinity-service', 'ClientIP'],
    ] as const) {
      const spec = { type: 'NodePort', ports, selector, sessionAffinity };
      await services.create({ metadata: { name }, spec });
      const nodePorts = listAt(await services.get(name), 'spec', 'ports').map((p) => numberAt(p, 'nodePort'));
      expect([nodePorts.length, nodePorts.includes(0), new Set(nodePorts).size]).toEqual([2, false, 2]);
      jigs.push(new ServiceJig(cluster, namespace, name));
    }
    for (const jig of jigs) await jig.endpointCount(servers.length);

    // DeleteNetProxyPod, then DeleteNodePortService
    await pods.delete('netserver-0');
    const fieldSelector = 'metadata.name=netserver-0';
    await poll(async () => listAt(await pods.list({ fieldSelector }), 'items').length === 0);
    for (const jig of jigs) await jig.endpointCount(servers.length - 1);
    await services.delete('node-port-service');
    await expect(services.get('node-port-service')).rejects.toMatchObject({ code: 404 });
  });
}

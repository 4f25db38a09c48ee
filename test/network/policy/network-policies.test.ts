import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { describePods } from '../support/pod-network.ts';
import { fourPods, PolicyCluster } from '../support/policies.ts';
import { shortScenarios } from '../support/policy-scenarios.ts';

describePods('[sig-network] Netpol NetworkPolicy between server and client', () => {
  let cluster: PolicyCluster;
  beforeAll(async () => {
    cluster = await PolicyCluster.start(fourPods);
  });
  afterEach(() => cluster.deleteAll());
  afterAll(() => cluster.network.server.stop());

  it.each(shortScenarios)('$name', (scenario) => cluster.play(scenario));

  it('leaves connections alone that were made before', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'servicenet-policies-'));
    chmodSync(folder, 0o777);
    const address = cluster.addressOf('x', 'a');
    const isOpen = `timeout 0.7 bash -c 'exec 4<>/dev/tcp/${address}/80' 2>&-`;
    const asked = `printf 'GET /hostname HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3`;
    // Asks on the connection of before, once there are no new ones.
    const script = `exec 3<>/dev/tcp/${address}/80; touch ${folder}/open; while ${isOpen}; do sleep 0.05; done; ${asked}`;
    const before = cluster.network.server.run(['bash', '-c', script], { pod: 'y/a' });
    await expect.poll(() => existsSync(join(folder, 'open'))).toBe(true);
    await cluster.apply('x', 'p', { podSelector: {}, ingress: [] });
    expect((await before).stdout.trim().split('\n').at(-1)).toBe('a');
    rmSync(folder, { recursive: true });
  });

  it('PodNetworkConnectivityChecks connect and look names up from the network of their Pod', async () => {
    const { network } = cluster;
    const version = 'controlplane.operator.openshift.io/v1alpha1';
    const path = `/apis/${version}/namespaces/x/podnetworkconnectivitychecks`;
    // Only the Pod itself is behind its loopback.
    const targets = { loopback: '127.0.0.1:80', closed: '127.0.0.1:9', name: 'kubernetes.default:443' };
    for (const [name, targetEndpoint] of Object.entries(targets)) {
      const { status } = await network.call('POST', path, {
        ...{ apiVersion: version, kind: 'PodNetworkConnectivityCheck', metadata: { name: `a-to-${name}` } },
        spec: { sourcePod: 'a', targetEndpoint },
      });
      expect(status).toBe(201);
    }
    const messages = async (): Promise<readonly string[]> =>
      listAt((await network.call('GET', path)).body, 'items').flatMap((check) =>
        ['successes', 'failures', 'conditions'].flatMap((list) =>
          listAt(check, 'status', list).map((entry) => textAt(entry, 'message')),
        ),
      );
    await expect
      .poll(messages)
      .toEqual(
        expect.arrayContaining([
          'loopback: tcp connection to 127.0.0.1:80 succeeded',
          'closed: failed to establish a TCP connection to 127.0.0.1:9: dial tcp 127.0.0.1:9: connect: connection refused',
          'name: resolved host name kubernetes.default successfully',
          'name: tcp connection to kubernetes.default:443 succeeded',
          'servicenet connects from the network of the source Pod',
        ]),
      );
  });
});

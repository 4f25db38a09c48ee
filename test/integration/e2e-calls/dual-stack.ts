import { isIPv4, isIPv6 } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { agnhostContainer, createSync, ServiceJig } from '../../support/service-jig.ts';
import { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls that Kubernetes' e2e tests of sig-network make of a cluster of both families (dual_stack.go). */
export function dualStack(): void {
  let cluster: E2eCluster;
  beforeAll(async () => {
    cluster = await E2eCluster.start({ serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112' });
  });
  afterAll(async () => cluster.stop());

  const familiesOf = (addresses: readonly unknown[]): readonly string[] =>
    addresses.map((address) =>
      isIPv6(String(address)) ? 'IPv6' : isIPv4(String(address)) ? 'IPv4' : 'neither',
    );

  test('[sig-network] [Feature:IPv6DualStack] should have ipv4 and ipv6 internal node ip', async () => {
    const nodes = await cluster.readySchedulableNodes();
    expect(nodes).toHaveLength(3);
    for (const node of nodes) {
      const internal = listAt(node, 'status', 'addresses')
        .filter((address) => textAt(address, 'type') === 'InternalIP')
        .map((address) => textAt(address, 'address'));
      expect([...familiesOf(internal)].sort()).toEqual(['IPv4', 'IPv6']);
    }
  });

  test.each([
    ['pod', 'dualstack-pod-ips', 'podIP', 'podIPs'],
    ['host', 'dualstack-host-ips', 'hostIP', 'hostIPs'],
  ])(
    '[sig-network] [Feature:IPv6DualStack] should create pod, add ipv6 and ipv4 ip to %s ips',
    async (_whose, label, first, all) => {
      const namespace = await cluster.namespace('dualstack');
      const pod = await createSync(cluster, namespace, {
        metadata: { name: `pod-${label}`, labels: { test: label } },
        spec: { containers: [agnhostContainer(label)] },
      });
      const addresses = listAt(pod, 'status', all).map((each) => textAt(each, 'ip'));
      expect([...familiesOf(addresses)].sort()).toEqual(['IPv4', 'IPv6']);
      expect(textAt(pod, 'status', first)).toBe(addresses[0]);
      const options = { gracePeriodSeconds: 30 };
      await cluster.resource('pods', namespace).delete(`pod-${label}`, options);
    },
  );

  const single = 'SingleStack';
  const both = 'RequireDualStack';
  test.each<[string, string, string, JsonRecord, readonly string[]]>([
    ['a single stack service with cluster ip from primary service range', 'default', single, {}, ['IPv4']],
    ['service with ipv4 cluster ip', 'ipv4', single, { ipFamilies: ['IPv4'] }, ['IPv4']],
    ['service with ipv6 cluster ip', 'ipv6', single, { ipFamilies: ['IPv6'] }, ['IPv6']],
    [
      ...(['service with ipv4,v6 cluster ip', 'ipv4ipv6', both] as const),
      ...([{ ipFamilyPolicy: both, ipFamilies: ['IPv4', 'IPv6'] }, ['IPv4', 'IPv6']] as const),
    ],
    [
      ...(['service with ipv6,v4 cluster ip', 'ipv6ipv4', both] as const),
      ...([{ ipFamilyPolicy: both, ipFamilies: ['IPv6', 'IPv4'] }, ['IPv6', 'IPv4']] as const),
    ],
  ])(
    '[sig-network] [Feature:IPv6DualStack] should create %s',
    async (_what, name, policy, fields, families) => {
      const jig = new ServiceJig(cluster, await cluster.namespace('dualstack'), `${name}clusterip`);
      await jig.run(2);
      const ports = ['TCP', 'UDP'].map((protocol) => ({
        ...{ name: `${protocol.toLowerCase()}-port`, port: 53, protocol },
      }));
      const service = await jig.create({ type: 'NodePort', ports, ...fields });
      expect(listAt(service, 'spec', 'ports')).toHaveLength(2);
      const spec = { ipFamilies: families, ipFamilyPolicy: policy };
      expect(service).toMatchObject({ spec });
      const addresses = listAt(service, 'spec', 'clusterIPs');
      expect(familiesOf(addresses)).toEqual(families);
      expect(textAt(service, 'spec', 'clusterIP')).toBe(addresses[0]);

      const slices = await jig.slicesUntil((found) =>
        families.every((family) => endpointsOf(found, family).length === 2),
      );
      expect([...new Set(slices.map((slice) => textAt(slice, 'addressType')))].sort()).toEqual(
        [...families].sort(),
      );
      for (const family of families) {
        const own = endpointsOf(slices, family).flatMap((endpoint) => listAt(endpoint, 'addresses'));
        expect(familiesOf(own)).toEqual([family, family]);
      }
      await cluster.resource('services', jig.namespace).delete(jig.name);
    },
  );

  function endpointsOf(slices: readonly JsonRecord[], family: string): readonly unknown[] {
    return slices
      .filter((slice) => textAt(slice, 'addressType') === family)
      .flatMap((slice) => listAt(slice, 'endpoints'));
  }
}

import { describe, expect, test } from 'vitest';
import { services } from '../../../src/client/resources.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';
import type { Cluster } from '../cluster.ts';

/** Of no controller: nothing else writes these Services. */
const loadBalancerClass = 'example.com/none';

/** Fields of Services beside the type: what they are by default, and which changes are refused. */
export function serviceFields(cluster: () => Cluster): void {
  const nodePorts = ({ spec }: Service): (number | undefined)[] =>
    (spec.ports ?? []).map(({ nodePort }) => nodePort);
  const change = (namespace: string, spec: object): Promise<Service> =>
    cluster().for(services).mergePatch(namespace, 'web', { spec });
  const invalid = { code: 422, reason: 'Invalid' };

  describe('fields', () => {
    test('policies have defaults, and keep what they are given', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', { type: 'NodePort' });
      expect(spec).toMatchObject({
        ...{ internalTrafficPolicy: 'Cluster', externalTrafficPolicy: 'Cluster', sessionAffinity: 'None' },
        ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
      });
      const local = await change(namespace, { internalTrafficPolicy: 'Local' });
      expect(local.spec.internalTrafficPolicy).toBe('Local');
      // Only what comes from outside has a policy for it.
      const inside = await change(namespace, { type: 'ClusterIP' });
      expect(inside.spec).not.toHaveProperty('externalTrafficPolicy');
      expect(inside.spec.internalTrafficPolicy).toBe('Local');
    });

    test('affinity to clients lasts three hours, and goes with its configuration', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', { sessionAffinity: 'ClientIP' });
      expect(spec.sessionAffinityConfig).toEqual({ clientIP: { timeoutSeconds: 10_800 } });
      await expect(
        change(namespace, { sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } }),
      ).rejects.toMatchObject(invalid);
      const none = await change(namespace, { sessionAffinity: 'None', sessionAffinityConfig: null });
      expect(none.spec).not.toHaveProperty('sessionAffinityConfig');
    });

    test('a load balancer has no node ports when it wants none, and keeps those that it got', async () => {
      const namespace = await cluster().namespace();
      const none = await cluster().service(namespace, 'web', {
        ...{ type: 'LoadBalancer', loadBalancerClass, allocateLoadBalancerNodePorts: false },
      });
      expect(nodePorts(none)).toEqual([undefined]);
      const given = nodePorts(await change(namespace, { allocateLoadBalancerNodePorts: true }));
      expect(given).toEqual([expect.any(Number)]);
      const kept = await change(namespace, { allocateLoadBalancerNodePorts: false });
      expect(nodePorts(kept)).toEqual(given);
    });

    test('the class of a load balancer stays', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', { type: 'LoadBalancer', loadBalancerClass });
      await expect(change(namespace, { loadBalancerClass: 'example.com/other' })).rejects.toMatchObject(
        invalid,
      );
      await expect(change(namespace, { loadBalancerClass: null })).rejects.toMatchObject(invalid);
      await expect(
        cluster().service(namespace, 'inside', { type: 'ClusterIP', loadBalancerClass }),
      ).rejects.toMatchObject(invalid);
    });

    test('an address stays, and a Service that has one does not become headless', async () => {
      const namespace = await cluster().namespace();
      await cluster().service(namespace, 'web', {});
      const headless = { clusterIP: 'None', clusterIPs: ['None'] };
      await expect(change(namespace, headless)).rejects.toMatchObject(invalid);
      await cluster().service(namespace, 'none', headless);
      await expect(
        cluster()
          .for(services)
          .mergePatch(namespace, 'none', { spec: { type: 'NodePort' } }),
      ).rejects.toMatchObject(invalid);
    });

    test('addresses and node ports that are not of the ranges are refused', async () => {
      const namespace = await cluster().namespace();
      const clusterIP = cluster().families[0] === 'IPv4' ? '192.0.2.1' : '2001:db8::1';
      await expect(cluster().service(namespace, 'web', { clusterIP })).rejects.toMatchObject(invalid);
      const ports = [{ port: 80, nodePort: 80 }];
      await expect(cluster().service(namespace, 'web', { type: 'NodePort', ports })).rejects.toMatchObject(
        invalid,
      );
    });

    test('one port of TCP and UDP is one node port', async () => {
      const namespace = await cluster().namespace();
      const ports = ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 53 }));
      const [tcp, udp] = nodePorts(await cluster().service(namespace, 'web', { type: 'NodePort', ports }));
      expect(tcp).toBeGreaterThan(0);
      expect(udp).toBe(tcp);
    });

    test('the node ports of a Service that becomes a name are free again', async () => {
      const namespace = await cluster().namespace();
      const web = await cluster().service(namespace, 'web', { type: 'NodePort' });
      const named = await change(namespace, {
        ...{ type: 'ExternalName', externalName: 'db.example.com', clusterIP: null, clusterIPs: null },
      });
      expect(nodePorts(named)).toEqual([undefined]);
      const [nodePort = 0] = nodePorts(web);
      const ports = [{ port: 80, nodePort }];
      const heir = await cluster().service(namespace, 'heir', { type: 'NodePort', ports });
      expect(nodePorts(heir)).toEqual([nodePort]);
    });

    test('a dry run takes nothing', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', { type: 'NodePort' });
      await cluster().for(services).delete(namespace, 'web');
      const { clusterIP = '', ports = [] } = spec;
      const wanted = { type: 'NodePort', clusterIP, ports };
      const draft = { metadata: { namespace, name: 'dry' }, spec: wanted };
      const dry = await cluster().for(services).create(draft, { dryRun: true });
      expect(dry.spec).toMatchObject(wanted);
      const wet = await cluster().service(namespace, 'wet', wanted);
      expect(wet.spec).toMatchObject(wanted);
    });
  });
}

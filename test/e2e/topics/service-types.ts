import { describe, expect, test } from 'vitest';
import { services } from '../../../src/client/resources.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';
import type { Need } from '../need.ts';
import type { Cluster } from '../cluster.ts';

/** What the API server gives Services of every type, and what changes of the type give and take. */
export function serviceTypes(cluster: () => Cluster, need: Need): void {
  const nodePorts = ({ spec }: Service): number[] => (spec.ports ?? []).map(({ nodePort }) => nodePort ?? 0);

  describe('types', () => {
    test('ClusterIP: one address of the primary family, no node port', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', {});
      expect(spec.type).toBe('ClusterIP');
      expect(spec.clusterIPs).toEqual([spec.clusterIP]);
      expect(spec.ipFamilies).toEqual([cluster().families[0]]);
      expect(spec.clusterIP).toMatch(cluster().families[0] === 'IPv4' ? /^\d+(\.\d+){3}$/ : /:/);
      expect(spec.ports?.[0]).not.toHaveProperty('nodePort');
    });

    test('headless: no address', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', { clusterIP: 'None' });
      expect(spec.clusterIPs).toEqual(['None']);
    });

    test.each(['NodePort', 'LoadBalancer'])('%s: an address, and a port on every node', async (type) => {
      const namespace = await cluster().namespace();
      const loadBalancerClass = type === 'LoadBalancer' ? { loadBalancerClass: 'example.com/none' } : {};
      const service = await cluster().service(namespace, 'web', { type, ...loadBalancerClass });
      expect(service.spec.clusterIP).toBeTruthy();
      expect(nodePorts(service)).toEqual([expect.any(Number)]);
      await cluster().for(services).delete(namespace, 'web');
    });

    test('ExternalName: a name instead of an address', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', {
        type: 'ExternalName',
        externalName: 'db.example.com',
      });
      expect(spec).not.toHaveProperty('clusterIP');
    });

    test('an address and a node port that are taken are refused, and free again after a deletion', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'first', { type: 'NodePort' });
      const [{ nodePort } = { nodePort: undefined }] = spec.ports ?? [];
      const wanted = {
        type: 'NodePort',
        clusterIP: spec.clusterIP ?? '',
        ports: [{ port: 80, nodePort: nodePort ?? 0 }],
      };
      await expect(cluster().service(namespace, 'second', wanted)).rejects.toMatchObject({ code: 422 });
      await cluster().for(services).delete(namespace, 'first');
      const second = await cluster().service(namespace, 'second', wanted);
      expect(second.spec.clusterIP).toBe(spec.clusterIP);
      expect(nodePorts(second)).toEqual([nodePort]);
    });
  });

  describe('transitions', () => {
    const change = (namespace: string, spec: object): Promise<Service> =>
      cluster().for(services).mergePatch(namespace, 'web', { spec });

    test('ClusterIP to NodePort to LoadBalancer and back keeps the address, and gives the port back', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', {});
      const [port = 0] = nodePorts(await change(namespace, { type: 'NodePort' }));
      const balanced = await change(namespace, {
        type: 'LoadBalancer',
        loadBalancerClass: 'example.com/none',
      });
      expect(nodePorts(balanced)).toEqual([port]);
      const back = await change(namespace, { type: 'ClusterIP', loadBalancerClass: null });
      expect(back.spec.clusterIP).toBe(spec.clusterIP);
      expect(nodePorts(back)).toEqual([0]);
      const heir = { type: 'NodePort', ports: [{ port: 80, nodePort: port }] };
      expect(nodePorts(await cluster().service(namespace, 'heir', heir))).toEqual([port]);
    });

    test('to ExternalName gives the address back, and from it takes one', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', {});
      await change(namespace, {
        type: 'ExternalName',
        externalName: 'db.example.com',
        clusterIP: null,
        clusterIPs: null,
      });
      await cluster().service(namespace, 'heir', { clusterIP: spec.clusterIP ?? '' });
      const back = await change(namespace, { type: 'ClusterIP', externalName: null });
      expect(back.spec.clusterIP).toBeTruthy();
      expect(back.spec.clusterIP).not.toBe(spec.clusterIP);
    });

    test('externalTrafficPolicy Local gives a health check port, Cluster takes it', async () => {
      const namespace = await cluster().namespace();
      const local = await cluster().service(namespace, 'web', {
        type: 'LoadBalancer',
        loadBalancerClass: 'example.com/none',
        externalTrafficPolicy: 'Local',
      });
      expect(local.spec.healthCheckNodePort).toBeGreaterThan(0);
      const { spec } = await change(namespace, { externalTrafficPolicy: 'Cluster' });
      expect(spec).not.toHaveProperty('healthCheckNodePort');
    });
  });

  describe('families', () => {
    test('PreferDualStack takes what the cluster has', async () => {
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', { ipFamilyPolicy: 'PreferDualStack' });
      expect(spec.ipFamilies).toEqual(cluster().families);
      expect(spec.clusterIPs).toHaveLength(cluster().families.length);
    });

    test('a second family comes and goes, the first address stays', async (context) => {
      need(context, 'dual-stack');
      const namespace = await cluster().namespace();
      const { spec } = await cluster().service(namespace, 'web', {});
      const client = cluster().for(services);
      const both = await client.mergePatch(namespace, 'web', {
        spec: { ipFamilyPolicy: 'RequireDualStack' },
      });
      expect(both.spec.ipFamilies).toEqual(cluster().families);
      expect(both.spec.clusterIPs?.[0]).toBe(spec.clusterIP);
      const one = await client.mergePatch(namespace, 'web', { spec: { ipFamilyPolicy: 'SingleStack' } });
      expect(one.spec.clusterIPs).toEqual([spec.clusterIP]);
    });

    test('RequireDualStack is refused where there is one family', async (context) => {
      need(context, 'single-stack');
      const namespace = await cluster().namespace();
      const refused = cluster().service(namespace, 'web', { ipFamilyPolicy: 'RequireDualStack' });
      await expect(refused).rejects.toMatchObject({ code: 422 });
    });
  });
}

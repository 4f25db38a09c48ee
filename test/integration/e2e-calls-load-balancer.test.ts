import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunningControllers } from '../../src/controllers/run.ts';
import { listAt, textAt } from '../../src/objects/read.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { BalancedServer, startLoadBalancer } from '../support/balanced-server.ts';
import { call } from '../support/test-server.ts';

/** The calls of the e2e tests of load balancers, with ours as the provider; titles are theirs. */
let cluster: BalancedServer;
let running: RunningControllers;
let services = '';

beforeAll(async () => {
  cluster = await BalancedServer.start();
  services = `/api/v1/namespaces/${await makeNamespace(cluster.server, 'e2e-load-balancers')}/services`;
  await cluster.pool('default', { addresses: ['192.0.2.0/28'] });
  running = startLoadBalancer(cluster.server.client);
});

afterAll(async () => {
  await running.stop();
  await cluster.server.stop();
});

const finalizer = 'service.kubernetes.io/load-balancer-cleanup';

test('[sig-network] LoadBalancers [Feature:LoadBalancer] should handle load balancer cleanup finalizer for service [Slow]', async () => {
  const { client } = cluster.server;
  const path = `${services}/lb-finalizer`;
  const has = async (wanted: boolean): Promise<void> => {
    const finalizers = async (): Promise<readonly unknown[]> =>
      listAt((await call(client, 'GET', path)).body, 'metadata', 'finalizers');
    await expect.poll(finalizers).toEqual(wanted ? [finalizer] : []);
  };
  const changeType = async (type: string): Promise<void> => {
    const { body } = await call(client, 'GET', path);
    const { status } = await call(client, 'PATCH', path, {
      body: {
        metadata: { resourceVersion: textAt(body, 'metadata', 'resourceVersion') },
        spec: { type },
      },
      contentType: 'application/strategic-merge-patch+json',
    });
    // The finalizer or the status may be written in between; theirs tries again as well.
    if (status === 409) await changeType(type);
    else expect(status).toBe(200);
  };
  const ingress = async (): Promise<readonly unknown[]> =>
    listAt((await call(client, 'GET', path)).body, 'status', 'loadBalancer', 'ingress');

  const made = await call(client, 'POST', services, {
    body: {
      metadata: { name: 'lb-finalizer', labels: { testid: 'lb-finalizer' } },
      spec: {
        type: 'LoadBalancer',
        selector: { testid: 'lb-finalizer' },
        sessionAffinity: 'None',
        ports: [{ protocol: 'TCP', port: 80 }],
      },
    },
  });
  expect(made.status).toBe(201);
  await expect.poll(ingress).toHaveLength(1);
  await has(true);

  await changeType('ClusterIP');
  await has(false);
  expect(await ingress()).toEqual([]);

  await changeType('LoadBalancer');
  await has(true);
  await expect.poll(ingress).toHaveLength(1);

  // The finalizer holds the deletion until the provider has given the address back.
  expect((await call(client, 'DELETE', path)).status).toBe(200);
  await expect.poll(async () => (await call(client, 'GET', path)).status).toBe(404);
});

import { basename, dirname } from 'node:path';
import { loadBalancerCleanupFinalizer } from '../../src/controllers/load-balancer/plan.ts';
import type { Provocation } from '../support/deployed-controllers.ts';
import { describeRights } from '../support/describe-rights.ts';
import { kustomize } from '../support/manifests.ts';
import { call } from '../support/test-server.ts';

const services = '/api/v1/namespaces/default/services';
const names = ['web', 'left'];

/** A Service that is a load balancer and is none, in turn. */
const balanced: Provocation = {
  rounds: 20,
  async begin(client) {
    const make = (name: string, type: string, finalizers: readonly string[]): Promise<unknown> =>
      call(client, 'POST', services, {
        body: {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { name, finalizers },
          spec: { type, ports: [{ port: 80 }] },
        },
      });
    await make('web', 'LoadBalancer', []);
    // What a process leaves behind that ends after it wrote a finalizer.
    await make('left', 'ClusterIP', [loadBalancerCleanupFinalizer]);
  },
  async step(client, round) {
    await call(client, 'PATCH', `${services}/web`, {
      contentType: 'application/merge-patch+json',
      body: { spec: { type: round % 2 === 0 ? 'LoadBalancer' : 'ClusterIP' } },
    });
  },
  async end(client) {
    for (const name of names) {
      await call(client, 'DELETE', `${services}/${name}`);
      await call(client, 'PATCH', `${services}/${name}`, {
        contentType: 'application/merge-patch+json',
        body: { metadata: { finalizers: null } },
      });
    }
  },
};

const ipAddress = '/apis/networking.k8s.io/v1/ipaddresses/10.96.200.200';

/** An address of a Service that does not exist, which nothing takes back. */
const leak: Provocation = {
  // Told, gone, and told again.
  rounds: 60,
  async begin(client) {
    const spec = { parentRef: { resource: 'services', namespace: 'default', name: 'gone' } };
    await call(client, 'POST', dirname(ipAddress), {
      body: { metadata: { name: basename(ipAddress) }, spec },
    });
  },
  async step(client, round) {
    if (round % 20 !== 0) return;
    const manager = round % 40 === 0 ? 'ipallocator.k8s.io' : null;
    await call(client, 'PATCH', ipAddress, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { labels: { 'ipaddress.kubernetes.io/managed-by': manager } } },
    });
  },
  async end(client) {
    await call(client, 'DELETE', ipAddress);
  },
};

const objects = kustomize('deploy/base');

describeRights({
  objects,
  chosen: { role: 'servicenet-load-balancer', controllers: ['load-balancer'] },
  provocation: balanced,
});

describeRights({
  objects,
  // A finding must last ten seconds before it is told.
  chosen: { role: 'servicenet-service-allocation', controllers: ['service-allocation'], haste: 20 },
  provocation: leak,
});

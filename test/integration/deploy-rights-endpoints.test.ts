import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import {
  argumentsOf,
  type Chosen,
  DeployedControllers,
  type Provocation,
} from '../support/deployed-controllers.ts';
import { describeRights } from '../support/describe-rights.ts';
import { kustomizeWith } from '../support/manifests.ts';
import type { PermissionRecorder } from '../support/permission-recorder.ts';
import { grantsOf } from '../support/role-rules.ts';
import { call } from '../support/test-server.ts';

const core = '/api/v1/namespaces/default';

async function post(client: Transport, resource: string, body: JsonRecord): Promise<void> {
  await call(client, 'POST', `${core}/${resource}`, { body });
}

async function remove(client: Transport, ...paths: readonly string[]): Promise<void> {
  for (const path of paths) await call(client, 'DELETE', `${core}/${path}`);
}

/** More than 1000 are too many to mirror: an Event tells so, each time anew. */
async function resize(client: Transport, count: number): Promise<void> {
  const addresses = Array.from({ length: count }, (_, i) => ({ ip: `10.9.${i >> 8}.${i & 255}` }));
  await call(client, 'PATCH', `${core}/endpoints/many`, {
    contentType: 'application/merge-patch+json',
    body: { subsets: [{ addresses, ports: [{ port: 80 }] }] },
  });
}

/** A Service whose Pod is ready and is not, one that comes and goes, and Endpoints made by hand that do so. */
const provocation: Provocation = {
  rounds: 20,
  async begin(client) {
    const spec = { selector: { app: 'web' }, ports: [{ port: 80 }] };
    await post(client, 'services', { metadata: { name: 'web' }, spec });
    for (const name of ['hand', 'many']) {
      await post(client, 'services', { metadata: { name }, spec: { ports: [{ port: 80 }] } });
    }
    await post(client, 'endpoints', { metadata: { name: 'many' } });
    await call(client, 'POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } });
    await post(client, 'pods', {
      metadata: { name: 'p', labels: { app: 'web' } },
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    });
  },
  async step(client, round) {
    if (round % 8 === 0) {
      // Gone before the cache shows anything of it (see `lagging`), and its Endpoints were written again.
      await post(client, 'services', { metadata: { name: 'flash' }, spec: { ports: [{ port: 80 }] } });
      await remove(client, 'services/flash');
      await post(client, 'endpoints', { metadata: { name: 'flash' } });
    }
    const even = round % 8 < 4;
    const conditions = [{ type: 'Ready', status: round % 2 === 0 ? 'True' : 'False' }];
    await call(client, 'PATCH', `${core}/pods/p/status`, {
      contentType: 'application/merge-patch+json',
      body: { status: { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }], conditions } },
    });
    if (even) {
      await post(client, 'services', {
        metadata: { name: 'brief' },
        spec: { selector: { app: 'no' }, ports: [{ port: 80 }] },
      });
      const subsets = [{ addresses: [{ ip: '10.9.9.9' }], ports: [{ port: 80 }] }];
      await post(client, 'endpoints', { metadata: { name: 'hand' }, subsets });
      await resize(client, 1);
    } else {
      // The embedded server removes the Endpoints of a Service with it, as kube-apiserver does: these are left.
      await remove(client, 'services/brief', 'endpoints/hand');
      const labels = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' };
      await post(client, 'endpoints', { metadata: { name: 'left', labels } });
      await resize(client, 1001);
    }
  },
  async end(client) {
    await remove(
      client,
      'services/web',
      'services/brief',
      ...['services/hand', 'services/many', 'endpoints/many'],
      'endpoints/hand',
      'endpoints/left',
    );
    await remove(client, 'pods/p?gracePeriodSeconds=0');
    await call(client, 'DELETE', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices');
  },
};

/**
 * What the admission plugin OwnerReferencesPermissionEnforcement asks of who writes `blockOwnerDeletion`: our API
 * server has no such plugin, so that the requests tell.
 */
const askedByAdmission = new Map([
  ['update services/finalizers', 'Service'],
  ['update endpoints/finalizers', 'Endpoints'],
]);

const objects = kustomizeWith('endpoints');
const chosen: Chosen = {
  role: 'servicenet-endpoints',
  controllers: ['endpoints', 'endpointslice', 'endpointslice-mirroring'],
  // Endpoints that the cache does not show are looked for, and so is their Service then.
  lagging: 'endpoints',
};

describeRights({ objects, chosen, provocation, askedByAdmission: [...askedByAdmission.keys()] });

describe('rights that an admission plugin asks for', () => {
  let deployed: DeployedControllers;

  beforeAll(async () => {
    deployed = await DeployedControllers.start(objects, chosen);
  });

  afterAll(async () => {
    await deployed.stop();
  });

  test.each([...askedByAdmission])(
    '"%s" is asked for by slices that block the deletion of their owner',
    async (name, kind) => {
      expect(grantsOf(objects).map((grant) => grant.name)).toContain(name);
      const blocks = (transport: PermissionRecorder): boolean =>
        transport.bodies().some((body) => {
          const owner = body.includes(`"kind":"${kind}"`) && body.includes('"kind":"EndpointSlice"');
          return owner && body.includes('"blockOwnerDeletion":true');
        });
      await deployed.exercise(true, provocation, blocks);
    },
  );

  test('the component runs the controllers that its role is for', () => {
    const names = chosen.controllers.map((name) => `${name}-controller`);
    expect(argumentsOf(objects)).toContain(`--controllers=${names.join(',')}`);
  });
});

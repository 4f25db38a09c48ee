import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { DeployedControllers, type Provocation } from '../support/deployed-controllers.ts';
import { applyStrictly, kustomize, kustomizeWith } from '../support/manifests.ts';
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

/** A Service whose Pod is ready and is not, one that comes and goes, and Endpoints made by hand that do so. */
const provocation: Provocation = {
  async begin(client) {
    const spec = { selector: { app: 'web' }, ports: [{ port: 80 }] };
    await post(client, 'services', { metadata: { name: 'web' }, spec });
    await post(client, 'services', { metadata: { name: 'hand' }, spec: { ports: [{ port: 80 }] } });
    await call(client, 'POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } });
    await post(client, 'pods', {
      metadata: { name: 'p', labels: { app: 'web' } },
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    });
  },
  async step(client, round) {
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
    } else {
      // The embedded server removes the Endpoints of a Service with it, as kube-apiserver does: these are left.
      await remove(client, 'services/brief', 'endpoints/hand');
      const labels = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' };
      await post(client, 'endpoints', { metadata: { name: 'left', labels } });
    }
  },
  async end(client) {
    await remove(
      client,
      'services/web',
      'services/brief',
      'services/hand',
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

describe('the rights of the component endpoints', () => {
  const objects = kustomizeWith('endpoints');
  const inBase = new Set(grantsOf(kustomize('deploy/base')).map(({ role }) => role.metadata.name));
  const grants = grantsOf(objects).filter(({ role }) => !inBase.has(role.metadata.name));
  const asked = grants.filter(({ name }) => !askedByAdmission.has(name));
  let deployed: DeployedControllers;

  beforeAll(async () => {
    deployed = await DeployedControllers.start(objects);
  });

  afterAll(async () => {
    await deployed.stop();
  });

  test('are those that the controllers use, no more and no less', async () => {
    const all = new Set(grantsOf(objects).map(({ name }) => name));
    const seen = new Set<string>();
    for (const watchList of [true, false]) {
      const wanted = asked.filter(
        ({ name, verb }) => !watchList || verb !== 'list' || name.includes('leases'),
      );
      await deployed.exercise(watchList, provocation, (transport, refused) => {
        expect(refused).toEqual([]);
        for (const phrase of transport.phrases()) seen.add(phrase);
        return wanted.every(({ name }) => seen.has(name));
      });
    }
    expect([...seen].filter((name) => !all.has(name))).toEqual([]);
  });

  test.each([...askedByAdmission])(
    '"%s" is asked for by slices that block the deletion of their owner',
    async (name, kind) => {
      expect(grants.map((grant) => grant.name)).toContain(name);
      const blocks = (transport: PermissionRecorder): boolean =>
        transport.bodies().some((body) => {
          const owner = body.includes(`"kind":"${kind}"`) && body.includes('"kind":"EndpointSlice"');
          return owner && body.includes('"blockOwnerDeletion":true');
        });
      await deployed.exercise(true, provocation, blocks);
    },
  );

  test.each(asked)('without "$name" something is refused', async ({ name, verb, role, without }) => {
    await applyStrictly(deployed.server.client, [without]);
    try {
      const watchList = verb !== 'list' || name.includes('leases');
      await deployed.exercise(watchList, provocation, (_, refused) => refused.includes(name));
    } finally {
      await applyStrictly(deployed.server.client, [role]);
    }
  });
});

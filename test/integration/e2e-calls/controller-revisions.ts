import { beforeAll, expect, test } from 'vitest';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { eventually } from '../../support/api-operations.ts';
import { listSelected, patchSpec } from '../../support/e2e-daemon-sets.ts';
import { createTestingNamespace } from '../../support/e2e-framework.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of the e2e test of ControllerRevisions (`apps/controller_revision.go`); the title is its. */
export function controllerRevisions(shared: () => E2eCluster): void {
  const hashLabel = 'controller-revision-hash';
  const label = { 'daemonset-name': 'daemon-set' };
  const labelSelector = 'daemonset-name=daemon-set';

  let client: TypedClient;
  let daemonSets = '';
  let daemonSet = '';
  let revisions = '';
  beforeAll(async () => {
    ({ client } = shared());
    const name = await createTestingNamespace(client, 'controllerrevisions');
    daemonSets = `/apis/apps/v1/namespaces/${name}/daemonsets`;
    daemonSet = `${daemonSets}/daemon-set`;
    revisions = `/apis/apps/v1/namespaces/${name}/controllerrevisions`;
  });

  /** Makes the DaemonSet of the test and waits until its status says that it runs on all nodes. */
  async function createDaemonSet(): Promise<void> {
    const image = 'registry.k8s.io/e2e-test-images/agnhost:2.56';
    const container = { name: 'app', image, ports: [{ containerPort: 9376 }], securityContext: {} };
    const template = { metadata: { labels: label }, spec: { containers: [container], securityContext: {} } };
    const metadata = { name: 'daemon-set', labels: label };
    const spec = { selector: { matchLabels: label }, template };
    const body = { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata, spec };
    expect((await client.call('POST', daemonSets, { body })).status).toBe(201);
    await eventually(
      async () => client.call('GET', daemonSet),
      (answer) => numberAt(answer.body, 'status', 'numberReady') === 2,
    );
  }

  test('[sig-apps] ControllerRevision should manage the lifecycle of a ControllerRevision', async () => {
    await createDaemonSet();
    const all = await client.call('GET', '/apis/apps/v1/controllerrevisions', { query: { labelSelector } });
    const [listed, ...others] = listAt(all.body, 'items');
    expect(others).toEqual([]);
    const { body: owner } = await client.call('GET', daemonSet);
    const uid = textAt(owner, 'metadata', 'uid');
    expect(textAt(listAt(listed, 'metadata', 'ownerReferences')[0], 'uid')).toBe(uid);
    const first = textAt(listed, 'metadata', 'name');
    const { body: initial } = await client.call('GET', `${revisions}/${first}`);
    const patched = await client.call('PATCH', `${revisions}/${first}`, {
      ...{ body: { metadata: { labels: { [first]: 'patched' } } }, patch: 'strategic-merge' },
    });
    expect(textAt(patched.body, 'metadata', 'labels', first)).toBe('patched');

    const hash = '5f6c7d8b9c';
    const ownerReference = {
      ...{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'daemon-set', uid },
      ...{ controller: true, blockOwnerDeletion: true },
    };
    const metadata = {
      ...{ name: `daemon-set-${hash}`, labels: { ...label, [hashLabel]: hash } },
      ...{ annotations: recordAt(owner, 'metadata', 'annotations'), ownerReferences: [ownerReference] },
    };
    const { apiVersion, kind, data, revision } = initial;
    const body = { apiVersion, kind, metadata, data, revision: Number(revision) + 1 };
    expect((await client.call('POST', revisions, { body })).status).toBe(201);
    await listSelected(client, revisions, labelSelector, 2);
    expect((await client.call('DELETE', `${revisions}/${first}`)).status).toBe(200);
    const [current = {}] = await listSelected(client, revisions, labelSelector, 1);
    const name = textAt(current, 'metadata', 'name');
    const updated = await eventually(
      async () => {
        const { body: read } = await client.call('GET', `${revisions}/${name}`);
        const labels = { ...recordAt(read, 'metadata', 'labels'), [name]: 'updated' };
        return client.call('PUT', `${revisions}/${name}`, {
          body: { ...read, metadata: { ...recordAt(read, 'metadata'), labels } },
        });
      },
      ({ status }) => status === 200,
    );
    expect(textAt(updated.body, 'metadata', 'labels', name)).toBe('updated');

    await patchSpec(client, daemonSet, { template: { spec: { terminationGracePeriodSeconds: 1 } } });
    await listSelected(client, revisions, labelSelector, 2);
    const query = { labelSelector: `${name}=updated` };
    expect((await client.call('DELETE', revisions, { query })).status).toBe(200);
    const [last] = await listSelected(client, revisions, labelSelector, 1);
    expect(numberAt(last, 'revision')).toBe(3);
  });
}

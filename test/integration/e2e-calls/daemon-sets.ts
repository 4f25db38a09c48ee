import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { inKeyOrder } from '../../../src/controllers/workloads/plan-template.ts';
import { isRecord, type JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { listSelected, patchSpec } from '../../support/e2e-daemon-sets.ts';
import { createTestingNamespace, deleteOptions } from '../../support/e2e-framework.ts';
import { type Answer, call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of DaemonSets (`apps/daemon_set.go`); titles are theirs. */
export function daemonSets(shared: () => E2eCluster): void {
  const nodeNames = ['node-1', 'node-2'];
  const httpd = 'registry.k8s.io/e2e-test-images/httpd:2.4.38-4';
  const agnhost = 'registry.k8s.io/e2e-test-images/agnhost:2.56';
  const hashLabel = 'controller-revision-hash';
  const color = 'daemonset-color';
  const label = { 'daemonset-name': 'daemon-set' };
  const labelSelector = 'daemonset-name=daemon-set';
  const everywhere = '/apis/apps/v1/daemonsets';

  let server: TestServer;
  let client: TypedClient;
  let daemonSets = '';
  let daemonSet = '';
  let revisions = '';
  let pods = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    const name = await createTestingNamespace(client, 'daemonsets');
    daemonSets = `/apis/apps/v1/namespaces/${name}/daemonsets`;
    daemonSet = `${daemonSets}/daemon-set`;
    revisions = `/apis/apps/v1/namespaces/${name}/controllerrevisions`;
    pods = `/api/v1/namespaces/${name}/pods`;
  });
  afterEach(async () => {
    await client.call('DELETE', daemonSet, { body: deleteOptions({ propagationPolicy: 'Background' }) });
    for (const path of [pods, revisions])
      await eventually(
        async () => client.call('GET', path),
        ({ body }) => listAt(body, 'items').length === 0,
      );
  });

  /** What `newDaemonSet` of the tests makes; its metadata has labels where a test looks for the DaemonSet by them. */
  async function createDaemonSet(given: {
    readonly labels?: JsonRecord;
    readonly updateStrategy?: JsonRecord;
    readonly pod?: JsonRecord;
  }): Promise<JsonRecord> {
    const { labels, updateStrategy, pod } = given;
    const container = { name: 'app', image: httpd, ports: [{ containerPort: 9376 }], securityContext: {} };
    const { status, body } = await client.call('POST', daemonSets, {
      body: {
        ...{
          apiVersion: 'apps/v1',
          kind: 'DaemonSet',
          metadata: { name: 'daemon-set', ...(labels && { labels }) },
        },
        spec: {
          selector: { matchLabels: label },
          ...(updateStrategy && { updateStrategy }),
          template: {
            metadata: { labels: label },
            spec: { containers: [container], securityContext: {}, ...pod },
          },
        },
      },
    });
    expect([status, body['message']]).toEqual([201, undefined]);
    return body;
  }

  const listPods = async (): Promise<Answer> => client.call('GET', pods, { query: { labelSelector } });

  /** The DaemonSet's Pods that are not on their way out, ordered by node. */
  const podsOf = ({ body }: Pick<Answer, 'body'>): JsonRecord[] =>
    listAt(body, 'items')
      .filter(isRecord)
      .filter((pod) => textAt(pod, 'metadata', 'deletionTimestamp') === '')
      .sort((a, b) => (textAt(a, 'spec', 'nodeName') < textAt(b, 'spec', 'nodeName') ? -1 : 1));

  function isAvailable(pod: JsonRecord): boolean {
    const conditions = listAt(pod, 'status', 'conditions');
    return conditions.some((each) => textAt(each, 'type') === 'Ready' && textAt(each, 'status') === 'True');
  }

  const imageOf = (pod: JsonRecord): string => textAt(listAt(pod, 'spec', 'containers')[0], 'image');

  /** Waits until these nodes, and no others, have one available Pod each; returns the Pods. */
  async function runsOn(nodes: readonly string[]): Promise<JsonRecord[]> {
    const { body } = await eventually(listPods, (answer) => {
      const on = podsOf(answer).filter(isAvailable);
      return JSON.stringify(on.map((pod) => textAt(pod, 'spec', 'nodeName'))) === JSON.stringify(nodes);
    });
    return podsOf({ body });
  }

  /** `CheckDaemonStatus` */
  async function statusAgrees(): Promise<void> {
    await eventually(
      async () => client.call('GET', daemonSet),
      ({ body: { status } }) => {
        const desired = numberAt(status, 'desiredNumberScheduled');
        return (
          numberAt(status, 'currentNumberScheduled') === desired &&
          numberAt(status, 'numberReady') === desired
        );
      },
    );
  }

  /** Gives a node these labels of the tests and takes its others; the tests' labels begin with `daemonset-`. */
  async function setNodeLabels(node: string, labels: JsonRecord): Promise<void> {
    const { status } = await eventually(
      async () => {
        const { body } = await client.call('GET', `/api/v1/nodes/${node}`);
        const metadata = recordAt(body['metadata']);
        const others = Object.entries(recordAt(metadata, 'labels')).filter(
          ([key]) => !key.startsWith('daemonset-'),
        );
        return client.call('PUT', `/api/v1/nodes/${node}`, {
          body: { ...body, metadata: { ...metadata, labels: { ...Object.fromEntries(others), ...labels } } },
        });
      },
      (answer) => answer.status !== 409,
    );
    expect(status).toBe(200);
  }

  /** `curHistory`: the one revision whose data are, byte by byte, the template's. */
  async function currentRevision(count: number): Promise<{ revision: number; hash: string }> {
    const found = await listSelected(client, revisions, labelSelector, count);
    const { body } = await client.call('GET', daemonSet);
    const template = { ...recordAt(body, 'spec', 'template'), $patch: 'replace' };
    const wanted = JSON.stringify(inKeyOrder({ spec: { template } }));
    const current = found.filter(({ data }) => JSON.stringify(data) === wanted);
    expect(current).toHaveLength(1);
    const [{ revision, metadata } = {}] = current;
    return { revision: Number(revision), hash: textAt(metadata, 'labels', hashLabel) };
  }

  async function podHashes(): Promise<Set<string>> {
    return new Set(podsOf(await listPods()).map((pod) => textAt(pod, 'metadata', 'labels', hashLabel)));
  }

  test('[sig-apps] Daemon set should run and stop simple daemon', async () => {
    await createDaemonSet({});
    const [pod] = await runsOn(nodeNames);
    await statusAgrees();
    const first = textAt(pod, 'metadata', 'name');
    expect((await client.call('DELETE', `${pods}/${first}`)).status).toBe(200);
    await runsOn(nodeNames);
  });

  test('[sig-apps] Daemon set should run and stop complex daemon', async () => {
    await createDaemonSet({ pod: { nodeSelector: { [color]: 'blue' } } });
    await runsOn([]);
    await setNodeLabels('node-1', { [color]: 'blue' });
    await runsOn(['node-1']);
    await statusAgrees();
    await setNodeLabels('node-1', { [color]: 'green' });
    await runsOn([]);
    await patchSpec(client, daemonSet, {
      template: { spec: { nodeSelector: { [color]: 'green' } } },
      updateStrategy: { type: 'RollingUpdate' },
    });
    await runsOn(['node-1']);
    await statusAgrees();
    await setNodeLabels('node-1', {});
  });

  test('[sig-apps] Daemon set should run and stop complex daemon with node affinity', async () => {
    const terms = [{ matchExpressions: [{ key: color, operator: 'In', values: ['blue'] }] }];
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
    await createDaemonSet({ pod: { affinity: { nodeAffinity: required } } });
    await runsOn([]);
    await setNodeLabels('node-2', { [color]: 'blue' });
    await runsOn(['node-2']);
    await statusAgrees();
    await setNodeLabels('node-2', {});
    await runsOn([]);
  });

  test('[sig-apps] Daemon set should retry creating failed daemon pods', async () => {
    await createDaemonSet({});
    const [pod] = await runsOn(nodeNames);
    await statusAgrees();
    const { resourceVersion: _, ...metadata } = recordAt(pod, 'metadata');
    const path = `${pods}/${textAt(metadata, 'name')}`;
    const failed = {
      ...pod,
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      status: { ...recordAt(pod, 'status'), phase: 'Failed' },
    };
    expect((await client.call('PUT', `${path}/status`, { body: failed })).status).toBe(200);
    await eventually(
      async () => client.call('GET', path),
      ({ status }) => status === 404,
    );
    await runsOn(nodeNames);
  });

  test.each([
    ['should not update pod when spec was updated and update strategy is OnDelete', 'OnDelete'],
    ['should update pod when spec was updated and update strategy is RollingUpdate', 'RollingUpdate'],
  ])('[sig-apps] Daemon set %s', async (_, type) => {
    await createDaemonSet({ updateStrategy: { type } });
    await runsOn(nodeNames);
    const first = await currentRevision(1);
    expect(first.revision).toBe(1);
    expect(await podHashes()).toEqual(new Set([first.hash]));
    await patchSpec(client, daemonSet, {
      template: { spec: { containers: [{ name: 'app', image: agnhost }] } },
    });
    const image = type === 'OnDelete' ? httpd : agnhost;
    await eventually(listPods, (answer) => {
      const found = podsOf(answer);
      // one may be unavailable while they are updated
      expect(found.filter((pod) => !isAvailable(pod)).length).toBeLessThanOrEqual(1);
      return found.length === nodeNames.length && found.every((pod) => imageOf(pod) === image);
    });
    await runsOn(nodeNames);
    const second = await currentRevision(2);
    expect(second.revision).toBe(2);
    expect(second.hash).not.toBe(first.hash);
    expect(await podHashes()).toEqual(new Set([type === 'OnDelete' ? first.hash : second.hash]));
  });

  test('[sig-apps] Daemon set should list and delete a collection of DaemonSets', async () => {
    await createDaemonSet({ labels: label });
    await runsOn(nodeNames);
    await statusAgrees();
    const found = async (): Promise<number> => {
      const { body } = await client.call('GET', everywhere, { query: { labelSelector } });
      return listAt(body, 'items').length;
    };
    expect(await found()).toBe(1);
    const sent = { body: deleteOptions({ gracePeriodSeconds: 1 }), query: { labelSelector } };
    expect((await client.call('DELETE', daemonSets, sent)).status).toBe(200);
    expect(await found()).toBe(0);
  });

  test('[sig-apps] Daemon set should verify changes to a daemon set status', async () => {
    const list = await client.call('GET', everywhere, { query: { labelSelector } });
    const resourceVersion = textAt(list.body, 'metadata', 'resourceVersion');
    await createDaemonSet({ labels: label });
    await runsOn(nodeNames);
    await statusAgrees();
    expect((await call(server.client, 'GET', `${daemonSet}/status`)).body).toMatchObject({
      kind: 'DaemonSet',
    });
    const added = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Set from e2e test' };
    await eventually(
      async (): Promise<Answer> => {
        const { body } = await client.call('GET', daemonSet);
        const conditions = [...listAt(body, 'status', 'conditions'), added];
        const status = { ...recordAt(body, 'status'), conditions };
        return client.call('PUT', `${daemonSet}/status`, { body: { ...body, status } });
      },
      ({ status }) => status === 200,
    );
    const seen = async (type: string): Promise<void> => {
      const watch = await client.watch(daemonSets, {
        labelSelector,
        resourceVersion,
        allowWatchBookmarks: true,
      });
      await watch.until(({ object }) =>
        listAt(object, 'status', 'conditions').some((condition) => textAt(condition, 'type') === type),
      );
      watch.stop();
    };
    await seen('StatusUpdate');
    // the JSON of a Go struct also has members that were not set
    const counts = ['currentNumberScheduled', 'numberMisscheduled', 'desiredNumberScheduled', 'numberReady'];
    const template = { metadata: {}, spec: { containers: null } };
    const body = {
      ...{ metadata: {}, spec: { selector: null, template, updateStrategy: {} } },
      status: {
        ...Object.fromEntries(counts.map((count) => [count, 0])),
        conditions: [{ type: 'StatusPatched', status: 'True' }],
      },
    };
    const patched = await client.call('PATCH', `${daemonSet}/status`, { body, patch: 'merge' });
    expect(patched.status).toBe(200);
    await seen('StatusPatched');
  });
}

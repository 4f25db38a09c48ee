import { beforeAll, expect, test } from 'vitest';
import { at, listAt, textAt } from '../../../src/objects/json.ts';
import { type E2eCluster, poll } from '../../support/e2e-cluster.ts';
import { agnhostContainer, agnhostPod, createSync, podUntil } from '../../support/service-jig.ts';

/** What the framework of Kubernetes' e2e tests asks by itself before, between and after the tests (test/e2e). */
export function framework(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  beforeAll(() => {
    cluster = shared();
  });

  test('the suite finds nodes, a version, and the family of the cluster before the first test', async () => {
    // What should run in kube-system: nothing is not ready.
    for (const kind of ['pods', 'daemonSets'] as const)
      expect(listAt(await cluster.resource(kind, 'kube-system').list(), 'items')).toEqual([]);
    const version = await cluster.client.call('GET', '/version');
    expect(textAt(version.body, 'gitVersion')).toMatch(/^v1\.\d+\.\d+/);
    const kubernetes = await cluster.resource('services', 'default').get('kubernetes');
    expect(textAt(kubernetes, 'spec', 'clusterIP')).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    // Which images nodes have, and what was left behind in namespaces of earlier runs.
    const nodes = listAt(await cluster.resource('nodes').list(), 'items');
    expect(nodes).toHaveLength(3);
    for (const node of nodes) expect(listAt(node, 'status', 'addresses')).not.toEqual([]);
  });

  test('the framework makes the namespace of a test, and takes it away with all that is in it', async () => {
    const name = await cluster.namespace('framework');
    const pod = agnhostPod('left-behind', [agnhostContainer('app')], {
      spec: { terminationGracePeriodSeconds: 30 },
    });
    await createSync(cluster, name, pod);
    const namespaces = cluster.resource('namespaces');
    await namespaces.delete(name);
    await poll(async () =>
      listAt(await namespaces.list(), 'items').every((each) => textAt(each, 'metadata', 'name') !== name),
    );
    await expect(namespaces.get(name)).rejects.toMatchObject({ code: 404, reason: 'NotFound' });
  });

  test('the framework writes down what there is when a test fails', async () => {
    const name = await cluster.namespace('framework');
    await createSync(cluster, name, agnhostPod('failed', [agnhostContainer('app')]));
    // DumpEventsInNamespace, DumpAllPodInfoForNamespace
    const events = listAt(await cluster.resource('events', name).list(), 'items');
    expect(events.map((event) => textAt(event, 'reason'))).toContain('Scheduled');
    const pods = listAt(await cluster.resource('pods', name).list(), 'items');
    expect(pods.map((each) => textAt(each, 'metadata', 'name'))).toEqual(['failed']);
    // DumpNodeDebugInfo
    const node = textAt(pods[0], 'spec', 'nodeName');
    const selector = {
      ...{ 'involvedObject.kind': 'Node', 'involvedObject.name': node },
      ...{ 'involvedObject.namespace': '', source: 'kubelet' },
    };
    const fieldSelector = Object.entries(selector)
      .map(([key, value]) => `${key}=${value}`)
      .join();
    expect(listAt(await cluster.resource('events').list({ fieldSelector }), 'items')).toEqual([]);
    // Containers and kubelets are simulated: what asks them is told so, not kept waiting.
    for (const [method, path] of [
      ['GET', `namespaces/${name}/pods/failed/log?container=app&previous=false`],
      ['POST', `namespaces/${name}/pods/failed/exec?command=ls&container=app&stdout=true`],
      ['POST', `namespaces/${name}/pods/failed/attach?container=app`],
      ['POST', `namespaces/${name}/pods/failed/portforward?ports=80`],
    ] as const) {
      const { status, body } = await cluster.client.call(method, `/api/v1/${path}`);
      expect([path, status, textAt(body, 'reason')]).toEqual([path, 501, 'NotImplemented']);
    }
    for (const id of [node, `${node}:10250`, `https:${node}:10250`]) {
      const { status, body } = await cluster.client.call('GET', `/api/v1/nodes/${id}/proxy/metrics`);
      expect([id, status, textAt(body, 'reason')]).toEqual([id, 503, 'ServiceUnavailable']);
    }
    const missing = await cluster.client.call('GET', '/api/v1/nodes/missing:10250/proxy/pods');
    expect(missing).toMatchObject({ status: 404, body: { message: 'nodes "missing" not found' } });
    const wrong = await cluster.client.call('GET', '/api/v1/nodes/ftp:missing:21/proxy/');
    expect(wrong).toMatchObject({ status: 400, body: { message: 'invalid node request "ftp:missing:21"' } });
  });

  test('the framework waits for Pods that must not be found any more', async () => {
    const name = await cluster.namespace('framework');
    const pods = cluster.resource('pods', name);
    await createSync(cluster, name, agnhostPod('going', [agnhostContainer('app')]));
    const found = await podUntil(cluster, name, 'going', (pod) => textAt(pod, 'status', 'podIP') !== '');
    const preconditions = { uid: at(found, 'metadata', 'uid') };
    await pods.delete('going', { gracePeriodSeconds: 0, preconditions });
    // WaitForPodNotFoundInNamespace: a list by name, and no such Pod in it.
    const fieldSelector = 'metadata.name=going';
    await poll(async () => listAt(await pods.list({ fieldSelector }), 'items').length === 0);
    await expect(pods.delete('going')).rejects.toMatchObject({ code: 404, reason: 'NotFound' });
  });
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAt, numberAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Kubectl } from '../support/kubectl.ts';
import { kubectlIn, type NamespacedKubectl } from '../support/namespaced-kubectl.ts';
import { call } from '../support/test-server.ts';
import { itemsOf, untilObject } from '../support/with-controllers.ts';

let server: TestServer;
let kubectl: Kubectl;

beforeAll(async () => {
  server = await startApiServer({ nodes: 3 });
  kubectl = new Kubectl(server.kubeconfig);
  // Pods go to nodes that are ready.
  await untilObject(server.client, '/api/v1/nodes', (body) => {
    const conditions = listAt(body, 'items').flatMap((node) => listAt(node, 'status', 'conditions'));
    const ready = conditions.filter(
      (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
    );
    return ready.length === 3;
  });
});
afterAll(async () => {
  kubectl.dispose();
  await server.stop();
});

let namespaces = 0;
const inNamespace = (): Promise<NamespacedKubectl> =>
  kubectlIn(kubectl, server.client, `deployments-${++namespaces}`);

const rolledOut = 'deployment "web" successfully rolled out\n';

function deployment(namespace: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
}

describe('a Deployment', () => {
  test('goes from kubectl create to ready endpoints', async () => {
    const { namespace, run, json } = await inNamespace();
    await run('create deployment web --image=nginx --replicas=3');
    expect(await run('rollout status deployment/web')).toContain(rolledOut);
    await run('expose deployment web --port=80 --target-port=8080 --type=NodePort');
    const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    const ready = (body: unknown): number =>
      listAt(body, 'items').flatMap((slice) => listAt(slice, 'endpoints')).length;
    await untilObject(server.client, slices, (body) => ready(body) === 3);

    const { items } = await json('get pods');
    const pods = Array.isArray(items) ? items : [];
    const nodes = pods.map((pod) => textAt(pod, 'spec', 'nodeName'));
    expect(nodes.sort()).toEqual(['node-1', 'node-2', 'node-3']);
    for (const pod of pods) {
      const third = textAt(pod, 'spec', 'nodeName').replace('node-', '');
      expect(textAt(pod, 'status', 'podIP')).toMatch(`10.244.${Number(third) - 1}.`);
      expect(textAt(pod, 'metadata', 'name')).toMatch(
        /^web-[bcdfghjklmnpqrstvwxz2456789]{5,10}-[a-z0-9]{5}$/,
      );
    }
    const { metadata, status } = await json('get deployment web');
    // The revision came with a status: nothing else was asked for since.
    expect(metadata).toMatchObject({
      generation: 1,
      annotations: { 'deployment.kubernetes.io/revision': '1' },
    });
    expect(status).toMatchObject({
      observedGeneration: 1,
      replicas: 3,
      updatedReplicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      conditions: [
        { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable' },
        { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable' },
      ],
    });
  });

  test('says that its ReplicaSet was refused, until it is not', async () => {
    const { namespace, run } = await inNamespace();
    await run('create quota none --hard=count/replicasets.apps=0');
    await untilObject(server.client, `/api/v1/namespaces/${namespace}/resourcequotas/none`, ({ status }) =>
      JSON.stringify(status).includes('"hard"'),
    );
    await run('create deployment web --image=nginx');
    const progressing = (body: unknown): string =>
      listAt(body, 'status', 'conditions').reduce<string>(
        (found, each) => (textAt(each, 'type') === 'Progressing' ? JSON.stringify(each) : found),
        '',
      );
    const refused = await untilObject(
      server.client,
      deployment(namespace),
      (body) => progressing(body) !== '',
    );
    expect(progressing(refused)).toContain('"status":"False"');
    expect(progressing(refused)).toContain('"reason":"ReplicaSetCreateError"');
    expect(progressing(refused)).toContain('Failed to create new replica set');
    await run('delete quota none');
    // The next try may be a while away: a change is one.
    await run('label deployment web again=yes');
    await run('rollout status deployment/web');
  });

  test('never has fewer Pods available, nor more in all, than a rolling update allows', async () => {
    const { namespace, run } = await inNamespace();
    await run('create deployment web --image=nginx:1 --replicas=4');
    await run('rollout status deployment/web');
    const strategy = { spec: { strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } } };
    await run(`patch deployment web -p '${JSON.stringify(strategy)}'`);
    await run('set image deployment/web nginx=nginx:2');
    let most = 0;
    let fewest = 4;
    await untilObject(server.client, deployment(namespace), ({ status, metadata }) => {
      const isSeen = numberAt(status, 'observedGeneration') === numberAt(metadata, 'generation');
      most = Math.max(most, numberAt(status, 'replicas'));
      fewest = Math.min(fewest, numberAt(status, 'availableReplicas'));
      return isSeen && numberAt(status, 'updatedReplicas') === 4 && numberAt(status, 'replicas') === 4;
    });
    expect(most).toBeLessThanOrEqual(5);
    expect(fewest).toBeGreaterThanOrEqual(3);
  });

  test('is scaled, paused, resumed, and rolled back with its history', async () => {
    const { namespace, run, json } = await inNamespace();
    await run('create deployment web --image=nginx:1 --replicas=2');
    await run('rollout status deployment/web');
    await run('scale deployment web --replicas=4');
    expect(await run('rollout status deployment/web')).toContain(rolledOut);
    await run('rollout pause deployment/web');
    await run('set image deployment/web nginx=nginx:2');
    await untilObject(server.client, deployment(namespace), ({ status }) =>
      listAt(status, 'conditions').some((condition) => textAt(condition, 'reason') === 'DeploymentPaused'),
    );
    expect(itemsOf(await json('get replicasets'))).toHaveLength(1);
    await run('rollout resume deployment/web');
    expect(await run('rollout status deployment/web')).toContain(rolledOut);
    expect(await run('rollout history deployment/web')).toMatch(/^1\s.*\n2\s/m);

    await run('rollout undo deployment/web');
    expect(await run('rollout status deployment/web')).toContain(rolledOut);
    expect(await run('rollout history deployment/web')).toMatch(/^2\s.*\n3\s/m);
    const sets = itemsOf(await json('get replicasets'));
    const sizes = sets.map((set) => [
      textAt(listAt(set, 'spec', 'template', 'spec', 'containers')[0], 'image'),
      numberAt(set, 'spec', 'replicas'),
    ]);
    expect(new Map(sizes.map(([image, size]) => [image, size]))).toEqual(
      new Map([
        ['nginx:1', 4],
        ['nginx:2', 0],
      ]),
    );
  });

  test('with the strategy Recreate has no new Pod before the last old one is gone', async () => {
    const { namespace, run } = await inNamespace();
    await run('create deployment web --image=nginx:1 --replicas=2');
    await run(`patch deployment web -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'`);
    await run('rollout status deployment/web');
    await run('set image deployment/web nginx=nginx:2');
    let overlap = false;
    await untilObject(server.client, `/api/v1/namespaces/${namespace}/pods`, (body) => {
      const images = itemsOf(body).map((pod) => textAt(listAt(pod, 'spec', 'containers')[0], 'image'));
      overlap ||= new Set(images).size > 1;
      return images.length === 2 && images.every((image) => image === 'nginx:2');
    });
    expect(overlap).toBe(false);
  });

  test('replaces a Pod that is deleted, and leaves its Pods behind when it is orphaned', async () => {
    const { namespace, run, json } = await inNamespace();
    await run('create deployment web --image=nginx --replicas=2');
    await run('rollout status deployment/web');
    const [first] = itemsOf(await json('get pods'));
    const name = textAt(first, 'metadata', 'name');
    expect(await run(`delete pod ${name}`)).toContain('deleted');
    await untilObject(
      server.client,
      deployment(namespace),
      (body) => numberAt(body, 'status', 'readyReplicas') === 2,
    );
    expect(itemsOf(await json('get pods')).map((pod) => textAt(pod, 'metadata', 'name'))).not.toContain(name);

    await run('delete deployment web --cascade=orphan');
    const [replicaSet] = itemsOf(await json('get replicasets'));
    expect(listAt(replicaSet, 'metadata', 'ownerReferences')).toEqual([]);
    await run('create deployment web --image=nginx --replicas=2');
    await untilObject(
      server.client,
      deployment(namespace),
      (body) => numberAt(body, 'status', 'readyReplicas') === 2,
    );
    expect(itemsOf(await json('get replicasets'))).toHaveLength(1);
  });

  test('says why it cannot make Pods', async () => {
    const { namespace, run } = await inNamespace();
    // A ReplicaSet's template is checked only when its Pods are made: a priority class that does not exist.
    const template = '{"spec":{"template":{"spec":{"priorityClassName":"no-such-class"}}}}';
    await run('create deployment web --image=nginx --replicas=1');
    await run(`patch deployment web -p '${template}'`);
    await untilObject(server.client, deployment(namespace), ({ status }) =>
      listAt(status, 'conditions').some((condition) => textAt(condition, 'type') === 'ReplicaFailure'),
    );
    await expect.poll(() => run('get events')).toContain('FailedCreate');
  });
});

describe('kubectl drain', () => {
  test('moves Pods to other nodes, as fast as their disruption budget allows', async () => {
    const { namespace, run, json } = await inNamespace();
    await run('create deployment web --image=nginx --replicas=6');
    await run('rollout status deployment/web');
    await run('create poddisruptionbudget web --selector=app=web --max-unavailable=2');
    const budget = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/web`;
    await untilObject(server.client, budget, (body) => numberAt(body, 'status', 'disruptionsAllowed') === 2);
    expect((await json('get pdb web'))['status']).toMatchObject({
      currentHealthy: 6,
      desiredHealthy: 4,
      expectedPods: 6,
      conditions: [{ type: 'DisruptionAllowed', status: 'True', reason: 'SufficientPods' }],
    });
    expect(await run('drain node-1 --ignore-daemonsets')).toContain('node/node-1 drained');
    await untilObject(
      server.client,
      deployment(namespace),
      (body) => numberAt(body, 'status', 'readyReplicas') === 6,
    );
    const nodes = itemsOf(await json('get pods')).map((pod) => textAt(pod, 'spec', 'nodeName'));
    expect(nodes).not.toContain('node-1');
    const node = await call(server.client, 'GET', '/api/v1/nodes/node-1');
    expect(listAt(node.body, 'spec', 'taints')).toMatchObject([
      { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
    ]);
    await run('uncordon node-1');
    await untilObject(
      server.client,
      '/api/v1/nodes/node-1',
      (body) => listAt(body, 'spec', 'taints').length === 0,
    );
  });
});

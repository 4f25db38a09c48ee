import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAt, numberAt, textAt } from '../../../src/objects/json.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { describePods, PodNetwork } from '../support/pod-network.ts';

/** Until the autoscaler has looked at a change three times. */
const timeoutMs = 120_000;

/** Kubernetes' walkthrough of the HorizontalPodAutoscaler. */
describePods('A HorizontalPodAutoscaler', () => {
  let pods: PodNetwork;
  let kubectl: Kubectl;

  beforeAll(async () => {
    pods = await PodNetwork.start({ nodes: 1 });
    kubectl = new Kubectl(pods.server.kubeconfig);
  });
  afterAll(() => pods.server.stop());

  it('scales a Deployment up while something asks it, and nothing else does, and down again', async () => {
    const resources = { requests: { cpu: '200m' }, limits: { cpu: '500m' } };
    const ports = [{ containerPort: 80 }];
    await pods.deploy('php-apache', 1, { image: 'registry.k8s.io/hpa-example', ports, resources });
    await pods.service('php-apache', {}, 80);
    await pods.running('php-apache', 1);
    await kubectl.ok(['autoscale', 'deployment', 'php-apache', '--cpu-percent=50', '--min=1', '--max=10']);
    const path = `${pods.path('horizontalpodautoscalers', 'autoscaling/v2')}/php-apache`;
    // Without, it goes down after five minutes.
    const behavior = { scaleDown: { stabilizationWindowSeconds: 0 } };
    await pods.call('PATCH', path, { spec: { behavior } });
    const status = async () => (await pods.call('GET', path)).body['status'];
    const used = async () =>
      numberAt(listAt(await status(), 'currentMetrics')[0], 'resource', 'current', 'averageUtilization');
    await expect.poll(used, { timeout: timeoutMs }).toBe(10);
    expect(await kubectl.ok(['get', 'hpa', '--no-headers'])).toMatch(
      /^php-apache\s+Deployment\/php-apache\s+cpu: 10%\/50%\s+1\s+10\s+1\s/,
    );

    const load = new AbortController();
    const loop = (async () => {
      while (!load.signal.aborted) {
        await pods.curl({ namespace: 'default' }, 'http://php-apache/#[1-40]');
      }
    })();
    const replicas = async () => numberAt((await pods.call('GET', deployment)).body, 'spec', 'replicas');
    const deployment = `${pods.path('deployments', 'apps/v1')}/php-apache`;
    try {
      await expect.poll(replicas, { timeout: timeoutMs }).toBeGreaterThan(2);
    } finally {
      load.abort();
      await loop;
    }
    await expect.poll(replicas, { timeout: timeoutMs }).toBe(1);

    const { body } = await pods.call('GET', pods.path('events'));
    const events = listAt(body, 'items').filter(
      (event) => textAt(event, 'involvedObject', 'kind') === 'HorizontalPodAutoscaler',
    );
    const messages = events.map((event) => `${textAt(event, 'reason')} ${textAt(event, 'message')}`);
    expect(messages).toContainEqual(
      expect.stringMatching(
        /^SuccessfulRescale New size: \d+; reason: cpu resource utilization \(percentage of request\) above target$/,
      ),
    );
    expect(messages).toContain('SuccessfulRescale New size: 1; reason: All metrics below target');
    expect(textAt(events[0], 'source', 'component')).toBe('horizontal-pod-autoscaler');
    const described = await kubectl.ok(['describe', 'hpa', 'php-apache']);
    expect(described).toMatch(
      /resource cpu on pods\s+\(as a percentage of request\):\s+\d+% \(\d+m\) \/ 50%/,
    );
    expect(described).toMatch(/AbleToScale\s+True\s+/);
    expect(described).toMatch(
      /ScalingActive\s+True\s+ValidMetricFound\s+the HPA was able to successfully calculate/,
    );
  });

  it('scales StatefulSets and custom resources, by what annotations of their Pods say', async () => {
    const resource = (name: string, target: object) => ({ type: 'Resource', resource: { name, target } });
    const create = async (path: string, body: object) => {
      const answer = await pods.call('POST', path, body);
      expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    };
    const autoscale = async (name: string, scaleTargetRef: object, metrics: object[]) => {
      const path = pods.path('horizontalpodautoscalers', 'autoscaling/v2');
      await create(path, { metadata: { name }, spec: { scaleTargetRef, maxReplicas: 9, metrics } });
    };
    const template = (app: string) => ({
      metadata: {
        labels: { app },
        annotations: { 'servicenet.dev/cpu-usage': '150m', 'servicenet.dev/memory-usage': '30Mi' },
      },
      spec: { containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '100m' } } }] },
    });

    const sets = pods.path('statefulsets', 'apps/v1');
    const selector = { matchLabels: { app: 'db' } };
    await create(sets, {
      metadata: { name: 'db' },
      spec: { serviceName: 'db', selector, template: template('db') },
    });
    const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const paths = {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.spec.selector',
    };
    const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } };
    await create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'shards.example.com' },
      spec: {
        ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'shards', kind: 'Shard' } },
        versions: [{ ...version, subresources: { scale: paths } }],
      },
    });
    // Until the kind is served.
    const shards = pods.path('shards', 'example.com/v1');
    const shard = { apiVersion: 'example.com/v1', kind: 'Shard', metadata: { name: 'all' } };
    const spec = { replicas: 1, selector: 'app=shard' };
    await expect.poll(async () => (await pods.call('POST', shards, { ...shard, spec })).status).toBe(201);
    const { metadata, spec: podSpec } = template('shard');
    await create(pods.path('pods'), { metadata: { name: 'shard', ...metadata }, spec: podSpec });
    await pods.running('shard', 1);
    await pods.running('db', 1);

    const missing = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'nosuch' };
    const used = { type: 'Utilization', averageUtilization: 50 };
    await autoscale('missing', missing, [resource('cpu', used)]);
    await autoscale('db', { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' }, [
      resource('memory', { type: 'AverageValue', averageValue: '10Mi' }),
    ]);
    await autoscale('shards', { apiVersion: 'example.com/v1', kind: 'Shard', name: 'all' }, [
      {
        type: 'ContainerResource',
        containerResource: { name: 'cpu', container: 'main', target: used },
      },
    ]);
    const replicasAt = async (path: string) =>
      numberAt((await pods.call('GET', path)).body, 'spec', 'replicas');
    await expect.poll(() => replicasAt(`${sets}/db`), { timeout: timeoutMs }).toBeGreaterThanOrEqual(3);
    await expect.poll(() => replicasAt(`${shards}/all`), { timeout: timeoutMs }).toBe(3);
    const path = `${pods.path('horizontalpodautoscalers', 'autoscaling/v2')}/missing`;
    const conditions = async () => listAt((await pods.call('GET', path)).body, 'status', 'conditions');
    await expect.poll(conditions, { timeout: timeoutMs }).toEqual([
      expect.objectContaining({
        ...{ type: 'AbleToScale', status: 'False', reason: 'FailedGetScale' },
        message:
          'the HPA controller was unable to get the target\'s current scale: deployments.apps "nosuch" not found',
      }),
    ]);
  });
});

import type { Transport } from '../../src/client/transport.ts';
import { listAt, numberAt, textAt } from '../../src/objects/json.ts';
import { until } from './until.ts';

const perDeployment = 50;
const deadlineMs = 300_000;

/** Those of a list. */
export async function items(client: Transport, path: string): Promise<readonly unknown[]> {
  return listAt((await client.request('GET', path)).json(), 'items');
}

function deployment(name: string): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: perDeployment,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          containers: [{ name: 'web', image: 'nginx', ports: [{ name: 'http', containerPort: 8080 }] }],
        },
      },
    },
  };
}

function service(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 'http' }] },
  };
}

/** Waits until so many nodes are Ready. A list of a thousand is work, too: then it is asked for less often. */
export async function untilNodesReady(client: Transport, count: number): Promise<void> {
  await until(
    'nodes ready',
    async () => {
      const all = await items(client, '/api/v1/nodes');
      return all.filter(isReady).length >= count;
    },
    { deadlineMs, pauseMs: count > 100 ? 500 : 100 },
  );
}

function isReady(node: unknown): boolean {
  return listAt(node, 'status', 'conditions').some(
    (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
  );
}

/**
 * Creates Deployments of 50 Pods, each with a Service, and waits until all Pods are available and in EndpointSlices.
 *
 * @returns how many Pods there are.
 */
export async function runDeployments(client: Transport, pods: number): Promise<number> {
  const deployments = Math.ceil(pods / perDeployment);
  const expected = deployments * perDeployment;
  const pause = pods > 5000 ? 500 : 100;
  const apps = '/apis/apps/v1/namespaces/default/deployments';
  for (let i = 0; i < deployments; i++) {
    const name = `web-${i}`;
    await client.request('POST', apps, { body: deployment(name) });
    await client.request('POST', '/api/v1/namespaces/default/services', { body: service(name) });
  }
  await until(
    'replicas available',
    async () => {
      const all = await items(client, apps);
      return (
        all.reduce<number>((sum, each) => sum + numberAt(each, 'status', 'availableReplicas'), 0) >= expected
      );
    },
    { deadlineMs, pauseMs: pause },
  );
  await until(
    'endpoints written',
    async () => {
      const slices = await items(client, '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices');
      return slices.reduce<number>((sum, slice) => sum + listAt(slice, 'endpoints').length, 0) >= expected;
    },
    { deadlineMs, pauseMs: pause },
  );
  return expected;
}

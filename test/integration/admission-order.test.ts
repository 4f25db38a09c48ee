import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { at, recordAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';
import { WebhookServer } from '../support/webhook-server.ts';

/** Built-in plugins run before policies and webhooks, which see what those have filled in. */

const group = '/apis/admissionregistration.k8s.io/v1';
const policies = `${group}/mutatingadmissionpolicies`;
const bindings = `${group}/mutatingadmissionpolicybindings`;
const configurations = `${group}/mutatingwebhookconfigurations`;
const pods = '/api/v1/namespaces/default/pods';
const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
const nodes = '/api/v1/nodes';
const ingresses = '/apis/networking.k8s.io/v1/namespaces/default/ingresses';

let server: TestServer;
let webhooks: WebhookServer;
beforeAll(async () => {
  [server, webhooks] = await Promise.all([startApiServer(), WebhookServer.start()]);
  await made('/apis/node.k8s.io/v1/runtimeclasses', {
    metadata: { name: 'kata' },
    handler: 'kata',
    overhead: { podFixed: { cpu: '250m' } },
  });
  await made('/apis/scheduling.k8s.io/v1/priorityclasses', { metadata: { name: 'high' }, value: 1000 });
  await made('/apis/networking.k8s.io/v1/ingressclasses', {
    metadata: { name: 'nginx', annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
    spec: { controller: 'example.com/nginx' },
  });
  await made(nodes, { metadata: { name: 'n', labels: { 'topology.kubernetes.io/zone': 'z' } } });
});
afterAll(async () => {
  await server.stop();
  await webhooks.stop();
});
afterEach(async () => {
  webhooks.asked.length = 0;
  for (const path of [configurations, bindings, policies, ingresses]) await send('DELETE', path);
  await send('DELETE', `${pods}?gracePeriodSeconds=0`);
});

async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  return call(server.client, method, path, { body });
}

async function made(path: string, body: object): Promise<unknown> {
  const answer = await send('POST', path, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body;
}

function rule(apiGroup: string, resource: string, operation = 'CREATE'): object {
  return { apiGroups: [apiGroup], apiVersions: ['v1'], operations: [operation], resources: [resource] };
}

/** A policy that writes the value of an expression into the annotation `seen`, which objects bring. */
async function policy(matched: object, expression: string): Promise<void> {
  const patch = `[JSONPatch{op: "replace", path: "/metadata/annotations/seen", value: ${expression}}]`;
  await made(policies, {
    metadata: { name: 'seen' },
    spec: {
      matchConstraints: { resourceRules: [matched] },
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: patch } }],
    },
  });
  await made(bindings, { metadata: { name: 'seen' }, spec: { policyName: 'seen' } });
}

/** A webhook that allows everything. @returns the object that it is asked about in the first review. */
async function webhook(matched: object): Promise<() => unknown> {
  webhooks.at('/seen', () => ({ response: { allowed: true } }));
  await made(configurations, {
    metadata: { name: 'seen' },
    webhooks: [
      {
        name: 'seen.example.com',
        clientConfig: { url: webhooks.url('/seen'), caBundle: webhooks.caBundle },
        rules: [matched],
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
      },
    ],
  });
  return () => recordAt(webhooks.asked[0]?.review, 'request', 'object');
}

const metadata = { name: 'a', annotations: { seen: '' } };
const containers = [{ name: 'c', image: 'i' }];
const pod = {
  metadata,
  spec: { runtimeClassName: 'kata', priorityClassName: 'high', nodeName: 'n', containers },
};
const backend = { service: { name: 'a', port: { number: 80 } } };
const ingress = { metadata, spec: { defaultBackend: backend } };
const tolerated = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

describe('a policy', () => {
  test.each([
    ['object.spec.tolerations.map(t, t.key).join(" ")', tolerated.join(' ')],
    ['string(object.spec.priority)', '1000'],
    ['string(object.spec.overhead["cpu"])', '250m'],
    ['object.metadata.labels["topology.kubernetes.io/zone"]', 'z'],
  ])('sees %s of a new Pod', async (expression, seen) => {
    await policy(rule('', 'pods'), expression);
    expect(at(await made(pods, pod), 'metadata', 'annotations', 'seen')).toBe(seen);
  });

  test('sees the default class of an Ingress', async () => {
    await policy(rule('networking.k8s.io', 'ingresses'), 'object.spec.ingressClassName');
    expect(at(await made(ingresses, ingress), 'metadata', 'annotations', 'seen')).toBe('nginx');
  });

  test('that adds a Pod a runtime class lets the class be applied in the second round', async () => {
    await made(policies, {
      metadata: { name: 'seen' },
      spec: {
        matchConstraints: { resourceRules: [rule('', 'pods')] },
        reinvocationPolicy: 'Never',
        mutations: [
          {
            patchType: 'JSONPatch',
            jsonPatch: {
              expression: '[JSONPatch{op: "add", path: "/spec/runtimeClassName", value: "kata"}]',
            },
          },
        ],
      },
    });
    await made(bindings, { metadata: { name: 'seen' }, spec: { policyName: 'seen' } });
    const created = await made(pods, { metadata, spec: { containers } });
    expect(at(created, 'spec', 'overhead')).toEqual({ cpu: '250m' });
  });
});

describe('a webhook', () => {
  test('sees what plugins gave a new Pod', async () => {
    const asked = await webhook(rule('', 'pods'));
    await made(pods, pod);
    expect(asked()).toMatchObject({
      metadata: { labels: { 'topology.kubernetes.io/zone': 'z' } },
      spec: {
        tolerations: tolerated.map((key) => ({ key })),
        priority: 1000,
        overhead: { cpu: '250m' },
      },
    });
  });

  test('sees the default class of an Ingress', async () => {
    const asked = await webhook(rule('networking.k8s.io', 'ingresses'));
    await made(ingresses, ingress);
    expect(at(asked(), 'spec', 'ingressClassName')).toBe('nginx');
  });

  test('sees the finalizer of a claim and the taint of a Node', async () => {
    const asked = await webhook(rule('', '*'));
    await made(`${claims}?dryRun=All`, {
      metadata,
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    expect(at(asked(), 'metadata', 'finalizers')).toEqual(['kubernetes.io/pvc-protection']);
    webhooks.asked.length = 0;
    await made(`${nodes}?dryRun=All`, { metadata });
    expect(at(asked(), 'spec', 'taints')).toEqual([
      { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
    ]);
  });

  test('sees the zone of a Binding', async () => {
    await made(pods, { metadata, spec: { containers } });
    const asked = await webhook(rule('', 'pods/binding'));
    await made(`${pods}/a/binding`, { metadata: { name: 'a' }, target: { kind: 'Node', name: 'n' } });
    expect(at(asked(), 'metadata', 'labels')).toEqual({ 'topology.kubernetes.io/zone': 'z' });
  });
});

describe('an update of a Pod', () => {
  test('that leaves out priority and default tolerations keeps them', async () => {
    await made(pods, { metadata, spec: { containers } });
    const { status, body } = await send('PUT', `${pods}/a`, { metadata, spec: { containers } });
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body).toMatchObject({ spec: { priority: 0, tolerations: tolerated.map((key) => ({ key })) } });
  });
});

test('a refusal names a Pod without a name by what its name is generated from', async () => {
  const { body } = await send('POST', pods, {
    metadata: { generateName: 'web-' },
    spec: { containers, priorityClassName: 'low' },
  });
  expect(at(body, 'message')).toBe('pods "web-" is forbidden: no PriorityClass with name low was found');
});

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';
import { patchResponse, WebhookServer } from '../support/webhook-server.ts';

const group = '/apis/admissionregistration.k8s.io/v1';
const policies = `${group}/mutatingadmissionpolicies`;
const bindings = `${group}/mutatingadmissionpolicybindings`;
const configurations = `${group}/mutatingwebhookconfigurations`;
const core = '/api/v1/namespaces/default';

let server: TestServer;
let webhooks: WebhookServer;
beforeAll(async () => {
  [server, webhooks] = await Promise.all([startApiServer(), WebhookServer.start()]);
});
afterAll(async () => {
  await server.stop();
  await webhooks.stop();
});
afterEach(async () => {
  webhooks.asked.length = 0;
  for (const path of [configurations, bindings, policies]) await send('DELETE', path);
  for (const plural of ['configmaps', 'limitranges', 'pods']) {
    await send('DELETE', `${core}/${plural}?gracePeriodSeconds=0`);
  }
});

async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  return call(server.client, method, path, { body });
}

async function made(path: string, body: object): Promise<Answer> {
  const answer = await send('POST', path, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer;
}

function rule(resource: string): object {
  return { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: [resource] };
}

type Policy = 'IfNeeded' | 'Never';

/** A policy that appends its letter to the word of a ConfigMap. */
async function appendingPolicy(letter: string, reinvocationPolicy: Policy): Promise<void> {
  const expression = `[JSONPatch{op: "replace", path: "/data/word", value: object.data.word + "${letter}"}]`;
  await made(policies, {
    metadata: { name: letter },
    spec: {
      matchConstraints: { resourceRules: [rule('configmaps')] },
      reinvocationPolicy,
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
    },
  });
  await made(bindings, { metadata: { name: letter }, spec: { policyName: letter } });
}

async function webhook(name: string, reinvocationPolicy: Policy, resource = 'configmaps'): Promise<void> {
  await made(configurations, {
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig: { url: webhooks.url(`/${name}`), caBundle: webhooks.caBundle },
        rules: [rule(resource)],
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        reinvocationPolicy,
      },
    ],
  });
}

/** A webhook that appends its letter to the word of a ConfigMap, the first times that it is asked. */
async function appendingWebhook(letter: string, reinvocationPolicy: Policy, times = Infinity): Promise<void> {
  let left = times;
  webhooks.at(`/${letter}`, (request) => {
    if (left === 0) return { response: { allowed: true } };
    left -= 1;
    const value = textAt(request, 'object', 'data', 'word') + letter;
    return patchResponse([{ op: 'replace', path: '/data/word', value }]);
  });
  await webhook(letter, reinvocationPolicy);
}

/** The letters of who has changed a new ConfigMap, in order. */
async function word(): Promise<unknown> {
  const { body } = await made(`${core}/configmaps`, { metadata: { name: 'c' }, data: { word: '' } });
  return at(body, 'data', 'word');
}

describe('when a webhook has changed an object', () => {
  test('the policies that want to are asked again, and then the webhooks, since policies changed it', async () => {
    await appendingPolicy('p', 'IfNeeded');
    await appendingPolicy('q', 'Never');
    await appendingWebhook('v', 'Never');
    await appendingWebhook('w', 'IfNeeded');
    expect(await word()).toBe('pqvwpw');
  });

  test('webhooks that do not want it are not asked again', async () => {
    await appendingPolicy('p', 'Never');
    await appendingWebhook('w', 'Never');
    expect(await word()).toBe('pw');
  });

  test('LimitRanges are applied to what it added', async () => {
    await made(`${core}/limitranges`, {
      metadata: { name: 'l' },
      spec: { limits: [{ type: 'Container', default: { cpu: '100m' }, defaultRequest: { cpu: '50m' } }] },
    });
    const added = { name: 'sidecar', image: 'sidecar:1' };
    webhooks.at('/sidecar', (request) =>
      listAt(request, 'object', 'spec', 'containers').length > 1
        ? { response: { allowed: true } }
        : patchResponse([{ op: 'add', path: '/spec/containers/-', value: added }]),
    );
    await webhook('sidecar', 'IfNeeded', 'pods');
    const { body } = await made(`${core}/pods`, {
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'main', image: 'main:1' }] },
    });
    const resources = { requests: { cpu: '50m' }, limits: { cpu: '100m' } };
    expect(listAt(body, 'spec', 'containers')).toMatchObject([{ resources }, { resources }]);
    // The second time it sees what LimitRanges have set.
    expect(webhooks.asked).toHaveLength(2);
  });
});

describe('when a policy has changed an object', () => {
  test('webhooks come after it in any case, and are not asked twice for it', async () => {
    await appendingPolicy('p', 'IfNeeded');
    await appendingWebhook('w', 'IfNeeded', 0);
    expect(await word()).toBe('p');
    expect(webhooks.asked).toHaveLength(1);
  });

  test('those before it are asked again, and the webhooks about what they did', async () => {
    await appendingPolicy('a', 'IfNeeded');
    await appendingPolicy('b', 'IfNeeded');
    await appendingWebhook('w', 'IfNeeded', 0);
    expect(await word()).toBe('abab');
    expect(webhooks.asked).toHaveLength(2);
  });
});

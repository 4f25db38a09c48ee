import { expect } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from './test-server.ts';
import { WebhookServer } from './webhook-server.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';
const configurations = '/apis/admissionregistration.k8s.io/v1';
const anyConfigMap = { operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] };

/** An API server, a server of webhooks, and what tests of the two do again and again. */
export class HookedServer {
  readonly api: TestServer;
  readonly webhooks: WebhookServer;

  private constructor(api: TestServer, webhooks: WebhookServer) {
    this.api = api;
    this.webhooks = webhooks;
  }

  static async start(): Promise<HookedServer> {
    return new HookedServer(
      await startApiServer(),
      await WebhookServer.start(['127.0.0.1', 'hook.default.svc']),
    );
  }

  async stop(): Promise<void> {
    await this.api.stop();
    await this.webhooks.stop();
  }

  /** Takes away configurations, questions and ConfigMaps. */
  async clear(): Promise<void> {
    this.webhooks.asked.length = 0;
    for (const kind of ['validating', 'mutating'])
      await this.send('DELETE', `${configurations}/${kind}webhookconfigurations`);
    await this.send('DELETE', configMaps);
  }

  async send(
    method: string,
    path: string,
    body?: unknown,
    query: Record<string, string> = {},
  ): Promise<Answer> {
    return call(this.api.client, method, path, { body, query });
  }

  /** A webhook at a path of the server of webhooks, asked about ConfigMaps. */
  webhook(path: string, changes: object = {}): object {
    return {
      name: `${path.slice(1)}.example.com`,
      clientConfig: { url: this.webhooks.url(path), caBundle: this.webhooks.caBundle },
      rules: [anyConfigMap],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      ...changes,
    };
  }

  async configure(kind: 'validating' | 'mutating', hooks: readonly object[], name = 'test'): Promise<void> {
    const answer = await this.send('POST', `${configurations}/${kind}webhookconfigurations`, {
      metadata: { name },
      webhooks: hooks,
    });
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  }

  /** Creates a ConfigMap. */
  async create(name = 'a', metadata: object = {}): Promise<Answer> {
    return this.send('POST', configMaps, { metadata: { name, ...metadata }, data: { x: '1' } });
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { describe } from 'vitest';
import type { Container, Pod, PodSpec, ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import { isRecord, type JsonRecord } from '../../../src/objects/json.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import {
  type RunPlace,
  startApiServer,
  type TestServer,
  type TestServerOptions,
} from '../../../src/testing/index.ts';
import { type Answer, call } from '../../support/test-server.ts';
import { missingFor } from './gate.ts';

/** `startApiServer({ network: true })`, and what tests do with the Pods in it. Objects are in one namespace. */
export class PodNetwork {
  readonly server: TestServer;
  readonly namespace: string;

  constructor(server: TestServer, namespace = 'default') {
    this.server = server;
    this.namespace = namespace;
  }

  static async start(options: TestServerOptions = {}): Promise<PodNetwork> {
    return new PodNetwork(await startApiServer({ network: true, nodes: 2, ...options }));
  }

  /** The same cluster in a new namespace. */
  async inNamespace(name: string): Promise<PodNetwork> {
    const inside = new PodNetwork(this.server, name);
    await inside.#post('/api/v1/namespaces', { metadata: { name } });
    return inside;
  }

  path(resource: string, group = ''): string {
    const root = group === '' ? '/api/v1' : `/apis/${group}`;
    return `${root}/namespaces/${this.namespace}/${resource}`;
  }

  call(method: string, path: string, body?: object): Promise<Answer> {
    const patch = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
    return call(this.server.client, method, path, body === undefined ? {} : { body, ...patch });
  }

  async deploy(
    name: string,
    replicas: number,
    container: Partial<Container>,
    { annotations = {}, spec = {} }: { annotations?: Record<string, string>; spec?: Partial<PodSpec> } = {},
  ): Promise<void> {
    const metadata = { labels: { app: name }, annotations };
    const template = {
      metadata,
      spec: { ...spec, containers: [{ name: 'main', image: 'x', ...container }] },
    };
    await this.#post(this.path('deployments', 'apps/v1'), {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: { replicas, selector: { matchLabels: { app: name } }, template },
    });
  }

  /** Creates a Pod with the label `app`. */
  async pod(
    name: string,
    app: string,
    container: Partial<Container>,
    { annotations = {}, spec = {} }: { annotations?: Record<string, string>; spec?: Partial<PodSpec> } = {},
  ): Promise<void> {
    await this.#post(this.path('pods'), {
      metadata: { name, labels: { app }, annotations },
      spec: {
        terminationGracePeriodSeconds: 0,
        ...spec,
        containers: [{ name: 'main', image: 'x', ...container }],
      },
    });
  }

  /** Creates a Service of port 80 unless the spec says otherwise, of the Pods with its name as `app`. */
  async service(
    name: string,
    spec: Partial<ServiceSpec>,
    targetPort: number,
    labels: Record<string, string> = {},
  ): Promise<ServiceSpec> {
    const stored = await this.#post(this.path('services'), {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, labels } },
      spec: { selector: { app: name }, ports: [{ port: 80, targetPort }], ...spec },
    });
    return stored['spec'] as ServiceSpec;
  }

  async delete(resource: string, name: string, group = ''): Promise<void> {
    const { status, body } = await this.call('DELETE', `${this.path(resource, group)}/${name}`);
    if (status >= 300) throw new Error(JSON.stringify(body));
  }

  /** The InternalIPs of a node. */
  async addressesOf(node: string): Promise<readonly string[]> {
    const { body } = await this.call('GET', `/api/v1/nodes/${node}`);
    return listAt(body, 'status', 'addresses').flatMap((address) =>
      textAt(address, 'type') === 'InternalIP' ? [textAt(address, 'address')] : [],
    );
  }

  /** The Pods with this label `app`, once so many run, and are ready unless `ready` is false. */
  async running(app: string, count: number, { ready = true } = {}): Promise<readonly Pod[]> {
    return await until(
      async () => {
        const query = { labelSelector: `app=${app}` };
        const { body } = await call(this.server.client, 'GET', this.path('pods'), { query });
        return (body['items'] as Pod[]).filter(
          ({ metadata, status }) =>
            metadata.deletionTimestamp === undefined &&
            status.phase === 'Running' &&
            (!ready ||
              status.conditions?.some(
                (condition) => condition.type === 'Ready' && condition.status === 'True',
              ) === true),
        );
      },
      (pods) => pods.length >= count,
    );
  }

  async curl(where: RunPlace, url: string, ...flags: readonly string[]): Promise<string> {
    return (await this.server.run(['curl', '-s', '--max-time', '2', ...flags, url], where)).stdout;
  }

  /** curl exits with 7 for a refusal, and with 28 for silence. */
  async isRefused(where: RunPlace, url: string): Promise<boolean> {
    return (await this.server.run(['curl', '-sS', '--max-time', '2', url], where)).exitCode === 7;
  }

  /** The JSON that a Pod answers; undefined: no answer. */
  async get(where: RunPlace, url: string): Promise<JsonRecord | undefined> {
    const text = await this.curl(where, url);
    const answer: unknown = text === '' ? undefined : JSON.parse(text);
    return isRecord(answer) ? answer : undefined;
  }

  /** The names of the Pods that answer so many connections at once, sorted; without those that none answered. */
  async namesOf(where: RunPlace, url: string, connections = 40): Promise<readonly string[]> {
    // One program makes all of them: to start one for each takes most of the time of a test.
    const flags = ['--parallel', '--parallel-immediate', '--header', 'Connection: close'];
    const names = await this.curl(where, `${url}/hostname#[1-${connections}]`, ...flags);
    return [...new Set(names.split('\n').filter((line) => line !== ''))].sort();
  }

  async #post(path: string, body: object): Promise<JsonRecord> {
    const answer = await this.call('POST', path, body);
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    return answer.body;
  }
}

export function inUrl(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** Asks again until the answer is good; fails after a minute. */
export async function until<T>(ask: () => Promise<T>, good: (answer: T) => boolean): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if (good(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`still not, after a minute: ${JSON.stringify(answer)}`);
    await delay(20);
  }
}

const missing = missingFor('user');

/**
 * Describes tests that need a {@link PodNetwork}; where the machine cannot make one they are skipped by name.
 *
 * @param others what else is missing for them; empty: nothing.
 */
export function describePods(name: string, tests: () => void, others = ''): void {
  const all = [missing, others].filter(Boolean).join(', ');
  describe.skipIf(all !== '')(`${name}${all === '' ? '' : ` (missing: ${all})`}`, tests);
}

import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/client/clock.ts';
import { createTransport } from '../../src/client/connect.ts';
import { EventSender } from '../../src/client/events/event-sender.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import { PermissionTracker } from '../../src/client/permission-tracker.ts';
import { forwardingSelectors, NodeAgent } from '../../src/node/forwarding/agent.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { textAt } from '../../src/objects/json.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { applyStrictly, kustomizeWith } from '../support/manifests.ts';
import { PermissionRecorder } from '../support/permission-recorder.ts';
import { grantsOf } from '../support/role-rules.ts';
import { call } from '../support/test-server.ts';
import { missingFor } from './support/gate.ts';
import { startNetwork, type TestNetwork } from './support/network.ts';
import { agentOptions, forwardingOptions } from './support/objects.ts';

const missing = missingFor('user');
const accounts = '/api/v1/namespaces/servicenet-system/serviceaccounts';
const services = '/api/v1/namespaces/default/services';
const isOfAgent = ({ kind, metadata }: KubeObject): boolean =>
  ['servicenet-node', 'servicenet-agent'].includes(metadata.name ?? '') || kind === 'Namespace';
const objects = kustomizeWith(['agent', 'node']).filter(isOfAgent);
const grants = grantsOf(objects);

describe.skipIf(missing !== '')(`the rights of the node agent${missing && ` (missing: ${missing})`}`, () => {
  let network: TestNetwork;
  let server: TestServer;
  let token: string;

  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': [] });
    server = await startApiServer({ authorizationMode: 'RBAC', serviceClusterIpRange: '10.96.0.0/16' });
    await applyStrictly(server.client, objects);
    const { body } = await call(server.client, 'POST', `${accounts}/servicenet-agent/token`, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    });
    token = textAt(body, 'status', 'token');
    await send('POST', '/api/v1/nodes', {
      metadata: { name: 'node-1' },
      status: { addresses: [{ type: 'InternalIP', address: network.at('node-1').addresses.IPv4 }] },
    });
    for (const name of ['older', 'newer']) {
      await send('POST', services, {
        metadata: { name },
        spec: { ports: [{ port: 80 }], externalIPs: ['203.0.113.1'] },
      });
    }
  });

  afterAll(async () => {
    await server.stop();
    await network.close();
  });

  async function send(method: string, path: string, body: object): Promise<void> {
    const contentType = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
    const answer = await call(server.client, method, path, { body, ...contentType });
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  }

  /**
   * Runs the agent until the condition holds, while a conflict between two Services comes and goes: each time it says so
   * in the same Event.
   */
  async function exercise(
    watchList: boolean,
    done: (asked: readonly string[], refused: readonly string[]) => boolean,
  ): Promise<void> {
    const refused: string[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => refused.push(...refusalsIn(line)) });
    const inner = await createTransport({ kind: 'endpoint', url: server.url, ca: server.ca, token });
    const recorder = new PermissionRecorder(inner, { watchList, lagging: undefined });
    const transport = new PermissionTracker(recorder, log, systemClock);
    const metrics = new Metrics();
    const common = { transport, clock: systemClock, random: Math.random, log, metrics };
    const informers = new InformerFactory({ ...common, labelSelectors: forwardingSelectors });
    const events = new EventSender({ ...common, component: 'servicenet-node' });
    const stopping = new AbortController();
    const { serviceCIDRs: _, ...forwarding } = forwardingOptions;
    const agent = new NodeAgent({
      context: { ...common, informers, events },
      ...{ host: network.at('node-1').machine.host, nodeName: 'node-1', forwarding, ...agentOptions },
    });
    const running = agent.run(stopping.signal);
    informers.start(stopping.signal);
    try {
      for (let round = 0; !done(recorder.phrases(), refused); round++) {
        if (round === 600) throw new Error(`refused: ${refused.join()}; asked: ${recorder.phrases().join()}`);
        const externalIPs = [round % 2 === 0 ? '203.0.113.2' : '203.0.113.1'];
        await send('PATCH', `${services}/newer`, { spec: { externalIPs } });
        await sleep(100);
      }
    } finally {
      stopping.abort();
      await Promise.all([running, informers.finished(), events.close()]);
      await inner.close();
    }
  }

  test('are those that it uses, no more and no less', async () => {
    const asked = new Set<string>();
    // Whether a server streams its lists or not: old ones do not.
    for (const watchList of [true, false]) {
      const wanted = grants.filter(({ verb }) => !watchList || verb !== 'list');
      await exercise(watchList, (phrases, refused) => {
        expect(refused).toEqual([]);
        for (const phrase of phrases) asked.add(phrase);
        return wanted.every(({ name }) => asked.has(name));
      });
    }
    expect([...asked].sort()).toEqual(grants.map(({ name }) => name).sort());
  });

  test.each(grants)('without "$name" something is refused', async ({ name, verb, role, without }) => {
    await applyStrictly(server.client, [without]);
    try {
      await exercise(verb !== 'list', (_, refused) => refused.includes(name));
    } finally {
      await applyStrictly(server.client, [role]);
    }
  });
});

/** What a log line says was refused: `list services`. */
function refusalsIn(line: string): string[] {
  const [, phrase] = /not allowed to (\S+ [^: ]+)/.exec(line) ?? [];
  return phrase === undefined ? [] : [phrase];
}

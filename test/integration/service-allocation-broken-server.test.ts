import { describe, expect, it } from 'vitest';
import { readServiceCidrs } from '../../src/flags/shared.ts';
import { serviceAllocationController } from '../../src/controllers/service-allocation/controller.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { at } from '../../src/objects/json.ts';
import { runAgainst } from '../support/controllers-of-a-script.ts';
import type { Exchange } from '../support/scripted-server.ts';
import { until } from '../support/until.ts';

/** Objects that no schema allows. All have a name: the cache drops objects without one. */
const garbage: readonly JsonRecord[] = [
  { metadata: { name: 'no-spec', namespace: 'a' } },
  {
    metadata: { name: 'numbers', namespace: 'a' },
    spec: { ports: 7, clusterIPs: [1], type: {} },
    status: [],
  },
  {
    metadata: { name: 'nulls', namespace: 'a', resourceVersion: '3', labels: null, annotations: 9 },
    spec: { ports: [null, []], clusterIP: 3 },
  },
  {
    metadata: { name: '__proto__', namespace: 'constructor', resourceVersion: '4' },
    spec: { type: 'NodePort', ports: [{ port: 'x' }] },
  },
  {
    metadata: {
      name: 'many',
      namespace: 'a',
      annotations: { 'servicenet.dev/allocation-claim': '1,'.repeat(90_000) },
    },
    spec: {
      type: 'NodePort',
      ports: Array.from({ length: 100_000 }, () => ({ port: 80, nodePort: 99_999 })),
    },
  },
];

/** A server with Services only: no status subresource, ServiceCIDRs or IPAddresses. */
class MinimalServer {
  readonly good: JsonRecord = {
    metadata: { name: 'good', namespace: 'a', resourceVersion: '7' },
    spec: { ports: [{ port: 80 }] },
  };
  readonly patches: string[] = [];
  #watch: Exchange | undefined;
  #revision = 10;

  answer(exchange: Exchange): void {
    if (exchange.query.has('sendInitialEvents')) exchange.status(400, 'BadRequest');
    else if (exchange.path !== '/api/v1/services' && exchange.method === 'GET')
      exchange.status(404, 'NotFound');
    else if (exchange.isWatch) {
      this.#watch = exchange.watch();
      // Patches before the watch began are events of it.
      if (this.#revision > 10) this.#tell();
    } else if (exchange.method === 'GET') {
      exchange.json(200, {
        metadata: { resourceVersion: '10' },
        items: [...garbage, this.good, 5, null, 'x'],
      });
    } else if (exchange.method === 'PATCH') this.#patch(exchange);
    else exchange.status(405, 'MethodNotAllowed');
  }

  /** Stores patches of the valid Service, and sends each event twice and late. */
  #patch(exchange: Exchange): void {
    this.patches.push(`${exchange.path} ${exchange.body}`);
    const body: unknown = JSON.parse(exchange.body);
    if (!exchange.path.endsWith('/services/good') || !isRecord(body)) {
      exchange.status(422, 'Invalid');
      return;
    }
    this.good['metadata'] = {
      name: 'good',
      namespace: 'a',
      resourceVersion: String(++this.#revision),
      annotations: at(body, 'metadata', 'annotations'),
    };
    if (isRecord(body['spec']))
      this.good['spec'] = { ...(isRecord(this.good['spec']) ? this.good['spec'] : {}), ...body['spec'] };
    exchange.json(200, this.good);
    this.#tell();
  }

  #tell(): void {
    this.#watch
      ?.event('MODIFIED', this.good)
      .event('MODIFIED', this.good)
      .event('MODIFIED', { metadata: {} });
  }
}

describe('service-allocation on a minimal, broken server', () => {
  it('allocates for the valid Service, and neither crashes nor loops on the others', async () => {
    const server = new MinimalServer();
    const options = { allocation: 'controller', nodePorts: { first: 30_000, last: 30_010 } } as const;
    const { clock, problems } = await runAgainst(server, 'error', (transport) => ({
      controllers: [
        serviceAllocationController({ ...options, transport, serviceCidrs: readServiceCidrs('10.0.0.0/24') }),
      ],
    }));
    await until(() => at(server.good, 'spec', 'clusterIP') !== undefined);
    expect(at(server.good, 'metadata', 'annotations', 'servicenet.dev/allocation-claim')).toBeNull();
    const good = server.patches.filter((patch) => patch.includes('/services/good'));
    expect(good).toHaveLength(2);
    // Failed ones are requeued with a growing delay.
    await clock.advance(2000);
    const soon = server.patches.length;
    await clock.advance(2000);
    expect(server.patches.length - soon).toBeLessThan(10);
    expect(server.patches.filter((patch) => patch.includes('/services/good'))).toHaveLength(2);
    // One Service has no resourceVersion, without which no write is safe.
    expect(server.patches.filter((patch) => patch.includes('/services/many'))).toEqual([]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain('without resourceVersion');
  });
});

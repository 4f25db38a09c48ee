import { afterAll, beforeAll, expect, test } from 'vitest';
import { heavyRequests } from '../support/watchdog/heavy-requests.ts';
import { HeavyServer } from '../support/watchdog/heavy-server.ts';

/** Of each kind of work those that took longest before it was cut into steps; `heavy-requests.long` sends all. */
const worst = new Set([
  'YAML: binary',
  'ConfigMap: keys',
  'metadata: finalizers',
  'custom: alternatives',
  'custom: a pattern with many states',
  'definition: enums',
  'definition: many rules',
  'ResourceQuota: scopes',
  'json patch: a long path',
  'apply: a set',
  'apply: a set in another order',
  'policy: variables',
  'policy: pairs',
  'policy: binding',
  'policy: judged',
  'label selector: values',
  'OpenAPI v2 as protobuf',
]);

let server: HeavyServer;
beforeAll(async () => {
  server = await HeavyServer.start(0);
});
afterAll(async () => server.stop());

test('the heaviest requests do not hold the event loop', { timeout: 600_000 }, async () => {
  const requests = heavyRequests().filter(({ name }) => worst.has(name));
  expect(requests).toHaveLength(worst.size);
  expect(await server.faultsOf(requests)).toEqual([]);
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { heavyRequests, largeDefinitions } from '../support/watchdog/heavy-requests.ts';
import { HeavyServer, maxTurnMs } from '../support/watchdog/heavy-server.ts';

let server: HeavyServer;
beforeAll(async () => {
  server = await HeavyServer.start(10_000);
}, 300_000);
afterAll(async () => server.stop());

test('no request holds the event loop', { timeout: 1_800_000 }, async () => {
  expect(await server.faultsOf(heavyRequests())).toEqual([]);
});

test('a definition takes the same time however large the others are', { timeout: 300_000 }, async () => {
  const turns: number[] = [];
  for (const request of largeDefinitions(41)) turns.push((await server.turnOf(request)).turnMs);
  const last = turns.slice(-5).toSorted((a, b) => a - b);
  expect(last[2]).toBeLessThan(maxTurnMs);
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { runHostileClients } from '../support/hostile/run.ts';
import { WatchedServer } from '../support/watchdog/watched-server.ts';
import { slowness } from '../support/reference-time.ts';

const seconds = Number(process.env['HOSTILE_SECONDS'] ?? 60);

let server: WatchedServer;
beforeAll(async () => {
  server = await WatchedServer.start();
});
afterAll(async () => server.stop());

test(
  'hostile clients of all kinds take neither time nor memory from others',
  { timeout: 500_000 },
  async () => {
    const { p99Ms, requests, rounds, before, after } = await runHostileClients(server, seconds * 1000);
    console.log(
      `hostile clients: p99 ${p99Ms.toFixed(1)} ms of CPU in ${requests} requests, ${JSON.stringify({ rounds, before, after })}`,
    );
    for (const kind of [
      'badYaml',
      'definitions',
      'pausedWatchers',
      'patterns',
      'connections',
      'http2Floods',
      'pausedHttp2Watchers',
      'webSockets',
      'proxiedNonsense',
    ]) {
      expect(rounds).toHaveProperty(kind);
    }
    // It waits behind a few turns of the event loop, each of them below 200 ms.
    expect(p99Ms / slowness()).toBeLessThan(500);
    expect(after.heapMiB - before.heapMiB).toBeLessThan(40);
    // Freed memory goes back within ten seconds, V8's own when it was idle for two minutes. Code that was not loaded before
    // and the history of 32 MiB stay, and what lies between blocks in use: 110 MiB in the worst of the runs so far. What
    // is held for ever grows with the attack, by 250 MiB a minute and more.
    await expect
      .poll(() => server.residentMiB() - before.residentMiB, { timeout: 150_000, interval: 2_000 })
      .toBeLessThan(160);
  },
);

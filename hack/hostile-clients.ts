/**
 * Lets hostile clients loose on a server: `node hack/hostile-clients.ts [minutes]`, 30 unless it is given. Fails where
 * another client waits for long, or memory is not where it was once the history of the changes (five minutes) is over.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { runHostileClients } from '../test/support/hostile/run.ts';
import { WatchedServer } from '../test/support/watchdog/watched-server.ts';

/** Minutes for which the server remembers changes, and a little more (storage/event-window.ts). */
const historyMinutes = 5.5;

const minutes = Number(process.argv[2] ?? 30);
const server = await WatchedServer.start();
const result = await runHostileClients(server, minutes * 60_000);
await sleep(historyMinutes * 60_000);
// It forgets when it stores.
await server.client.request('POST', '/api/v1/namespaces', { body: { metadata: { name: 'later' } } });
await sleep(30_000);
const later = await server.measure(true);
console.log(JSON.stringify({ ...result, later }, undefined, 2));
await server.stop();
const { p99Ms, before } = result;
const isBack = later.heapMiB - before.heapMiB < 20 && later.residentMiB - before.residentMiB < 160;
process.exitCode = p99Ms < 500 && isBack ? 0 : 1;

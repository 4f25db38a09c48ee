/**
 * Lets hostile clients loose on a server: `node hack/hostile-clients.ts [minutes]`, 30 unless it is given. Fails where
 * another client waits for long, objects stay, or memory still grows in the last quarter: 15 minutes or more are needed
 * until V8 and malloc keep as much as they ever will.
 */
import { runHostileClients } from '../test/support/hostile/run.ts';
import { WatchedServer } from '../test/support/watchdog/watched-server.ts';

const minutes = Number(process.argv[2] ?? 30);
const server = await WatchedServer.start();
const result = await runHostileClients(server, minutes * 60_000);
console.log(JSON.stringify(result, undefined, 2));
await server.stop();
const { p99Ms, before, after, residentMiB } = result;
const quarter = residentMiB.length / 4;
const most = (from: number): number => Math.max(...residentMiB.slice(from * quarter, (from + 1) * quarter));
const isLevel = most(3) < 1.15 * Math.max(most(1), most(2));
process.exitCode = p99Ms < 250 && after.heapMiB - before.heapMiB < 40 && isLevel ? 0 : 1;

/** Lets hostile clients loose on a server: `node hack/hostile-clients.ts [minutes]`, 30 unless it is given. */
import { runHostileClients } from '../test/support/hostile/run.ts';
import { WatchedServer } from '../test/support/watchdog/watched-server.ts';

const minutes = Number(process.argv[2] ?? 30);
const server = await WatchedServer.start();
const result = await runHostileClients(server, minutes * 60_000);
console.log(JSON.stringify(result, undefined, 2));
await server.stop();
process.exitCode = result.p99Ms < 250 ? 0 : 1;

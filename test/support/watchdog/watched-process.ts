/** An API server in a process of its own, whose turns are measured. Started by `watched-server.ts`. */
import v8 from 'node:v8';
import vm from 'node:vm';
import { pino } from 'pino';
import { returnUnusedMemory } from '../../../src/host/unused-memory.ts';
import { startApiServer } from '../../../src/testing/index.ts';
import type { Measures } from './watched-server.ts';
import { TurnWatchdog } from './turns.ts';

const server = await startApiServer({
  serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112',
  logLevel: process.env['FUZZ_LOG'] === undefined ? 'silent' : 'error',
});
// As the command `up` does.
returnUnusedMemory(pino({ level: 'silent' }));
const watchdog = new TurnWatchdog();

v8.setFlagsFromString('--expose-gc');
const collect: unknown = vm.runInNewContext('gc');

process.on('message', (question) => {
  if (question === 'collect' && typeof collect === 'function') Reflect.apply(collect, undefined, []);
  const { rss, heapUsed } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const measures: Measures = {
    longestTurnMs: watchdog.longest(),
    cpuMs: (user + system) / 1000,
    residentMiB: rss / 2 ** 20,
    heapMiB: heapUsed / 2 ** 20,
  };
  process.send?.(measures);
});
process.once('disconnect', () => {
  watchdog.stop();
  void server.stop().finally(() => process.exit());
});
process.send?.({ url: server.url, token: server.token, ca: server.ca });

/**
 * The router against haproxy and against a bare pipe (node:http in, undici out), in one run: 1 KB
 * answers over kept connections, each server a process of its own. `node test/bench/router.ts`; haproxy has to be in PATH.
 * All traffic stays in a network namespace of its own.
 */
import { isInside, podAddress, runInside } from './own-network.ts';
import { compareRouters } from './routing.ts';

const seconds = Number(process.env['SECONDS_EACH'] ?? 4);
const rounds = 3;

if (!isInside()) runInside([podAddress]);
const loads = await compareRouters(['haproxy', 'pipe', 'router'], rounds, seconds);
for (const [name, { perSecond, p50, p99, residentMiB }] of loads) {
  console.log(
    `${name.padEnd(8)} ${perSecond.toFixed(0).padStart(7)} requests/s  p50 ${p50.toFixed(2)} ms  p99 ${p99.toFixed(2)} ms  ${residentMiB.toFixed(0)} MiB`,
  );
}

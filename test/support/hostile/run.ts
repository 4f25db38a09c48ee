import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { recordAt } from '../../../src/objects/json.ts';
import type { Measures, WatchedServer } from '../watchdog/watched-server.ts';

export interface HostileResult {
  /** Milliseconds of CPU that the server took between a request of the other client and its answer: the 99th of 100. */
  readonly p99Ms: number;
  /** As many were measured. */
  readonly requests: number;
  /** Rounds by kind of hostile client. */
  readonly rounds: Readonly<Record<string, unknown>>;
  readonly before: Measures;
  readonly after: Measures;
  /** Resident MiB while the attack lasted, at equal distances. */
  readonly residentMiB: readonly number[];
}

/** Samples of the memory in an attack. */
const samples = 20;

/**
 * Lets hostile clients of all kinds loose on a server, and works beside them as a client that means no harm. Its waiting
 * is measured in CPU time of the server's main thread: what else the machine does is not counted.
 */
export async function runHostileClients(server: WatchedServer, milliseconds: number): Promise<HostileResult> {
  const before = await server.measure(true);
  const waits: number[] = [];
  const residentMiB: number[] = [];
  const begin = performance.now();
  const path = '/api/v1/namespaces/default/configmaps/harmless';
  await server.client.request('POST', '/api/v1/namespaces/default/configmaps', {
    body: { metadata: { name: 'harmless' } },
  });
  const rounds = await attackFor(server, milliseconds, async (n) => {
    if (performance.now() - begin > (residentMiB.length * milliseconds) / samples)
      residentMiB.push(server.residentMiB());
    const cpuBefore = server.mainThreadMs();
    if (n % 2 === 0) await server.client.request('GET', path);
    else {
      const body = { data: { n: String(n) } };
      await server.client.request('PATCH', path, { body, contentType: 'application/merge-patch+json' });
    }
    waits.push(server.mainThreadMs() - cpuBefore);
    await sleep(20);
  });
  const after = await server.measure(true);
  waits.sort((a, b) => a - b);
  return {
    p99Ms: waits[Math.floor(waits.length * 0.99)] ?? 0,
    requests: waits.length,
    rounds,
    before,
    after,
    residentMiB,
  };
}

/** @param beside is done again and again while the attack lasts. */
async function attackFor(
  { url, ca, token }: WatchedServer,
  milliseconds: number,
  beside: (n: number) => Promise<void>,
): Promise<Readonly<Record<string, unknown>>> {
  const child = fork(new URL('./process.ts', import.meta.url), { execArgv: [] });
  const answer = new Promise<unknown>((resolve) => child.once('message', resolve));
  const end = once(child, 'exit');
  child.send({ url, ca, token });
  const until = performance.now() + milliseconds;
  for (let n = 0; performance.now() < until; n++) {
    await beside(n);
    await sleep(5);
  }
  child.send('stop');
  const rounds = await answer;
  await end;
  return recordAt(rounds);
}

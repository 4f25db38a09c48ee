import { expect, test } from 'vitest';
import { LeaderElector } from '../../../src/client/leases.ts';
import { ResourceClient } from '../../../src/client/resource-client.ts';
import { leases } from '../../../src/client/resources.ts';
import { ConnectionError } from '../../../src/client/transport.ts';
import { forbidden, internalError } from '../../../src/objects/status.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** How many lines a lease takes that cannot be had for five minutes. */
async function linesWhile(error: Error): Promise<number> {
  const clock = new FakeClock();
  const stop = new AbortController();
  const lines: string[] = [];
  let tries = 0;
  const elector = new LeaderElector({
    client: new ResourceClient(
      {
        server: 'https://api',
        request: () => {
          tries++;
          return Promise.reject(error);
        },
        stream: () => Promise.reject(error),
        close: () => Promise.resolve(),
      },
      leases,
    ),
    namespace: 'a',
    name: 'b',
    identity: 'me',
    clock,
    random: () => 0,
    log: createLog({ level: 'info', format: 'json', destination: { write: (line) => lines.push(line) } }),
  });
  const running = elector.run(stop.signal, () => Promise.resolve());
  while (clock.monotonic() < 290_000) await clock.advance(2000);
  expect(tries).toBeGreaterThan(100);
  stop.abort();
  await running;
  return lines.filter((line) => line.includes('could not take or renew the lease')).length;
}

test('a lease that the server fails to give takes a line a minute', async () => {
  expect(await linesWhile(internalError('broken', undefined))).toBe(5);
});

test('a lease takes no line of its own where the transport says what is wrong', async () => {
  expect(await linesWhile(new ConnectionError('ECONNREFUSED', 'refused'))).toBe(0);
  expect(await linesWhile(forbidden({ group: 'coordination.k8s.io', resource: 'leases' }, 'b', 'no'))).toBe(
    0,
  );
});

import { pino } from 'pino';
import { expect, test } from 'vitest';
import { PermissionTracker } from '../../../src/client/permission-tracker.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { StatusError } from '../../../src/objects/status.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const forbidden = 'endpoints is forbidden: User "u" cannot create resource "endpoints" in namespace "gone"';
const refusing: Transport = {
  server: 'https://127.0.0.1',
  request: () => Promise.reject(new StatusError(403, 'Forbidden', forbidden)),
  stream: () => Promise.reject(new StatusError(403, 'Forbidden', forbidden)),
  close: () => Promise.resolve(),
};

test('a refusal counts until what was refused is not asked for any more', async () => {
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const transport = new PermissionTracker(refusing, log, clock);
  const ask = async (): Promise<void> => {
    const asked = transport.request('POST', '/api/v1/namespaces/gone/endpoints');
    await expect(asked).rejects.toThrow(forbidden);
  };
  const check = (): string | undefined => transport.healthCheck().check();
  const minutes = 60_000;

  await ask();
  expect(check()).toBe('not allowed: create endpoints in namespace gone');
  // Work that failed often waits longest: some 20 minutes.
  await clock.advance(25 * minutes);
  await ask();
  expect(lines).toHaveLength(1);
  await clock.advance(25 * minutes);
  expect(check()).toBe('not allowed: create endpoints in namespace gone');
  // The namespace is gone, and no requests come any more.
  await clock.advance(10 * minutes);
  expect(check()).toBeUndefined();
  await ask();
  expect(lines).toHaveLength(2);
});

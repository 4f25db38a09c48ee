import { expect, it } from 'vitest';
import { SyncHealth } from '../../../../src/node/forwarding/health.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const minute = 60_000;

it('is healthy before the first sync, while nothing changes, and while a change is young', async () => {
  const clock = new FakeClock();
  const health = new SyncHealth(clock);
  health.queued();
  await clock.advance(2 * minute);
  expect(health.isHealthy).toBe(true);
  health.begin();
  health.synced();
  await clock.advance(10 * minute);
  expect(health.isHealthy).toBe(true);
  health.queued();
  await clock.advance(minute - 1);
  expect(health.isHealthy).toBe(true);
  await clock.advance(1);
  expect(health.isHealthy).toBe(false);
});

it('counts from the oldest change that is not written, through syncs that fail', async () => {
  const clock = new FakeClock();
  const health = new SyncHealth(clock);
  health.begin();
  health.synced();
  health.queued();
  await clock.advance(minute / 2);
  health.begin(); // It fails.
  health.queued();
  await clock.advance(minute / 2);
  expect(health.isHealthy).toBe(false);
  health.begin();
  health.synced();
  expect(health.isHealthy).toBe(true);
});

it('keeps what came during a sync', async () => {
  const clock = new FakeClock();
  const health = new SyncHealth(clock);
  health.begin();
  health.queued();
  await clock.advance(minute);
  health.synced();
  expect(health.isHealthy).toBe(false);
});

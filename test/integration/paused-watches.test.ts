import { test } from 'vitest';
import { leavePausedWatches } from '../support/paused-watches.ts';

test(
  '100 watchers that do not read, and then go, take neither memory nor the time of others',
  { timeout: 300_000 },
  async () => leavePausedWatches(100),
);

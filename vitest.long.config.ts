import { inOrder, options } from './vitest.config.ts';

/** `npm run test:long`: all of what `npm test` takes a sample of, and what takes long. */
export default {
  test: {
    ...options,
    maxWorkers: 6,
    setupFiles: ['test/support/fast-check.ts', 'test/support/time-limit.ts'],
    include: [
      'test/**/*.long.test.ts',
      'test/e2e/e2e.test.ts',
      'test/integration/fuzz.test.ts',
      'test/integration/deploy-rights{,-endpoints}.test.ts',
      'test/simulation/{attachments-kill,storage-kill,storage-power-cut,up-kill}.test.ts',
      'test/unit/controllers/load-balancer/histories.test.ts',
    ],
    exclude: [],
    // The gate runs as much of this as it has time for: hostile clients always.
    sequence: { sequencer: inOrder(['simulation/hostile-clients', 'e2e/', 'simulation/faults']) },
    env: {
      FUZZ_REQUESTS: '20000',
      HISTORIES: '5000',
      RIGHTS: 'each',
      SERVICENET_ATTACHMENT_KILLS: '20',
      SERVICENET_E2E: 'all',
      SERVICENET_KILL_ROUNDS: '200',
      SERVICENET_POWER_CUTS: '100',
      SERVICENET_UP_KILL_ROUNDS: '20',
    },
  },
};

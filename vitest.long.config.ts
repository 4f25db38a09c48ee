import base from './vitest.config.ts';

/** `npm run test:long`: all of what `npm test` takes a sample of, and what takes long. */
export default {
  test: {
    ...base.test,
    setupFiles: ['test/support/fast-check.ts', 'test/support/time-limit.ts'],
    include: [
      'test/**/*.long.test.ts',
      'test/integration/fuzz.test.ts',
      'test/simulation/{storage-kill,storage-power-cut,up-kill}.test.ts',
    ],
    exclude: [],
    env: {
      FUZZ_REQUESTS: '20000',
      SERVICENET_KILL_ROUNDS: '200',
      SERVICENET_POWER_CUTS: '100',
      SERVICENET_UP_KILL_ROUNDS: '20',
    },
  },
};

import { defineConfig } from 'vitest/config';

/** `npm run test:network`: packets in network namespaces, each file in namespaces of its own. */
export default defineConfig({
  test: {
    setupFiles: ['test/support/fast-check.ts', 'test/support/time-limit.ts'],
    include: ['test/network/**/*.test.ts'],
    exclude: ['test/**/*.long.test.ts'],
    passWithNoTests: true,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    // Each file has namespaces of its own, and waits for more than half of its time.
    maxWorkers: 2,
  },
});

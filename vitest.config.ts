import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    setupFiles: ['test/support/fast-check.ts'],
    include: ['test/**/*.test.ts'],
    // Only a test that hangs takes this long: a busy machine may stop any process for seconds.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    // Two cores: more workers than that only make deadlines in tests tighter.
    maxWorkers: 2,
    reporters: process.env['CI'] === 'true' ? ['default'] : ['default'],
  },
});

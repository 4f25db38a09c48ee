import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    setupFiles: ['test/support/fast-check.ts'],
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Two cores: more workers than that only make deadlines in tests tighter.
    maxWorkers: 2,
    reporters: process.env['CI'] === 'true' ? ['default'] : ['default'],
  },
});

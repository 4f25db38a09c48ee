import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take longest, the longest first. */
const longest = [
  ...['e2e/e2e', 'integration/e2e-calls-network', 'conformance/', 'simulation/faults'],
  ...['integration/e2e-calls', 'package/', 'integration/up', 'integration/kubectl'],
  ...['integration/paused-watches', 'simulation/', 'unit/regular-expressions', 'integration/'],
];

/**
 * A fresh clone knows no durations, and vitest would begin with the largest files. The longest are small: begun last,
 * they would keep one worker busy when the other has nothing left to do.
 *
 * @param first parts of the paths of the files to begin with, in this order.
 */
export function inOrder(first: readonly string[]): typeof BaseSequencer {
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const rank = ({ moduleId }: TestSpecification): number => {
        const found = first.findIndex((name) => moduleId.includes(`/test/${name}`));
        return found === -1 ? first.length : found;
      };
      return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
    }
  };
}

/** What `npm test`, `npm run test:long` and `npm run test:network` have alike. */
export const options = {
  setupFiles: ['test/support/fast-check.ts'],
  // Node.js runs src as it is, here as everywhere: nothing is transformed before it.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // A worker loads src once, not once for each of its files: a third of the CPU time of the unit tests.
  isolate: false,
  // Only a test that hangs takes this long: a busy machine may stop any process for seconds.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  teardownTimeout: 60_000,
  expect: { poll: { timeout: 60_000, interval: 40 } },
};

/** Of a test of which the gate runs as much as begins in its time (SERVICENET_TESTS_UNTIL). */
export const inTime = {
  runner: 'test/support/in-time-runner.ts',
  setupFiles: [...options.setupFiles, 'test/support/time-limit.ts'],
};

/** Measures CPU time, which is longer beside others that use the same caches: runs behind all others, by itself. */
const alone = 'test/integration/heavy-requests.test.ts';

/** `npm test`. What takes longer is in vitest.long.config.ts, packets are in vitest.network.config.ts. */
export default defineConfig({
  test: {
    sequence: { sequencer: inOrder(longest) },
    // Three times the gate's cores: tests of processes and controllers mostly wait.
    maxWorkers: 6,
    projects: [
      {
        test: {
          ...options,
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.long.test.ts', 'test/network/**', 'test/page/**', alone],
        },
      },
      { test: { ...options, name: 'alone', include: [alone], sequence: { groupOrder: 1 } } },
    ],
  },
});

import { defineConfig } from 'vitest/config';
import { inOrder, options } from './vitest.config.ts';

/** `npm run test:page`: the page in a browser. */
export default defineConfig({
  test: {
    ...options,
    include: ['test/page/**/*.test.ts'],
    sequence: { sequencer: inOrder(['page/states', 'page/up']) },
    // A browser and what it looks at take a core each.
    maxWorkers: 2,
    globalSetup: 'test/page/support/build.ts',
  },
});

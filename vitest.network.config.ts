import { defineConfig } from 'vitest/config';
import { inOrder, options } from './vitest.config.ts';

/**
 * What the gate runs first in its time: packets by Services and policies, then each other part with the fewest
 * clusters that show it, then the rest.
 */
const first = [
  ...['walking-skeleton', 'forwarding-packets', 'services/reachability', 'services/traffic-policy'],
  ...['policy/packets', 'services/external', 'policy/bridge', 'policy/policy-agent', 'conntrack', 'health'],
  ...['announcing/layer2', 'announcing/bgp.test', 'egress/', 'emulation/pods', 'emulation/streams', 'agent'],
  ...['services/session-affinity', 'services/userspace', 'services/detect-local', 'services/bad-input'],
  ...['e2e/services', 'e2e/networking', 'emulation/up', 'node-rights', 'announcing/bgp-peers'],
  ...['emulation/attachments', 'emulation/containers', 'e2e/webhooks', 'e2e/workloads', 'faults'],
  ...['announcing/crash', 'e2e/programs'],
].map((file) => `network/${file}`);

/** `npm run test:network`: packets in network namespaces, each file in namespaces of its own. */
export default defineConfig({
  test: {
    ...options,
    setupFiles: ['test/support/fast-check.ts', 'test/support/time-limit.ts'],
    include: ['test/network/**/*.test.ts'],
    exclude: ['test/**/*.long.test.ts'],
    passWithNoTests: true,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    sequence: { sequencer: inOrder(first) },
    // Each file has namespaces of its own, and waits for more than half of its time.
    maxWorkers: 2,
  },
});

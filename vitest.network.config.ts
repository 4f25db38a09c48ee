import { defineConfig } from 'vitest/config';
import { inOrder, inTime, options } from './vitest.config.ts';

/** What the gate always runs: packets by Services and policies, then of each other part the file that shows it. */
const always = [
  ...[
    'walking-skeleton',
    'forwarding-packets',
    'services/reachability',
    'policy/packets',
    'announcing/layer2',
  ],
  ...['announcing/bgp', 'egress/egress', 'emulation/pods', 'emulation/hostile-clients', 'agent'],
].map((file) => `test/network/${file}.test.ts`);

/** What comes first of the others: of each part what shows most of it with the fewest clusters. */
const first = [
  ...['services/traffic-policy', 'services/external', 'policy/bridge', 'policy/policy-agent', 'conntrack'],
  ...['health', 'egress/', 'emulation/streams', 'services/session-affinity', 'services/userspace'],
  ...['services/detect-local', 'services/bad-input', 'e2e/services', 'e2e/networking', 'emulation/up'],
  ...['node-rights', 'announcing/bgp-peers', 'emulation/attachments', 'emulation/containers'],
  ...['emulation/agnhost', 'e2e/workloads', 'faults', 'announcing/crash', 'e2e/programs'],
  'emulation/trace-hosts',
].map((file) => `network/${file}`);

const network = { ...options, expect: { poll: { timeout: 60_000, interval: 20 } } };

/** `npm run test:network`: packets in network namespaces, each file in namespaces of its own. */
export default defineConfig({
  test: {
    passWithNoTests: true,
    sequence: { sequencer: inOrder([...always.map((file) => file.replace('test/', '')), ...first]) },
    // Each file has namespaces of its own, and waits for more than half of its time.
    maxWorkers: 3,
    projects: [
      { test: { ...network, name: 'always', include: always } },
      {
        test: {
          ...network,
          ...inTime,
          name: 'rest',
          include: ['test/network/**/*.test.ts'],
          exclude: ['test/**/*.long.test.ts', ...always],
        },
      },
    ],
  },
});

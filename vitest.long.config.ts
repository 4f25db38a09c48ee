import { defineConfig } from 'vitest/config';
import { inOrder, inTime, options } from './vitest.config.ts';

/** What the gate always runs. */
const always = ['test/simulation/hostile-clients.long.test.ts'];

const long = {
  ...options,
  env: {
    FUZZ_REQUESTS: '20000',
    PROPERTY_RUNS: 'all',
    RIGHTS: 'each',
    SERVICENET_ATTACHMENT_KILLS: '20',
    SERVICENET_ATTACHMENT_SEEDS: '5',
    SERVICENET_E2E: 'all',
    SERVICENET_KILL_ROUNDS: '200',
    SERVICENET_POWER_CUTS: '100',
    SERVICENET_UP_KILL_ROUNDS: '20',
  },
};

/** `npm run test:long`: all of what `npm test` takes a sample of, and what takes long. */
export default defineConfig({
  test: {
    maxWorkers: 6,
    sequence: { sequencer: inOrder(['simulation/hostile-clients', 'e2e/', 'simulation/faults']) },
    projects: [
      { test: { ...long, name: 'always', include: always } },
      {
        test: {
          ...long,
          ...inTime,
          name: 'rest',
          include: [
            'test/**/*.long.test.ts',
            'test/e2e/e2e.test.ts',
            'test/integration/fuzz.test.ts',
            'test/integration/{deploy-rights{,-endpoints},page-rights}.test.ts',
            'test/simulation/{attachments-faults,attachments-kill,storage-kill,storage-power-cut,up-kill}.test.ts',
            // What takes its number of cases from support/runs.ts.
            'test/unit/apiserver/schema/yaml/write-yaml.test.ts',
            'test/unit/apiserver/storage/{ordered-tree,disk/damage}.test.ts',
            'test/unit/cel/patterns.test.ts',
            'test/unit/controllers/{load-balancer/histories,service-allocation/two-instances}.test.ts',
            'test/unit/controllers/workloads/deployments/plan.test.ts',
            'test/contract/{disk,memory}-storage.test.ts',
            'test/unit/network/{announcing/{agent,membership},bgp/codec,forwarding/properties,path/reach}.test.ts',
            'test/unit/node/nftables/writer.test.ts',
            'test/unit/{registry/core/service/histories,runtime/queue}.test.ts',
          ],
          exclude: always,
        },
      },
    ],
  },
});

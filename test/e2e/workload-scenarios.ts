import { conformance, other, packets, type Scenario } from './scenarios.ts';

const workloads = 'test/network/e2e/workloads.test.ts';

const portForwarding =
  'Kubectl Port forwarding should support a client that connects, sends DATA, and disconnects';
const updateDemo = 'Update Demo should create and stop, and scale a replication controller';
const execs = 'Simple pod should support exec, and through kubectl proxy, and return command exit codes';

/** Of sig-cli, sig-apps and sig-api-machinery those whose point is what containers do; API calls: `e2e-coverage.md`. */
export const workloadScenarios: readonly Scenario[] = [
  conformance(
    'Kubectl client Guestbook application should create and stop a working application',
    packets(workloads, 'Guestbook application should create and stop a working application'),
  ),
  ...['create and stop', 'scale'].map((what) =>
    conformance(
      `Kubectl client Update Demo should ${what} a replication controller`,
      packets(workloads, updateDemo),
    ),
  ),
  ...['exec', 'exec through kubectl proxy', 'exec using resource/name'].map((what) =>
    other(`Kubectl client Simple pod should support ${what}`, packets(workloads, execs)),
  ),
  other('Kubectl client Simple pod should return command exit codes', packets(workloads, execs)),
  ...['0.0.0.0', 'localhost'].flatMap((address) =>
    ['sends NO DATA', 'sends DATA'].map((what) =>
      other(
        `Kubectl Port forwarding With a server listening on ${address} that expects a client request should support a client that connects, ${what}, and disconnects`,
        packets(workloads, portForwarding),
      ),
    ),
  ),
  conformance(
    'StatefulSet Basic StatefulSet functionality Scaling should happen in predictable order and halt if any stateful pod is unhealthy',
    packets(
      workloads,
      'StatefulSet Scaling should happen in predictable order and halt if any stateful pod is unhealthy',
    ),
  ),
  conformance(
    'Aggregator Should be able to support the 1.17 Sample API Server using the current Aggregator',
    packets(
      workloads,
      'Aggregator Should be able to support the 1.17 Sample API Server using the current Aggregator',
    ),
  ),
];

import { conformance, other, packets, type Scenario } from './scenarios.ts';

const workloads = 'test/network/e2e/workloads.test.ts';

const webhooks = 'test/network/e2e/webhooks.test.ts';
const mutated = 'should mutate custom resource, with different stored version, and with pruning';
const changed = 'patching/updating a validating webhook should work, and of a mutating webhook';
const listed = 'listing validating webhooks should work, and mutating webhooks';
const conditions =
  'should be able to create and update webhook configurations with match conditions, and mutate everything except skip-me configmaps';
const converted =
  'CustomResourceConversionWebhook should be able to convert from CR v1 to CR v2, and a non homogeneous list of CRs';
const webhook = (name: string, test = name): Scenario =>
  conformance(`AdmissionWebhook ${name}`, packets(webhooks, test));

const portForwarding =
  'Kubectl Port forwarding should support a client that connects, sends DATA, and disconnects';
const updateDemo = 'Update Demo should create and stop, and scale a replication controller';
const execs = 'Simple pod should support exec, and through kubectl proxy, and return command exit codes';

const admission: readonly Scenario[] = [
  ...[
    'should be able to deny pod and configmap creation',
    'should include webhook resources in discovery documents',
    'should be able to deny attaching pod',
    'should be able to deny custom resource creation, update and deletion',
    'should unconditionally reject operations on fail closed webhook',
    'should mutate configmap',
    'should mutate pod and apply defaults after mutation',
    'should not be able to mutate or prevent deletion of webhook configuration objects',
    'should deny crd creation',
    'should honor timeout',
  ].map((name) => webhook(name)),
  webhook('should mutate custom resource', mutated),
  webhook('should mutate custom resource with different stored version', mutated),
  webhook('should mutate custom resource with pruning', mutated),
  ...['validating', 'mutating'].flatMap((kind) => [
    webhook(`patching/updating a ${kind} webhook should work`, changed),
    webhook(`listing ${kind} webhooks should work`, listed),
    webhook(
      `should be able to create and update ${kind} webhook configurations with match conditions`,
      conditions,
    ),
    webhook(`should reject ${kind} webhook configurations with invalid match conditions`, conditions),
  ]),
  webhook("should mutate everything except 'skip-me' configmaps", conditions),
];

/** Of sig-cli, sig-apps and sig-api-machinery those whose point is what containers do; API calls: `e2e-coverage.md`. */
export const workloadScenarios: readonly Scenario[] = [
  ...admission,
  ...['be able to convert from CR v1 to CR v2', 'be able to convert a non homogeneous list of CRs'].map(
    (what) => conformance(`CustomResourceConversionWebhook should ${what}`, packets(webhooks, converted)),
  ),
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
    'Job should run a job to completion when tasks sometimes fail and are locally restarted',
    packets(
      workloads,
      'Job should run a job to completion when tasks sometimes fail and are locally restarted',
    ),
  ),
  ...['schedule multiple jobs concurrently', 'not schedule new jobs when ForbidConcurrent'].map((what) =>
    conformance(
      `CronJob should ${what}`,
      packets(
        'test/network/e2e/cron-jobs.long.test.ts',
        'should schedule multiple jobs concurrently, not when ForbidConcurrent, and finish what has ended',
      ),
    ),
  ),
];

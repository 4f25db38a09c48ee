import type { CatalogEntry } from './run.ts';
import { cronJobsController } from './workloads/cron-jobs/controller.ts';
import { daemonSetsController } from './workloads/daemon-sets/controller.ts';
import { deploymentsController } from './workloads/deployments/controller.ts';
import { disruptionController } from './disruption-budgets/controller.ts';
import { jobsController } from './workloads/jobs/controller.ts';
import { kubelet, type KubeletSettings } from './kubelet/controller.ts';
import { nodesController, type NodesOptions } from './nodes/controller.ts';
import {
  replicaSetsController,
  replicationControllersController,
} from './workloads/replica-sets/controller.ts';
import type { ControllerDefinition } from '../runtime/context.ts';
import { budgetEvents } from './workloads/event-budget.ts';
import { scheduler } from './scheduler/controller.ts';
import { statefulSetsController } from './workloads/stateful-sets/controller.ts';
import { taintEvictionController } from './taint-eviction.ts';

/** Simulated nodes, and kube-controller-manager's controllers of workloads. */
export function simulationControllers(options: NodesOptions & KubeletSettings): readonly CatalogEntry[] {
  const entry = (definition: ControllerDefinition, eventSource: string): CatalogEntry => ({
    name: definition.name,
    start: (context) => definition.start({ ...context, events: budgetEvents(context.events, context.clock) }),
    onByDefault: true,
    eventSource,
  });
  return [
    entry(nodesController(options), 'node-controller'),
    entry(scheduler, 'default-scheduler'),
    entry(kubelet(options), 'kubelet'),
    entry(taintEvictionController, 'taint-eviction-controller'),
    entry(deploymentsController, 'deployment-controller'),
    entry(replicaSetsController, 'replicaset-controller'),
    entry(replicationControllersController, 'replication-controller'),
    entry(statefulSetsController, 'statefulset-controller'),
    entry(daemonSetsController, 'daemonset-controller'),
    entry(jobsController, 'job-controller'),
    entry(cronJobsController, 'cronjob-controller'),
    entry(disruptionController, 'controllermanager'),
  ];
}

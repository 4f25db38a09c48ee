import { type CatalogEntry, specEntry } from './run.ts';
import { cronJobsController } from './workloads/cron-jobs/controller.ts';
import { daemonSetsController } from './workloads/daemon-sets/controller.ts';
import { deploymentsController } from './workloads/deployments/controller.ts';
import { disruptionController } from './disruption-budgets/controller.ts';
import { jobsController } from './workloads/jobs/controller.ts';
import { kubeletController, type KubeletSettings } from './kubelet/controller.ts';
import { nodesController, type NodesOptions } from './nodes/controller.ts';
import {
  replicaSetsController,
  replicationControllersController,
} from './workloads/replica-sets/controller.ts';
import { budgetEvents } from './workloads/event-budget.ts';
import { schedulerController } from './scheduler/controller.ts';
import { statefulSetsController } from './workloads/stateful-sets/controller.ts';
import { taintEvictionController } from './taint-eviction.ts';

/** Simulated nodes, and kube-controller-manager's controllers of workloads. */
export function simulationControllers(options: NodesOptions & KubeletSettings): readonly CatalogEntry[] {
  return [
    specEntry(nodesController(options)),
    specEntry(schedulerController),
    specEntry(kubeletController(options)),
    specEntry(taintEvictionController),
    specEntry(deploymentsController),
    specEntry(replicaSetsController),
    specEntry(replicationControllersController),
    specEntry(statefulSetsController),
    specEntry(daemonSetsController),
    specEntry(jobsController),
    specEntry(cronJobsController),
    specEntry(disruptionController),
  ].map(withEventBudget);
}

function withEventBudget(entry: CatalogEntry): CatalogEntry {
  return {
    ...entry,
    start: (context) => entry.start({ ...context, events: budgetEvents(context.events, context.clock) }),
  };
}

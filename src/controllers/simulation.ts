import { type CatalogEntry, catalogEntry, specEntry } from './run.ts';
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
import { budgetEvents } from './workloads/event-budget.ts';
import { scheduler } from './scheduler/controller.ts';
import { statefulSetsController } from './workloads/stateful-sets/controller.ts';
import { taintEvictionController } from './taint-eviction.ts';

/** Simulated nodes, and kube-controller-manager's controllers of workloads. */
export function simulationControllers(options: NodesOptions & KubeletSettings): readonly CatalogEntry[] {
  return [
    catalogEntry(nodesController(options), 'node-controller'),
    catalogEntry(scheduler, 'default-scheduler'),
    catalogEntry(kubelet(options), 'kubelet'),
    catalogEntry(taintEvictionController, 'taint-eviction-controller'),
    specEntry(deploymentsController),
    specEntry(replicaSetsController),
    specEntry(replicationControllersController),
    specEntry(statefulSetsController),
    specEntry(daemonSetsController),
    specEntry(jobsController),
    specEntry(cronJobsController),
    catalogEntry(disruptionController, 'controllermanager'),
  ].map(withEventBudget);
}

function withEventBudget(entry: CatalogEntry): CatalogEntry {
  return {
    ...entry,
    start: (context) => entry.start({ ...context, events: budgetEvents(context.events, context.clock) }),
  };
}

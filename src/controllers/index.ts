/** Entry point of `servicenet/controller`: the controllers, and how to run them against any API server. */
export { type CatalogOptions, clusterControllers } from './catalog.ts';
export type { CatalogEntry } from './run.ts';
export { auditCluster, type ClusterAudit } from './service-allocation/cluster-audit.ts';
export { controllersBesideACluster, serviceAllocation } from './service-controllers.ts';
export type { ServiceAllocationOptions } from './service-allocation/controller.ts';
export { runControllers, type RunningControllers, type RunOptions } from './run.ts';
export type { ControllerContext, ControllerDefinition, Runnable } from '../runtime/context.ts';
export type { NodesOptions } from './nodes/controller.ts';
export { createTransport } from '../client/connect.ts';
export type { ClusterSource, Transport } from '../client/transport.ts';
export { ResourceClient } from '../client/resource-client.ts';
export type { ResourceType } from '../client/resources.ts';
export {
  Controller,
  type ControllerOptions,
  type EnqueueOptions,
  Priority,
  type Reconcile,
  type ReconcileResult,
  TerminalError,
} from '../runtime/controller.ts';
export type { LeaderElectionSettings } from '../runtime/leadership.ts';

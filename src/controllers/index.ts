/** The controllers, and how to run them against any API server. */
export { clusterControllers } from './catalog.ts';
export { auditCluster, type ClusterAudit } from './service-allocation/audit-reconciler.ts';
export { serviceAllocation } from './catalog.ts';
export { type CatalogEntry, runControllers, type RunningControllers } from './run.ts';
export { Controller } from '../runtime/key-loop.ts';
export type { LeaderElectionSettings } from '../runtime/leadership.ts';

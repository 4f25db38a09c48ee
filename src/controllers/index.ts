/** The controllers, and how to run them against any API server. */
export { clusterControllers } from './catalog.ts';
export { auditClusterAttachments } from './attachments/cluster-audit.ts';
export { type IPPoolReport, reportIPPools } from './attachments/plan-report.ts';
export { auditCluster, type ClusterAudit } from './service-allocation/cluster-audit.ts';
export { controllersBesideACluster, serviceAllocation } from './catalog.ts';
export { type CatalogEntry, runControllers, type RunningControllers } from './run.ts';
export { Controller } from '../runtime/controller.ts';
export type { LeaderElectionSettings } from '../runtime/leadership.ts';

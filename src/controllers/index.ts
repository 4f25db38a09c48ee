/** Entry point of `servicenet/controller`: the controllers, and how to run them against any API server. */
export { type CatalogEntry, type CatalogOptions, clusterControllers } from './catalog.ts';
export {
  controllersBesideACluster,
  type ServiceControllerOptions,
  serviceControllers,
} from './service-controllers.ts';
export { runControllers, type RunningControllers, type RunOptions } from './run.ts';
export type { ControllerContext, ControllerDefinition, Runnable } from './runtime/context.ts';
export type { NodesOptions } from './nodes/controller.ts';

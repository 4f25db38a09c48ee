/**
 * Entry point of `servicenet`: an embedded API server, and the controllers to run beside it or against a cluster. The
 * parts have entry points of their own: `servicenet/apiserver`, `servicenet/controller`, `servicenet/testing`.
 */
export { type Embedded, type EmbeddedOptions, startEmbedded } from './apiserver/embedded.ts';
export {
  clusterControllers,
  controllersBesideACluster,
  createTransport,
  runControllers,
  type RunningControllers,
  type RunOptions,
  type Transport,
} from './controllers/index.ts';
export { version } from './telemetry/version.ts';

/** The embedded API server as a library: `import { startEmbedded } from 'servicenet/apiserver'`. */
export { type Embedded, type EmbeddedOptions, startEmbedded } from './embedded.ts';
export type { ApiServer, ApiServerOptions, AuthorizationMode } from './server.ts';
export type { Refusal, RefuseRequest } from './http/refusal.ts';
export type { DialPod } from './proxy/dial-pod.ts';

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { UpConfig } from '../config/up.ts';
import { type End, endInReverse } from './ending.ts';

/** The way of `up`'s clients to their server. */
export interface ServerAccess {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}

/** The clients of `up` at work. */
export interface RunningClients {
  /** What to print once they have started. Rejects when they could not start, or died. */
  readonly introduction: Promise<string>;
  /** Rejects when they die; otherwise never settles. */
  readonly failure: Promise<never>;
  /** Lets running work finish, then ends them. */
  stop(): Promise<void>;
}

/**
 * From so many simulated nodes on, the clients have a thread. With fewer there is too little to do for a second core,
 * and a thread takes 20 MiB.
 */
const manyNodes = 16;

/**
 * What `up-clients.ts` is made of, in pieces that take some 10 ms of a core each. In one piece they would hold up the
 * first requests of a server for the time that all of them take.
 */
const pieces: readonly (() => Promise<unknown>)[] = [
  () => import('../client/connect.ts'),
  () => import('../client/informer-factory.ts'),
  () => import('../controllers/service-endpoints/endpoint-slices/controller.ts'),
  () => import('../controllers/load-balancer/controller.ts'),
  () => import('../controllers/kubelet/controller.ts'),
  () => import('../controllers/simulation.ts'),
  () => import('../controllers/catalog.ts'),
  () => import('../controllers/index.ts'),
];

/** Starts what `up` does as a client of its own server. They meet over HTTP alone, wherever the clients run. */
export async function startClients(
  config: UpConfig,
  server: ServerAccess,
  log: Logger,
): Promise<RunningClients> {
  if (config.nodes >= manyNodes) {
    const { startClientsThread } = await import('./clients-thread.ts');
    return startClientsThread(config, server);
  }
  for (const load of pieces) {
    await load();
    await nextTurn();
  }
  const { runClients } = await import('./up-clients.ts');
  const started: End[] = [];
  const { url, ca, token } = server;
  const running = runClients({ config, server: { kind: 'endpoint', url, ca, token }, log, started });
  return {
    introduction: running,
    failure: new Promise(() => undefined),
    stop: async () => {
      await Promise.allSettled([running]);
      await endInReverse(started);
    },
  };
}

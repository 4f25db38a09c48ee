import { once } from 'node:events';
import { getCompileCacheDir } from 'node:module';
import { dirname, extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { UpConfig } from '../config/up.ts';
import type { RunningClients, ServerAccess } from './clients.ts';

/** What the thread is started with; it arrives as a structured clone. */
export interface ThreadStart {
  readonly config: Omit<UpConfig, 'serviceCidrs'>;
  /** `--service-cluster-ip-range`: the ranges themselves are of a class. */
  readonly serviceCidrs: string;
  readonly server: ServerAccess;
}

/** What the thread says. */
export type ThreadMessage =
  | { readonly kind: 'started'; readonly introduction: string }
  | { readonly kind: 'failed'; readonly message: string };

/**
 * MiB that the thread's objects may take. Young ones: three times V8's semi-space of 8 MiB. Old ones: a thousand nodes full of
 * Pods need 1400; below 2000 V8 lets a heap grow in smaller steps.
 */
const heap = { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 1800 };

/**
 * Runs {@link ./up-clients.ts} in a thread of its own: server and controllers then share two cores, and a busy
 * controller delays no answer. They meet over HTTP alone, as in a cluster.
 */
export function startClientsThread(config: UpConfig, server: ServerAccess): RunningClients {
  const { serviceCidrs, ...rest } = config;
  const start: ThreadStart = {
    config: rest,
    serviceCidrs: serviceCidrs.map(({ range }) => range.text).join(','),
    server: { url: server.url, ca: server.ca, token: server.token },
  };
  // The file is TypeScript in the source tree, JavaScript in the package.
  const file = new URL(`./up-thread${extname(import.meta.filename)}`, import.meta.url);
  const worker = new Worker(file, {
    workerData: start,
    env: { ...process.env, ...compileCache() },
    resourceLimits: heap,
  });
  let stopping = false;
  const exited = once(worker, 'exit');
  const failure = new Promise<never>((_resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => {
      if (!stopping) reject(new Error('the thread of the controllers ended'));
    });
  });
  const started = new Promise<string>((resolve, reject) => {
    worker.once('message', (message: ThreadMessage) => {
      if (message.kind === 'started') resolve(message.introduction);
      else reject(new Error(message.message));
    });
  });
  // They are told to whoever waits; nobody has to.
  for (const promise of [exited, failure, started]) promise.catch(() => undefined);
  return {
    introduction: Promise.race([started, failure]),
    failure,
    stop: async () => {
      stopping = true;
      worker.postMessage('stop');
      await exited;
    },
  };
}

/** A thread does not inherit the cache that was turned on by a call. */
function compileCache(): { NODE_COMPILE_CACHE?: string } {
  const folder = getCompileCacheDir();
  // Node adds a folder for its version to the one that it is told.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}

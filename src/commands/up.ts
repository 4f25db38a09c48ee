import { flushCompileCache } from 'node:module';
import type { Logger } from 'pino';
import { type Embedded, startEmbedded } from '../apiserver/embedded.ts';
import type { UpConfig } from '../config/up.ts';
import { createLog } from '../telemetry/log.ts';
import { removeKubeconfig, writeKubeconfig } from './kubeconfig-file.ts';
import { type End, endInReverse } from './ending.ts';
import { giveBackMemory } from './memory.ts';
import { runProgram } from './run-program.ts';
import { exitCodes, untilSignal } from './signals.ts';

/**
 * Runs the embedded API server until a signal comes, or the program ends that is to run against it.
 * @returns the exit code.
 */
export async function up(config: UpConfig): Promise<number> {
  const alone = config.program.length === 0;
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  const signal = untilSignal(log);
  // What was started, to be ended in reverse, however far the start came.
  const started: End[] = [];
  try {
    const server = await startEmbedded({
      bindAddress: config.bindAddress,
      port: config.port,
      serviceCidrs: config.serviceCidrs,
      nodePorts: config.nodePorts,
      authorizationMode: config.authorizationMode,
      allocation: config.allocation,
      log,
      ...(config.token === undefined ? {} : { adminToken: config.token }),
      ...(config.dataDir === undefined ? {} : { dataDirectory: config.dataDir }),
    });
    started.push(() => server.close());
    await writeKubeconfig(config.kubeconfigPath, server.kubeconfig);
    started.push(() => removeKubeconfig(config.kubeconfigPath, server.kubeconfig));
    if (alone)
      process.stdout.write(`servicenet is ready: ${server.url} (${Math.round(performance.now())} ms)\n`);
    // Half of the code is the controllers and their client: it is loaded while the server answers already.
    const { startClients } = await import('./clients.ts');
    const clients = await startClients(config, server, log);
    started.push(() => clients.stop());
    const introduced = clients.introduction.then((introduction) => ({ introduction }));
    const begun = await Promise.race([introduced, signal.received]);
    if (typeof begun === 'string') return alone ? 0 : exitCodes[begun];
    if (alone) process.stdout.write(begun.introduction);
    // Else only a process that ends in peace leaves its compiled code to the next one.
    flushCompileCache();
    giveBackMemory(log);
    const { failure } = clients;
    if (!alone) {
      const { program, kubeconfigPath: kubeconfig } = config;
      return await runProgram({ program, kubeconfig, interrupted: signal.received, failure });
    }
    const ended = Promise.race([signal.received, failure]);
    if (config.liveView && process.stdout.isTTY) await watch(config, server, log, ended);
    await ended;
    return 0;
  } finally {
    await endInReverse(started).finally(() => signal.release());
  }
}

/** What people see who start it by hand: everything as it changes, until they stop it. */
async function watch(
  config: UpConfig,
  { url, ca, token }: Embedded,
  log: Logger,
  ended: Promise<unknown>,
): Promise<void> {
  const { showLiveView } = await import('./top/live-view.ts');
  const { createTransport } = await import('../client/connect.ts');
  const transport = await createTransport({ kind: 'endpoint', url, ca, token });
  const ending = new AbortController();
  const end = (): void => ending.abort();
  ended.then(end, end);
  const title = `${url}  export KUBECONFIG=${config.kubeconfigPath}  (Ctrl-C stops it)`;
  try {
    await showLiveView({ transport, log, namespace: undefined, title }, ending.signal);
  } finally {
    await transport.close();
  }
}

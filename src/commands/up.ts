import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { startEmbedded } from '../apiserver/embedded.ts';
import { createTransport } from '../client/connect.ts';
import type { Transport } from '../client/transport.ts';
import type { UpConfig } from '../config/up.ts';
import {
  type CatalogEntry,
  clusterControllers,
  runControllers,
  serviceAllocation,
} from '../controllers/index.ts';
import { selectControllers } from '../controllers/runtime/selection.ts';
import { createLog } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { applyFiles } from './apply.ts';
import { offerAddresses, untilServed } from './default-pool.ts';
import { serviceTable } from './service-table.ts';
import { untilSignal } from './signals.ts';
import { startTelemetryServer } from './telemetry-server.ts';

/** Milliseconds that the introduction waits for the addresses of LoadBalancer Services. */
const patience = 2000;
const loadBalancer = 'load-balancer-controller';

/** Runs the embedded API server until a signal comes. */
export async function up(config: UpConfig): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  const signal = untilSignal(log);
  // What was started, to be ended in reverse, however far the start came.
  const started: (() => Promise<void>)[] = [];
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
    const metrics = new Metrics();
    const client = await createTransport(
      { kind: 'endpoint', url: server.url, ca: server.ca, token: server.token },
      metrics,
    );
    started.push(() => client.close());
    const known = catalog(config, client, server.ca);
    const balancing = selectControllers(config.controllers, known).includes(loadBalancer);
    await writeKubeconfig(config.kubeconfigPath, server.kubeconfig);
    started.push(() => rm(config.kubeconfigPath, { force: true }));
    process.stdout.write(`servicenet is ready: ${server.url} (${Math.round(performance.now())} ms)\n`);
    // Before the controllers, so that the first Services find the pool there.
    if (balancing) await offerAddresses(client, config.defaultPool);
    const controllers = runControllers({
      transport: client,
      catalog: known,
      controllers: config.controllers,
      log,
      metrics,
    });
    started.push(() => controllers.stop());
    const telemetry = await startTelemetryServer({
      address: config.metricsBindAddress,
      metrics,
      ready: () => controllers.healthChecks(),
      log,
    });
    started.push(() => telemetry.close());
    const applied = await applyFiles(client, config.apply);
    if (balancing && applied.length > 0) await untilServed(client, patience);
    process.stdout.write(await introduction(config, applied, () => serviceTable(client)));
    if (config.liveView && process.stdout.isTTY) await watch(config, client, log, signal.received);
    await signal.received;
  } finally {
    for (const end of started.reverse()) await end();
    signal.release();
  }
}

/** What people see who start it by hand: everything as it changes, until they stop it. */
async function watch(
  config: UpConfig,
  transport: Transport,
  log: Logger,
  stopped: Promise<void>,
): Promise<void> {
  const { showLiveView } = await import('./top/live-view.ts');
  const ending = new AbortController();
  void stopped.then(() => ending.abort());
  const title = `${transport.server}  export KUBECONFIG=${config.kubeconfigPath}  (Ctrl-C stops it)`;
  await showLiveView({ transport, log, namespace: undefined, title }, ending.signal);
}

/** The controllers that may run; those of a cluster all do by default. */
function catalog(config: UpConfig, transport: Transport, rootCa: string): readonly CatalogEntry[] {
  const { nodes: count, clusterCidrs, allocation, serviceCidrs, nodePorts } = config;
  const simulation = count === 0 ? {} : { simulation: { count, clusterCidrs } };
  const options = { transport, allocation, serviceCidrs, nodePorts };
  const cluster = clusterControllers({ transport, rootCa, ...simulation });
  return [
    // The load balancer too: offerAddresses brings what it needs.
    ...cluster.map((entry) => (entry.name === loadBalancer ? { ...entry, onByDefault: true } : entry)),
    // Our own server needs no audit.
    serviceAllocation(options, allocation === 'controller'),
  ];
}

/** Only its owner may read it: it holds the administrator's token. */
async function writeKubeconfig(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await rm(path, { force: true });
  await writeFile(path, text, { mode: 0o600, flag: 'wx' });
}

async function introduction(
  config: UpConfig,
  applied: readonly string[],
  services: () => Promise<string>,
): Promise<string> {
  const lines = applied.map((line) => `  ${line}`);
  return [
    ...(lines.length === 0 ? [] : ['', 'Applied:', ...lines]),
    '',
    await services(),
    'Try it:',
    `  export KUBECONFIG=${config.kubeconfigPath}`,
    '  kubectl get services --all-namespaces',
    '  kubectl create service nodeport hello --tcp=80:8080',
    '  kubectl explain service.spec.ports',
    '  kubectl get services --watch',
    '',
    'Stop it with Ctrl-C.',
    '',
  ].join('\n');
}

import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { startEmbedded } from '../apiserver/embedded.ts';
import { createTransport } from '../client/connect.ts';
import type { UpConfig } from '../config/up.ts';
import { clusterControllers, runControllers } from '../controllers/index.ts';
import { createLog } from '../telemetry/log.ts';
import { applyFiles } from './apply.ts';
import { serviceTable } from './service-table.ts';
import { untilSignal } from './signals.ts';

/** Runs the embedded API server until a signal comes. */
export async function up(config: UpConfig): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  const signal = untilSignal(log);
  const server = await startEmbedded({
    bindAddress: config.bindAddress,
    port: config.port,
    serviceCidrs: config.serviceCidrs,
    nodePorts: config.nodePorts,
    authorizationMode: config.authorizationMode,
    log,
    ...(config.token === undefined ? {} : { adminToken: config.token }),
    ...(config.dataDir === undefined ? {} : { dataDirectory: config.dataDir }),
  });
  const client = await createTransport({
    kind: 'endpoint',
    url: server.url,
    ca: server.ca,
    token: server.token,
  });
  const controllers = runControllers({
    transport: client,
    catalog: clusterControllers({
      transport: client,
      rootCa: server.ca,
      ...(config.nodes === 0 ? {} : { simulation: { count: config.nodes, clusterCidrs: config.clusterCidrs } }),
    }),
    controllers: config.controllers,
    log,
  });
  try {
    await writeKubeconfig(config.kubeconfigPath, server.kubeconfig);
    try {
      process.stdout.write(`servicenet is ready: ${server.url} (${Math.round(performance.now())} ms)\n`);
      const applied = await applyFiles(client, config.apply);
      process.stdout.write(await introduction(config, applied, () => serviceTable(client)));
      await signal.received;
    } finally {
      await rm(config.kubeconfigPath, { force: true });
    }
  } finally {
    await controllers.stop();
    await client.close();
    await server.close();
    signal.release();
  }
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

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTransport } from '../client/connect.ts';
import type { ClusterSource, Transport } from '../client/transport.ts';
import type { ClusterConfig } from '../flags/shared.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Logger } from 'pino';
import type { HealthCheck, Peers } from '../telemetry/health.ts';
import { kubeconfigOfUp } from './choices.ts';

/**
 * How to reach the API server, by the flags.
 *
 * @throws {Error} when a file cannot be read, or the kubeconfig has no usable cluster.
 */
export async function connectCluster(cluster: ClusterConfig, metrics?: Metrics): Promise<Transport> {
  return createTransport(await clusterSource(cluster), metrics);
}

/** Where the API server is, with the files that the flags name. @throws {Error} when a file cannot be read. */
export async function clusterSource(cluster: ClusterConfig): Promise<ClusterSource> {
  if (cluster.kind === 'kubeconfig') return cluster;
  const { certificateAuthority, ...source } = cluster;
  const ca = certificateAuthority === undefined ? {} : { ca: await readFile(certificateAuthority) };
  return { ...source, ...ca };
}

/**
 * The cluster of a command that people use beside an `up`: that of the flags or of `$KUBECONFIG`, then that of a running
 * `up`, where `run` looks, then those of {@link connectCluster}.
 */
export async function reportedCluster(cluster: ClusterConfig): Promise<ClusterConfig> {
  const { KUBECONFIG: named = '', HOME: home = '' } = process.env;
  if (cluster.kind === 'endpoint' || cluster.path !== undefined || named !== '') return cluster;
  const path = kubeconfigOfUp();
  if (!existsSync(path)) return cluster;
  const { isOfRunningServer } = await import('./local-cluster/kubeconfig.ts');
  if (!(await isOfRunningServer(path))) return cluster;
  if (home !== '' && existsSync(join(home, '.kube', 'config'))) {
    process.stderr.write(`servicenet: the cluster is that of servicenet up (--kubeconfig ${path})\n`);
  }
  return { ...cluster, path };
}

/** The words that name the same cluster in a command to copy. */
export function clusterFlagsOf(cluster: ClusterConfig): readonly string[] {
  if (cluster.kind === 'endpoint') {
    const { url, tokenFile, certificateAuthority } = cluster;
    return [
      ...['--server', url],
      ...(tokenFile === undefined ? [] : ['--token-file', tokenFile]),
      ...(certificateAuthority === undefined ? [] : ['--certificate-authority', certificateAuthority]),
    ];
  }
  return [
    ...(cluster.path === undefined ? [] : ['--kubeconfig', cluster.path]),
    ...(cluster.context === undefined ? [] : ['--context', cluster.context]),
  ];
}

export interface TelemetryServerOptions {
  /** Undefined: none. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  readonly metrics: Metrics;
  readonly ready: () => readonly HealthCheck[];
  /** Constant answers, by path. */
  readonly texts?: Readonly<Record<string, string>>;
  readonly peers?: Peers | undefined;
  readonly log: Logger;
}

/** Serves `/healthz`, `/readyz` and `/metrics` if the flags say so. @throws {Error} when it cannot listen. */
export async function startTelemetryServer(
  options: TelemetryServerOptions,
): Promise<{ close(): Promise<void> }> {
  const { address, metrics, ready, texts = {}, peers, log } = options;
  if (address === undefined) return { close: () => Promise.resolve() };
  metrics.collectProcessMetrics();
  const { HealthServer } = await import('../telemetry/health.ts');
  const server = new HealthServer({ ...address, metrics, live: [], ready: ready(), texts, peers });
  const { address: host, port } = await server.listen();
  log.info({ host, port }, 'serving health and metrics');
  return server;
}

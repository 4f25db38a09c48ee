import { readFile } from 'node:fs/promises';
import { createTransport } from '../client/connect.ts';
import type { Transport } from '../client/transport.ts';
import type { ClusterConfig } from '../flags/shared.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Logger } from 'pino';
import type { HealthCheck } from '../telemetry/health.ts';

/**
 * How to reach the API server, by the flags.
 *
 * @throws {Error} when a file cannot be read, or the kubeconfig has no usable cluster.
 */
export async function connectCluster(cluster: ClusterConfig, metrics?: Metrics): Promise<Transport> {
  if (cluster.kind === 'kubeconfig') return createTransport(cluster, metrics);
  const { certificateAuthority, ...source } = cluster;
  const ca = certificateAuthority === undefined ? {} : { ca: await readFile(certificateAuthority) };
  return createTransport({ ...source, ...ca }, metrics);
}

export interface TelemetryServerOptions {
  /** Undefined: none. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  readonly metrics: Metrics;
  readonly ready: () => readonly HealthCheck[];
  /** Constant answers, by path. */
  readonly texts?: Readonly<Record<string, string>>;
  readonly log: Logger;
}

/** Serves `/healthz`, `/readyz` and `/metrics` if the flags say so. @throws {Error} when it cannot listen. */
export async function startTelemetryServer(
  options: TelemetryServerOptions,
): Promise<{ close(): Promise<void> }> {
  const { address, metrics, ready, texts = {}, log } = options;
  if (address === undefined) return { close: () => Promise.resolve() };
  metrics.collectProcessMetrics();
  const { HealthServer } = await import('../telemetry/health.ts');
  const server = new HealthServer({ ...address, metrics, live: [], ready: ready(), texts });
  const { address: host, port } = await server.listen();
  log.info({ host, port }, 'serving health and metrics');
  return server;
}

import type { Logger } from 'pino';
import type { HealthCheck } from '../telemetry/health.ts';
import type { Metrics } from '../telemetry/metrics.ts';

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

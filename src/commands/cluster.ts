import { readFile } from 'node:fs/promises';
import { createTransport } from '../client/connect.ts';
import type { Transport } from '../client/transport.ts';
import type { ClusterConfig } from '../config/common-flags.ts';
import type { Metrics } from '../telemetry/metrics.ts';

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

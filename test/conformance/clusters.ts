import type { ServerAddress } from './connection.ts';
import { SERVICE_RANGES } from './replay.ts';
import type { ClusterName } from './transcript.ts';

/** A server of our own, started for one of the recorded clusters. */
export interface RunningServer extends ServerAddress {
  stop(): Promise<void>;
}

/** The controllers that ran beside the recorded servers; on dual64 none did. */
const CONTROLLERS = [
  'endpoints',
  'endpoint-slices',
  'endpoint-slice-mirroring',
  'namespaces',
  'garbage-collection',
];

type Start = (options: {
  serviceClusterIpRange: string;
  controllers: readonly string[];
}) => Promise<RunningServer>;

/** Starts our embedded server in this process as the recorded cluster was started. */
export async function startCluster(cluster: ClusterName): Promise<RunningServer> {
  const testing: unknown = await import(new URL('../../src/testing/index.ts', import.meta.url).href);
  if (!hasStart(testing)) throw new Error('src/testing/index.ts has no startApiServer');
  return testing.startApiServer({
    serviceClusterIpRange: SERVICE_RANGES[cluster].join(','),
    authorizationMode: 'RBAC',
    controllers: cluster === 'dual64' ? [] : CONTROLLERS,
  });
}

function hasStart(module: unknown): module is { startApiServer: Start } {
  return (
    typeof module === 'object' &&
    module !== null &&
    'startApiServer' in module &&
    typeof module.startApiServer === 'function'
  );
}

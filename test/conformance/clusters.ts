import { startApiServer } from '../../src/testing/index.ts';
import type { ServerAddress } from './connection.ts';
import { SERVICE_RANGES } from './replay.ts';
import type { ClusterName } from './transcript.ts';

/** A server of our own, started for one of the recorded clusters. */
export interface RunningServer extends ServerAddress {
  stop(): Promise<void>;
}

/** Starts our embedded server in this process as the recorded cluster was started: with RBAC, on dual64 without controllers. */
export async function startCluster(cluster: ClusterName): Promise<RunningServer> {
  return startApiServer({
    serviceClusterIpRange: SERVICE_RANGES[cluster].join(','),
    authorizationMode: 'RBAC',
    controllers: cluster === 'dual64' ? [] : ['*'],
  });
}

import { startApiServer } from '../../src/testing/index.ts';
import type { ServerAddress } from './connection.ts';
import { serviceRangesOf } from './replay.ts';
import type { ClusterName } from './transcript.ts';

/** A server of our own, started for one of the recorded clusters. */
export interface RunningServer extends ServerAddress {
  stop(): Promise<void>;
}

/** The controllers that ran beside the recorded servers; on dual64 none did. */
const ranControllers = [
  'endpoints-controller',
  'endpointslice-controller',
  'endpointslice-mirroring-controller',
  'namespace-controller',
  'garbage-collector-controller',
];

/** Starts our embedded server in this process as the recorded cluster was started: with RBAC. */
export async function startCluster(cluster: ClusterName): Promise<RunningServer> {
  return startApiServer({
    serviceClusterIpRange: serviceRangesOf[cluster].join(','),
    authorizationMode: 'RBAC',
    controllers: cluster === 'dual64' ? [] : ranControllers,
  });
}

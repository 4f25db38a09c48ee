import type { Transport } from '../../../../src/client/transport.ts';
import { auditCluster } from '../../../../src/controllers/service-allocation/cluster-audit.ts';
import type { Scene } from '../scene.ts';
import { allocationFindings } from './allocation.ts';
import { balancingFindings } from './balancing.ts';
import { endpointsFindings } from './endpoints.ts';
import { rangeFindings } from './ranges.ts';
import { takeSnapshot } from './snapshot.ts';

/** What is wrong with a cluster that is at rest; empty when it is as it should be. */
export async function findingsIn(client: Transport, scene: Scene): Promise<string[]> {
  const snapshot = await takeSnapshot(client);
  const own = [
    ...allocationFindings(snapshot, scene),
    ...endpointsFindings(snapshot, scene.collects),
    ...balancingFindings(snapshot),
    ...rangeFindings(snapshot),
  ];
  if (own.length > 0) return own;
  const { findings } = await auditCluster(client, scene.nodePorts);
  return findings.map(({ key, reason, message }) => `${key}: ${reason}: ${message}`);
}

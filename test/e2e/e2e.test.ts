import { afterAll, beforeAll, describe } from 'vitest';
import { Cluster } from './cluster.ts';
import { Skipped } from './need.ts';
import { chosenTargets } from './targets/chosen.ts';
import { continuity } from './topics/continuity.ts';
import { endpointConditions } from './topics/endpoint-conditions.ts';
import { endpointsByHand } from './topics/endpoints-by-hand.ts';
import { endpointsFollowPods } from './topics/endpoints.ts';
import { loadBalancers } from './topics/load-balancer.ts';
import { serviceFields } from './topics/service-fields.ts';
import { serviceTypes } from './topics/service-types.ts';

/** One suite, through a kubeconfig only. CONTRIBUTING.md says how to choose the cluster. */
describe.each(chosenTargets(process.env))('$name', (choice) => {
  let opened: Cluster | undefined;
  const skipped = new Skipped();
  const cluster = (): Cluster => {
    if (opened === undefined) throw new Error('the cluster is not there');
    return opened;
  };
  const need = skipped.need(cluster);

  beforeAll(async () => {
    opened = await Cluster.open(choice);
  }, 240_000);

  afterAll(async () => {
    await opened?.close();
    process.stderr.write(skipped.report(choice.name));
  });

  serviceTypes(cluster, need);
  serviceFields(cluster);
  endpointsFollowPods(cluster);
  endpointConditions(cluster, need);
  endpointsByHand(cluster, need);
  loadBalancers(cluster, need);
  continuity(cluster);
});

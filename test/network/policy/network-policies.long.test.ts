import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, it } from 'vitest';
import { randomPolicy } from '../../unit/network/policy/samples.ts';
import { describePods } from '../support/pod-network.ts';
import { eightPods, hasSctp, PolicyCluster } from '../support/policies.ts';
import { longScenarios, scenariosUsing, shortScenarios } from '../support/policy-scenarios.ts';

describePods('[sig-network] Netpol', () => {
  let cluster: PolicyCluster;
  beforeAll(async () => {
    cluster = await PolicyCluster.start(eightPods);
  });
  afterEach(() => cluster.deleteAll());
  afterAll(() => cluster.network.server.stop());

  it.each([...shortScenarios, ...longScenarios])(
    'NetworkPolicy between server and client $name',
    (scenario) => cluster.play(scenario),
  );

  it.each(scenariosUsing('UDP'))('NetworkPolicy between server and client using UDP $name', (scenario) =>
    cluster.play(scenario),
  );

  it.runIf(hasSctp).each(scenariosUsing('SCTP'))(
    'NetworkPolicy between server and client using SCTP $name',
    async (scenario) => {
      cluster.serveSctp();
      await cluster.play(scenario);
    },
  );

  const samples = fc.sample(fc.array(randomPolicy, { minLength: 1, maxLength: 4 }), { numRuns: 30, seed: 1 });
  it.each(samples.map((policies, i) => ({ i, policies })))(
    'the kernel does what policies say: random set $i',
    async ({ policies }) => {
      await cluster.labelNamespace('x', { team: 'a' });
      await cluster.labelNamespace('y', { team: 'b', kind: 'test' });
      for (const namespace of ['x', 'y']) {
        for (const name of ['a', 'b']) await cluster.labelPod(namespace, name, { pod: name });
      }
      for (const [i, { metadata, spec }] of policies.entries()) {
        await cluster.applyIfValid(metadata.namespace ?? '', `p${i}`, spec);
      }
      await cluster.expectReachability();
    },
  );
});

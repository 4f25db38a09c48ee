import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ForwardingPlanner, type ServiceInput } from '../../src/network/forwarding/planner.ts';
import { NftablesWriter } from '../../src/node/nftables/writer.ts';
import { keyOf } from '../../src/objects/meta.ts';
import { serviceOfSlice } from '../../src/network/forwarding/endpoints.ts';
import { missingFor } from './support/gate.ts';
import { startNetwork, type TestNetwork } from './support/network.ts';
import { forwardingNode, forwardingOptions } from './support/objects.ts';
import { type RandomService, randomServices, servicesOf, slicesOf } from './support/random-services.ts';
import { halves, listTable, withoutSlots } from './support/table-listing.ts';

const missing = missingFor('user');
const lacks = missing === '' ? '' : ` (missing: ${missing})`;

describe.skipIf(missing !== '')(`the table in nft's own listing${lacks}`, () => {
  let network: TestNetwork;

  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': ['a-1', 'b-1'], 'node-2': ['c-2'] });
  });
  afterAll(() => network.close());

  it('is after any change what it would be if it were made anew, and never holds half a Service', async () => {
    const node = forwardingNode('node-1', network.at('node-1').addresses);
    const planner = new ForwardingPlanner(node, forwardingOptions);
    const changed = network.at('node-1').machine.host;
    const anew = network.at('node-2').machine.host;
    const writer = new NftablesWriter({ host: changed });
    await fc.assert(
      fc.asyncProperty(fc.noShrink(randomServices), async (specs) => {
        const changes = planner.apply(inputsOf(specs));
        await writer.sync(
          planner.plan,
          changes.map(({ key }) => key),
        );
        await new NftablesWriter({ host: anew }).cleanUp();
        await new NftablesWriter({ host: anew }).sync(planner.plan);
        for (const family of ['ip', 'ip6'] as const) {
          const [found, wanted] = await Promise.all([listTable(changed, family), listTable(anew, family)]);
          expect(withoutSlots(found)).toEqual(withoutSlots(wanted));
          expect(halves(found)).toEqual([]);
          // Chains that are not needed any more stay.
          for (const [chain, rules] of wanted.chains) expect(found.chains.get(chain), chain).toEqual(rules);
        }
      }),
      { numRuns: Number(process.env['TABLE_RUNS'] ?? 15) },
    );
  });

  function inputsOf(specs: readonly RandomService[]): readonly ServiceInput[] {
    const services = servicesOf(specs);
    const slices = slicesOf(specs, network);
    return ['shop/web-1', 'shop/web-2'].map((key) => ({
      key,
      service: services.find((service) => keyOf(service) === key),
      slices: slices.filter((slice) => serviceOfSlice(slice) === key),
    }));
  }
});

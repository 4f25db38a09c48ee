import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EgressPeer } from '../../../src/network/egress/egress-plan.ts';
import type { Host } from '../../../src/host/host.ts';
import { EgressRoutes } from '../../../src/node/egress/egress-routes.ts';
import { parseCidr } from '../../../src/objects/address.ts';
import { missingFor } from '../support/gate.ts';
import { startNetwork, type TestNetwork } from '../support/network.ts';

const missing = missingFor('user');

describe.skipIf(missing !== '')(`routes of egress${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let network: TestNetwork;
  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': [], 'node-2': [], 'node-3': [] });
  });
  afterAll(() => network.close());

  const peer = (number: number): EgressPeer => {
    const { IPv4, IPv6 } = network.at(`node-${number}`).addresses;
    const podCIDRs = [`10.244.${number}.0/24`, `fd00:244:${number}::/64`].flatMap(
      (text) => parseCidr(text) ?? [],
    );
    return { name: `node-${number}`, podCIDRs, addresses: [IPv4, IPv6] };
  };
  const ip = async (words: string): Promise<void> => {
    const { exitCode, stderr } = await network.at('node-1').machine.host.exec('ip', words.split(' '));
    expect(exitCode, stderr).toBe(0);
  };

  /** The machine of node-1, where somebody else runs `ip` with the words right behind the first route of ours. */
  const racing = (words: string): Host => {
    const { host } = network.at('node-1').machine;
    let isDone = false;
    return {
      ...{ sysctl: host.sysctl, listen: host.listen.bind(host), connect: host.connect.bind(host) },
      datagram: host.datagram.bind(host),
      exec: async (program, args, options) => {
        const result = await host.exec(program, args, options);
        if (!isDone && args.includes('replace')) {
          isDone = true;
          await ip(words);
        }
        return result;
      },
    };
  };

  it.each([
    '-4 route replace blackhole default table 1570001',
    '-4 route flush table 1570001',
    '-4 route add 192.0.2.77 dev lo table 1570001',
    '-4 rule del priority 20157 table 1570001',
  ])('are changed where somebody else writes while they are written: ip %s', async (words) => {
    const routes = new EgressRoutes(racing(words), 0xff0000);
    await routes.sync([peer(2), peer(3)]);
    expect(await routes.isChanged()).toBe(true);
    routes.invalidate();
    await routes.sync([peer(2), peer(3)]);
    expect(await routes.isChanged()).toBe(false);
    await routes.cleanUp();
  });

  it('are not changed by what is not theirs, and by their own writes', async () => {
    const routes = new EgressRoutes(network.at('node-1').machine.host, 0xff0000);
    expect(await routes.isChanged()).toBe(false);
    await routes.sync([peer(2), peer(3)]);
    await ip('-4 rule add priority 20156 fwmark 1 lookup main');
    expect(await routes.isChanged()).toBe(false);
    await ip('-6 route flush table 1570002');
    expect(await routes.isChanged()).toBe(true);
    routes.invalidate();
    await routes.sync([peer(2), peer(3)]);
    await routes.prune(new Set(['node-3']));
    expect(await routes.isChanged()).toBe(false);
    await routes.cleanUp();
  });
});

import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/client/clock.ts';
import { type Host, ProgramMissingError } from '../../../src/host/host.ts';
import { readAnnounce } from '../../../src/network/announcing/announcement-plan.ts';
import type { AddressToAnnounce } from '../../../src/network/announcing/agent-io.ts';
import { Layer2Announcer, type Layer2Options } from '../../../src/node/announce/layer2/announcer.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { startNetwork, type TestNetwork } from '../support/network.ts';
import { Stopwatch } from '../../support/reference-time.ts';

const missing = [missingFor('user'), missingProgram('arping', 'iputils-arping')]
  .filter((what) => what !== '')
  .join(', ');
const { announcement } = readAnnounce(undefined);

function onEth0(...addresses: readonly string[]): readonly AddressToAnnounce[] {
  return addresses.map((address) => ({ address, announcement, interfaces: ['eth0'] }));
}

describe.skipIf(missing !== '')(`layer 2${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let network: TestNetwork;
  let announcers: Layer2Announcer[] = [];
  let logged: string[] = [];
  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': [], 'node-2': [] });
    for (const node of ['node-1', 'node-2']) await network.at(node).machine.serve(80);
    // Without a link-local address a machine asks for no neighbour: the kernel looks whether it is free first.
    for (const machine of ['node-1', 'node-2', 'outside']) {
      const tentative = async (): Promise<string> => {
        const { host } = network.at(machine).machine;
        return (await host.exec('ip', ['-oneline', '-6', 'address', 'show', 'tentative'])).stdout;
      };
      await vi.waitFor(async () => expect(await tentative()).toBe(''), { timeout: 60_000 });
    }
  });
  afterEach(async () => {
    for (const announcer of announcers) await announcer.close();
    announcers = [];
    logged = [];
  });
  afterAll(() => network.close());

  const announcer = async (
    node: string,
    options: Partial<Pick<Layer2Options, 'on' | 'arping' | 'clock'>> = {},
    host: Host = network.at(node).machine.host,
  ): Promise<Layer2Announcer> => {
    const made = new Layer2Announcer({
      ...{ host, clock: systemClock, on: 'macvlan', arping: false, ...options },
      log: pino({ base: null }, { write: (line: string) => logged.push(line) }),
      ...{ lifetime: () => 60, ownerOfMac: () => undefined },
      ...{ isNodeAddress: () => false, isPooled: () => false, isAgents: () => true },
    });
    await made.open();
    announcers.push(made);
    return made;
  };
  const outside = (...words: readonly string[]): Promise<string> =>
    network.outside.machine.host.exec('ip', ['-json', ...words]).then(({ stdout }) => stdout);
  /** The MAC address that the client knows of an address, without asking for it. */
  const known = async (address: string): Promise<string> => {
    const entries: unknown = JSON.parse((await outside('neighbour', 'show', 'to', address)) || '[]');
    return textAt(listAt({ entries }, 'entries')[0], 'lladdr');
  };
  const macsOf = async (node: string): Promise<readonly string[]> => {
    const { stdout } = await network.at(node).machine.host.exec('ip', ['-json', 'link', 'show']);
    const links: unknown = JSON.parse(stdout);
    return listAt({ links }, 'links').map((link) => textAt(link, 'address'));
  };
  const whoAnswers = async (address: string): Promise<string> => {
    const outcome = await network.outside.machine.ask(address, 80, { timeout: 1000 });
    return typeof outcome === 'string' ? outcome : outcome.name;
  };

  it.each<[string, string, Partial<Pick<Layer2Options, 'on' | 'arping'>>]>([
    ['IPv4 by ARP', '192.0.2.200', {}],
    ['IPv6 by NDP', '2001:db8::f001', {}],
    ['IPv4 on the interface itself', '192.0.2.201', { on: 'interface' }],
    ['IPv6 on the interface itself', '2001:db8::f002', { on: 'interface' }],
    ['IPv4 by arping', '192.0.2.202', { on: 'interface', arping: true }],
    ['IPv6 beside arping', '2001:db8::f003', { on: 'interface', arping: true }],
  ])('moves %s: neighbours know at once, without asking', async (_, address, options) => {
    const from = await announcer('node-1', options);
    await from.announce(onEth0(address));
    await expect.poll(() => whoAnswers(address)).toBe('node-1');
    expect(await macsOf('node-1')).toContain(await known(address));
    const to = await announcer('node-2', options);
    await to.announce(onEth0(address));
    await from.announce([]);
    await expect
      .poll(() => known(address).then(async (mac) => (await macsOf('node-2')).includes(mac)))
      .toBe(true);
    expect(await whoAnswers(address)).toBe('node-2');
    expect(logged).toEqual([]);
  });

  it.each<[string, Partial<Pick<Layer2Options, 'on'>>]>([
    ['on an interface of ours', {}],
    ['on the interface itself', { on: 'interface' }],
  ])('puts back what somebody else takes away, and says so in one line: %s', async (_, options) => {
    const addresses = ['192.0.2.203', '192.0.2.204', '2001:db8::f004'];
    const made = await announcer('node-1', options);
    const { host } = network.at('node-1').machine;
    const round = async (): Promise<void> => {
      await made.look();
      await made.announce(onEth0(...addresses));
    };
    const shown = async (): Promise<string> => (await host.exec('ip', ['-br', 'address'])).stdout;
    await round();
    await round();
    const [, link = ''] = /^([^\s@]+).*192\.0\.2\.203/m.exec(await shown()) ?? [];
    const taken = ['192.0.2.203/32', '2001:db8::f004/128'].map((each) => `address del ${each} dev ${link}`);
    const ways = options.on === 'interface' ? [taken] : [taken, [`link del ${link}`]];
    for (const way of ways) {
      for (const words of way) expect((await host.exec('ip', words.split(' '))).stderr).toBe('');
      const before = logged.length;
      await round();
      await round();
      for (const address of addresses) expect(await shown()).toContain(address);
      expect(logged.slice(before)).toEqual([expect.stringContaining('"reason":"AddressRemoved"')]);
    }
    // What ends because nobody wants it is no news.
    const before = logged.length;
    await made.announce([]);
    await round();
    expect(logged.slice(before)).toEqual([]);
  });

  it('goes on at once while arping tells of many addresses', async () => {
    const addresses = Array.from({ length: 40 }, (_, n) => `192.0.2.${150 + n}`);
    const made = await announcer('node-1', { on: 'interface', arping: true });
    const sinceBegin = new Stopwatch();
    await made.announce(onEth0(...addresses));
    await made.announce(onEth0(...addresses));
    // One after the other they would take 40 s, in which no lifetime is refreshed.
    expect(sinceBegin.elapsedMs()).toBeLessThan(20_000);
    const answers = async (): Promise<string> => {
      await made.announce(onEth0(...addresses));
      return whoAnswers('192.0.2.189');
    };
    await expect.poll(answers).toBe('node-1');
  });

  it('says in one line that there is no arping, and announces what neighbours ask for', async () => {
    const { host } = network.at('node-1').machine;
    const withoutArping: Host = {
      ...host,
      exec: (program, args, options) =>
        program === 'arping'
          ? Promise.reject(new ProgramMissingError(program))
          : host.exec(program, args, options),
    };
    const made = await announcer('node-1', { arping: true }, withoutArping);
    await made.announce(onEth0('192.0.2.203'));
    await made.announce(onEth0('192.0.2.203', '192.0.2.204'));
    await expect.poll(() => logged.map((line) => textAt(JSON.parse(line), 'reason'))).toEqual(['NoArping']);
    expect(await whoAnswers('192.0.2.204')).toBe('node-1');
  });

  it('announces 1,000 addresses on one interface, again soon after, and renews them by one batch', async () => {
    const addresses = Array.from(
      { length: 1000 },
      (_, n) => `192.0.${16 + Math.floor(n / 250)}.${(n % 250) + 1}`,
    );
    const { host } = network.outside.machine;
    const rules = [
      'add table arp seen',
      'add chain arp seen in { type filter hook input priority 0; }',
      'add rule arp seen in arp operation request arp saddr ip 192.0.16.0/22 counter',
    ];
    await host.exec('nft', ['-f', '-'], { input: `${rules.join('\n')}\n` });
    const heard = async (): Promise<number> => {
      const { stdout } = await host.exec('nft', ['list', 'table', 'arp', 'seen']);
      return Number(/packets (\d+)/.exec(stdout)?.[1]);
    };
    const made = await announcer('node-1');
    await made.announce(onEth0(...addresses));
    expect(made.announced.size).toBe(1000);
    expect(made.confirmed).toHaveLength(1000);
    // Three times; twice where this process comes too late for the second.
    await expect
      .poll(async () => {
        await made.announce(onEth0(...addresses));
        return heard();
      })
      .toBeGreaterThanOrEqual(2000);
    expect((await heard()) % 1000).toBe(0);
    await network.outside.machine.host.exec('ip', ['route', 'add', '192.0.16.0/22', 'dev', 'eth0']);
    await expect
      .poll(async () => {
        await made.announce(onEth0(...addresses));
        return whoAnswers('192.0.19.250');
      })
      .toBe('node-1');
    await made.announce([]);
    expect(made.announced.size).toBe(0);
  });

  it.each(['macvlan', 'interface'] as const)(
    'announces an address again for which a machine with a higher MAC address answers, and lets it go after a minute (%s)',
    async (on) => {
      const address = '192.0.2.207';
      let skipped = 0;
      const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + skipped };
      const made = await announcer('node-1', { on, clock });
      await made.announce(onEth0(address));
      await expect.poll(() => whoAnswers(address)).toBe('node-1');
      const rival = network.at('node-2').machine.host;
      const { stdout } = await rival.exec('cat', ['/sys/class/net/eth0/address']);
      await rival.exec('ip', ['link', 'set', 'eth0', 'address', '02:ff:ff:ff:ff:fe']);
      await rival.exec('ip', ['address', 'add', `${address}/32`, 'dev', 'eth0']);
      await rival.exec('arping', ['-U', '-c', '1', '-I', 'eth0', address]);
      await expect.poll(() => known(address)).toBe('02:ff:ff:ff:ff:fe');

      const reasons = (): readonly string[] => logged.map((line) => textAt(JSON.parse(line), 'reason'));
      const goOn = async (seconds: number): Promise<void> => {
        skipped += seconds * 1000;
        await made.announce(onEth0(...(made.refused.length === 0 ? [address] : [])));
      };
      await goOn(3);
      await expect.poll(reasons).toEqual(['AddressConflict']);
      await goOn(0);
      await expect
        .poll(() => known(address).then(async (mac) => (await macsOf('node-1')).includes(mac)))
        .toBe(true);
      expect(made.refused).toEqual([]);
      await goOn(61);
      await expect
        .poll(() => made.refused)
        .toEqual([{ address, reason: 'AddressConflict', holder: '02:ff:ff:ff:ff:fe' }]);
      await goOn(0);
      expect(made.announced.size).toBe(0);
      await rival.exec('ip', ['address', 'del', `${address}/32`, 'dev', 'eth0']);
      await rival.exec('ip', ['link', 'set', 'eth0', 'address', stdout.trim()]);
    },
  );

  it('does not announce the address of the router, nor of the node itself', async () => {
    const made = await announcer('node-1');
    await made.announce(onEth0('192.0.2.2', '2001:db8::2', '192.0.2.11', '192.0.2.205'));
    expect([...made.announced]).toEqual(['192.0.2.205']);
    expect(made.refused.map(({ address, reason }) => `${address} ${reason}`).toSorted()).toEqual([
      '192.0.2.11 NodeAddress',
      '192.0.2.2 GatewayAddress',
      '2001:db8::2 GatewayAddress',
    ]);
  });

  it('leaves no interface, address or kernel parameter behind', async () => {
    const { host } = network.at('node-1').machine;
    const state = async (): Promise<string> => {
      const listed = await host.exec('ip', ['-brief', 'address', 'show']);
      const links = await host.exec('ip', ['-brief', 'link', 'show']);
      const sysctls = await host.exec('sh', [
        '-c',
        'grep -r . /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf 2>/dev/null | sort',
      ]);
      return [listed, links, sysctls].map(({ stdout }) => stdout).join('\n');
    };
    const before = await state();
    for (const on of ['macvlan', 'interface'] as const) {
      const made = await announcer('node-1', { on });
      await made.announce(onEth0('192.0.2.206', '2001:db8::f006'));
      expect(await state()).not.toBe(before);
      await made.close();
      expect(await state()).toBe(before);
    }
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { call } from '../../support/test-server.ts';
import { AnnouncingCluster } from '../support/announcing.ts';
import { AddressWatch, gapTimeout, type Question } from '../support/address-watch.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');
const patience = { timeout: 60_000, interval: 100 };
const path = '/apis/k8s.ovn.org/v1/egressips';
const label = 'k8s.ovn.org/egress-assignable';
/** Milliseconds: what the documents promise of layer 2. */
const crashLimit = 3000;

describe.skipIf(missing !== '')(
  `connections that leave the cluster${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let cluster: AnnouncingCluster;

    beforeAll(async () => {
      cluster = await AnnouncingCluster.start(3, {
        pods: { 'node-1': ['a-1', 'b-1'], 'node-2': ['a-2'] },
        server: { platform: 'openshift', controllers: ['egress-ip-controller'] },
      });
      for (const [index, name] of cluster.nodes.entries()) {
        const number = index + 1;
        const { IPv4, IPv6 } = at(name);
        const own = `/api/v1/nodes/${name}`;
        const podCIDRs = [`10.244.${number}.0/24`, `fd00:244:${number}::/64`];
        await cluster.cluster.send('PATCH', own, { spec: { podCIDR: podCIDRs[0], podCIDRs } });
        const addresses = [IPv4, IPv6].map((address) => ({ type: 'InternalIP', address }));
        await cluster.cluster.send('PATCH', `${own}/status`, {
          status: { addresses, conditions: [{ type: 'Ready', status: 'True' }] },
        });
      }
      for (const name of ['a-1', 'b-1', 'a-2']) {
        const pods = '/api/v1/namespaces/shop/pods';
        const { IPv4, IPv6 } = at(name);
        await cluster.cluster.send('POST', pods, {
          metadata: { name, labels: { app: name.slice(0, 1) } },
          spec: { nodeName: `node-${name.slice(-1)}`, containers: [{ name: 'main', image: 'x' }] },
        });
        await cluster.cluster.send('PATCH', `${pods}/${name}/status`, {
          status: { phase: 'Running', podIP: IPv4, podIPs: [{ ip: IPv4 }, { ip: IPv6 }] },
        });
      }
      await cluster.client.serve(8080);
      await cluster.machine('node-3').serve(8080);
      cluster.startAgents('--features', 'announce,egress');
    });
    afterAll(() => cluster.close());

    const at = (name: string): { readonly IPv4: string; readonly IPv6: string } =>
      cluster.cluster.network.at(name).addresses;
    const make = (name: string, egressIPs: readonly string[], app: string): Promise<void> =>
      cluster.cluster.send('POST', path, {
        ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressIP', metadata: { name } },
        spec: { egressIPs, namespaceSelector: {}, podSelector: { matchLabels: { app } } },
      });
    const mark = (node: string, isEgress: boolean): Promise<void> =>
      cluster.label(node, { [label]: isEgress ? '' : null });
    /** Whom a machine sees that a Pod asks; `silence` within the time. */
    const seenBy = async (
      name: string,
      pod: string,
      family: 'IPv4' | 'IPv6' = 'IPv4',
      timeout = 1000,
    ): Promise<string> => {
      const machine = cluster.cluster.network.at(pod).machine;
      const outcome = await machine.ask(at(name)[family], 8080, { timeout });
      return typeof outcome === 'string' ? outcome : outcome.client;
    };
    /** The moments at which several nodes had an address. */
    const moreThanOne = async (address: string): Promise<readonly (readonly string[])[]> =>
      (await cluster.history.holders(address)).filter((holders) => holders.length > 1);
    const itemsOf = async (name: string): Promise<readonly string[]> => {
      const { body } = await call(cluster.cluster.server.client, 'GET', `${path}/${name}`);
      return listAt(body, 'status', 'items').map(
        (item) => `${textAt(item, 'egressIP')} ${textAt(item, 'node')}`,
      );
    };

    it('come from the EgressIP of their Pod, whatever its node; all others do not', async () => {
      await mark('node-2', true);
      await mark('node-3', true);
      await make('a', ['192.0.2.200', '2001:db8::c8'], 'a');
      await expect.poll(() => seenBy('outside', 'a-1'), patience).toBe('192.0.2.200');
      await expect.poll(() => seenBy('outside', 'a-1', 'IPv6'), patience).toBe('2001:db8::c8');
      const nodes = (await itemsOf('a')).map((item) => item.split(' ')[1]);
      expect(nodes.toSorted()).toEqual(['node-2', 'node-3']);
      // On the node that has the address, and on another one.
      await expect.poll(() => seenBy('outside', 'a-2'), patience).toBe('192.0.2.200');
      await expect.poll(() => seenBy('outside', 'a-2', 'IPv6'), patience).toBe('2001:db8::c8');
      // Inside, a Pod is itself. No other Pod has the address: the machine outside knows no way to it.
      expect(await seenBy('node-3', 'a-1')).toBe(at('a-1').IPv4);
      expect(await seenBy('outside', 'b-1')).toBe('silence');
    });

    it('come from the oldest EgressIP: an Event on another one says that it stands by', async () => {
      await make('late', ['192.0.2.220'], 'a');
      const events = async (): Promise<readonly string[]> => {
        const { body } = await call(
          cluster.cluster.server.client,
          'GET',
          '/api/v1/namespaces/default/events',
        );
        return listAt(body, 'items').map((event) => `${textAt(event, 'reason')} ${textAt(event, 'message')}`);
      };
      const said = (pod: string): string =>
        `UndefinedRequest EgressIP object late will not be configured for pod shop_${pod} since another egressIP object a is serving it`;
      await expect.poll(events, patience).toEqual(expect.arrayContaining([said('a-1'), said('a-2')]));
      expect(await seenBy('outside', 'a-1')).toBe('192.0.2.200');
      await cluster.cluster.send('DELETE', `${path}/late`);
    });

    it('come from each of several addresses', async () => {
      await make('b', ['192.0.2.210', '192.0.2.211'], 'b');
      await expect.poll(() => seenBy('outside', 'b-1'), patience).toMatch(/^192\.0\.2\.21[01]$/);
      const seen = new Set<string>();
      await expect
        .poll(async () => seen.add(await seenBy('outside', 'b-1')).size, patience)
        .toBeGreaterThanOrEqual(2);
      expect([...seen].filter((address) => /^192\.0\.2\.21[01]$/.test(address))).toHaveLength(2);
      await cluster.cluster.send('DELETE', `${path}/b`);
      await expect.poll(() => seenBy('outside', 'b-1'), patience).toBe('silence');
    });

    it.each([
      ['the rules', 'TableChanged', 'nft', 'flush ruleset'],
      ['the table', 'TableChanged', 'nft', 'delete table inet servicenet-egress'],
      ['an ip rule', 'RoutesChanged', 'ip', '-4 rule del priority 20157'],
      ['the routes', 'RoutesChanged', 'ip', '-4 route flush table 1570001'],
      ['a route', 'RoutesChanged', 'ip', '-4 route replace blackhole default table 1570001'],
    ])(
      'go on where somebody else changes %s, with one line in the log',
      async (_, reason, program, words) => {
        const { host } = cluster.machine('node-1');
        const logged = (): number => cluster.agent('node-1').logged.split(`"reason":"${reason}"`).length - 1;
        await expect.poll(() => seenBy('outside', 'a-1'), patience).toBe('192.0.2.200');
        const before = logged();
        const { exitCode, stderr } = await host.exec(program, words.split(' '));
        expect(exitCode, stderr).toBe(0);
        await expect.poll(logged, { ...patience, timeout: 10_000 }).toBe(before + 1);
        await expect
          .poll(() => seenBy('outside', 'a-1'), { ...patience, timeout: 10_000 })
          .toBe('192.0.2.200');
        await expect.poll(() => seenBy('outside', 'a-1', 'IPv6'), patience).toBe('2001:db8::c8');
        expect(logged()).toBe(before + 1);
      },
    );

    it('go on where somebody else takes their address or its interface away', async () => {
      const [, owner = ''] =
        (await itemsOf('a')).map((item) => item.split(' ')).find(([ip]) => ip === '192.0.2.200') ?? [];
      const { host } = cluster.machine(owner);
      const shown = async (): Promise<string> => (await host.exec('ip', ['-4', '-br', 'address'])).stdout;
      const [, link = ''] = /^(\S+?)@.*192\.0\.2\.200/m.exec(await shown()) ?? [];
      for (const words of [`address del 192.0.2.200/32 dev ${link}`, `link del ${link}`]) {
        const { exitCode, stderr } = await host.exec('ip', words.split(' '));
        expect(exitCode, stderr).toBe(0);
        await expect.poll(shown, patience).toContain('192.0.2.200');
        await expect.poll(() => seenBy('outside', 'a-1'), patience).toBe('192.0.2.200');
      }
    });

    it('have the DSCP values of EgressQoSes, by the first rule that has the destination', async () => {
      await cluster.cluster.send('POST', '/apis/k8s.ovn.org/v1/namespaces/shop/egressqoses', {
        ...{ apiVersion: 'k8s.ovn.org/v1', kind: 'EgressQoS', metadata: { name: 'default' } },
        spec: {
          egress: [
            { dscp: 40, dstCIDR: '192.0.2.2/32', podSelector: { matchLabels: { app: 'a' } } },
            { dscp: 10, podSelector: { matchLabels: { app: 'a' } } },
          ],
        },
      });
      const { host } = cluster.client;
      const rules = ['ip dscp 40', 'ip6 dscp 10', 'ip dscp 10'].map(
        (match) => `add rule inet seen in ${match} counter\n`,
      );
      const chain = 'add chain inet seen in { type filter hook input priority 0; }\n';
      await host.exec('nft', ['-f', '-'], { input: ['add table inet seen\n', chain, ...rules].join('') });
      const counted = async (): Promise<readonly boolean[]> => {
        await seenBy('outside', 'a-1');
        await seenBy('outside', 'a-1', 'IPv6');
        const { stdout } = await host.exec('nft', ['list', 'table', 'inet', 'seen']);
        return [...stdout.matchAll(/packets (\d+)/g)].map(([, packets]) => packets !== '0');
      };
      await expect.poll(counted, patience).toEqual([true, true, false]);
      // Inside of the cluster too: a rule is about what it names.
      const { host: inside } = cluster.machine('node-3');
      await inside.exec('nft', ['-f', '-'], {
        input: ['add table inet seen\n', chain, rules[2] ?? ''].join(''),
      });
      await seenBy('node-3', 'a-1');
      expect((await inside.exec('nft', ['list', 'table', 'inet', 'seen'])).stdout).not.toContain('packets 0');
    });

    it('come from the same address when its node is drained, and when it loses the label', async () => {
      const ipv4 = '192.0.2.200';
      const ipv6 = '2001:db8::c8';
      const items = await itemsOf('a');
      const [owner, other] = items.includes(`${ipv4} node-2`) ? ['node-2', 'node-3'] : ['node-3', 'node-2'];
      // A drain is about Pods: the address stays.
      const schedulable = (unschedulable: boolean): Promise<void> =>
        cluster.cluster.send('PATCH', `/api/v1/nodes/${owner}`, { spec: { unschedulable } });
      await schedulable(true);
      for (let n = 0; n < 20; n++) expect(await seenBy('outside', 'a-1')).toBe(ipv4);
      expect(await cluster.holders(ipv4)).toEqual([owner]);
      await schedulable(false);

      await mark(owner, false);
      // No node has two addresses of one object.
      await expect.poll(() => itemsOf('a'), patience).toEqual([`${ipv6} ${other}`]);
      await mark('node-1', true);
      await expect.poll(() => itemsOf('a'), patience).toEqual([`${ipv6} ${other}`, `${ipv4} node-1`]);
      await expect.poll(() => cluster.holders(ipv4), patience).toEqual(['node-1']);
      await expect.poll(() => seenBy('outside', 'a-1'), patience).toBe(ipv4);
      await expect.poll(() => seenBy('outside', 'a-2'), patience).toBe(ipv4);
      await mark(owner, true);
      for (const address of [ipv4, ipv6]) expect(await moreThanOne(address)).toEqual([]);
    });

    it('come from the same address within the time of a crash when its node is killed', async () => {
      const ipv4 = '192.0.2.200';
      const [, owner = ''] =
        (await itemsOf('a')).map((item) => item.split(' ')).find(([ip]) => ip === ipv4) ?? [];
      expect(owner).toBe('node-1');
      const seen =
        (name: string): Question =>
        async (timeout) => {
          const source = await seenBy(name, 'a-2', 'IPv4', timeout);
          return source === 'silence' ? undefined : source;
        };
      const watch = new AddressWatch(seen('outside'), seen('node-3'), gapTimeout);
      await expect.poll(() => watch.owners, patience).toEqual([ipv4]);
      await cluster.agent(owner).send('KILL');
      await cluster.plug(owner, false);
      // The Lease told it, not the Node, which stays Ready.
      const holder = async (): Promise<string> => (await cluster.holders(ipv4)).join();
      await expect.poll(holder, patience).toMatch(/^node-[23]$/);
      await expect.poll(() => seenBy('outside', 'a-2'), patience).toBe(ipv4);
      const { gap, owners } = await watch.stop();
      expect(owners).toEqual([ipv4]);
      expect(gap).toBeLessThan(crashLimit);
      expect(await moreThanOne(ipv4)).toEqual([]);
    });

    it('leave nothing behind of an agent that was killed when the next one has no EgressIP', async () => {
      const { host } = cluster.machine('node-2');
      const left = async (): Promise<string> => {
        const outputs = [];
        for (const family of ['-4', '-6']) {
          outputs.push((await host.exec('ip', [family, 'rule', 'list'])).stdout);
          outputs.push((await host.exec('ip', [family, 'route', 'show', 'table', 'all'])).stdout);
          outputs.push((await host.exec('ip', [family, 'address', 'show'])).stdout);
        }
        outputs.push((await host.exec('nft', ['list', 'tables'])).stdout);
        const ours =
          /20157:.*|.* table 15700\d\d|.*192\.0\.2\.200\/.*|.*2001:db8::c8\/.*|.*servicenet-egress/g;
        return outputs.flatMap((text) => text.match(ours) ?? []).join('\n');
      };
      const rules = async (): Promise<string> => (await host.exec('ip', ['rule', 'list'])).stdout;
      // Another node has an address: this one sends its Pods there.
      const owners = (await itemsOf('a')).map((item) => item.split(' ')[1]);
      expect(owners.toSorted()).toEqual(['node-2', 'node-3']);
      await expect.poll(rules, patience).toContain('20157:');
      await cluster.agent('node-2').signal('KILL');
      await host.exec('ip', ['rule', 'add', 'priority', '20157', 'lookup', '1570099']);
      expect(await left()).not.toBe('');
      await cluster.cluster.send('DELETE', `${path}/a`);
      await cluster.cluster.send('DELETE', '/apis/k8s.ovn.org/v1/namespaces/shop/egressqoses/default');
      cluster.startAgent('node-2', '--features', 'announce,egress');
      await expect.poll(left, patience).toBe('');
    });
  },
);

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blockOf } from '../../support/pages.ts';
import { missingFor } from '../support/gate.ts';
import { type Located, startNetwork, type TestNetwork } from '../support/network.ts';
import { manyRoutes, peerAt, routesTo, speakerAt, SpeakerProcess } from '../support/speaker.ts';
import { Stopwatch } from '../../support/reference-time.ts';

const daemons = '/usr/lib/frr';
// FRR changes to the user frr, which only real root can.
const missing = [missingFor('root'), existsSync(`${daemons}/bgpd`) ? '' : 'bgpd (package frr)']
  .filter((what) => what !== '')
  .join(', ');

const config = blockOf('docs/bgp.md', 'router bgp 64513');

describe.skipIf(missing !== '')(`BGP with FRR${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let network: TestNetwork;
  let router: Located;
  let node: Located;

  beforeAll(async () => {
    network = await startNetwork('root', { 'node-1': [], 'node-2': [] });
    router = network.outside;
    node = network.at('node-1');
    await sh(`mkdir -p /run/frr && cat > /run/frr/bgpd.conf && chown -R frr:frr /run/frr`, config);
    for (const [daemon, ...args] of [
      ['zebra', '-f', '/dev/null'],
      ['bgpd', '-f', '/run/frr/bgpd.conf'],
    ]) {
      const common = ['-i', `/run/frr/${daemon}.pid`, '-z', '/run/frr/zserv', '--vty_socket', '/run/frr'];
      const words = [...router.enter, `${daemons}/${daemon}`, ...args, ...common];
      spawn(words[0] ?? '', words.slice(1), { stdio: 'ignore' });
      await sh(`while ! [ -S /run/frr/${daemon}.vty ]; do sleep 0.05; done`);
    }
  });
  afterAll(() => network.close());

  const sh = async (command: string, input = ''): Promise<string> => {
    const { stdout } = await router.machine.host.exec('sh', ['-c', command], { input });
    return stdout;
  };
  const bgp = async (): Promise<readonly string[]> => {
    const found = await sh('ip route show proto bgp; ip -6 route show proto bgp');
    return found.split('\n').flatMap((line) => /^[0-9a-f:.]+/.exec(line) ?? []);
  };
  const vtysh = (command: string): Promise<string> => sh(`vtysh --vty_socket /run/frr -c '${command}'`);

  it('brings routes of both families into the kernel, and withdraws them at a drain', async () => {
    const speaker = speakerAt(node.machine.host);
    const peer = peerAt(router, node, { restartSeconds: 30 });
    speaker.sync([{ peer, routes: routesTo(['203.0.113.1/32', '2001:db8:1::1/128']) }]);
    await expect.poll(bgp).toEqual(['203.0.113.1', '2001:db8:1::1']);
    // FRR sends routes of another node back; to their own node, it does not.
    const second = network.at('node-2');
    const other = speakerAt(second.machine.host);
    other.sync([{ peer: peerAt(router, second), routes: routesTo(['203.0.113.1/32']) }]);
    await expect.poll(() => sh('ip route show 203.0.113.1')).toMatch(/nexthop via 192.0.2.11[^]*192.0.2.12/);
    const sinceDrain = new Stopwatch();
    speaker.sync([{ peer, routes: new Map() }]);
    await speaker.close('node-1 is drained');
    await expect.poll(() => sh('ip route show 203.0.113.1')).toContain('via 192.0.2.12');
    expect(sinceDrain.elapsedMs()).toBeLessThan(1000);
    other.sync([]);
    await other.close('');
  });

  it('takes 10,000 routes', async () => {
    const speaker = speakerAt(node.machine.host);
    const peer = peerAt(router, node);
    speaker.sync([{ peer, routes: routesTo(manyRoutes(10_000)) }]);
    await expect.poll(async () => (await bgp()).length).toBe(10_000);
    await speaker.close('');
    await expect.poll(async () => (await bgp()).length).toBe(0);
  });

  it('keeps routes over a restart, and gives a stuck agent up by the hold time', async () => {
    const peer = peerAt(router, node, { restartSeconds: 30 });
    const killed = await SpeakerProcess.start(node, peer, ['203.0.113.1/32', '203.0.113.2/32']);
    await expect.poll(bgp).toEqual(['203.0.113.1', '203.0.113.2']);
    await killed.kill('KILL');
    await expect.poll(() => vtysh('show bgp neighbors 192.0.2.11')).not.toContain('state = Established');
    expect(await bgp()).toEqual(['203.0.113.1', '203.0.113.2']);
    const next = await SpeakerProcess.start(node, peer, ['203.0.113.1/32']);
    await expect.poll(bgp).toEqual(['203.0.113.1']);
    const sinceStop = new Stopwatch();
    await next.kill('STOP');
    await expect.poll(bgp).toEqual([]);
    expect(sinceStop.elapsedMs()).toBeLessThan(4000);
    await next.kill('KILL');
  });
});

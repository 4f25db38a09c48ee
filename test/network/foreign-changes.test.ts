import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Host } from '../../src/host/host.ts';
import { type RunningAgents, TestCluster } from './support/cluster.ts';
import { missingFor } from './support/gate.ts';
import type { Outcome } from './support/machine-protocol.ts';
import { endpointSlice } from './support/objects.ts';
import { processesOf, residentNft } from './support/processes.ts';

const missing = missingFor('user');
const title = `what others do to the table of Services${missing === '' ? '' : ` (missing: ${missing})`}`;

describe.skipIf(missing !== '')(title, () => {
  let cluster: TestCluster;
  let agents: RunningAgents;

  beforeAll(async () => {
    cluster = await TestCluster.start({ 'node-1': ['client', 'a-1'] });
    await cluster.network.at('a-1').machine.serve(8080);
    await cluster.service('web', { clusterIP: '10.96.4.1', sessionAffinity: 'ClientIP' });
    await endpoints('web', 1);
  });
  afterAll(() => cluster.close());
  // Nothing else makes the agent look at the table: the next full comparison is an hour away.
  beforeEach(async () => {
    agents = cluster.startAgents(['node-1']);
    await expect.poll(ask).toMatchObject({ name: 'a-1' });
    await untilWatched();
  });
  afterEach(() => agents.stop());

  it.each([
    ['the whole ruleset', 'flush ruleset'],
    ['the table', 'delete table ip servicenet'],
    ['all rules of the table', 'flush table ip servicenet'],
    ['one map', 'flush map ip servicenet service-ips'],
    ['the endpoints', 'flush map ip servicenet cluster-endpoints'],
    ['one element', 'delete element ip servicenet service-ips { 10.96.4.1 . tcp . 80 }'],
    ['one chain', 'flush chain ip servicenet nat-prerouting'],
    ['a rule that drops', 'insert rule ip servicenet services drop'],
    [
      'a chain of its own',
      'add chain ip servicenet mine { type filter hook prerouting priority -200; }; add rule ip servicenet mine ip daddr 10.96.4.1 drop',
    ],
    [
      'where a Service leads',
      'delete element ip servicenet refused-service-ips { 10.96.4.1 . tcp . 81 }; add element ip servicenet refused-service-ips { 10.96.4.1 . tcp . 80 : drop }; flush map ip servicenet service-ips',
    ],
  ])('is put right, with one line in the log: %s', async (_, command) => {
    if (command.includes('refused-service-ips'))
      await nft('add element ip servicenet refused-service-ips { 10.96.4.1 . tcp . 81 : drop }');
    await nft(command);
    await expect.poll(warnings).toHaveLength(1);
    expect(warnings()[0]).toContain('restored them');
    await expect.poll(ask).toMatchObject({ name: 'a-1' });
    expect((await listing()).replaceAll(/expires \S+/g, '')).not.toMatch(/chain mine/);
  });

  it('is put right where a rule was replaced by another', async () => {
    const { stdout } = await host().exec('nft', [
      '-a',
      'list',
      'chain',
      'ip',
      'servicenet',
      'nat-prerouting',
    ]);
    const [, handle = ''] = /jump services # handle (\d+)/.exec(stdout) ?? [];
    await nft(`replace rule ip servicenet nat-prerouting handle ${handle} counter`);
    await expect.poll(warnings).toHaveLength(1);
    await expect.poll(ask).toMatchObject({ name: 'a-1' });
  });

  it('is not what the agent does itself, nor what happens to other tables', async () => {
    await nft('add table ip other; add chain ip other x');
    for (let index = 0; index < 5; index++) {
      await cluster.service(`more-${index}`, { sessionAffinity: index % 2 === 0 ? 'ClientIP' : 'None' });
      await endpoints(`more-${index}`, 1 + index);
    }
    for (let index = 0; index < 5; index++) {
      await cluster.send('DELETE', `/api/v1/namespaces/shop/services/more-${index}`);
    }
    // A change by somebody else comes after all of these.
    await nft('flush map ip servicenet service-ips');
    await expect.poll(warnings).toHaveLength(1);
    await expect.poll(ask).toMatchObject({ name: 'a-1' });
    expect(agents.logged.filter((line) => line.includes('"level":"warn"'))).toHaveLength(1);
  });

  it('does not matter to an agent whose nft is stopped: it is ended after a time, and the log says so', async () => {
    await endpoints('web', 2);
    await expect.poll(() => processesOf(host(), residentNft)).not.toEqual([]);
    for (const pid of await processesOf(host(), residentNft)) await host().exec('kill', ['-STOP', pid]);
    await cluster.service('late', { clusterIP: '10.96.4.2' });
    await endpoints('late', 1);
    const late = (): Promise<Outcome> => cluster.network.at('client').machine.ask('10.96.4.2', 80);
    await expect.poll(late, { timeout: 90_000 }).toMatchObject({ name: 'a-1' });
    expect(agents.logged.join('\n')).toContain('did not answer in 10 seconds');
    await cluster.send('DELETE', '/api/v1/namespaces/shop/services/late');
  });

  it('goes when the next agent starts: chains that nothing leads to, and elements of Services that are gone', async () => {
    await cluster.service('gone', { clusterIP: '10.96.4.3', sessionAffinity: 'ClientIP' });
    await endpoints('gone', 7);
    await expect.poll(listing).toMatch(/chain pick-cluster-7-\S*affinity-10800 /);
    await agents.stop();
    await cluster.send('DELETE', '/api/v1/namespaces/shop/services/gone');
    await nft('add element ip servicenet cluster-endpoint-marks { 10.96.4.9 . tcp . 80 . 3 : 2147483650 }');
    agents = cluster.startAgents(['node-1']);
    await expect.poll(listing).not.toMatch(/cluster-7|10\.96\.4\.3|10\.96\.4\.9/);
    await expect.poll(ask).toMatchObject({ name: 'a-1' });
  });

  /** Until the monitor runs. */
  async function untilWatched(): Promise<void> {
    await expect.poll(() => processesOf(host(), 'nft monitor')).not.toEqual([]);
    // It has subscribed when it has told of something.
    const before = agents.logged.length;
    for (let tries = 0; agents.logged.length === before && tries < 50; tries++) {
      await nft('add element ip servicenet cluster-ips { 10.96.200.1 }');
      await expect.poll(listing).not.toContain('10.96.200.1');
    }
    agents.logged.length = 0;
  }

  function warnings(): readonly string[] {
    return agents.logged.filter((line) => line.includes('TableChanged'));
  }

  function ask(): Promise<Outcome> {
    return cluster.network.at('client').machine.ask('10.96.4.1', 80, { timeout: 1000 });
  }

  function host(): Host {
    return cluster.network.at('node-1').machine.host;
  }

  async function nft(command: string): Promise<void> {
    const { exitCode, stderr } = await host().exec('nft', [command]);
    expect(exitCode, stderr).toBe(0);
  }

  async function listing(): Promise<string> {
    return (await host().exec('nft', ['list', 'table', 'ip', 'servicenet'])).stdout;
  }

  async function endpoints(name: string, count: number): Promise<void> {
    const address = cluster.network.at('a-1').addresses.IPv4;
    const others = Array.from({ length: count - 1 }, (_, index) => `10.244.9.${index + 1}`);
    // Only the first one answers, and is ready.
    const list = [address, ...(name === 'web' ? [] : others)].map((each) => ({
      address: each,
      node: 'node-1',
    }));
    await cluster.slice(endpointSlice('IPv4', list, 8080, name));
  }
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AnnouncingCluster } from '../support/announcing.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { LossWatch } from '../support/loss-watch.ts';
import { endpointSlice } from '../support/objects.ts';

const missing = [missingFor('user'), missingProgram('arping', 'iputils-arping')]
  .filter((what) => what !== '')
  .join(', ');
const address = '192.0.2.200';
const excluded = 'node.kubernetes.io/exclude-from-external-load-balancers';
/** Milliseconds: what the documents promise. */
const moveLimit = 500;
/** Milliseconds: less than any address that was let go is away, more than a busy machine takes to answer. */
const noticeable = 1000;

describe.skipIf(missing !== '')(`a planned move${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: AnnouncingCluster;
  let owner: string;
  beforeAll(async () => {
    cluster = await AnnouncingCluster.start(2);
    await cluster.service('web', [address]);
    cluster.startAgents();
  });
  beforeEach(async () => {
    await cluster.settled();
    owner = await cluster.owner(address);
  });
  afterAll(() => cluster.close());

  it.each([
    ['by the label of excluded nodes', (value: '' | null) => cluster.label(owner, { [excluded]: value })],
    [
      'from a cordoned node',
      (value: '' | null) =>
        cluster.cluster.send('PATCH', `/api/v1/nodes/${owner}`, {
          spec: { unschedulable: value === '' ? true : null },
        }),
    ],
  ])('%s loses no connection of a client that tries twice', async (_, change) => {
    const watch = cluster.watch(address, owner);
    await change('');
    await expect.poll(() => watch.owners.length).toBeGreaterThan(1);
    await expect.poll(() => cluster.holders(address)).not.toContain(owner);
    const { failedTwice, gap } = await watch.stop();
    await change(null);
    expect(failedTwice).toBe(0);
    expect(gap).toBeLessThan(moveLimit);
  });

  it('at the orderly end of an agent comes before it, and leaves no interface', async () => {
    const watch = cluster.watch(address, owner);
    const { exitCode, stderr } = await cluster.agent(owner).signal('TERM');
    expect(exitCode, stderr).toBe(0);
    await expect.poll(() => watch.owners.at(-1)).not.toBe(owner);
    const { failedTwice, gap } = await watch.stop();
    expect((await cluster.ip(owner, '-brief', 'link', 'show', 'type', 'macvlan')).stdout).toBe('');
    cluster.startAgent(owner);
    expect(failedTwice).toBe(0);
    expect(gap).toBeLessThan(moveLimit);
  });

  it('is made for a Service of local traffic when its node loses the last endpoint; without any, no node has it', async () => {
    const local = '192.0.2.210';
    const [from = '', to = ''] = cluster.nodes;
    const at = (...nodes: readonly string[]): Promise<void> =>
      cluster.cluster.slice(
        endpointSlice(
          'IPv4',
          nodes.map((node) => ({ address: '10.244.1.9', node })),
          8080,
          'local',
        ),
      );
    await cluster.service('local', [local], { externalTrafficPolicy: 'Local' });
    await at(from);
    await expect.poll(() => cluster.holders(local)).toEqual([from]);
    await at(to);
    await expect.poll(() => cluster.holders(local)).toEqual([to]);
    await at();
    await expect.poll(() => cluster.holders(local)).toEqual([]);
    await cluster.remove('local', [local]);
  });

  it('is not made while no agent has the API server, and all consent', async () => {
    const watch = cluster.watch(address, owner);
    for (const node of cluster.nodes) cluster.relay(node).cut();
    await expect.poll(() => watch.seconds).toBeGreaterThan(7);
    expect(await cluster.holders(address)).toEqual([owner]);
    for (const node of cluster.nodes) cluster.relay(node).mend();
    await cluster.settled();
    const { gap, owners } = await watch.stop();
    expect(owners).toEqual([owner]);
    expect(gap).toBeLessThan(noticeable);
  });

  it('is not made to an address that another machine has, which is said with its MAC address', async () => {
    const taken = '192.0.2.220';
    await cluster.ip('outside', 'address', 'add', `${taken}/32`, 'dev', 'eth0');
    await cluster.service('taken', [taken], {});
    await expect.poll(() => cluster.refused()).toContain(`${taken} AddressConflict`);
    expect(await cluster.holders(taken)).toEqual([]);
    await cluster.remove('taken', [taken]);
  });

  it('is not made to an address that a node of the cluster has, by itself or by another announcer', async () => {
    const [node = ''] = cluster.nodes;
    const foreign = '192.0.2.221';
    await cluster.ip(node, 'address', 'add', `${foreign}/32`, 'dev', 'eth0');
    await cluster.service('foreign', [foreign]);
    await cluster.service('own', ['192.0.2.12']);
    await expect.poll(() => cluster.refused()).toContain(`${foreign} OtherAnnouncer`);
    await expect.poll(() => cluster.refused()).toContain('192.0.2.12 NodeAddress');
    expect([...(await cluster.announced()).values()].flat()).toEqual([address]);
    await cluster.ip(node, 'address', 'del', `${foreign}/32`, 'dev', 'eth0');
    await cluster.remove('foreign', [foreign]);
    await cluster.remove('own', ['192.0.2.12']);
  });
});

describe.skipIf(missing !== '')(`one agent${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: AnnouncingCluster;
  let untouched: string;
  beforeAll(async () => {
    cluster = await AnnouncingCluster.start(1);
    untouched = await state();
    await cluster.service('web', [address]);
  });
  beforeEach(async () => {
    cluster.startAgents();
    await cluster.settled();
    await expect.poll(() => cluster.whoAnswers(address)).toBe('node-1');
  });
  afterAll(() => cluster.close());

  /** Interfaces, addresses and kernel parameters of the node. */
  async function state(): Promise<string> {
    const parameters = 'grep -r . /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf 2>/dev/null | sort';
    const { host } = cluster.machine('node-1');
    const shown = [
      await cluster.ip('node-1', '-brief', 'link', 'show'),
      await cluster.ip('node-1', '-brief', 'address', 'show'),
      await host.exec('sh', ['-c', parameters]),
    ];
    return shown.map(({ stdout }) => stdout).join('\n');
  }

  async function cleanUp(): Promise<void> {
    const { exitCode, stderr } = await cluster.startAgent('node-1', '--cleanup').ended;
    expect(exitCode, stderr).toBe(0);
  }

  it('keeps its addresses over a restart: no connection, no ARP question and no packet is lost', async () => {
    const before = await cluster.history.holders(address);
    const watch = new LossWatch(cluster.client, address);
    await expect.poll(() => watch.answers).toBeGreaterThan(5);
    expect((await cluster.agent('node-1').signal('TERM')).exitCode).toBe(0);
    const without = watch.answers;
    await expect.poll(() => watch.answers).toBeGreaterThan(without + 5);
    cluster.startAgent('node-1');
    await cluster.settled();
    const within = watch.answers;
    await expect.poll(() => watch.answers).toBeGreaterThan(within + 5);
    expect(await watch.stop()).toMatchObject({ unanswered: 0, arpUnanswered: 0, segmentsSentAgain: 0 });
    // The kernel had the address all the time.
    expect(await cluster.history.holders(address)).toEqual(before);
    await cluster.agent('node-1').signal('KILL');
  });

  it('that was killed leaves nothing that --cleanup does not remove', async () => {
    await cluster.agent('node-1').signal('KILL');
    expect(await state()).not.toBe(untouched);
    await cleanUp();
    expect(await state()).toBe(untouched);
  });

  it('neither does one leave anything that announced on the interface itself, and kept its addresses for a restart', async () => {
    await cluster.agent('node-1').signal('KILL');
    await cleanUp();
    cluster.startAgent('node-1', '--announce-on', 'interface');
    await expect.poll(() => cluster.holders(address)).toEqual(['node-1']);
    await cluster.agent('node-1').signal('TERM');
    expect(await cluster.holders(address)).toEqual(['node-1']);
    await cleanUp();
    expect(await state()).toBe(untouched);
  });
});

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import type { Transport } from '../../src/client/transport.ts';
import type { Host } from '../../src/host/host.ts';
import { forwardingSelectors, NodeAgent } from '../../src/node/forwarding/agent.ts';
import { NftablesWriter } from '../../src/node/nftables/writer.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { fastClock } from '../support/fast-clock.ts';
import { call } from '../support/test-server.ts';
import type { AgentProcessOptions } from './support/agent-process.ts';
import { TestCluster } from './support/cluster.ts';
import { missingFor } from './support/gate.ts';
import type { Outcome } from './support/machine-protocol.ts';
import { endpointSlice, agentOptions, forwardingOptions } from './support/objects.ts';
import { processesOf, residentNft } from './support/processes.ts';
import { halves, listTable, type TableListing, withoutSlots } from './support/table-listing.ts';
import { tellingTransactions } from './support/transactions.ts';

const missing = missingFor('user');
const pods = ['a-1', 'b-2'] as const;

describe.skipIf(missing !== '')(`faults${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    cluster = await TestCluster.start({ 'node-1': ['client', 'a-1'], 'node-2': ['b-2'], spare: [] });
    for (const pod of pods) await cluster.network.at(pod).machine.serve(8080);
  });
  afterAll(() => cluster.close());

  it('kill -9 at any moment leaves no Service half programmed, and the next agent continues', async () => {
    const { host } = cluster.network.at('node-1').machine;
    // Some transactions' worth, beside those that change.
    await parallel(30, (i) => cluster.service(`many-${i}`, {}));
    await parallel(30, (i) => slice(`many-${i}`, 100, i));
    await cluster.service('killed', { clusterIP: '10.96.2.1' });
    const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000);
    console.log(`kill -9: FAULT_SEED=${seed}`);
    const numbers = fc.sample(fc.tuple(fc.nat(40), fc.nat(30), fc.nat(29)), { seed, numRuns: 4 });
    for (const [index, [programs, milliseconds, moved]] of numbers.entries()) {
      await endpoints('killed', [pods[index % 2] ?? 'a-1']);
      const agent = startProcess('node-1');
      const changing = parallel(20, (i) => slice(`many-${(moved + i) % 30}`, 50 + i, index));
      const lines = createInterface({ input: agent.stdout })[Symbol.asyncIterator]();
      // An agent that has nothing more to do runs no programs and writes no transactions.
      const isIdle = async (): Promise<boolean> => {
        const next = lines.next().then(({ done }) => done === true);
        return Promise.race([next, delay(1000, true)]);
      };
      try {
        await lines.next();
        for (let run = 0; run < programs && !(await isIdle()); run++);
        await delay(milliseconds);
      } finally {
        agent.kill('SIGKILL');
      }
      await Promise.all([changing, once(agent, 'exit')]);
      const listing = await host.exec('nft', ['list', 'table', 'ip', 'servicenet']);
      if (listing.exitCode === 0) expect(halves(await listTable(host, 'ip'))).toEqual([]);
    }
    // The nft that stays ends with its agent.
    await expect.poll(() => processesOf(host, residentNft)).toEqual([]);
    const agents = cluster.startAgents(['node-1']);
    await expectFrom('client', '10.96.2.1', pods[(numbers.length - 1) % 2] ?? 'a-1');
    await expectAsMadeAnew();
    await agents.stop();
    await parallel(30, (i) => cluster.send('DELETE', `/api/v1/namespaces/shop/services/many-${i}`));
  });

  it('what an agent that was killed has left of other Services goes when the next one starts', async () => {
    const { host } = cluster.network.at('node-1').machine;
    const listing = async (): Promise<string> => (await host.exec('nft', ['list', 'ruleset'])).stdout;
    await cluster.service('left', { clusterIP: '10.96.2.10' });
    await endpoints('left', ['a-1']);
    const shapes: readonly object[] = [
      {},
      { sessionAffinity: 'ClientIP' },
      { type: 'LoadBalancer', loadBalancerSourceRanges: ['192.0.2.0/24'], externalTrafficPolicy: 'Local' },
      { type: 'NodePort', externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' },
      { externalIPs: ['198.51.100.7'] },
    ];
    for (const [i, shape] of shapes.entries()) {
      await cluster.service(`gone-${i}`, shape);
      // Numbers of endpoints that need chains of their own.
      await slice(`gone-${i}`, 3 + 7 * i, i);
    }
    const agent = startProcess('node-1');
    await expectFrom('client', '10.96.2.10', 'a-1');
    await expect.poll(listing).toContain('10.251.4.31');
    agent.kill('SIGKILL');
    await once(agent, 'exit');
    for (const i of shapes.keys()) await cluster.send('DELETE', `/api/v1/namespaces/shop/services/gone-${i}`);
    const agents = cluster.startAgents(['node-1']);
    await expect.poll(listing).not.toContain('10.251.');
    await agents.stop();
    const { host: spare } = cluster.network.at('spare').machine;
    await new NftablesWriter({ host: spare }).cleanUp();
    const anew = cluster.startAgents(['node-1'], {}, () => spare);
    const all = async (of: Host): Promise<unknown> => {
      const table = await listTable(of, 'ip');
      return [withoutSlots(table), Object.fromEntries(table.chains)];
    };
    await expect.poll(() => all(spare).catch(() => undefined), { interval: 200 }).toEqual(await all(host));
    await anew.stop();
  });

  const damages: readonly (readonly [string, (key: string) => readonly string[]])[] = [
    ['flushes all tables', () => ['flush', 'ruleset']],
    ['empties a chain', () => ['flush', 'chain', 'ip', 'servicenet', 'services']],
    ['deletes a verdict', (key) => ['delete', 'element', 'ip', 'servicenet', 'service-ips', `{ ${key} }`]],
    [
      'deletes an endpoint',
      (key) => ['delete', 'element', 'ip', 'servicenet', 'cluster-endpoints', `{ ${key} . 0 }`],
    ],
    [
      'adds an element',
      (key) => ['add', 'element', 'ip', 'servicenet', 'refused-service-ips', `{ ${key} : drop }`],
    ],
  ];

  it.for(damages.map(([what, damage], index) => ({ what, damage, index })))(
    'the next full sync restores the rules after a user who $what',
    async ({ damage, index }) => {
      const [name, address] = [`mended-${index}`, `10.96.4.${index + 1}`];
      const agents = cluster.startAgents(['node-1'], { fullSyncMs: 700 });
      await cluster.service(name, { clusterIP: address });
      await endpoints(name, ['a-1']);
      await expectFrom('client', address, 'a-1');
      const { host } = cluster.network.at('node-1').machine;
      const { exitCode, stderr } = await host.exec('nft', damage(`${address} . tcp . 80`));
      expect(exitCode, stderr).toBe(0);
      await expectAsMadeAnew();
      await expectFrom('client', address, 'a-1');
      await agents.stop();
    },
  );

  it('a change that fails because an element is gone is brought by the next transaction', async () => {
    const agents = cluster.startAgents(['node-1']);
    await cluster.service('failing', { clusterIP: '10.96.2.3' });
    await endpoints('failing', ['a-1']);
    await expectFrom('client', '10.96.2.3', 'a-1');
    const element = ['service-ips', '{ 10.96.2.3 . tcp . 80 }'];
    await cluster.network
      .at('node-1')
      .machine.host.exec('nft', ['delete', 'element', 'ip', 'servicenet', ...element]);
    await endpoints('failing', ['a-1', 'b-2']);
    await endpoints('failing', ['b-2']);
    await expectFrom('client', '10.96.2.3', 'b-2');
    await expectAsMadeAnew();
    await agents.stop();
  });

  it.for(['before', 'after'])(
    'nft that fails once, %s it has done its work, delays a change and loses none',
    async (moment) => {
      const folder = await mkdtemp(join(tmpdir(), 'servicenet-nft-'));
      try {
        const order = join(folder, 'fail');
        const done = moment === 'after' ? 'nft "$@"; ' : '';
        // Without an interactive mode, each transaction has a program of its own.
        const script = `#!/bin/sh\nPATH=\${PATH#*:}\ncase "$*" in "-j -i") exit 1;; esac\nif rm ${order} 2>/dev/null; then ${done}echo "Error: by order" >&2; exit 1; fi\nexec nft "$@"\n`;
        await writeFile(join(folder, 'nft'), script);
        await chmod(join(folder, 'nft'), 0o755);
        await chmod(folder, 0o777);
        const { host } = cluster.network.at('node-1').machine;
        const wrapped: Host = {
          ...host,
          exec: (program, args, options) =>
            host.exec('env', [`PATH=${folder}:${process.env['PATH'] ?? ''}`, program, ...args], options),
        };
        await changesDespite(moment === 'before' ? 4 : 5, wrapped, () => writeFile(order, ''));
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  );

  it.for(['before', 'after'])(
    'the nft that stays and is killed once, %s it has done its work, delays a change and loses none',
    async (moment) => {
      const { host } = cluster.network.at('node-1').machine;
      let isOrdered = false;
      const kill = (at: string): void => {
        if (!isOrdered || at !== moment) return;
        isOrdered = false;
        throw new Error('by order');
      };
      const fed = async function* (input: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
        for await (const piece of input) {
          kill('before');
          yield piece;
        }
      };
      const exec: Host['exec'] = (program, args, options = {}) => {
        const { input, output } = options;
        if (typeof input !== 'object' || output === undefined) return host.exec(program, args, options);
        const heard = (text: string): void => {
          kill('after');
          output(text);
        };
        return host.exec(program, args, { ...options, input: fed(input), output: heard });
      };
      await changesDespite(moment === 'before' ? 8 : 9, { ...host, exec }, () => {
        isOrdered = true;
      });
    },
  );

  /** Two changes, and a fault by order with the second one. */
  async function changesDespite(
    number: number,
    host: Host,
    order: () => void | Promise<void>,
  ): Promise<void> {
    const agents = cluster.startAgents(['node-1'], {}, () => host);
    const [name, address] = [`faulty-${number}`, `10.96.2.${number}`];
    await cluster.service(name, { clusterIP: address });
    await endpoints(name, ['a-1']);
    await expectFrom('client', address, 'a-1');
    // The first change of a settled agent: chains are there, and the nft that stays.
    await endpoints(name, ['b-2']);
    await expectFrom('client', address, 'b-2');
    await order();
    await endpoints(name, ['a-1']);
    await expect.poll(() => agents.logged.some((line) => line.includes('by order'))).toBe(true);
    await expectFrom('client', address, 'a-1');
    await expectAsMadeAnew();
    await agents.stop();
  }

  it('while the API server is away for a minute, everything is forwarded as before, and what came since comes after', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-api-'));
    const stopping = new AbortController();
    let server = await startApiServer({ dataDirectory: folder, controllers: [] });
    const { url, ca, token, client } = server;
    const transport = await createTransport({ kind: 'endpoint', url, ca, token });
    // A minute passes in a second.
    const clock = fastClock(60);
    const common = { clock, random: Math.random, log: pino({ enabled: false }) };
    const informers = new InformerFactory({ ...common, transport, labelSelectors: forwardingSelectors });
    const agent = new NodeAgent({
      context: { ...common, informers, events: { event: () => undefined }, metrics: new Metrics() },
      ...{ host: cluster.network.at('node-1').machine.host, nodeName: 'node-1' },
      ...{ ...agentOptions, forwarding: { ...forwardingOptions, families: ['IPv4'] } },
    });
    const send = async (to: Transport, method: string, path: string, body: object): Promise<void> => {
      const { status } = await call(to, method, path, { body });
      expect(status).toBeLessThan(300);
    };
    const slices = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices';
    const sliceOf = (pod: string): object => {
      const located = [{ address: cluster.network.at(pod).addresses.IPv4, node: 'any' }];
      return endpointSlice('IPv4', located, 8080, 'away');
    };
    try {
      await send(client, 'POST', '/api/v1/nodes', { metadata: { name: 'node-1' } });
      await send(client, 'POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
      const spec = { clusterIP: '10.96.2.7', ports: [{ port: 80, targetPort: 8080 }] };
      await send(client, 'POST', '/api/v1/namespaces/shop/services', { metadata: { name: 'away' }, spec });
      await send(client, 'POST', slices, sliceOf('a-1'));
      const running = agent.run(stopping.signal);
      informers.start(stopping.signal);
      await expectFrom('client', '10.96.2.7', 'a-1');

      await server.stop();
      const until = clock.monotonic() + 60_000;
      while (clock.monotonic() < until) {
        expect(await cluster.network.at('client').machine.ask('10.96.2.7', 80)).toMatchObject({
          name: 'a-1',
        });
      }
      server = await startApiServer({
        ...{ dataDirectory: folder, controllers: [], port: Number(new URL(url).port), token },
      });
      await send(server.client, 'PUT', `${slices}/away-ipv4`, sliceOf('b-2'));
      await expectFrom('client', '10.96.2.7', 'b-2');
      stopping.abort();
      await Promise.all([running, informers.finished()]);
    } finally {
      stopping.abort();
      await transport.close();
      await server.stop();
      await rm(folder, { recursive: true });
    }
  });

  it('5,000 changes in a minute end in what is planned, by as few transactions as there were syncs', async () => {
    const { host } = cluster.network.at('node-1').machine;
    let transactions = 0;
    const counting = tellingTransactions(host, () => transactions++);
    const [services, each, period] = [20, 250, 50];
    await parallel(services, (i) => cluster.service(`busy-${i}`, { clusterIP: `10.96.3.${i + 1}` }));
    const agents = cluster.startAgents(['node-1'], { minSyncMs: period }, () => counting);
    await parallel(services, (i) => endpoints(`busy-${i}`, ['a-1']));
    await expectFrom('client', '10.96.3.1', 'a-1');
    await expectAsMadeAnew();
    const started = performance.now();
    transactions = 0;
    await parallel(services, async (i) => {
      for (let change = 0; change < each; change++) await slice(`busy-${i}`, 1 + (change % 7), change);
      await endpoints(`busy-${i}`, ['b-2']);
    });
    await expectAsMadeAnew();
    const syncs = Math.ceil((performance.now() - started) / period);
    // Chains for numbers of endpoints that are new take a transaction of their own, once.
    expect(transactions).toBeLessThanOrEqual(syncs + 7);
    for (let i = 0; i < services; i++) await expectFrom('client', `10.96.3.${i + 1}`, 'b-2');
    await agents.stop();
    transactions = 0;
    const settled = cluster.startAgents(['node-1'], {}, () => counting);
    await cluster.service('afterwards', { clusterIP: '10.96.2.6' });
    await endpoints('afterwards', ['a-1']);
    await expectFrom('client', '10.96.2.6', 'a-1');
    expect(transactions, 'of what came later alone').toBeLessThanOrEqual(2);
    await settled.stop();
  });

  /** The table of node-1 becomes what an agent makes that begins with none. */
  async function expectAsMadeAnew(): Promise<void> {
    const { host } = cluster.network.at('node-1').machine;
    const { host: spare } = cluster.network.at('spare').machine;
    await new NftablesWriter({ host: spare }).cleanUp();
    const agents = cluster.startAgents(['node-1'], {}, () => spare);
    const listed = async (of: Host): Promise<TableListing | undefined> => {
      // For a moment there is no table where it is made anew.
      const { exitCode } = await of.exec('nft', ['list', 'chain', 'ip', 'servicenet', 'services']);
      return exitCode === 0 ? await listTable(of, 'ip').catch(() => undefined) : undefined;
    };
    let found: TableListing | undefined;
    const isSame = async (): Promise<boolean> => {
      found = await listed(host);
      const wanted = await listed(spare);
      if (found === undefined || wanted === undefined) return false;
      const { chains } = found;
      // Chains that are not needed any more stay.
      return (
        JSON.stringify(withoutSlots(found)) === JSON.stringify(withoutSlots(wanted)) &&
        [...wanted.chains].every(([name, rules]) => chains.get(name)?.join() === rules.join())
      );
    };
    await expect.poll(isSame, { interval: 200 }).toBe(true);
    await agents.stop();
    expect(found === undefined ? undefined : halves(found)).toEqual([]);
  }

  function startProcess(nodeName: string): ChildProcess & { stdout: NonNullable<ChildProcess['stdout']> } {
    const { url, ca, token } = cluster.server;
    const options: AgentProcessOptions = {
      url,
      ca,
      token,
      nodeName,
      enter: cluster.network.at(nodeName).enter,
    };
    const file = fileURLToPath(new URL('support/agent-process.ts', import.meta.url));
    return spawn(process.execPath, [file, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit'] });
  }

  /** Makes a slice of so many endpoints that are nowhere; another generation has others. */
  function slice(name: string, count: number, generation: number): Promise<void> {
    const located = Array.from({ length: count }, (_, i) => ({
      ...{ address: `10.251.${generation % 250}.${i + 1}`, node: 'elsewhere' },
    }));
    return cluster.slice(endpointSlice('IPv4', located, 8080, name));
  }

  function endpoints(name: string, backends: readonly string[]): Promise<void> {
    const located = backends.map((pod) => ({ address: cluster.network.at(pod).addresses.IPv4, node: 'any' }));
    return cluster.slice(endpointSlice('IPv4', located, 8080, name));
  }

  async function expectFrom(from: string, address: string, pod: string): Promise<void> {
    const ask = (): Promise<Outcome> => cluster.network.at(from).machine.ask(address, 80, { timeout: 2000 });
    await expect.poll(ask).toMatchObject({ name: pod });
  }
});

/** Does something for 0 to one less than the number, some at a time. */
async function parallel(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  const rest = Array.from({ length: count }, (_, index) => index).values();
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      for (const index of rest) await work(index);
    }),
  );
}

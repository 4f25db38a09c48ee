import { setTimeout as sleep } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { decodeReport } from '../../../src/network/announcing/agent-report.ts';
import { reportAnnotation } from '../../../src/network/announcing/agent-report.ts';
import { applyObjects } from '../../../src/commands/apply.ts';
import definitions from '../../../src/commands/definitions.generated.json' with { type: 'json' };
import type { ExecResult } from '../../../src/host/host.ts';
import type { AddressPoolAnnounce } from '../../../src/objects/types/servicenet.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import type { TestServerOptions } from '../../../src/testing/index.ts';
import { call } from '../../support/test-server.ts';
import { AddressHistory } from './address-history.ts';
import { AddressWatch, type Question } from './address-watch.ts';
import { TestCluster } from './cluster.ts';
import type { Machine } from './machine.ts';
import { ApiRelay, NodeProgram } from './node-program.ts';

const leaseNamespace = 'kube-system';

/** Where the Services of {@link AnnouncingCluster} have their addresses. */
const poolRange = '192.0.2.128/25';

interface AnnouncingClusterOptions {
  /** Of the pool `lan`. */
  readonly announce?: AddressPoolAnnounce;
  /** The names of Pods, by node. */
  readonly pods?: Readonly<Record<string, readonly string[]>>;
  readonly server?: TestServerOptions;
}

/**
 * Nodes on a LAN with an agent each that announces, and a client on the LAN. Every node answers on port 80 itself, with
 * its name: who answers for an address tells who has it.
 */
export class AnnouncingCluster {
  readonly cluster: TestCluster;
  readonly nodes: readonly string[];
  readonly #relays = new Map<string, ApiRelay>();
  readonly #agents = new Map<string, NodeProgram>();
  readonly #assigned = new Set<string>();
  #started = 0;

  /** Which nodes have had an address. */
  readonly history: AddressHistory;

  private constructor(cluster: TestCluster, nodes: readonly string[], history: AddressHistory) {
    this.cluster = cluster;
    this.history = history;
    this.nodes = nodes;
  }

  static async start(
    count: number,
    { announce, pods = {}, server = {} }: AnnouncingClusterOptions = {},
  ): Promise<AnnouncingCluster> {
    const nodes = Array.from({ length: count }, (_, index) => `node-${index + 1}`);
    const podsOf = Object.fromEntries(nodes.map((node) => [node, pods[node] ?? []]));
    const cluster = await TestCluster.start(podsOf, server);
    const history = await AddressHistory.start(cluster.network, nodes);
    const started = new AnnouncingCluster(cluster, nodes, history);
    for (const node of nodes) await started.machine(node).serve(80);
    await started.#open(announce);
    return started;
  }

  /** Another cluster with the same pool: of one machine, which is no node of this one any more. It ends before this one. */
  async other(node: string): Promise<AnnouncingCluster> {
    await this.relay(node).close();
    await this.cluster.send('DELETE', `/api/v1/nodes/${node}`);
    const cluster = await TestCluster.on(this.cluster.network, [node], {});
    const started = new AnnouncingCluster(cluster, [node], this.history);
    await started.#open(undefined);
    return started;
  }

  async #open(announce: AddressPoolAnnounce | undefined): Promise<void> {
    const { server } = this.cluster;
    await applyObjects(server.client, definitions);
    await this.pool('lan', {
      addresses: [poolRange, '2001:db8::f000/116'],
      ...(announce && { announce }),
    });
    for (const node of this.nodes) {
      this.#relays.set(node, await ApiRelay.open(this.machine(node), server.kubeconfig));
    }
  }

  get client(): Machine {
    return this.cluster.network.outside.machine;
  }

  machine(node: string): Machine {
    return this.cluster.network.at(node).machine;
  }

  relay(node: string): ApiRelay {
    const relay = this.#relays.get(node);
    if (relay === undefined) throw new Error(`there is no node ${node}`);
    return relay;
  }

  /** Starts the agent of a node, or another one after its end. */
  startAgent(node: string, ...flags: readonly string[]): NodeProgram {
    const agent = new NodeProgram(
      ...([
        this.machine(node),
        this.relay(node),
        `agent-${++this.#started}`,
        '--features',
        'announce',
      ] as const),
      ...['--node-name', node, '--lease-namespace', leaseNamespace, '--log-level', 'debug'],
      ...['--metrics-bind-address', '0', ...flags],
    );
    this.#agents.set(node, agent);
    return agent;
  }

  startAgents(...flags: readonly string[]): void {
    for (const node of this.nodes) this.startAgent(node, ...flags);
  }

  agent(node: string): NodeProgram {
    const agent = this.#agents.get(node);
    if (agent === undefined) throw new Error(`node ${node} has no agent`);
    return agent;
  }

  async pool(name: string, spec: object): Promise<void> {
    const pool = { apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool', metadata: { name }, spec };
    const path = '/apis/servicenet.dev/v1alpha1/addresspools';
    for (;;) {
      // A new kind is served shortly after its definition is stored.
      const { status, body } = await call(this.cluster.server.client, 'POST', path, { body: pool });
      if (status < 300) return;
      if (status !== 404) throw new Error(JSON.stringify(body));
      await sleep(20);
    }
  }

  /** A Service with addresses, as the load balancer controller leaves it. */
  async service(name: string, addresses: readonly string[], spec: object = {}): Promise<void> {
    for (const address of addresses) this.#assigned.add(address);
    await this.cluster.service(name, { type: 'LoadBalancer', ...spec });
    await this.cluster.send('PATCH', `/api/v1/namespaces/shop/services/${name}/status`, {
      status: {
        loadBalancer: { ingress: addresses.map((ip) => ({ ip, ipMode: 'VIP' })) },
        conditions: [
          {
            ...{ type: 'servicenet.dev/LoadBalancerReady', status: 'True', reason: 'Assigned' },
            ...{ message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
          },
        ],
      },
    });
  }

  /** Who answers the client at an address; `silence` within the time. */
  async whoAnswers(address: string, timeout = 1000): Promise<string> {
    const outcome = await this.client.ask(address, 80, { timeout });
    return typeof outcome === 'string' ? outcome : outcome.name;
  }

  /** Deletes a Service with its addresses. */
  async remove(name: string, addresses: readonly string[]): Promise<void> {
    await this.cluster.send('DELETE', `/api/v1/namespaces/shop/services/${name}`);
    for (const address of addresses) this.#assigned.delete(address);
  }

  /** What each agent says that it announces, by node. */
  async announced(): Promise<ReadonlyMap<string, readonly string[]>> {
    const leases = await this.leases();
    return new Map(
      leases.map((lease) => [
        textAt(lease, 'spec', 'holderIdentity'),
        decodeReport(textAt(lease, 'metadata', 'annotations', reportAnnotation)).announced,
      ]),
    );
  }

  /** How often the API server has stored anything so far: agents write nothing but Leases. */
  async versions(): Promise<number> {
    const { body } = await call(this.cluster.server.client, 'GET', '/api/v1/namespaces');
    return Number(textAt(body, 'metadata', 'resourceVersion'));
  }

  /** What agents refuse to announce: address and reason. */
  async refused(): Promise<readonly string[]> {
    const leases = await this.leases();
    return leases.flatMap((lease) =>
      decodeReport(textAt(lease, 'metadata', 'annotations', reportAnnotation)).refused.map(
        ({ address, reason }) => `${address} ${reason}`,
      ),
    );
  }

  /** Resolves when all agents are there, and each address has been at one node for a second. */
  async settled(): Promise<void> {
    let before = '';
    await vi.waitFor(
      async () => {
        const texts = (await this.leases()).map((lease) =>
          textAt(lease, 'metadata', 'annotations', reportAnnotation),
        );
        const reports = texts.map(decodeReport);
        const now = texts.join();
        const isSame = now === before;
        before = now;
        expect(reports.filter(({ interfaces }) => interfaces.length > 0)).toHaveLength(this.nodes.length);
        expect(reports.flatMap(({ announced }) => announced).toSorted()).toEqual(
          [...this.#assigned].toSorted(),
        );
        expect(isSame).toBe(true);
      },
      { timeout: 90_000, interval: 1000 },
    );
  }

  /** Resolves to the node that answers at an address, once one does. */
  async owner(address: string): Promise<string> {
    return vi.waitFor(
      async () => {
        const name = await this.whoAnswers(address);
        if (!this.nodes.includes(name)) throw new Error(`${name} at ${address}`);
        return name;
      },
      { timeout: 60_000 },
    );
  }

  /** The nodes that have an address on an interface. */
  async holders(address: string): Promise<readonly string[]> {
    const found = await Promise.all(
      this.nodes.map(async (node) => {
        const { stdout } = await this.machine(node).host.exec('ip', ['-brief', 'address', 'show']);
        return stdout.includes(` ${address}/`) ? [node] : [];
      }),
    );
    return found.flat();
  }

  /** Asks an address from the client all the time, until it is told to stop; beside it one of a node that does not change. */
  watch(address: string, owner: string, secondTimeout?: number): AddressWatch {
    const beside = this.nodes.find((node) => node !== owner) ?? owner;
    const question =
      (to: string): Question =>
      async (timeout) => {
        const outcome = await this.client.ask(to, 80, { timeout });
        return typeof outcome === 'string' ? undefined : outcome.name;
      };
    const { IPv4 } = this.cluster.network.at(beside).addresses;
    return new AddressWatch(question(address), question(IPv4), secondTimeout);
  }

  /**
   * Asks the LAN by ARP for an address, five times a second, and records all who answer, until it is told to stop: each
   * node once in a row. Of the owner, the interface below answers too.
   */
  async watchMacs(
    address: string,
  ): Promise<{ answerers(): Promise<readonly string[]>; stop(): Promise<void> }> {
    const { host } = this.client;
    const file = this.relay('node-1').file(`arp-${++this.#started}`);
    const ended = new AbortController();
    const arping = `arping -b -w 600 -I eth0 ${address}`;
    // Each hears the answers to all; the first one writes them down.
    const running = [`stdbuf -oL ${arping} > ${file}`, ...Array<string>(4).fill(arping)].map(async (line) => {
      await sleep(Math.random() * 1000);
      await host.exec('sh', ['-c', `exec ${line}`], { signal: ended.signal }).catch(() => undefined);
    });
    const macs = async (): Promise<readonly string[]> =>
      [...(await host.exec('cat', [file])).stdout.matchAll(/\[([0-9A-F:]{17})\]/g)].map(([, mac = '']) =>
        mac.toLowerCase(),
      );
    await vi.waitFor(async () => expect(await macs()).not.toEqual([]), { timeout: 60_000 });
    const nodes = await this.#nodesByMac();
    return {
      answerers: async () => {
        for (const [mac, node] of await this.#nodesByMac()) nodes.set(mac, node);
        return (await macs())
          .map((mac) => nodes.get(mac) ?? mac)
          .filter((node, index, all) => all[index - 1] !== node);
      },
      stop: async () => {
        ended.abort();
        await Promise.all(running);
      },
    };
  }

  /** Cuts a node's cable to the LAN, or plugs it in again. */
  async plug(node: string, isPlugged: boolean): Promise<void> {
    await this.cluster.network.script([`ip link set lan-${node} ${isPlugged ? 'up' : 'down'}`]);
  }

  /** Keeps nodes from each other's packets, as switches without a cable between them do: the client reaches all of them. */
  async separate(nodes: readonly string[], areSeparate: boolean): Promise<void> {
    const isolated = areSeparate ? 'on' : 'off';
    await this.cluster.network.script(
      nodes.map((node) => `ip link set lan-${node} type bridge_slave isolated ${isolated}`),
    );
  }

  /** The MAC address of a node's interface on the LAN. */
  async mac(node: string): Promise<string> {
    const { stdout } = await this.ip(node, '-json', 'link', 'show', 'dev', 'eth0');
    const links: unknown = JSON.parse(stdout);
    return textAt(listAt({ links }, 'links')[0], 'address');
  }

  async label(node: string, labels: object): Promise<void> {
    await this.cluster.send('PATCH', `/api/v1/nodes/${node}`, { metadata: { labels } });
  }

  ip(machine: string, ...words: readonly string[]): Promise<ExecResult> {
    return this.machine(machine).host.exec('ip', words);
  }

  /** Requests of agents to the API server so far that change a Lease. */
  async leases(): Promise<readonly unknown[]> {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${leaseNamespace}/leases`;
    const { body } = await call(this.cluster.server.client, 'GET', path);
    return listAt(body, 'items').filter((lease) =>
      textAt(lease, 'metadata', 'name').startsWith('announcer.'),
    );
  }

  async #nodesByMac(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const node of this.nodes) {
      const { stdout } = await this.ip(node, '-json', 'link', 'show');
      const links: unknown = JSON.parse(stdout);
      for (const link of Array.isArray(links) ? links : []) found.set(textAt(link, 'address'), node);
    }
    return found;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.signal('KILL').catch(() => undefined)));
    await Promise.all([...this.#relays.values()].map((relay) => relay.close()));
    await this.cluster.close();
  }
}

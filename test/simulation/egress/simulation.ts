import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { InMemoryCloud } from '../../../src/platforms/openshift/cloud-private-ip/cloud.ts';
import { cloudPrivateIPController } from '../../../src/platforms/openshift/cloud-private-ip/controller.ts';
import { egressIPController } from '../../../src/platforms/openshift/egress-ip/controller.ts';
import { runControllers, type RunningControllers } from '../../../src/controllers/run.ts';
import type { NodeReport } from '../../../src/network/announcing/agent-report.ts';
import { encodeReport } from '../../../src/network/announcing/agent-report.ts';
import {
  announcerLabel,
  announcerLeaseName,
  reportAnnotation,
} from '../../../src/network/announcing/agent-report.ts';
import { parseCidr } from '../../../src/objects/address.ts';
import { startApiServer, type TestServer } from '../../../src/testing/index.ts';
import { call } from '../../support/test-server.ts';
import { UnreliableTransport } from '../../support/unreliable-transport.ts';
import { Choices } from '../faults/random.ts';
import { EgressLedger } from './egress-ledger.ts';
import { LateWatches } from './late-watches.ts';

const nodeNames = ['n1', 'n2', 'n3', 'n4'] as const;
const objectNames = ['a', 'b', 'c'] as const;
const addresses = ['192.0.2.50', '192.0.2.51', '192.0.2.52', '192.0.2.53', '192.0.2.54'];
const egressIPs = '/apis/k8s.ovn.org/v1/egressips';
const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
const label = 'k8s.ovn.org/egress-assignable';

interface SimulatedNode {
  isLabelled: boolean;
  isReady: boolean;
  /** Whether its agent has a Lease, and lives. */
  agent: 'none' | 'alive' | 'dead';
}

export interface EgressOutcome {
  /** What was against a rule at some moment, and what is wrong at the end. */
  readonly wrong: readonly string[];
  readonly changes: number;
}

/**
 * Nodes come, go, fail and lose their label while EgressIPs get other addresses, over a network that loses, delays and
 * repeats: a ledger sees each version of each object. On a cloud CloudPrivateIPConfigs are between.
 *
 * @param steps what happens, beside the controllers.
 */
export async function simulateEgress(seed: number, steps: number): Promise<EgressOutcome> {
  const choices = new Choices(seed);
  const server = await startApiServer({ platform: 'openshift', controllers: [] });
  const ledger = new EgressLedger();
  ledger.connect(server.client);
  const world = new EgressWorld(server, choices, choices.chance(0.4));
  try {
    for (const name of nodeNames) await world.addNode(name);
    let controllers = world.startControllers(true);
    for (let step = 0; step < steps; step++) {
      await world.act();
      await sleep(choices.below(40));
      if (choices.chance(0.05)) {
        await controllers.stop();
        controllers = world.startControllers(true);
      }
    }
    await controllers.stop();
    // On a network that works, all is as it should be soon.
    world.calm();
    controllers = world.startControllers(false);
    const missing = await world.settled(ledger);
    await controllers.stop();
    return { wrong: [...ledger.wrong, ...missing], changes: ledger.changes };
  } finally {
    await ledger.close();
    await server.stop();
  }
}

class EgressWorld {
  readonly #server: TestServer;
  readonly #choices: Choices;
  readonly #isCloud: boolean;
  readonly #nodes = new Map<string, SimulatedNode>();
  /** By object: what its spec has. */
  readonly #wanted = new Map<string, readonly string[]>();
  readonly #cloud: InMemoryCloud;
  #cloudFails = true;

  constructor(server: TestServer, choices: Choices, isCloud: boolean) {
    this.#server = server;
    this.#choices = choices;
    this.#isCloud = isCloud;
    const luck = choices.fork();
    this.#cloud = new InMemoryCloud({
      canMove: choices.chance(0.5),
      delay: () => sleep(luck.below(20)),
      failure: () => (this.#cloudFails && luck.chance(0.1) ? 'not now' : undefined),
    });
  }

  startControllers(isUnreliable: boolean): RunningControllers {
    const faults = { dropped: 0.05, unanswered: 0.05, late: 0.05 };
    const luck = this.#choices.fork();
    const { client } = this.#server;
    return runControllers({
      transport: isUnreliable
        ? new LateWatches(new UnreliableTransport(client, faults, luck.next), () => luck.below(60))
        : client,
      controllers: [egressIPController, cloudPrivateIPController(this.#cloud)],
      log: pino({ enabled: false }),
    });
  }

  calm(): void {
    this.#cloudFails = false;
  }

  async addNode(name: string): Promise<void> {
    this.#nodes.set(name, { isLabelled: true, isReady: true, agent: this.#isCloud ? 'none' : 'alive' });
    const cloud = JSON.stringify([{ interface: 'eni', ifaddr: { ipv4: '192.0.2.0/24' }, capacity: {} }]);
    const annotations = this.#isCloud ? { 'cloud.network.openshift.io/egress-ipconfig': cloud } : {};
    await this.#send('POST', '/api/v1/nodes', { metadata: { name, labels: { [label]: '' }, annotations } });
    const address = { type: 'InternalIP', address: `192.0.2.1${name.slice(1)}` };
    await this.#send('PATCH', `/api/v1/nodes/${name}/status`, { status: { addresses: [address] } });
    await this.#writeNode(name);
  }

  /** One thing that a user, a cloud or an agent does. */
  async act(): Promise<void> {
    const choices = this.#choices;
    const kind = choices.below(10);
    if (kind < 4) return this.#changeNode(choices.pick(nodeNames));
    const name = choices.pick(objectNames);
    if (kind === 4 && this.#wanted.delete(name)) return this.#send('DELETE', `${egressIPs}/${name}`);
    if (kind === 5 && this.#wanted.has(name)) {
      // The status is an ordinary field, which users can take away.
      return this.#send('PATCH', `${egressIPs}/${name}`, { status: null });
    }
    const wanted = addresses.filter(() => choices.chance(0.4));
    if (wanted.length === 0) return;
    const spec = { egressIPs: wanted, namespaceSelector: {} };
    const isNew = !this.#wanted.has(name);
    this.#wanted.set(name, wanted);
    const made = { apiVersion: 'k8s.ovn.org/v1', kind: 'EgressIP' };
    if (isNew) await this.#send('POST', egressIPs, { ...made, metadata: { name }, spec });
    else await this.#send('PATCH', `${egressIPs}/${name}`, { spec });
  }

  /** Waits until each object has what it can have, and stays so. @returns what is not so in time. */
  async settled(ledger: EgressLedger): Promise<readonly string[]> {
    const deadline = Date.now() + 60_000;
    for (;;) {
      const before = ledger.changes;
      await sleep(500);
      const missing = this.#missing(ledger);
      if (missing.length === 0 && before === ledger.changes) return [];
      if (Date.now() > deadline) return [...missing, `${before} changes, then ${ledger.changes}`];
    }
  }

  #missing({ present }: EgressLedger): readonly string[] {
    const missing: string[] = [];
    const candidates = [...this.#nodes].flatMap(([name, { isLabelled, isReady, agent }]) =>
      isLabelled && isReady && agent !== 'dead' ? [name] : [],
    );
    for (const [name, wanted] of this.#wanted) {
      const has = present.get(name) ?? new Map<string, string>();
      for (const [address, node] of has) {
        if (!wanted.includes(address)) missing.push(`${name} still has ${address}`);
        if (!candidates.includes(node)) missing.push(`${address} of ${name} is on ${node}`);
      }
      // Behind an address of another object, those that follow wait.
      const isContested = wanted.some((address) =>
        [...present].some(([other, held]) => other !== name && held.has(address)),
      );
      const possible = Math.min(wanted.length, candidates.length);
      if (!isContested && has.size < possible) missing.push(`${name} has ${has.size} of ${possible}`);
    }
    return missing;
  }

  async #changeNode(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    if (node === undefined) return this.addNode(name);
    const kind = this.#choices.below(4);
    if (kind === 0) {
      this.#nodes.delete(name);
      await this.#send('DELETE', `/api/v1/nodes/${name}`);
      if (node.agent !== 'none') await this.#send('DELETE', `${leases}/${announcerLeaseName(name)}`);
      return;
    }
    if (kind === 1) node.isLabelled = !node.isLabelled;
    else if (kind === 2) node.isReady = !node.isReady;
    else if (node.agent !== 'none') node.agent = node.agent === 'dead' ? 'alive' : 'dead';
    await this.#writeNode(name);
  }

  async #writeNode(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    if (node === undefined) return;
    const own = `/api/v1/nodes/${name}`;
    await this.#send('PATCH', own, { metadata: { labels: { [label]: node.isLabelled ? '' : null } } });
    const conditions = [{ type: 'Ready', status: node.isReady ? 'True' : 'False' }];
    await this.#send('PATCH', `${own}/status`, { status: { conditions } });
    if (node.agent === 'none') return;
    const lan = parseCidr('192.0.2.0/24');
    const mac = `02:00:00:00:00:0${name.slice(1)}`;
    const report: NodeReport = {
      interfaces: [{ name: 'eth0', subnets: lan === undefined ? [] : [lan], mac, ownMac: mac }],
      ...{ sessions: [], refused: [], announced: [] },
    };
    const annotations = { [reportAnnotation]: encodeReport({ ...report, voters: new Map() }) };
    const metadata = { name: announcerLeaseName(name), labels: { [announcerLabel]: 'true' }, annotations };
    const spec = {
      holderIdentity: node.agent === 'dead' ? '' : name,
      acquireTime: '2026-01-01T00:00:00.000000Z',
    };
    const path = `${leases}/${announcerLeaseName(name)}`;
    const { status } = await call(this.#server.client, 'GET', path);
    await this.#send(status === 404 ? 'POST' : 'PATCH', status === 404 ? leases : path, { metadata, spec });
  }

  async #send(method: string, path: string, body?: object): Promise<void> {
    const patch = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
    const answer = await call(this.#server.client, method, path, { ...(body && { body }), ...patch });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  }
}

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { startApiServer, type TestServer } from '../../../src/testing/index.ts';
import { FastClock } from './fast-clock.ts';
import { findingsIn } from './findings.ts';
import { beginHistory, History } from './history.ts';
import { HostileProxy } from './hostile-proxy.ts';
import { Instance } from './instance.ts';
import { Choices } from './random.ts';
import type { Trace } from './trace.ts';

const steps = 32;
/**
 * Milliseconds of the controllers' clock in which a cluster comes to rest, and in which it stays so; and between two
 * looks, in real time.
 */
const patience = { settle: 240_000, rest: 2000, look: 40 };
/** Writes of controllers per change of a user, retries and duplicates included, and for the start of the pool. */
const bound = { perChange: 12, more: 40 };

/** In memory where there is such a place: what a disk does wrong is another test's (storage-power-cut). */
const scratch = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

const definition: unknown = parse(readFileSync('deploy/crds/servicenet.dev_addresspools.yaml', 'utf8'));

/** How a seed went. */
export interface Outcome {
  readonly seed: number;
  readonly changes: number;
  readonly writes: number;
  /** What is wrong; empty: nothing. */
  readonly findings: readonly string[];
  /** What was done to the controllers, by name, and how often. */
  readonly faults: ReadonlyMap<string, number>;
}

/** What a seed that failed says: what was wrong, and how to see it again. */
export function reportOf({ seed, findings }: Outcome): string {
  const more = findings.length > 8 ? [`and ${findings.length - 8} more`] : [];
  const lines = [
    ...findings.slice(0, 8),
    ...more,
    `npm run simulate -- --first ${seed} --seeds 1 --traces traces`,
  ];
  return [`seed ${seed} failed:`, ...lines.map((line) => `  ${line}`)].join('\n');
}

/**
 * Runs controllers against the embedded server behind a hostile network, with crashes on both sides, while users
 * change things; then lets the network be good, and looks at the cluster. A seed fixes every choice, but not the
 * moments at which the network and the processes meet: a failure comes back after a few runs of its seed, not always
 * in the first.
 */
export async function simulate(seed: number, trace?: Trace): Promise<Outcome> {
  const choices = new Choices(seed);
  const world = await World.start(choices, trace);
  try {
    const history = new History(choices.fork());
    for (let i = 0; i < steps; i++) {
      await history.step(world.client);
      await sleep(choices.below(8));
      const roll = choices.next();
      if (roll < 0.06) await world.replaceOne('crash');
      else if (roll < 0.1) await world.replaceOne('stop');
      else if (roll < 0.13) await world.restartServer();
    }
    const findings = await world.settle();
    const { writes, faults } = world.proxy;
    const { changes } = history;
    if (writes > bound.perChange * changes + bound.more)
      findings.push(`${writes} writes for ${changes} changes`);
    if (findings.length === 0) findings.push(...(await world.beginAnew()));
    if (findings.length === 0) findings.push(...(await history.lostPorts(world.client)));
    return { seed, changes, writes, findings, faults };
  } finally {
    await world.end();
  }
}

/** A server, a network, and two instances of the controllers. */
class World {
  readonly proxy: HostileProxy;
  #server: TestServer;
  readonly #directory: string;
  readonly #allocation: 'server' | 'controller';
  readonly #choices: Choices;
  readonly #trace: Trace;
  readonly #clock = new FastClock();
  #instances: Instance[] = [];
  /** Instances that go: they may still wait for answers. */
  readonly #leaving: Promise<void>[] = [];
  readonly #bugs: string[] = [];
  #started = 0;

  private constructor(
    server: TestServer,
    proxy: HostileProxy,
    directory: string,
    allocation: 'server' | 'controller',
    choices: Choices,
    trace: Trace,
  ) {
    this.#server = server;
    this.proxy = proxy;
    this.#directory = directory;
    this.#allocation = allocation;
    this.#choices = choices;
    this.#trace = trace;
  }

  static async start(choices: Choices, trace: Trace): Promise<World> {
    const directory = mkdtempSync(join(scratch, 'servicenet-faults-'));
    const allocation = choices.chance(0.5) ? 'server' : 'controller';
    const server = await startServer(directory, allocation);
    const proxy = await HostileProxy.start(choices.fork(), trace);
    await proxy.connect(server);
    const world = new World(server, proxy, directory, allocation, choices.fork(), trace);
    await server.client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: definition,
    });
    await untilServed(server);
    await beginHistory(server.client);
    await world.#begin();
    await world.#begin();
    return world;
  }

  /** How users reach the server: not through the hostile network. */
  get client(): TestServer['client'] {
    return this.#server.client;
  }

  /** Ends an instance and starts another one. */
  async replaceOne(how: 'crash' | 'stop'): Promise<void> {
    this.proxy.note(how);
    const [instance] = this.#instances.splice(this.#choices.below(this.#instances.length), 1);
    if (instance !== undefined) this.#leaving.push(how === 'crash' ? instance.crash() : instance.stop());
    await this.#begin();
  }

  /** The server goes, with every connection, and comes back with what it had acknowledged. */
  async restartServer(): Promise<void> {
    this.proxy.note('restart of the server');
    await this.proxy.connect(undefined);
    await this.#server.stop();
    this.#server = await startServer(this.#directory, this.#allocation);
    await this.proxy.connect(this.#server);
  }

  /** Waits until the cluster is as it should be and nobody writes any more; answers what is wrong with it. */
  async settle(): Promise<string[]> {
    this.proxy.hostile = false;
    const deadline = this.#clock.monotonic() + patience.settle;
    let findings: string[];
    do {
      const { writes } = this.proxy;
      await sleep(patience.look);
      await this.#revive();
      findings = ['nobody leads'];
      if (!this.#instances.some(({ isLeader }) => isLeader)) continue;
      findings = ['the controllers go on writing'];
      if (this.proxy.writes > writes) continue;
      findings = await findingsIn(this.client, this.#allocation);
      if (findings.length > 0) continue;
      await this.#clock.sleep(patience.rest);
      if (this.proxy.writes > writes) findings = this.#writtenSince(writes, 'after all was well');
    } while (findings.length > 0 && this.#clock.monotonic() < deadline);
    const health = findings.length === 0 ? [] : this.#instances.flatMap((instance) => instance.complaints());
    return [...findings, ...health, ...this.#bugs];
  }

  /**
   * Ends all instances, and begins one that knows nothing. It plans everything from scratch: whatever it writes is
   * what the ones before had left to do.
   */
  async beginAnew(): Promise<string[]> {
    await Promise.all(this.#instances.splice(0).map((instance) => instance.stop()));
    const { writes } = this.proxy;
    const deadline = this.#clock.monotonic() + patience.settle;
    const instance = await this.#begin();
    while (!(instance.isLeader && instance.complaints().length === 0)) {
      if (this.#clock.monotonic() > deadline)
        return ['a new instance does not begin', ...instance.complaints()];
      await sleep(patience.look);
    }
    await this.#clock.sleep(patience.rest);
    if (this.proxy.writes === writes) return this.#bugs;
    return this.#writtenSince(writes, 'by an instance that plans from scratch');
  }

  async end(): Promise<void> {
    await Promise.all([...this.#leaving, ...this.#instances.map((instance) => instance.stop())]);
    this.#clock.stop();
    await this.proxy.close();
    await this.#server.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #begin(): Promise<Instance> {
    const instance = await Instance.start({
      url: this.proxy.url,
      allocation: this.#allocation,
      clock: this.#clock,
      choices: this.#choices.fork(),
      identity: `instance-${++this.#started}`,
      trace: this.#trace,
    });
    this.#instances.push(instance);
    instance.ended.then(
      () => {
        this.#instances = this.#instances.filter((other) => other !== instance);
        this.#leaving.push(instance.stop());
      },
      (error: unknown) => this.#bugs.push(`a controller ended: ${String(error)}`),
    );
    return instance;
  }

  #writtenSince(count: number, when: string): string[] {
    return this.proxy.written.slice(count).map((write) => `${write}: written ${when}`);
  }

  /** A process that lost its lease ends; the Deployment starts another one. */
  async #revive(): Promise<void> {
    while (this.#instances.length < 2) await this.#begin();
  }
}

function startServer(dataDirectory: string, allocation: 'server' | 'controller'): Promise<TestServer> {
  return startApiServer({ dataDirectory, allocation, serviceNodePortRange: '30000-30099' });
}

async function untilServed(server: TestServer): Promise<void> {
  for (let i = 0; ; i++) {
    try {
      await server.client.request('GET', '/apis/servicenet.dev/v1alpha1/addresspools');
      return;
    } catch (error) {
      if (i === 2000) throw error;
      await sleep(5);
    }
  }
}

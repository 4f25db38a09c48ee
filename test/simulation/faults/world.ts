import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Transport } from '../../../src/client/transport.ts';
import { startApiServer, type TestServer } from '../../../src/testing/index.ts';
import { FastClock } from './fast-clock.ts';
import { HostileProxy, isWork } from './hostile-proxy.ts';
import { Instance, lease, leaseDurationMs } from './instance.ts';
import { Ledger } from './ledger.ts';
import type { Choices } from './random.ts';
import type { Scene } from './scene.ts';
import { Terms } from './terms.ts';
import type { Trace } from './trace.ts';

/**
 * Milliseconds of the controllers' clock in which a cluster comes to rest, and in which it stays so; and between two
 * looks, of ours. To rest come two pauses of a reflector (30 s at most): one until it finds the server again, one more
 * when its revision is too old by then, as client-go's.
 */
const timeoutMs = { settle: 75_000, rest: 2000, look: 40 };
/** Milliseconds of the controllers' clock by which a wall clock is set wrong, at most: users notice more than that. */
const longestJump = 20_000;

/** In memory where there is such a place: what a disk does wrong is another test's (storage-power-cut). */
const scratch = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

const definition: unknown = parse(readFileSync('deploy/crds/servicenet.dev_addresspools.yaml', 'utf8'));

/** A server, a network, and instances of the controllers. */
export class World {
  readonly proxy: HostileProxy;
  readonly clock: FastClock;
  readonly ledger = new Ledger();
  #server: TestServer;
  readonly #directory: string;
  readonly #scene: Scene;
  readonly #choices: Choices;
  readonly #trace: Trace;
  readonly terms: Terms;
  #instances: Instance[] = [];
  #rival: Instance | undefined;
  /** Instances that go: they may still wait for answers. */
  readonly #leaving: Promise<void>[] = [];
  readonly #bugs: string[] = [];
  #started = 0;

  private constructor(
    server: TestServer,
    proxy: HostileProxy,
    clock: FastClock,
    directory: string,
    scene: Scene,
    choices: Choices,
    trace: Trace,
  ) {
    this.#server = server;
    this.proxy = proxy;
    this.clock = clock;
    this.terms = new Terms(lease, () => clock.monotonic());
    this.#directory = directory;
    this.#scene = scene;
    this.#choices = choices;
    this.#trace = trace;
  }

  /** A server and its network, before anything runs there. */
  static async start(scene: Scene, choices: Choices, trace: Trace): Promise<World> {
    const directory = mkdtempSync(join(scratch, 'servicenet-faults-'));
    const clock = new FastClock();
    const proxy = await HostileProxy.start(choices.fork(), clock, trace);
    const server = await startServer(directory, scene, proxy);
    await proxy.connect(server);
    const world = new World(server, proxy, clock, directory, scene, choices.fork(), trace);
    world.#listen(server.client);
    await server.client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: definition,
    });
    await untilServed(server, clock);
    return world;
  }

  /** The controllers begin. */
  async populate(): Promise<void> {
    await this.#begin();
    await this.#begin();
    if (this.#scene.hasRival) this.#rival = await this.#start(true);
  }

  /** How users reach the server: not through the hostile network. */
  get client(): Transport {
    const { client } = this.#server;
    const trace = this.#trace;
    if (trace === undefined) return client;
    return {
      server: client.server,
      request: async (method, path, options) => {
        if (method !== 'GET') trace(`user ${method} ${path} ${JSON.stringify(options?.body ?? '')}`);
        return client.request(method, path, options);
      },
      stream: (path, options) => client.stream(path, options),
      close: () => Promise.resolve(),
    };
  }

  /** Something that happens to the controllers, or nothing. */
  async mishap(): Promise<void> {
    const roll = this.#choices.next();
    if (roll < 0.05) await this.#replaceOne('crash');
    else if (roll < 0.08) await this.#replaceOne('stop');
    else if (roll < 0.11) await this.#restartServer();
    else if (roll < 0.15) this.#freeze();
    else if (roll < 0.19) this.#deafen();
    else if (roll < 0.22) this.#setClock();
    else if (roll < 0.26) this.#cutOff();
  }

  /**
   * The leader goes in the moment in which `given` came true, and its follower has not heard of the last changes.
   * Answers whether all this came about.
   */
  async handOver(act: () => Promise<void>, given: () => Promise<boolean>): Promise<boolean> {
    await this.clock.eventually(() => this.#instances.some(({ isLeader }) => isLeader), 100);
    const leader = this.#instances.find(({ isLeader }) => isLeader);
    const next = this.#instances.find((instance) => instance !== leader);
    if (leader === undefined || next === undefined) return false;
    this.note('hand-over, unheard');
    next.process.turnDeaf((path) => path === '/api/v1/services');
    await act();
    await this.clock.eventually(given, 100);
    this.#remove(leader, 'stop');
    return this.clock.eventually(() => next.isLeader, 100);
  }

  /** All hear what there is to hear, and a new instance comes for each that went. */
  async recover(): Promise<void> {
    for (const { process } of this.#instances) process.hear();
    await this.#revive();
  }

  /** Waits until the cluster is as it should be and there are no more writes; answers what is wrong with it. */
  async settle(look: () => Promise<string[]>): Promise<string[]> {
    await this.#awake();
    await this.proxy.calm();
    const deadline = this.clock.monotonic() + timeoutMs.settle;
    let findings: string[];
    do {
      const { writes } = this.proxy;
      await this.clock.pause(timeoutMs.look);
      await this.#revive();
      findings = ['no instance leads'];
      if (!this.#instances.some(({ isLeader }) => isLeader)) continue;
      findings = ['the controllers go on writing'];
      if (this.proxy.writes > writes) continue;
      findings = await look();
      if (findings.length > 0) continue;
      await this.clock.sleep(timeoutMs.rest);
      if (this.proxy.writes > writes) findings = this.#writtenSince(writes, 'after all was well');
    } while (findings.length > 0 && this.clock.monotonic() < deadline);
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
    const deadline = this.clock.monotonic() + timeoutMs.settle;
    const instance = await this.#begin();
    while (!(instance.isLeader && instance.complaints().length === 0)) {
      if (this.clock.monotonic() > deadline)
        return ['a new instance does not begin', ...instance.complaints()];
      await this.clock.pause(timeoutMs.look);
    }
    await this.clock.sleep(timeoutMs.rest);
    if (this.proxy.writes === writes) return this.#bugs;
    return this.#writtenSince(writes, 'by an instance that plans from scratch');
  }

  async end(): Promise<void> {
    const all = [...this.#instances, ...(this.#rival === undefined ? [] : [this.#rival])];
    await Promise.all([...this.#leaving, ...all.map((instance) => instance.stop())]);
    await this.ledger.close();
    await this.terms.close();
    await this.proxy.close();
    this.clock.stop();
    await this.#server.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #listen(to: TestServer['client'] | undefined): void {
    this.ledger.connect(to);
    this.terms.connect(to);
  }

  note(fault: string): void {
    this.#trace?.(`=== ${fault}`);
    this.proxy.note(fault);
  }

  async #replaceOne(how: 'crash' | 'stop'): Promise<void> {
    const instance = this.#choices.pick(this.#instances);
    this.#remove(instance, how);
    await this.#begin();
  }

  #remove(instance: Instance, how: 'crash' | 'stop'): void {
    this.note(how);
    this.#instances = this.#instances.filter((other) => other !== instance);
    this.#leaving.push(how === 'crash' ? instance.crash() : instance.stop());
  }

  /** The server goes, with every connection, and comes back with what it had acknowledged. */
  async #restartServer(): Promise<void> {
    this.note('restart of the server');
    await this.proxy.connect(undefined);
    this.#listen(undefined);
    await this.#server.stop();
    this.#server = await startServer(this.#directory, this.#scene, this.proxy);
    this.#listen(this.#server.client);
    await this.proxy.connect(this.#server);
  }

  /** A process is stopped; it goes on a while later, or when another one leads. */
  #freeze(): void {
    const { process, isLeader, identity } = this.#choices.pick(this.#instances);
    if (process.isStopped) return;
    this.terms.excuse(identity);
    this.note(isLeader ? 'a leader stopped for a while' : 'a follower stopped for a while');
    process.stop();
    const first = this.#choices.chance(0.5) ? 'requests' : 'timers';
    if (this.#choices.chance(0.6))
      this.clock.after(FastClock.speed * (20 + this.#choices.below(300)), () => process.continue(first));
  }

  #deafen(): void {
    this.note('news come late');
    const { process } = this.#choices.pick(this.#instances);
    const word = this.#choices.pick(['', 'services', 'endpoints', 'pools', 'pods']);
    process.turnDeaf((path) => path.includes(word));
    this.clock.after(FastClock.speed * (20 + this.#choices.below(200)), () => process.hear());
  }

  /** A process reaches the server no more, for so long that another one may lead when it is back. */
  #cutOff(): void {
    const { process, isLeader } = this.#choices.pick(this.#instances);
    this.note(isLeader ? 'a leader cut off' : 'a follower cut off');
    process.cutOff();
    this.clock.after(this.#choices.below(2 * leaseDurationMs), () => process.connect());
  }

  #setClock(): void {
    this.note('a wall clock was set');
    const { process } = this.#choices.pick(this.#instances);
    process.setClock(this.#choices.below(2 * longestJump) - longestJump);
  }

  /** All go on: who is still stopped wakes when another one leads in its place. */
  async #awake(): Promise<void> {
    const stopped = this.#instances.filter(({ process }) => process.isStopped);
    if (stopped.length === 1)
      await this.clock.eventually(
        () => this.#instances.some((one) => one.isLeader && !stopped.includes(one)),
        250,
      );
    for (const { process } of this.#instances) {
      process.continue(this.#choices.chance(0.5) ? 'requests' : 'timers');
      process.hear();
      process.connect();
    }
  }

  async #begin(): Promise<Instance> {
    const instance = await this.#start(false);
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

  #start(isRival: boolean): Promise<Instance> {
    const identity = `${isRival ? 'rival' : 'instance'}-${++this.#started}`;
    return Instance.start({
      url: this.proxy.url,
      scene: this.#scene,
      clock: this.clock,
      choices: this.#choices.fork(),
      identity,
      trace: this.#trace,
      sends: (method, path) => {
        if (!isRival && isWork(method, path)) this.terms.wrote(identity, `${method} ${path}`);
      },
      isRival,
    });
  }

  #writtenSince(count: number, when: string): string[] {
    return this.proxy.written.slice(count).map((write) => `${write}: written ${when}`);
  }

  /** A process that lost its lease ends; the Deployment starts another one. */
  async #revive(): Promise<void> {
    while (this.#instances.length < 2) await this.#begin();
  }
}

function startServer(dataDirectory: string, scene: Scene, { putOff }: HostileProxy): Promise<TestServer> {
  const { allocation, serviceRange, nodePorts } = scene;
  return startApiServer({
    dataDirectory,
    allocation,
    serviceClusterIpRange: serviceRange,
    serviceNodePortRange: `${nodePorts.first}-${nodePorts.last}`,
    refuse: putOff,
  });
}

async function untilServed(server: TestServer, clock: FastClock): Promise<void> {
  for (let i = 0; ; i++) {
    try {
      await server.client.request('GET', '/apis/servicenet.dev/v1alpha1/addresspools');
      return;
    } catch (error) {
      if (i === 2000) throw error;
      await clock.pause(5);
    }
  }
}

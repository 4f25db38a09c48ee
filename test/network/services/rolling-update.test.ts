import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from '../../../src/host/host.ts';
import { forMakers } from '../support/for-makers.ts';
import {
  type Backend,
  both,
  clusterIPs,
  families,
  loadBalancerIPs,
  ServiceNetwork,
  terminating,
} from '../support/service-network.ts';

const port = 8090;

/** One of each node; the update replaces the first generation by the second. */
const generations = [
  ['a-1', 'c-2'],
  ['b-1', 'd-2'],
] as const;

/** Named as the tests of Kubernetes' e2e suite `network/loadbalancer.go`. */
forMakers('a rolling update', (maker) => {
  let cluster: ServiceNetwork;

  beforeAll(async () => {
    cluster = await ServiceNetwork.start(maker, {
      'node-1': ['client', 'a-1', 'b-1'],
      'node-2': ['c-2', 'd-2'],
    });
  });
  afterAll(() => cluster.close());

  it.for(['Local', 'Cluster'])(
    'should not have connectivity disruption during rolling update with externalTrafficPolicy=%s',
    async (externalTrafficPolicy) => {
      const spec = {
        ...{ type: 'LoadBalancer', externalTrafficPolicy },
        ports: [{ port: 80, targetPort: port, nodePort: 30_080 }],
      };
      const ingress = both(loadBalancerIPs).map((ip) => ({ ip }));
      const apply = (...backends: readonly (string | Backend)[]): Promise<void> =>
        cluster.apply({ spec, ingress, backends });
      const start = (pods: readonly string[]): Promise<PodServer[]> =>
        Promise.all(pods.map((pod) => PodServer.start(pod, cluster.network.at(pod).machine.host)));

      let servers = await start(generations[0]);
      await apply(...generations[0]);
      const stopping = new AbortController();
      const clients = families.flatMap((family) =>
        [true, false].flatMap((keepAlive) => [
          new Client(cluster.network.outside.machine.host, loadBalancerIPs[family], keepAlive),
          new Client(cluster.network.at('client').machine.host, clusterIPs[0][family], keepAlive),
        ]),
      );
      const ended = clients.map((client) => client.run(stopping.signal));
      /** Every client gets some answers more. */
      const goOn = async (): Promise<void> => {
        const before = clients.map(({ answers }) => answers);
        const progress = (): boolean => clients.every(({ answers }, i) => answers >= (before[i] ?? 0) + 3);
        await Promise.race([expect.poll(progress).toBe(true), ...ended]);
      };

      await goOn();
      for (const next of [generations[1], generations[0]]) {
        const last = servers;
        const names = last.map(({ pod }) => pod);
        servers = await start(next);
        await apply(...names, ...next);
        await goOn();
        await apply(...names.map(terminating), ...next);
        await goOn();
        const answered = last.map(({ answers }) => answers);
        await goOn();
        const stayed = last.some(({ answers }, i) => answers > (answered[i] ?? 0));
        expect(stayed, 'connections that are open stay where they are').toBe(true);
        await Promise.all(last.map((server) => server.drain()));
        await apply(...next);
        await Promise.all(last.map((server) => server.close()));
        for (const client of clients) client.seen.clear();
        await goOn();
        for (const { seen } of clients) expect(next).toEqual(expect.arrayContaining([...seen]));
      }
      stopping.abort();
      await Promise.all(ended);
      await Promise.all(servers.map((server) => server.close()));
    },
  );
});

/** A server in a Pod that answers each line with the Pod's name; while it drains, it adds `bye` and hangs up. */
class PodServer {
  readonly pod: string;
  answers = 0;
  /** One of each family. */
  readonly #servers = families.map(() => createServer((socket) => this.#serve(socket)));
  readonly #open = new Set<Socket>();
  #draining = false;

  private constructor(pod: string) {
    this.pod = pod;
  }

  static async start(pod: string, host: Host): Promise<PodServer> {
    const server = new PodServer(pod);
    for (const [index, address] of ['0.0.0.0', '::'].entries()) {
      const listening = server.#servers[index];
      if (listening !== undefined) await host.listen(listening, address, port);
    }
    return server;
  }

  #serve(socket: Socket): void {
    this.#open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#open.delete(socket));
    socket.on('data', () => {
      this.answers++;
      if (this.#draining) socket.end(`${this.pod} bye\n`);
      else socket.write(`${this.pod}\n`);
    });
  }

  /** Resolves when every client has been told. */
  async drain(): Promise<void> {
    this.#draining = true;
    await expect.poll(() => this.#open.size).toBe(0);
  }

  async close(): Promise<void> {
    for (const server of this.#servers) {
      server.close();
      await once(server, 'close');
    }
  }
}

/** Asks on and on, by a connection that it keeps or by a new one each time. */
class Client {
  answers = 0;
  /** Pods that answered. */
  readonly seen = new Set<string>();
  readonly #host: Host;
  readonly #address: string;
  readonly #keepAlive: boolean;

  constructor(host: Host, address: string, keepAlive: boolean) {
    this.#host = host;
    this.#address = address;
    this.#keepAlive = keepAlive;
  }

  /** @throws {Error} when a connection is refused or breaks. */
  async run(stop: AbortSignal): Promise<void> {
    const goesOn = (): boolean => !stop.aborted;
    while (goesOn()) {
      const socket = await this.#host.connect(this.#address, 80);
      const lines: AsyncIterator<unknown> = socket[Symbol.asyncIterator]();
      try {
        let more: boolean;
        do {
          socket.write('who?\n');
          more = this.#hear(await lines.next()) && this.#keepAlive;
          await delay(10);
        } while (more && goesOn());
      } finally {
        socket.resetAndDestroy();
      }
    }
  }

  /** False: the server hangs up. */
  #hear({ value }: IteratorResult<unknown>): boolean {
    if (!(value instanceof Buffer)) throw new Error(`${this.#address} hung up without an answer`);
    const [name = '', bye] = value.toString().trim().split(' ');
    this.seen.add(name);
    this.answers++;
    return bye === undefined;
  }
}

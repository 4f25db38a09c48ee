import { Agent } from 'undici';
import { definitionOf, heavyDefinition, type HeavyRequest } from './heavy-requests.ts';
import { untilFound } from '../test-server.ts';
import { WatchedServer } from './watched-server.ts';

/** Milliseconds of CPU of the reference machine that one request may hold the event loop (SECURITY.md). */
export const maxTurnMs = 200;
/** As often is a request sent that held it for longer: loading, compiling and collecting garbage are not its own. */
const tries = 5;

const json = { 'content-type': 'application/json' };
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** A watched server with the objects that the heavy requests are about. */
export class HeavyServer {
  readonly #server: WatchedServer;
  readonly #agent: Agent;
  #changes = 0;

  private constructor(server: WatchedServer) {
    this.#server = server;
    // Heads of a megabyte are more than a client of HTTP/2 sends.
    this.#agent = new Agent({
      ...{ connect: { ca: server.ca, timeout: 60_000 }, connections: 8, allowH2: false },
    });
  }

  /** @param crowd objects in the lists. */
  static async start(crowd: number): Promise<HeavyServer> {
    const server = new HeavyServer(await WatchedServer.start());
    await server.#create(definitions, heavyDefinition);
    await server.#create('/api/v1/namespaces', { metadata: { name: 'crowd' } });
    await server.#create('/api/v1/namespaces/default/configmaps', { metadata: { name: 'target' } });
    await server.#create('/api/v1/namespaces/default/services', {
      metadata: { name: 'target' },
      spec: { ports: [{ port: 80 }] },
    });
    await untilFound(server.#server.client, '/apis/heavy.example.com/v1/widgets');
    await server.#create('/apis/heavy.example.com/v1/namespaces/default/widgets', {
      ...{ apiVersion: 'heavy.example.com/v1', kind: 'Widget', metadata: { name: 'target' } },
    });
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < crowd) {
        const metadata = { name: `c${next++}`, labels: { a: 'b' } };
        await server.#create('/api/v1/namespaces/crowd/configmaps', {
          metadata,
          data: { a: 'x'.repeat(100) },
        });
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    return server;
  }

  async stop(): Promise<void> {
    await this.#agent.destroy();
    await this.#server.stop();
  }

  /**
   * What is wrong with the requests: those that held the event loop at each try, and those that were answered 5xx.
   */
  async faultsOf(requests: Iterable<HeavyRequest>): Promise<string[]> {
    const wrong: string[] = [];
    for (const request of requests) {
      const { fault, ...first } = await this.turnOf(request);
      let { turnMs } = first;
      for (let n = 1; n < tries && turnMs > maxTurnMs; n++)
        turnMs = Math.min(turnMs, (await this.turnOf(request)).turnMs);
      if (turnMs > maxTurnMs) wrong.push(`${request.name}: ${Math.round(turnMs)} ms`);
      if (fault !== '') wrong.push(`${request.name}: ${fault}`);
    }
    return wrong;
  }

  /** Milliseconds of CPU of the longest turn that a request causes, and what is wrong with its answer. */
  async turnOf(request: HeavyRequest): Promise<{ turnMs: number; fault: string }> {
    if (request.afterChange === true) await this.#changeDefinitions();
    await this.#server.measure();
    const { status, text } = await this.#send(request);
    const { longestTurnMs } = await this.#server.measure();
    const isFault = status >= 500 && !text.includes('etcdserver: request is too large') && !request.mayFail;
    return { turnMs: longestTurnMs, fault: isFault ? `${status} ${text.slice(0, 200)}` : '' };
  }

  async #changeDefinitions(): Promise<void> {
    const plural = `changes${this.#changes++}`;
    await this.#create(definitions, definitionOf(plural, `Change${this.#changes}`, {}));
    await untilFound(this.#server.client, `/apis/heavy.example.com/v1/${plural}`);
  }

  async #create(path: string, body: object): Promise<void> {
    const request = { name: '', method: 'POST', path, headers: json, body: JSON.stringify(body) } as const;
    const { status } = await this.#send(request);
    if (status !== 201) throw new Error(`${path}: ${status}`);
  }

  async #send({ method, path, headers, body }: HeavyRequest): Promise<{ status: number; text: string }> {
    const { statusCode, body: stream } = await this.#agent.request({
      origin: this.#server.url,
      ...{ method, path },
      headers: { authorization: `Bearer ${this.#server.token}`, ...headers },
      body: body ?? null,
    });
    return { status: statusCode, text: await stream.text() };
  }
}

import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import { podRanges } from '../../src/flags/addresses.ts';
import { nodePortRange, readServiceCidrs } from '../../src/flags/shared.ts';
import { runControllers } from '../../src/controllers/run.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { fixedAuthority } from './certificates.ts';
import { controllersOf } from './all-controllers.ts';
import { BalancedServer } from './balanced-server.ts';
import { Contested } from './contested.ts';
import { call } from './test-server.ts';
import { untilObject } from './with-controllers.ts';

const range = '10.96.0.0/16';
const nodePorts = '30000-30001';

/** A server whose users are quicker than its controllers, each of which has a way of its own to it. */
export class ContestedCluster {
  readonly #server: BalancedServer['server'];
  readonly #contested: Contested;

  private constructor(server: BalancedServer['server'], contested: Contested) {
    this.#server = server;
    this.#contested = contested;
  }

  /** Ends with the test. The server gives Services no addresses and has two node ports. */
  static async start(): Promise<ContestedCluster> {
    const { server } = await BalancedServer.start({
      allocation: 'controller',
      serviceNodePortRange: nodePorts,
    });
    onTestFinished(() => server.stop());
    return new ContestedCluster(server, new Contested(server.client));
  }

  /** Starts a controller, which ends with the test. */
  run(name: string): void {
    const transport = this.#contested.transport(name);
    const ranges = readServiceCidrs(range);
    const simulation = { count: 2, clusterCidrs: podRanges(undefined, ['IPv4'], 2) };
    const serviceAllocation = {
      allocation: 'controller',
      serviceCidrs: ranges,
      nodePorts: nodePortRange(nodePorts),
    } as const;
    const running = runControllers({
      transport,
      controllers: controllersOf(
        {
          transport,
          rootCa: fixedAuthority,
          maxEndpointsPerSlice: 1,
          namespaceGracePeriodMs: 0,
          simulation,
          serviceAllocation,
        },
        [name],
      ),
      log: pino({ enabled: false }),
    });
    onTestFinished(() => running.stop());
  }

  /** Creates an object, as a client that our controllers do not know. */
  async create(path: string, body: JsonRecord): Promise<JsonRecord> {
    const answer = await call(this.#server.client, 'POST', path, {
      body,
      query: { fieldManager: 'kubectl' },
    });
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    return answer.body;
  }

  async merge(path: string, body: JsonRecord): Promise<void> {
    const contentType = 'application/merge-patch+json';
    const answer = await call(this.#server.client, 'PATCH', path, { body, contentType });
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  }

  async remove(path: string, options: JsonRecord = {}): Promise<void> {
    const answer = await call(this.#server.client, 'DELETE', path, { body: options });
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
  }

  until(path: string, condition: (body: JsonRecord, status: number) => boolean): Promise<JsonRecord> {
    return untilObject(this.#server.client, path, condition);
  }

  async untilGone(path: string): Promise<void> {
    await this.until(path, (_, status) => status === 404);
  }

  /** Waits until each of these writes came too late at least once. @throws when one that did was done */
  untilRefused(wanted: readonly string[]): Promise<void> {
    return this.#contested.untilRefused(wanted);
  }
}

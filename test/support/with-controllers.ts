import { type Logger, pino } from 'pino';
import type { Transport } from '../../src/client/transport.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import type { LeaderElectionSettings } from '../../src/runtime/leadership.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { fixedAuthority } from './certificates.ts';
import { controllersOf } from './all-controllers.ts';
import { call } from './test-server.ts';

/** Controllers beside a server, and what they sent. */
export interface WatchedControllers {
  /** `METHOD path` of every request that is no read, in order. */
  readonly writes: readonly string[];
  readonly running: RunningControllers;
  /**
   * Resolves when no key has been worked on for so many milliseconds, in which this process ran: one that was stopped
   * has not been at rest.
   */
  quiet(milliseconds: number): Promise<void>;
}

/** Starts controllers on a transport whose writes are noted. */
export function startControllers(
  inner: Transport,
  controllers: readonly string[],
  leaderElection?: LeaderElectionSettings,
  log: Logger = pino({ enabled: false }),
): WatchedControllers {
  const writes: string[] = [];
  const transport: Transport = {
    server: inner.server,
    request: (method, path, options) => {
      if (method !== 'GET') writes.push(`${method} ${path}`);
      return inner.request(method, path, options);
    },
    stream: (path, options) => inner.stream(path, options),
    close: () => Promise.resolve(),
  };
  const metrics = new Metrics();
  const running = runControllers({
    transport,
    controllers: controllersOf({ transport, rootCa: fixedAuthority, namespaceGracePeriodMs: 0 }, controllers),
    log,
    metrics,
    ...(leaderElection === undefined ? {} : { leaderElection }),
  });
  const reconciles = async (): Promise<number> =>
    (await metrics.reconciles.get()).values.reduce((sum, { value }) => sum + value, 0);
  return {
    writes,
    running,
    quiet: async (milliseconds) => {
      const step = 10;
      let last = -1;
      for (let rest = 0; last <= 0 || rest < milliseconds; rest += step) {
        const now = await reconciles();
        if (now !== last) rest = 0;
        last = now;
        await pause(step);
      }
    },
  };
}

/** Asks for an object until it meets the condition, soon at first and then every 100 ms. The test's timeout bounds it. */
export async function untilObject(
  client: Transport,
  path: string,
  condition: (body: JsonRecord, status: number) => boolean,
): Promise<JsonRecord> {
  for (let milliseconds = 10; ; milliseconds = Math.min(1.5 * milliseconds, 100)) {
    const { body, status } = await call(client, 'GET', path);
    if (condition(body, status)) return body;
    await pause(milliseconds);
  }
}

/** The items of a list that was answered. */
export function itemsOf(body: JsonRecord): JsonRecord[] {
  const items: unknown[] = Array.isArray(body['items']) ? body['items'] : [];
  return items.filter(isRecord);
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Metrics, MetricsSnapshot } from './metrics.ts';

/** Not imported: that would load the fetch of Node.js too, 13 MiB. */
const { createServer } = process.getBuiltinModule('node:http');

/** One health check. Returns the problem, or undefined. */
export interface HealthCheck {
  /** Lower case with dashes; shown by `?verbose`. */
  readonly name: string;
  check(): string | undefined;
}

/** One whose answer comes from another process. */
export interface RemoteHealthCheck {
  readonly name: string;
  check(): Promise<string | undefined>;
}

/** Processes that do the same as this one, and are judged and counted with it. */
export interface Peers {
  readonly live: readonly RemoteHealthCheck[];
  readonly ready: readonly RemoteHealthCheck[];
  /** Their metrics of now, and what is known of those that have ended. */
  snapshots(): Promise<readonly MetricsSnapshot[]>;
}

export interface HealthOptions {
  /** Host to listen on; "" for all. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly metrics: Metrics;
  /** Liveness: a failure means that a restart would help. */
  readonly live: readonly HealthCheck[];
  /** Readiness: a failure means that the process does not work (yet). */
  readonly ready: readonly HealthCheck[];
  /** Constant answers, by path. */
  readonly texts?: Readonly<Record<string, string>>;
  readonly peers?: Peers | undefined;
}

/**
 * Answers `/healthz`, `/livez`, `/readyz` and `/metrics` as plain text like kube components: `ok`, or status 500 and
 * one line per check.
 */
export class HealthServer {
  readonly #options: HealthOptions;
  readonly #server: Server;

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#server = createServer({ requestTimeout: 10_000, headersTimeout: 5000 }, (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' });
        response.end(error instanceof Error ? error.message : 'failed');
      });
    });
  }

  /** Starts to listen and returns the address. Rejects when the port is taken. */
  async listen(): Promise<AddressInfo> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host === '' ? undefined : host, () => {
        this.#server.off('error', reject);
        // Of a connection that could not be accepted: who asks comes again.
        this.#server.on('error', () => undefined);
        resolve();
      });
    });
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the metrics server has no address');
    return address;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      reply(response, 405, 'method not allowed\n');
      return;
    }
    const verbose = new URLSearchParams(query).has('verbose');
    const { live, ready, metrics, peers } = this.#options;
    switch (path) {
      case '/healthz':
      case '/livez':
        await report(response, path.slice(1), [...live, ...(peers?.live ?? [])], verbose);
        return;
      case '/readyz':
        await report(response, 'readyz', [...ready, ...(peers?.ready ?? [])], verbose);
        return;
      case '/metrics': {
        const text = await metrics.scrape(await peers?.snapshots());
        response.writeHead(200, { 'content-type': metrics.registry.contentType });
        response.end(text);
        return;
      }
      default: {
        const text = Object.entries(this.#options.texts ?? {}).find(([known]) => known === path)?.[1];
        reply(response, text === undefined ? 404 : 200, text ?? '404 page not found\n');
      }
    }
  }
}

async function report(
  response: ServerResponse,
  name: string,
  checks: readonly (HealthCheck | RemoteHealthCheck)[],
  verbose: boolean,
): Promise<void> {
  const results = await Promise.all(
    checks.map(async (check) => ({ name: check.name, problem: await check.check() })),
  );
  const failed = results.some(({ problem }) => problem !== undefined);
  if (!failed && !verbose) {
    reply(response, 200, 'ok');
    return;
  }
  const lines = results.map((result) =>
    result.problem === undefined ? `[+]${result.name} ok` : `[-]${result.name} failed: ${result.problem}`,
  );
  lines.push(`${name} check ${failed ? 'failed' : 'passed'}`, '');
  reply(response, failed ? 500 : 200, lines.join('\n'));
}

function reply(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
  });
  response.end(text);
}

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { pino } from 'pino';
import { WebSocket } from 'ws';
import type { Transport } from '../../src/client/transport.ts';
import type { ClusterInfo, Follow } from '../../src/page/messages.ts';
import { openPage, type PageSettings } from '../../src/page/page.ts';
import { readStaticFiles } from '../../src/page/static-files.ts';
import type { ConnectionChecker } from '../../src/view/trace-connection.ts';
import { isRecord } from '../../src/objects/json.ts';

/** A page of a cluster in this process, with files of the test in the place of those for browsers. */

export const credentials = { key: 'key-of-the-test-000000', session: 'session-of-the-test' };

export interface TestPage {
  readonly port: number;
  close(): Promise<void>;
}

export async function startPage(
  transport: Transport,
  info: Partial<ClusterInfo> = {},
  checker?: ConnectionChecker,
  controlSocket?: string,
): Promise<TestPage> {
  const folder = await mkdtemp(join(tmpdir(), 'page-'));
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>servicenet</title>');
  await writeFile(join(folder, 'page-1234.js'), 'console.log("page")');
  await writeFile(join(folder, 'page-1234.js.br'), 'brotli');
  const settings: PageSettings = {
    credentials,
    cluster: { server: transport.server, kind: 'up', version: '0', clusterFlags: [], ...info },
    proxy: { clusterCidrs: undefined, masqueradeAll: undefined, nodePortAddresses: undefined },
    loadBalancer: { loadBalancerClass: 'servicenet.dev/load-balancer', isDefaultClass: true, compat: true },
    controlSocket,
  };
  const page = openPage(settings, transport, checker, pino({ enabled: false }), () =>
    readStaticFiles(folder),
  );
  const server = createServer({ pauseOnConnect: true }, (socket) => page.server.serve(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: async () => {
      server.close();
      await page.close();
      await rm(folder, { recursive: true });
    },
  };
}

export interface PageAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends what the test says and nothing else, whatever browsers would forbid. */
export async function ask(
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): Promise<PageAnswer> {
  const asking = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false });
  asking.on('error', () => undefined);
  asking.end(body);
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) };
}

/** As the page itself sends it. */
export async function askAsPage(
  port: number,
  method: string,
  path: string,
  body?: unknown,
): Promise<PageAnswer> {
  const host = `127.0.0.1:${port}`;
  return await ask(
    port,
    method,
    path,
    {
      ...{ host, authorization: `Bearer ${credentials.session}`, 'sec-fetch-site': 'same-origin' },
      ...(method === 'POST' ? { origin: `http://${host}`, 'content-type': 'application/json' } : {}),
    },
    body === undefined ? undefined : JSON.stringify(body),
  );
}

/** A tab's connection, and all that it has been told. */
export class TestTab {
  readonly socket: WebSocket;
  readonly messages: Readonly<Record<string, unknown>>[] = [];
  readonly closed: Promise<number>;
  /** Rows by kind and key, as the messages make them. */
  readonly rows = new Map<string, Map<string, unknown>>();

  constructor(port: number, origin = `http://127.0.0.1:${port}`) {
    this.socket = new WebSocket(`ws://127.0.0.1:${port}/data/stream`, { origin });
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => this.socket.on('close', (code) => resolve(code)));
    this.socket.on('message', (data: Buffer) => this.#take(JSON.parse(data.toString())));
  }

  /** Says the session, and what it follows. */
  async follow(follow: Follow): Promise<void> {
    if (this.socket.readyState !== this.socket.OPEN) await once(this.socket, 'open');
    this.say({ session: credentials.session });
    this.say({ follow });
  }

  say(message: unknown): void {
    this.socket.send(JSON.stringify(message));
  }

  row(kind: string, key: string): unknown {
    return this.rows.get(kind)?.get(key);
  }

  #take(message: unknown): void {
    if (!isRecord(message)) return;
    this.messages.push(message);
    const { state, gone } = message;
    if (isRecord(state)) this.rows.clear();
    const rows = isRecord(state) ? state['rows'] : message['rows'];
    for (const [kind, list] of Object.entries(isRecord(rows) ? rows : {})) {
      const known = this.rows.get(kind) ?? new Map<string, unknown>();
      this.rows.set(kind, known);
      for (const row of Array.isArray(list) ? list : []) {
        if (isRecord(row)) known.set(String(row['key']), row);
      }
    }
    for (const [kind, keys] of Object.entries(isRecord(gone) ? gone : {})) {
      for (const key of Array.isArray(keys) ? keys : []) this.rows.get(kind)?.delete(String(key));
    }
  }
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { isRecord, textAt } from '../../../src/objects/json.ts';
import {
  type Changes,
  type ClusterInfo,
  type Follow,
  type PoolsAnswer,
  type JournalAnswer,
  type PoolsPlanAnswer,
  type ReachAnswer,
  type ReachPlanAnswer,
  rowsOfView,
  type Rows,
  type ServerMessage,
  type State,
  type Status,
  type TraceAnswer,
} from '../../../src/page/messages.ts';
import { readStaticFiles, type StaticFiles } from '../../../src/page/static-files.ts';
import type { RowKind, RowOfKind } from '../../../src/view/rows/rows.ts';

/** As the page's server sends it (docs/page.md). */
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const standInKey = 'AAAAAAAAAAAAAAAAAAAAAA';
const session = 'stand-in-session';

/**
 * A server that speaks `page/messages.ts` with rows that a test makes up: for what a real cluster does not do when a test
 * wants it to. It knows no session but its own, and checks nothing else.
 */
export class StandIn {
  readonly #files: Promise<StaticFiles>;
  readonly #rows = new Map<RowKind, Map<string, { readonly key: string }>>();
  readonly #tabs = new Map<WebSocket, { follow: Follow; seq: number }>();
  #server: Server | undefined;
  #port = 0;
  status: Status = { loading: [], forbidden: [] };
  cluster: ClusterInfo = { server: 'https://127.0.0.1:6443', kind: 'up', version: '0.2.0', clusterFlags: [] };
  trace: TraceAnswer | undefined;
  plan: PoolsPlanAnswer = { effects: [], problems: [] };
  pools: PoolsAnswer = {};
  journal: JournalAnswer = { changes: [] };
  reach: ReachAnswer = {
    ...{ namespace: 'shop', protocol: 'TCP', sources: [], destinations: [], cells: [] },
    total: { sources: 0, destinations: 0 },
  };
  reachPlan: ReachPlanAnswer = { changes: [], problems: [] };
  yaml = '';
  policy = '';
  /** Sends nothing before it is true: a page that is loading. */
  isAnswering = true;

  /** @param folder of a built page. */
  constructor(folder: string) {
    this.#files = readStaticFiles(folder);
  }

  get address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** With the key, to a place of the page. */
  link(place = '/'): string {
    return `${this.address}${place}#k=${standInKey}`;
  }

  /** On the same port again, if it was there before. */
  async listen(): Promise<void> {
    const server = createServer((request, response) => this.#answer(request, response));
    const sockets = new WebSocketServer({ server, path: '/data/stream' });
    sockets.on('connection', (socket) => this.#follow(socket));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
  }

  /** As a server that ends. */
  async close(): Promise<void> {
    for (const socket of this.#tabs.keys()) socket.terminate();
    this.#tabs.clear();
    const server = this.#server;
    this.#server = undefined;
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  /** Rows that are new or other ones. */
  put<Kind extends RowKind>(kind: Kind, rows: readonly RowOfKind[Kind][]): void {
    const table = this.#rows.get(kind) ?? new Map<string, { readonly key: string }>();
    this.#rows.set(kind, table);
    for (const row of rows) table.set(row.key, row);
    this.#tell({ [kind]: rows }, {});
  }

  remove(kind: RowKind, key: string): void {
    if (this.#rows.get(kind)?.delete(key) === true) this.#tell({}, { [kind]: [key] });
  }

  clear(): void {
    this.#rows.clear();
    for (const [socket, tab] of this.#tabs) this.#state(socket, tab);
  }

  tellStatus(status: Status): void {
    this.status = status;
    for (const socket of this.#tabs.keys()) say(socket, { status });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', this.address).pathname;
    response.setHeader('Content-Security-Policy', contentSecurityPolicy);
    if (!path.startsWith('/data/')) {
      this.#files.then(
        (files) => files.answer(request, response, path),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
      return;
    }
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      const [status, answer] = this.#dataOf(path, body, request.headers.authorization);
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
  }

  #dataOf(path: string, body: string, authorization: string | undefined): readonly [number, unknown] {
    if (path === '/data/session') {
      const isKey = textAt(JSON.parse(body), 'key') === standInKey;
      return isKey
        ? [200, { session }]
        : [401, { reason: 'SessionUnknown', message: 'the key is another one' }];
    }
    if (authorization !== `Bearer ${session}`)
      return [401, { reason: 'SessionUnknown', message: 'no session' }];
    switch (path) {
      case '/data/trace':
        return this.trace === undefined
          ? [400, { reason: 'BadRequest', message: 'there is no Service shop/nothing' }]
          : [200, this.trace];
      case '/data/reach':
        return [200, this.reach];
      case '/data/reach/plan':
        return [200, this.reachPlan];
      case '/data/pools':
        return [200, this.pools];
      case '/data/pools/plan':
        return [200, this.plan];
      case '/data/journal':
        return [200, this.journal];
      case '/data/object':
        return [200, { yaml: this.yaml, managedFields: '' }];
      default:
        return [404, { reason: 'NotFound', message: path }];
    }
  }

  #follow(socket: WebSocket): void {
    socket.on('error', () => socket.terminate());
    socket.on('close', () => this.#tabs.delete(socket));
    socket.on('message', (data: Buffer) => {
      const message: unknown = JSON.parse(data.toString('utf8'));
      if (!isRecord(message)) return;
      if ('session' in message) {
        if (message['session'] !== session) socket.close(4401);
        return;
      }
      const tab = { follow: message['follow'] as Follow, seq: this.#tabs.get(socket)?.seq ?? 0 };
      this.#tabs.set(socket, tab);
      this.#state(socket, tab);
    });
  }

  #state(socket: WebSocket, tab: { follow: Follow; seq: number }): void {
    const { follow } = tab;
    const rows = Object.fromEntries(
      kindsOf(follow).map((kind) => [
        kind,
        [...(this.#rows.get(kind)?.values() ?? [])].filter((row) => isOf(row, kind, follow)),
      ]),
    );
    const state: State = {
      ...{ follow, cluster: this.cluster, rows, status: this.status },
      ...{ at: new Date().toISOString(), seq: tab.seq },
    };
    if (this.isAnswering) say(socket, { state });
  }

  #tell(rows: Rows, gone: Changes['gone']): void {
    for (const [socket, tab] of this.#tabs) {
      const kinds = kindsOf(tab.follow);
      const ofTab = kinds.flatMap((kind) => {
        const list = (rows[kind] ?? []).filter((row) => isOf(row, kind, tab.follow));
        return list.length === 0 ? [] : [[kind, list] as const];
      });
      const goneOfTab = kinds.flatMap((kind) =>
        gone[kind] === undefined ? [] : [[kind, gone[kind]] as const],
      );
      tab.seq++;
      say(socket, {
        ...{ rows: Object.fromEntries(ofTab), gone: Object.fromEntries(goneOfTab) },
        ...{ at: new Date().toISOString(), seq: tab.seq },
      });
    }
  }
}

function kindsOf({ view }: Follow): readonly RowKind[] {
  return [...rowsOfView[view], 'problem', 'namespace', 'journal'];
}

/** Whether a tab gets the row. */
function isOf(row: { readonly key: string }, kind: RowKind, { view, namespace, name }: Follow): boolean {
  if (namespace === undefined || kind === 'problem' || kind === 'namespace' || kind === 'journal')
    return true;
  if (view !== 'service') return !('namespace' in row) || row.namespace === namespace;
  if (kind === 'service' || kind === 'serviceDetail') return row.key === `${namespace}/${name ?? ''}`;
  return true;
}

function say(socket: WebSocket, message: ServerMessage): void {
  socket.send(JSON.stringify(message));
}

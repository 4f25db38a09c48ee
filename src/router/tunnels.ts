import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { request as requestHttp } from '../host/node-http.ts';
import type { HttpRule } from '../network/http/rules.ts';
import type { BackendConnections, ForwardTarget } from './backends.ts';
import type { ForwardProblem } from './forward.ts';
import { responseHeaders } from './headers.ts';
import type { TargetChoice } from './backends.ts';

/** A request to change the protocol of its connection, such as a WebSocket's. */
export interface Upgrade {
  readonly request: IncomingMessage;
  /** The client's connection. */
  readonly socket: Duplex;
  /** Bytes that the client sent after the request. */
  readonly head: Buffer;
  readonly rule: HttpRule;
  readonly path: string;
  /** With Connection and Upgrade. */
  readonly headers: string[];
  readonly onTarget: (target: ForwardTarget) => void;
  /** The status that the client gets. */
  readonly onStatus: (status: number) => void;
  readonly onProblem: (problem: ForwardProblem, error?: Error) => void;
}

/** Milliseconds without a byte in either direction after which a tunnel ends; the router of OpenShift has the same. */
const idleTunnel = 3_600_000;

/** Connections whose bytes pass as they are: upgrades, and TLS that a backend ends. */
export class Tunnels {
  readonly #choice: TargetChoice;
  readonly #connections: BackendConnections;
  /** Both ends of each. */
  readonly #open = new Set<Duplex>();

  constructor(choice: TargetChoice, connections: BackendConnections) {
    this.#choice = choice;
    this.#connections = connections;
  }

  /** The number of open ends. */
  get size(): number {
    return this.#open.size;
  }

  /** Cuts all. */
  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /**
   * Sends TLS to a backend as it is; the client is cut where none can be reached.
   *
   * @param hello what was read of it.
   */
  async passThrough(
    client: Duplex,
    hello: Buffer,
    rule: HttpRule,
    onProblem: (problem: ForwardProblem, error?: Error) => void,
  ): Promise<void> {
    const backend = await this.#connect(rule, onProblem);
    if (backend === undefined) {
      client.destroy();
      return;
    }
    backend.socket.write(hello);
    this.#join(client, backend.socket);
  }

  /** Never rejects. */
  async upgrade(upgrade: Upgrade): Promise<void> {
    const { request, socket, rule, path, headers, onProblem, onTarget, onStatus } = upgrade;
    const refuse = (status: number, text: string): void => {
      onStatus(status);
      socket.end(`HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    };
    const backend = await this.#connect(rule, (problem, error) => {
      onProblem(problem, error);
      if (problem === 'BackendTimeout') refuse(504, 'Gateway Timeout');
      else if (problem === 'BackendFailed') refuse(502, 'Bad Gateway');
      else refuse(503, 'Service Unavailable');
    });
    if (backend === undefined) return;
    onTarget(backend.target);
    if (socket.destroyed) {
      backend.socket.destroy();
      onProblem('ClientGone');
      return;
    }
    const { method = 'GET' } = request;
    const outgoing = requestHttp({
      method,
      path,
      headers,
      setHost: false,
      createConnection: () => backend.socket,
    });
    const gone = (): void => {
      outgoing.destroy();
    };
    socket.once('close', gone);
    outgoing.on('error', (error) => {
      socket.off('close', gone);
      onProblem(socket.destroyed ? 'ClientGone' : 'BackendFailed', error);
      if (!socket.destroyed) refuse(502, 'Bad Gateway');
    });
    outgoing.on('upgrade', (response: IncomingMessage, to: Duplex, first: Buffer) => {
      socket.off('close', gone);
      onStatus(101);
      socket.write(headOf(response, response.rawHeaders));
      if (first.length > 0) socket.write(first);
      if (upgrade.head.length > 0) to.write(upgrade.head);
      this.#join(socket, to);
    });
    // A backend that does not change the protocol answers as usual; the connection ends with its answer.
    outgoing.on('response', (response) => {
      const status = response.statusCode ?? 502;
      onStatus(status);
      const kept = responseHeaders(response.headers, rule.responseHeaders);
      const raw = Object.entries(kept).flatMap(([name, value]) =>
        [value].flat().flatMap((one) => [name, one]),
      );
      socket.write(headOf(response, [...raw, 'Connection', 'close']));
      response.on('error', () => socket.destroy());
      response.pipe(socket);
    });
    outgoing.end();
  }

  async #connect(
    rule: HttpRule,
    onProblem: (problem: ForwardProblem, error?: Error) => void,
  ): Promise<{ target: ForwardTarget; socket: Duplex } | undefined> {
    const tried: ForwardTarget[] = [];
    for (;;) {
      const target = this.#choice.choose(rule, tried);
      if (typeof target === 'string') {
        onProblem(target);
        return undefined;
      }
      try {
        return { target, socket: await this.#connections.connect(target) };
      } catch (error) {
        this.#choice.failed(target);
        tried.push(target);
        if (tried.length < attempts) continue;
        const failure = error instanceof Error ? error : new Error(String(error));
        onProblem(failure.name === 'TimeoutError' ? 'BackendTimeout' : 'BackendFailed', failure);
        return undefined;
      }
    }
  }

  #join(client: Duplex, backend: Duplex): void {
    for (const [from, to] of [
      [client, backend],
      [backend, client],
    ] as const) {
      this.#open.add(from);
      const end = (): void => {
        this.#open.delete(from);
        from.destroy();
        // Bytes that are on their way arrive first.
        if (!to.destroyed) to.end();
      };
      from.on('error', () => to.destroy());
      from.on('close', end);
      if (from instanceof Socket) from.setTimeout(idleTunnel, () => from.destroy());
      from.pipe(to);
    }
  }
}

/** The number of backends that a connection is tried with. */
const attempts = 3;

function headOf({ statusCode = 502, statusMessage = '' }: IncomingMessage, raw: readonly string[]): string {
  let head = `HTTP/1.1 ${statusCode} ${statusMessage}\r\n`;
  for (let i = 0; i + 1 < raw.length; i += 2) head += `${raw[i] ?? ''}: ${raw[i + 1] ?? ''}\r\n`;
  return `${head}\r\n`;
}

import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HttpRule } from '../network/http/rules.ts';
import type { BackendConnections, ForwardTarget, TargetChoice } from './backends.ts';
import type { ForwardProblem } from './forward.ts';

/** Milliseconds without a byte in either direction after which a tunnel ends; the router of OpenShift has the same. */
const idleTunnelMs = 3_600_000;

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
    if (backend === undefined || client.destroyed) {
      client.destroy();
      backend?.destroy();
      return;
    }
    // Where the client may send its end and still read, so may the backend.
    backend.allowHalfOpen = client.allowHalfOpen;
    if (hello.length > 0) backend.write(hello);
    this.join(client, backend, rule.settings?.tunnelTimeoutMs);
  }

  async #connect(
    rule: HttpRule,
    onProblem: (problem: ForwardProblem, error?: Error) => void,
  ): Promise<Socket | undefined> {
    const tried: ForwardTarget[] = [];
    for (;;) {
      const target = this.#choice.choose(rule, tried);
      if (typeof target === 'string') {
        onProblem(target);
        return undefined;
      }
      try {
        return await this.#connections.connect(target);
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

  /**
   * Passes all bytes on, both ways, until one of the two ends.
   *
   * @param idleMs milliseconds without a byte after which they end.
   */
  join(client: Duplex, backend: Duplex, idleMs = idleTunnelMs): void {
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
      if (from instanceof Socket) from.setTimeout(idleMs, () => from.destroy());
      from.pipe(to);
    }
  }
}

/** The number of backends that a connection is tried with. */
const attempts = 3;

import { type ChildProcess, spawn } from 'node:child_process';
import { Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { Server, Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Host, ProgramMissingError } from '../../../src/host/host.ts';
import { type Call, isExecResult, isOutcome, isReply, type Outcome, type Reply } from './machine-protocol.ts';

interface Waiting {
  readonly resolve: (value: { result: unknown; handle: unknown }) => void;
  readonly reject: (error: Error) => void;
}

/** Milliseconds: for a busy machine. Tests that expect silence say how long they listen. */
const patience = 20_000;

/** How a question is put. */
export interface Asking {
  readonly protocol?: 'TCP' | 'UDP';
  /** An address of the machine. */
  readonly from?: string;
  /** The same port for several questions: one flow. */
  readonly fromPort?: number;
  /** Milliseconds to wait for an answer. */
  readonly timeout?: number;
}

/** A simulated machine: a network namespace, and a process in it. */
export class Machine {
  readonly name: string;
  /** The seam to it, as an agent has it. */
  readonly host: Host;
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #asked = 0;

  private constructor(name: string, process: ChildProcess) {
    this.name = name;
    this.#process = process;
    this.host = this.#asHost();
    process.on('message', (message, handle) => {
      if (isReply(message)) this.#hear(message, handle);
    });
    process.on('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the machine ${name} has ended`));
    });
  }

  /** @param enter the words that lead into its namespace. */
  static async start(name: string, enter: readonly string[]): Promise<Machine> {
    const file = fileURLToPath(new URL('machine-process.ts', import.meta.url));
    const words = [...enter, process.execPath, file];
    const started = spawn(words[0] ?? '', words.slice(1), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const ended = once(started, 'exit').then(([code]) => {
      throw new Error(`the process of machine ${name} ended with ${String(code)}`);
    });
    await Promise.race([once(started, 'message'), ended]);
    ended.catch(() => undefined);
    return new Machine(name, started);
  }

  /** Serves TCP or UDP on a port, in both families: it tells clients who it is, and whom it sees. */
  async serve(port: number, protocol: 'TCP' | 'UDP' = 'TCP'): Promise<void> {
    await this.#call({ call: 'serve', name: this.name, protocol, port });
  }

  /** Opens a connection, or sends a datagram, and tells what comes of it. */
  async ask(address: string, port: number, asking: Asking = {}): Promise<Outcome> {
    const { protocol = 'TCP', from, fromPort, timeout = patience } = asking;
    const { result } = await this.#call({
      ...{ call: 'ask', protocol, address, port, timeout },
      ...{ sourceAddress: from, sourcePort: fromPort },
    });
    if (!isOutcome(result)) throw new Error('no outcome came');
    return result;
  }

  end(): void {
    this.#process.disconnect();
  }

  #hear({ id, result, error }: Reply, handle: unknown): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve({ result, handle });
    else waiting?.reject(Object.assign(new Error(error.message), { code: error.code, name: error.name }));
  }

  #call(request: Call): Promise<{ result: unknown; handle: unknown }> {
    return new Promise((resolve, reject) => {
      const id = ++this.#asked;
      this.#waiting.set(id, { resolve, reject });
      this.#process.send({ id, request });
    });
  }

  #asHost(): Host {
    return {
      exec: async (program, args, { input, signal } = {}) => {
        signal?.throwIfAborted();
        const running = this.#call({ call: 'exec', program, args, input });
        const of = this.#asked;
        const abort = (): void => {
          this.#call({ call: 'abort', of }).catch(() => undefined);
        };
        signal?.addEventListener('abort', abort, { once: true });
        try {
          const { result } = await running;
          if (!isExecResult(result)) throw new Error('no result came');
          return result;
        } catch (error) {
          signal?.throwIfAborted();
          const isMissing = error instanceof Error && error.name === 'ProgramMissingError';
          throw isMissing ? new ProgramMissingError(program) : error;
        } finally {
          signal?.removeEventListener('abort', abort);
        }
      },
      sysctl: {
        get: async (name) => {
          const { result } = await this.#call({ call: 'getSysctl', name });
          return typeof result === 'string' ? result : undefined;
        },
        set: async (name, value) => {
          await this.#call({ call: 'setSysctl', name, value });
        },
      },
      listen: async (server, address, port) => {
        const { handle } = await this.#call({ call: 'listen', address, port });
        if (!(handle instanceof Server)) throw new Error('no server came');
        const listening = once(server, 'listening');
        server.listen(handle);
        await listening;
      },
      connect: async (address, port) => {
        const { handle } = await this.#call({ call: 'connect', address, port });
        if (!(handle instanceof Socket)) throw new Error('no socket came');
        return handle;
      },
      datagram: async (address, port) => {
        const { handle } = await this.#call({ call: 'datagram', address, port });
        if (!(handle instanceof DatagramSocket)) throw new Error('no socket came');
        return handle;
      },
    };
  }
}

import { type ChildProcess, spawn } from 'node:child_process';
import { Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { Server, Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type ExecOptions, type Host, ProgramMissingError } from '../../../src/host/host.ts';
import { listenWith } from '../../../src/host/sockets.ts';
import { type Call, isExecResult, isOutcome, isReply, type Outcome, type Reply } from './machine-protocol.ts';

interface Waiting {
  /** The next piece of input for a program; undefined: there is no more. */
  readonly nextInput?: () => Promise<string | undefined>;
  readonly output?: (text: string) => void;
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
      const waiting = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const { reject } of waiting) reject(new Error(`the machine ${name} has ended`));
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

  #hear({ id, result, error, wantsInput, output }: Reply, handle: unknown): void {
    const waiting = this.#waiting.get(id);
    if (output !== undefined) {
      waiting?.output?.(output);
      return;
    }
    if (wantsInput === true) {
      waiting?.nextInput?.().then(
        (text) => {
          // Of a machine that has ended, programs wait for nothing.
          if (!this.#waiting.has(id)) return;
          this.#send(++this.#asked, { call: 'feed', of: id, text });
        },
        () => undefined,
      );
      return;
    }
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve({ result, handle });
    else waiting?.reject(Object.assign(new Error(error.message), { code: error.code, name: error.name }));
  }

  #call(
    request: Call,
    streams: Pick<Waiting, 'nextInput' | 'output'> = {},
  ): Promise<{ result: unknown; handle: unknown }> {
    return new Promise((resolve, reject) => {
      const id = ++this.#asked;
      this.#waiting.set(id, { resolve, reject, ...streams });
      this.#send(id, request);
    });
  }

  #send(id: number, request: Call): void {
    this.#process.send({ id, request }, (error) => {
      if (error === null) return;
      // What was asked before it ended was told so.
      this.#waiting.get(id)?.reject(new Error(`the machine ${this.name} has ended`));
      this.#waiting.delete(id);
    });
  }

  #asHost(): Host {
    return {
      exec: async (program, args, { input = '', output, signal } = {}) => {
        signal?.throwIfAborted();
        let failure: { readonly reason: unknown } | undefined;
        const end = (reason: unknown): void => {
          failure ??= { reason };
          this.#call({ call: 'abort', of }).catch(() => undefined);
        };
        const abort = (): void => end(signal?.reason);
        const pieces = piecesOf(input);
        const running = this.#call(
          {
            ...{ call: 'exec', program, args, tellsOutput: output !== undefined },
            input: typeof input === 'string' ? { text: input } : 'pieces',
          },
          {
            nextInput: async () => {
              try {
                const { done, value } = await pieces.next();
                return done === true ? undefined : value;
              } catch (error) {
                end(error);
                throw error;
              }
            },
            output: (text) => {
              try {
                if (failure === undefined) output?.(text);
              } catch (error) {
                end(error);
              }
            },
          },
        );
        const of = this.#asked;
        signal?.addEventListener('abort', abort, { once: true });
        try {
          const { result } = await running;
          if (!isExecResult(result)) throw new Error('no result came');
          if (failure !== undefined) throw failure.reason;
          return result;
        } catch (error) {
          if (failure !== undefined) throw failure.reason;
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
        await listenWith(server, handle);
      },
      connect: async (address, port, { from } = {}) => {
        const { handle } = await this.#call({ call: 'connect', address, port, from });
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

async function* piecesOf(input: NonNullable<ExecOptions['input']>): AsyncGenerator<string, void> {
  if (typeof input === 'string') yield input;
  else yield* input;
}

import type { Socket as DatagramSocket } from 'node:dgram';
import type { Server, Socket } from 'node:net';
import { sendDatagram } from '../host/sockets.ts';
import { errorMessage } from '../objects/status.ts';
import type { ContainerProgram, ProgramContainer } from '../emulation/program.ts';

/** One run of agnhost: what it opened is closed at its end. */
export class AgnhostRun {
  readonly container: ProgramContainer;
  /** Resolves with the exit code. */
  readonly ended: Promise<number>;
  /** Other signals than SIGKILL; by default a Go program that is process 1 exits with 2. */
  onSignal: (name: NodeJS.Signals) => void = () => this.end(2);
  readonly #args: readonly string[];
  readonly #end: (code: number) => void;
  readonly #open = new Set<{ close: () => void }>();

  /** @param args those behind the command. */
  constructor(container: ProgramContainer, args: readonly string[]) {
    this.container = container;
    this.#args = args;
    const ended = Promise.withResolvers<number>();
    this.ended = ended.promise;
    this.#end = ended.resolve;
  }

  /** The arguments, for a command with these flags. @throws {Error} for one without its value. */
  flags(names: readonly string[]): AgnhostFlags {
    return new AgnhostFlags(this.#args, names);
  }

  /** As the program of its container. */
  asProgram(): ContainerProgram {
    return {
      ended: this.ended.then((exitCode) => ({ exitCode })),
      signal: (name) => {
        if (name === 'SIGKILL') this.end(137);
        else this.onSignal(name);
      },
    };
  }

  /** Closes everything; the first call gives the exit code. */
  end(code: number): void {
    for (const each of this.#open) each.close();
    this.#open.clear();
    this.#end(code);
  }

  print(line: string): void {
    this.container.write('stdout', `${line}\n`);
  }

  /** Keeps something until the end. */
  #keep(each: { close: () => void }): void {
    this.#open.add(each);
  }

  /** Listens at all addresses of the container. @throws the system's error. */
  async listen(port: number, make: () => Server): Promise<void> {
    for (const address of this.container.listenAt) {
      const server = make();
      const connections = new Set<Socket>();
      server.on('connection', (socket: Socket) => {
        connections.add(socket);
        socket.once('close', () => connections.delete(socket));
      });
      await this.container.host.listen(server, address, port);
      this.#keep({
        close: () => {
          server.close();
          for (const socket of connections) socket.destroy();
        },
      });
    }
  }

  /** Answers datagrams. @throws the system's error. */
  async receive(
    addresses: readonly string[],
    port: number,
    answer: (message: Buffer, from: { address: string; port: number }) => string | undefined,
  ): Promise<void> {
    for (const address of addresses) {
      const socket: DatagramSocket = await this.container.host.datagram(address, port);
      socket.on('message', (message, from) => {
        try {
          const answered = answer(message, from);
          if (answered !== undefined) sendDatagram(socket, answered, from);
        } catch (error) {
          this.container.write('stderr', `${errorMessage(error)}\n`);
        }
      });
      this.#keep({ close: () => void socket.close() });
    }
  }
}

/** Flags that have a value each: `--name=value`, `--name value`. */
export class AgnhostFlags {
  readonly #values = new Map<string, string>();

  /**
   * @param names others are passed over, as those of Kubernetes' logging, which every command takes.
   * @throws {Error} for a flag without its value.
   */
  constructor(args: readonly string[], names: readonly string[]) {
    for (let i = 0; i < args.length; i++) {
      const [, name = '', own] = /^--?([a-z][\w-]*)(?:=(.*))?$/s.exec(args[i] ?? '') ?? [];
      if (!names.includes(name)) continue;
      const value = own ?? args[++i];
      if (value === undefined) throw new Error(`Error: flag needs an argument: --${name}`);
      this.#values.set(name, value);
    }
  }

  text(name: string): string {
    return this.#values.get(name) ?? '';
  }

  /** @throws {Error} where the value is no whole number. */
  number(name: string, fallback: number): number {
    const text = this.#values.get(name);
    if (text === undefined) return fallback;
    if (/^[-+]?\d+$/.test(text)) return Number(text);
    throw new Error(`Error: invalid argument ${JSON.stringify(text)} for "--${name}" flag`);
  }
}

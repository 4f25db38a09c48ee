import type { Socket as DatagramSocket } from 'node:dgram';
import type { Server, Socket } from 'node:net';
import { sendDatagram } from '../../host/sockets.ts';
import { errorMessage } from '../../objects/status.ts';
import type { ContainerProgram, ProgramContainer } from '../../emulation/program.ts';

/** A program beside agnhost in its image. */
export const corednsProgram = '/coredns';

/** The parts of its container that agnhost needs. */
export interface AgnhostContainer extends Omit<ProgramContainer, 'hosts' | 'resolvConf'> {
  /** The addresses of a name, at least one. @throws {Error} where there is no such name. */
  readonly resolve: (name: string) => Promise<readonly string[]>;
}

/** One run of agnhost: what it opened is closed at its end. */
export class AgnhostRun {
  readonly container: AgnhostContainer;
  readonly args: AgnhostArguments;
  /** The program and all its arguments, as it was called. */
  readonly argv: readonly string[];
  /** Resolves with the exit code. */
  readonly ended: Promise<number>;
  /** The handler of SIGTERM; by default a Go program that is process 1 exits with 2. */
  onTerm: () => void = () => this.end(2);
  readonly #end: (code: number) => void;
  readonly #open = new Set<{ close: () => void }>();

  constructor(container: AgnhostContainer, args: AgnhostArguments, argv: readonly string[]) {
    this.container = container;
    this.args = args;
    this.argv = argv;
    const ended = Promise.withResolvers<number>();
    this.ended = ended.promise;
    this.#end = ended.resolve;
  }

  /** As the program of its container. */
  asProgram(): ContainerProgram {
    return {
      ended: this.ended.then((exitCode) => ({ exitCode })),
      signal: (name) => {
        if (name === 'SIGKILL') this.end(137);
        else this.onTerm();
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
  keep(each: { close: () => void }): void {
    this.#open.add(each);
  }

  /** Listens at all addresses of the container. @throws the system's error. */
  async listen(port: number, make: () => Server, addresses = this.container.listenAt): Promise<void> {
    for (const address of addresses) {
      const server = make();
      const connections = new Set<Socket>();
      server.on('connection', (socket: Socket) => {
        connections.add(socket);
        socket.once('close', () => connections.delete(socket));
      });
      await this.container.host.listen(server, address, port);
      this.keep({
        close: () => {
          server.close();
          for (const socket of connections) socket.destroy();
        },
      });
    }
  }

  /** The same for UDP. @throws the system's error. */
  async receive(
    port: number,
    answer: (message: Buffer, from: { address: string; port: number }) => string | Buffer | undefined,
    addresses = this.container.listenAt,
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
      this.keep({ close: () => void socket.close() });
    }
  }
}

/** The arguments behind a subcommand: `--name=value`, `--name value`, `--name`, and others. */
export class AgnhostArguments {
  readonly #flags = new Map<string, string>();
  /** The arguments that are no flags. */
  readonly others: readonly string[];

  /** @param switches flags without a value. */
  constructor(args: readonly string[], switches: readonly string[] = []) {
    const others: string[] = [];
    for (let i = 0; i < args.length; i++) {
      const [, name, value] = /^--?([a-zA-Z][\w-]*)(?:=(.*))?$/s.exec(args[i] ?? '') ?? [];
      if (name === undefined) others.push(args[i] ?? '');
      else if (value !== undefined) this.#flags.set(name, value);
      else if (switches.includes(name) || (args[i + 1] ?? '-').startsWith('-')) this.#flags.set(name, 'true');
      else this.#flags.set(name, args[++i] ?? '');
    }
    this.others = others;
  }

  text(name: string, fallback = ''): string {
    return this.#flags.get(name) ?? fallback;
  }

  number(name: string, fallback: number): number {
    const value = Number(this.#flags.get(name));
    return this.#flags.has(name) && Number.isFinite(value) ? value : fallback;
  }

  has(name: string): boolean {
    return (this.#flags.get(name) ?? 'false') !== 'false';
  }

  /** A Go duration. */
  durationMs(name: string, fallback: number): number {
    const text = this.#flags.get(name);
    if (text === undefined) return fallback;
    let sum = 0;
    for (const [, amount = '', unit = ''] of text.matchAll(/(?<![\d.])([\d.]+)(ms|s|m|h)/g)) {
      sum += Number(amount) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit] ?? 0);
    }
    return sum;
  }
}

/** The certificate that agnhost has in its image: self-signed, for localhost, and as public as its key. */

const certificate = `-----BEGIN CERTIFICATE-----
MIIBrzCCAVSgAwIBAgIUYaxNR6a67J5oZDMCdrUnAQ8phucwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNTIzMTc1N1oYDzIxMjYxMTAx
MjMxNzU3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASndYQwtFQMR+VeuuNBIeXeeVNx2e6dyyPb+6ZrY/bjW+STfho/hhl3
dGNUK7/+v0vN9b5DUeexX6hkXwlKy5Xjo4GBMH8wHQYDVR0OBBYEFIB+k1q1+vNc
OWX7Buwseik2wMH8MB8GA1UdIwQYMBaAFIB+k1q1+vNcOWX7Buwseik2wMH8MA8G
A1UdEwEB/wQFMAMBAf8wLAYDVR0RBCUwI4IJbG9jYWxob3N0hwR/AAABhxAAAAAA
AAAAAAAAAAAAAAABMAoGCCqGSM49BAMCA0kAMEYCIQCgzn7/yiR0J1Ld33u08+gb
NGcxf5Z7m0txi9F7Cl9xWQIhAPUwqTCKSXBI7ndQVbj3O2/bPQSRsWZonCx0IKgu
QWte
-----END CERTIFICATE-----
`;

/** Of {@link certificate}: it keeps nothing secret. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+PYuj37Dr78DGyAN
Daqbu/jtQclV721K0TqKMc32sYOhRANCAASndYQwtFQMR+VeuuNBIeXeeVNx2e6d
yyPb+6ZrY/bjW+STfho/hhl3dGNUK7/+v0vN9b5DUeexX6hkXwlKy5Xj
-----END PRIVATE KEY-----
`;

const files: ReadonlyMap<string, string> = new Map([
  ['localhost.crt', certificate],
  ['localhost.key', key],
]);

/** A file of TLS: of the container, or of the image at its top. @throws the system's error. */
export async function tlsFile(
  { readFile }: Pick<AgnhostContainer, 'readFile'>,
  path: string,
): Promise<Buffer | string> {
  return files.get(path.replace(/^\//, '')) ?? (await readFile(path));
}

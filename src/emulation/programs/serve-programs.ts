import { AsyncLocalStorage } from 'node:async_hooks';
import type { Socket as DatagramSocket } from 'node:dgram';
import type { Server, Socket } from 'node:net';
import type { ContainerExit } from '../../controllers/kubelet/container-runtime.ts';
import { type ExecResult, type Host, asError } from '../../host/host.ts';
import { NamespaceHost, NetworkNamespace } from '../namespaces.ts';
import { PodServer, reportResponses, type ServedContainer } from '../pod-server.ts';
import { isRecord } from '../../objects/json.ts';
import type { ContainerProgram, ProgramContainer, ProgramImage, ProgramImages } from '../program.ts';
import {
  errorOf,
  failureOf,
  type FromPrograms,
  type ImageRun,
  isToPrograms,
  type Question,
  type StandIn,
  type ToPrograms,
  type WantedProgram,
} from './messages.ts';

/** Of a program that ended by an exception, as Go's end by a panic. */
const panicked: ContainerExit = { exitCode: 2 };

/**
 * The process of all built-in programs, as the other end of the channel says. An exception ends the container whose
 * program it came from; one of which that is not known ends the process.
 */
export function servePrograms(images: ProgramImages): void {
  const containers = new Map<number, Container>();
  const present = new AsyncLocalStorage<Container>();
  process.on('disconnect', () => process.exit());
  process.on('uncaughtException', (error) => {
    const container = present.getStore();
    if (container === undefined) {
      process.stderr.write(`${error.stack ?? String(error)}\n`);
      process.exit(1);
    }
    container.fail(error);
  });
  reportResponses((responses) => say({ from: 'responses', responses }));
  process.on('message', (message) => {
    if (!isToPrograms(message)) return;
    const { id } = message;
    if (message.to !== 'start') {
      containers.get(id)?.hear(message);
      return;
    }
    const container = new Container(id, present, () => containers.delete(id));
    containers.set(id, container);
    present
      .run(container, () => container.start(images, message.wanted))
      .then(
        () => say({ from: 'started', id }),
        (error: unknown) => {
          say({ from: 'started', id, failure: failureOf(error) });
          container.end(panicked);
        },
      );
  });
}

/** @param sent is called when the channel has taken it. */
function say(message: FromPrograms, sent = (): void => undefined): void {
  // Where the other end has gone, `disconnect` follows.
  process.send?.(message, undefined, {}, sent);
}

/** One run of a program, with all that it has open. */
class Container {
  readonly #id: number;
  readonly #present: AsyncLocalStorage<Container>;
  readonly #forget: () => void;
  readonly #open = new Set<{ close: () => void }>();
  readonly #questions = new Map<number, PromiseWithResolvers<unknown>>();
  #asked = 0;
  #program: ContainerProgram | undefined;
  #isHealthy = true;
  #hasEnded = false;
  /** What clients of a stand-in cause. */
  readonly #log = new LogQueue((text, taken) => {
    if (!this.#hasEnded) say({ from: 'printed', id: this.#id, stream: 'stdout', text }, taken);
  });

  constructor(id: number, present: AsyncLocalStorage<Container>, forget: () => void) {
    this.#id = id;
    this.#present = present;
    this.#forget = forget;
  }

  /** @throws the system's error. */
  async start(images: ProgramImages, wanted: WantedProgram): Promise<void> {
    const namespace = new NetworkNamespace(wanted.namespace);
    this.#open.add({ close: () => namespace.close() });
    const host = this.#hold(new NamespaceHost(namespace));
    const program =
      wanted.kind === 'stand-in'
        ? await this.#standIn(wanted, host)
        : await imageOf(images, wanted).start(wanted.argv, this.#containerOf(wanted, host));
    this.#program = program;
    void program.ended.then((exit) => this.end(exit));
    // It may have failed while it started.
    if (this.#hasEnded) program.signal('SIGKILL');
  }

  hear(message: Exclude<ToPrograms, { to: 'start' }>): void {
    if (message.to === 'signal') {
      this.#present.run(this, () => this.#program?.signal(message.signal));
    } else if (message.to === 'setHealthy') this.#isHealthy = message.healthy;
    else {
      const { question, result, failure } = message;
      const asked = this.#questions.get(question);
      this.#questions.delete(question);
      if (failure === undefined) asked?.resolve(result);
      else asked?.reject(errorOf(failure));
    }
  }

  /** Ends the container by an exception of its program. */
  fail(error: unknown): void {
    const { stack, message } = asError(error);
    if (this.#hasEnded) return;
    say({ from: 'printed', id: this.#id, stream: 'stderr', text: `${stack ?? message}\n` });
    this.end(panicked);
  }

  /** Closes everything; the first call gives the exit. */
  end(exit: ContainerExit): void {
    if (this.#hasEnded) return;
    this.#log.flush();
    this.#hasEnded = true;
    this.#forget();
    const closes = [() => this.#program?.signal('SIGKILL'), ...[...this.#open].map(({ close }) => close)];
    for (const close of closes) {
      try {
        close();
      } catch {
        // A datagram socket that its program has closed.
      }
    }
    say({ from: 'ended', id: this.#id, exit });
  }

  async #standIn(wanted: StandIn, host: Host): Promise<ContainerProgram> {
    const { identity, ports, listenAt: addresses, healthy, logFormat, documents } = wanted;
    this.#isHealthy = healthy;
    const container: ServedContainer = {
      ...{ ...identity, logFormat, documents },
      isReady: () => this.#isHealthy,
      write: (line) => this.#log.write(line),
      readFile: (path) => this.#readFile(path),
    };
    const server = await PodServer.listen({ host, addresses, ports, container });
    const places = server.ports.map(({ protocol, port }) => `${protocol} ${port}`).join(', ');
    const none = ports.length === 0 ? 'no port: its container declares none' : 'no port: another Pod has it';
    this.#log.write(`servicenet: a stand-in for ${identity.image}, on ${places === '' ? none : places}\n`);
    const ended = Promise.withResolvers<ContainerExit>();
    return {
      ended: ended.promise,
      signal: () => {
        server.close();
        ended.resolve({ exitCode: 0 });
      },
    };
  }

  #containerOf({ listenAt, hostname, hosts, environment }: ImageRun, host: Host): ProgramContainer {
    return {
      ...{ host, listenAt, hostname, hosts, environment },
      write: (stream, text) => say({ from: 'printed', id: this.#id, stream, text }),
      readFile: (path) => this.#readFile(path),
      resolvConf: async () => String(await this.#ask({ ask: 'resolv.conf' })),
      exec: async (command) => {
        const result = await this.#ask({ ask: 'exec', command });
        if (isExecResult(result)) return result;
        throw new Error('no result came of a program');
      },
    };
  }

  async #readFile(path: string): Promise<Buffer> {
    const bytes = await this.#ask({ ask: 'file', path });
    if (bytes instanceof Uint8Array) return Buffer.from(bytes);
    throw new Error(`no bytes came of ${path}`);
  }

  #ask(what: Question): Promise<unknown> {
    const question = ++this.#asked;
    const answer = Promise.withResolvers<unknown>();
    this.#questions.set(question, answer);
    say({ from: 'asked', id: this.#id, question, what });
    return answer.promise;
  }

  /** A host whose sockets end with this container, and whose events are known to be its own. */
  #hold(host: Host): Host {
    return {
      exec: (program, args, options) => host.exec(program, args, options),
      sysctl: host.sysctl,
      listen: async (server, address, port) => {
        server.prependListener('connection', (socket: Socket) => {
          this.#own(socket);
          this.#keep(socket, () => socket.destroy());
        });
        this.#keep(server, () => server.close());
        await host.listen(server, address, port);
      },
      connect: async (address, port, options) => {
        const socket = await host.connect(address, port, options);
        return this.#keep(socket, () => socket.destroy());
      },
      datagram: async (address, port) => {
        const socket = await host.datagram(address, port);
        return this.#keep(socket, () => socket.close());
      },
    };
  }

  /** Closes it at the end, unless it is closed by then. */
  #keep<T extends Server | Socket | DatagramSocket>(of: T, end: () => void): T {
    const kept = { close: end };
    this.#open.add(kept);
    of.once('close', () => this.#open.delete(kept));
    return of;
  }

  /** The kernel hands over what an accepted socket receives without the context that accepted it. */
  #own(socket: Socket): void {
    const emit = socket.emit.bind(socket);
    const value = (event: string, ...args: unknown[]): boolean => {
      try {
        return this.#present.run(this, () => emit(event, ...args));
      } catch (error) {
        this.fail(error);
        return false;
      }
    };
    Object.defineProperty(socket, 'emit', { value });
  }
}

function imageOf({ byName, byRepository }: ProgramImages, { entrypoint }: ImageRun): ProgramImage {
  const image = [...byName.values(), ...byRepository.values()].find((each) => each.entrypoint === entrypoint);
  if (image === undefined) throw new Error(`there is no built-in program ${entrypoint}`);
  return image;
}

function isExecResult(value: unknown): value is ExecResult {
  return isRecord(value) && typeof value['exitCode'] === 'number';
}

/** Characters that wait for the channel. */
const maxWaiting = 256 * 1024;

/**
 * Lines on their way to a log. What comes while the channel takes those before waits, up to a limit: clients may cause
 * lines faster than a log takes them. Those that do not fit are left out, and a line says how many.
 */
export class LogQueue {
  readonly #send: (text: string, taken: () => void) => void;
  #waiting = '';
  #missing = 0;
  #isSending = false;

  /** @param send calls back when the channel has taken the text. */
  constructor(send: (text: string, taken: () => void) => void) {
    this.#send = send;
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > maxWaiting) this.#missing++;
    else this.#waiting += line;
    if (!this.#isSending) this.flush();
  }

  /** Sends what waits, whether or not what was sent before is taken. */
  flush(): void {
    const missing =
      this.#missing === 0 ? '' : `servicenet: ${this.#missing} lines are missing, there were too many\n`;
    const text = this.#waiting + missing;
    this.#waiting = '';
    this.#missing = 0;
    this.#isSending = text !== '';
    if (this.#isSending) this.#send(text, () => this.flush());
  }
}

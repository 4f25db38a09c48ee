import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Logger } from 'pino';
import { checkStreams } from '../host/local-host.ts';
import type { EndpointSource } from '../client/transport.ts';
import { listenWith } from '../host/sockets.ts';
import { errorMessage } from '../objects/status.ts';
import { compileCache, entries } from '../paths.ts';
import type { PacketPlace, PlaceOfPackets } from '../view/trace-connection.ts';
import type { Credentials } from './gate.ts';
import type { PageSettings } from './page.ts';
import { type FromPage, isFromPage, type ToPage } from './protocol.ts';

/** The only address that the page is at. From elsewhere: `ssh -L`. */
const pageAddress = '127.0.0.1';

/** A new key and a new session, of 128 and 256 random bits. */
export function newCredentials(): Credentials {
  return { key: randomBytes(16).toString('base64url'), session: randomBytes(32).toString('base64url') };
}

/** The page's address, without the key. */
export function pageUrl(port: number): string {
  return `http://${pageAddress}:${port}/`;
}

/** What is opened in a browser. The key is behind the `#`, which no server, log or header gets. */
export function pageLink(port: number, { key }: Credentials): string {
  return `${pageUrl(port)}#k=${key}`;
}

/**
 * Listens at the first port that is free.
 *
 * @param ports at least one; 0: any.
 * @throws the system's error where none is.
 */
export async function listenAt(server: Server, ports: readonly number[]): Promise<number> {
  for (const [index, port] of ports.entries()) {
    try {
      await listenWith(server, { host: pageAddress, port });
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    } catch (error) {
      const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
      if (!isTaken || index === ports.length - 1) throw error;
    }
  }
  throw new Error('no port is given');
}

export interface ListenerOptions {
  readonly source: EndpointSource;
  readonly settings: PageSettings;
  /** Enters a place of the cluster network; undefined: there is none. */
  readonly enter: ((place: PacketPlace) => Promise<PlaceOfPackets>) | undefined;
  readonly log: Logger;
}

/** Milliseconds that the process has to end by itself. */
const endMs = 2000;
/** Characters of what it has said last. */
const maxSaid = 2000;

/**
 * Accepts the page's connections, and gives them to a process of their own, which is started for the first and again where
 * it has ended. Without a viewer there is no process.
 */
export class PageListener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  #child: ChildProcess | undefined;
  /** Connections that {@link #child} was given. */
  #given = 0;

  private constructor(options: ListenerOptions) {
    this.#options = options;
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#give(socket));
  }

  /** @param ports of which the first that is free is taken. @returns the listener and its port. */
  static async open(
    options: ListenerOptions,
    ports: readonly number[],
  ): Promise<{ readonly listener: PageListener; readonly port: number }> {
    const listener = new PageListener(options);
    return { listener, port: await listenAt(listener.#server, ports) };
  }

  /** Ends the process with all its connections. */
  async close(): Promise<void> {
    this.#server.close();
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    if (child.connected) child.disconnect();
    const late = setTimeout(() => child.kill('SIGKILL'), endMs);
    await ended;
    clearTimeout(late);
  }

  #give(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    try {
      this.#child ??= this.#fork();
    } catch (error) {
      this.#options.log.error({ err: error }, 'the process of the page cannot be started');
      socket.destroy();
      return;
    }
    this.#given++;
    this.#child.send({ to: 'connection' } satisfies ToPage, socket, { keepOpen: false }, (error) => {
      if (error !== null) socket.destroy();
    });
  }

  #fork(): ChildProcess {
    const { source, settings, log } = this.#options;
    this.#given = 0;
    let said = '';
    const child = fork(entries.pageProcess, {
      // Twice what ten tabs of 20,000 Pods need, for what was.
      execArgv: ['--max-old-space-size=512', '--max-semi-space-size=4'],
      env: { ...process.env, ...compileCache() },
      serialization: 'advanced',
      // Nothing of it may be drawn into a live view.
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    checkStreams(child);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(-maxSaid);
    });
    child.on('message', (message) => {
      if (isFromPage(message)) this.#hear(child, message);
    });
    child.on('error', (error) => log.error({ err: error }, 'the process of the page cannot be reached'));
    child.once('exit', (code, signal) => {
      // Otherwise it was told to end.
      if (this.#child !== child) return;
      this.#child = undefined;
      const reason = 'PageEnded';
      log.warn(
        { reason, code, signal, said: said.trim() },
        'the page has ended: it starts again with the next look',
      );
    });
    child.send({ to: 'open', source, settings } satisfies ToPage, () => undefined);
    return child;
  }

  #hear(child: ChildProcess, message: FromPage): void {
    if (message.from === 'idle') {
      // A connection may be on its way to it.
      if (message.taken !== this.#given || child !== this.#child) return;
      this.#child = undefined;
      child.disconnect();
      return;
    }
    const { id, place, address, port } = message;
    const answer = (said: ToPage): void => void child.send(said, () => undefined);
    this.#open(place, address, port).then(
      (tried) => answer({ to: 'checked', id, tried }),
      (error: unknown) => answer({ to: 'checkFailed', id, message: errorMessage(error) }),
    );
  }

  async #open(place: PacketPlace, address: string, port: number) {
    const { enter } = this.#options;
    if (enter === undefined) throw new Error('there is no cluster network');
    const entered = await enter(place);
    try {
      return await entered.open(address, port);
    } finally {
      entered.end();
    }
  }
}

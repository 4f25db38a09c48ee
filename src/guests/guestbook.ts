/** `agnhost guestbook`: a frontend, a primary and its replicas, which keep texts by key (test/images/agnhost/guestbook). */
import { setTimeout as delay } from 'node:timers/promises';
import { httpServer } from '../host/http-server.ts';
import type { RequestTarget } from '../objects/formats/go-url.ts';
import { isRecord } from '../objects/json.ts';
import { bodyFrom, resolveName } from './dial.ts';
import type { AgnhostRun } from './run.ts';
import { errorMessage } from '../objects/status.ts';

/** Milliseconds that a replica tries to reach its primary, and between two tries. */
const registrationMs = 15_000;
const pauseMs = 1000;

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Serves, and registers with `--replicaof`. @throws the system's error where the port is taken. */
export async function guestbook(run: AgnhostRun): Promise<void> {
  const flags = run.flags(['http-port', 'backend-port', 'replicaof']);
  const book = new Guestbook(run, flags.number('backend-port', 6379));
  await run.listen(flags.number('http-port', 80), () =>
    httpServer(async (request, response, target) => {
      request.resume();
      run.print(`GET ${target.pathname}${target.search}`);
      const { status, text } = await book
        .answer(target)
        .catch((error: unknown) => ({ status: 417, text: `encountered error: ${errorMessage(error)}\n` }));
      response.writeHead(status).end(text);
    }),
  );
  const primary = flags.text('replicaof');
  if (primary === '') return;
  // It serves before: the primary may come later.
  book.register(primary).catch((error: unknown) => {
    run.container.write('stderr', `${errorMessage(error)}\n`);
    run.end(1);
  });
}

class Guestbook {
  readonly #run: AgnhostRun;
  /** The port of primaries and replicas. */
  readonly #port: number;
  readonly #store = new Map<string, string>();
  readonly #replicas = new Set<string>();

  constructor(run: AgnhostRun, port: number) {
    this.#run = run;
    this.#port = port;
  }

  /** @throws {Error} where another one of the guestbook does not answer. */
  async answer({ pathname, searchParams, search }: RequestTarget): Promise<Answer> {
    const value = (name: string): string => searchParams.get(name) ?? '';
    const key = value('key');
    switch (pathname) {
      case '/register':
        this.#replicas.add(value('host'));
        return done({ data: Object.fromEntries(this.#store) });
      case '/get':
        return done({ data: key === '' ? Object.fromEntries(this.#store) : (this.#store.get(key) ?? '') });
      case '/set':
        if (key === '') return refused('cannot set with empty key.');
        this.#store.set(key, value('value'));
        for (const replica of this.#replicas) await this.#ask(replica, `set${search}`);
        return done({ message: 'Updated' });
      case '/guestbook': {
        const command = value('cmd').toLowerCase();
        if (command !== 'get' && command !== 'set') return refused(`unsupported cmd: '${command}'`);
        if (command === 'set' && key === '') return refused('cannot set with empty key.');
        const query = new URLSearchParams({ key, value: value('value') }).toString();
        const host = command === 'get' ? 'agnhost-replica' : 'agnhost-primary';
        return { status: 200, text: await this.#ask(host, `${command}?${query}`) };
      }
      default:
        return { status: 404, text: '404 page not found\n' };
    }
  }

  /** Copies the entries of the primary, and follows its changes. */
  async register(primary: string): Promise<void> {
    const { host } = this.#run.container;
    const until = performance.now() + registrationMs;
    while (performance.now() < until) {
      try {
        const [address = ''] = await resolveName(this.#run.container, primary);
        const way = await host.connect(address, this.#port);
        const own = way.localAddress ?? '';
        way.destroy();
        const held: unknown = JSON.parse(
          await bodyFrom(host, address, this.#port, `register?host=${encodeURIComponent(own)}`),
        );
        const texts = isRecord(held) && isRecord(held['data']) ? held['data'] : {};
        for (const [key, text] of Object.entries(texts)) this.#store.set(key, String(text));
        this.#run.print(`Registered to node: ${primary}`);
        return;
      } catch (error) {
        this.#run.print(
          `encountered error while registering to primary: ${errorMessage(error)}. Retrying in 1s.`,
        );
      }
      await delay(pauseMs);
    }
    throw new Error('Timed out while registering to primary.');
  }

  async #ask(name: string, path: string): Promise<string> {
    const [address = ''] = await resolveName(this.#run.container, name);
    return await bodyFrom(this.#run.container.host, address, this.#port, path);
  }
}

function done(body: object): Answer {
  return { status: 200, text: JSON.stringify(body) };
}

function refused(why: string): Answer {
  return { status: 400, text: `${why}\n` };
}

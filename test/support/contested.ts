import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestOptions, Transport } from '../../src/client/transport.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, recordAt } from '../../src/objects/json.ts';
import { StatusError } from '../../src/objects/status.ts';
import { call } from './test-server.ts';

/** Milliseconds within which all writes that are waited for must have come. */
const timeoutMs = 120_000;
/** No decision depends on these, or they carry a precondition of their own. */
const exempt = /\/(leases|events)\//;

/**
 * What is between controllers and a server on which another client is quicker before each write: what is to be changed
 * was changed, and what is to be deleted, or bound, is another object of that name. The server must refuse the write;
 * then nothing interferes until one of that object is done, so that work goes on.
 */
export class Contested {
  readonly #client: Transport;
  /** Writes that came too late and were done all the same. */
  readonly #done: string[] = [];
  /** What was refused, as `who METHOD resource/subresource`. */
  readonly #refused = new Set<string>();
  /** Writes that came too late once, until they are done. */
  readonly #refusedOnce = new Set<string>();
  #touches = 0;

  constructor(client: Transport) {
    this.#client = client;
  }

  /** The way of one controller to the server. */
  transport(who: string): Transport {
    const client = this.#client;
    return {
      server: client.server,
      request: async (method, path, options = {}) => {
        const what = `${who} ${method} ${resourceOf(path)}`;
        const write = `${who} ${method} ${path}`;
        if (this.#refusedOnce.has(write) || !(await this.#overtake(method, path, options))) {
          const answer = await client.request(method, path, options);
          this.#refusedOnce.delete(write);
          return answer;
        }
        try {
          const answer = await client.request(method, path, options);
          this.#done.push(`${what}: ${path} ${JSON.stringify(options.body)}`);
          return answer;
        } catch (error) {
          if (error instanceof StatusError && [404, 409].includes(error.code)) {
            this.#refused.add(what);
            this.#refusedOnce.add(write);
          }
          throw error;
        }
      },
      stream: (path, options) => client.stream(path, options),
      close: () => Promise.resolve(),
    };
  }

  /**
   * Resolves when each of these came too late once, and none that did was done.
   *
   * @throws saying which was done, or never came
   */
  async untilRefused(wanted: readonly string[]): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      if (this.#done.length > 0) throw new Error(`done, though it came too late: ${this.#done.join('\n')}`);
      const missing = wanted.filter((each) => !this.#refused.has(each));
      if (missing.length === 0) return;
      if (Date.now() > deadline) throw new Error(`never came too late: ${missing.join(', ')}`);
      await sleep(20);
    }
  }

  /** False where no other client could be quicker. */
  async #overtake(method: string, path: string, { body, contentType }: RequestOptions): Promise<boolean> {
    const isBinding = path.endsWith('/binding');
    if (method === 'GET' || (method === 'POST' && !isBinding)) return false;
    // What is applied is true of every version.
    if (exempt.test(path) || contentType === 'application/apply-patch+yaml') return false;
    const object = objectPath(path);
    if (method === 'DELETE' || isBinding) return this.#replace(object);
    return at(body, 'metadata') === undefined ? false : this.#touch(object);
  }

  async #touch(path: string): Promise<boolean> {
    const metadata = { annotations: { 'example.com/touched': String(++this.#touches) } };
    const contentType = 'application/merge-patch+json';
    return (await call(this.#client, 'PATCH', path, { body: { metadata }, contentType })).status === 200;
  }

  /** Puts another object in the place of one; false where there is none, as where a collection is deleted. */
  async #replace(path: string): Promise<boolean> {
    const { status, body: old } = await call(this.#client, 'GET', path);
    const uid = at(old, 'metadata', 'uid');
    if (status !== 200 || uid === undefined) return false;
    const options = { gracePeriodSeconds: 0, propagationPolicy: 'Background', preconditions: { uid } };
    await call(this.#client, 'DELETE', path, { body: options });
    if (listAt(old, 'metadata', 'finalizers').length > 0) {
      const body = { metadata: { uid, finalizers: null } };
      await call(this.#client, 'PATCH', path, { body, contentType: 'application/merge-patch+json' });
    }
    const made = await call(this.#client, 'POST', path.slice(0, path.lastIndexOf('/')), {
      body: newFrom(old),
    });
    return made.status === 201;
  }
}

/** An object without what a server gave it. */
function newFrom({ status: _status, ...old }: JsonRecord): JsonRecord {
  const { name, labels, annotations, ownerReferences } = recordAt(old, 'metadata');
  return { ...old, metadata: { name, labels, annotations, ownerReferences } };
}

function objectPath(path: string): string {
  return path.replace(/\/(status|finalize|binding)$/, '');
}

function resourceOf(path: string): string {
  const object = objectPath(path);
  return `${object.split('/').at(-2) ?? ''}${path.slice(object.length)}`;
}

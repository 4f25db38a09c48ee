/** Calls as those of client-go's typed clients: objects in and out, and errors as what the Status says. */
import type { QueryParameters } from '../../src/client/transport.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { numberAt, textAt } from '../../src/objects/json.ts';
import { StatusError } from '../../src/objects/status.ts';
import type { TypedClient, TypedEvent } from './typed-client.ts';

/** A kind and where it is served. */
export interface Kind {
  /** `v1`, `networking.k8s.io/v1`. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
}

/** The calls of one kind, in one namespace or everywhere. */
export class TypedResource {
  readonly #client: TypedClient;
  readonly #kind: Kind;
  readonly #path: string;

  constructor(client: TypedClient, kind: Kind, namespace: string | undefined) {
    const { apiVersion, plural } = kind;
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    this.#client = client;
    this.#kind = kind;
    this.#path = `${root}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${plural}`;
  }

  async create(object: JsonRecord): Promise<JsonRecord> {
    return this.#call('POST', this.#path, { body: this.#typed(object) });
  }

  async get(name: string): Promise<JsonRecord> {
    return this.#call('GET', this.#named(name));
  }

  async list(query: QueryParameters = {}): Promise<JsonRecord> {
    return this.#call('GET', this.#path, { query });
  }

  async update(object: JsonRecord, subresource = ''): Promise<JsonRecord> {
    const path = this.#named(textAt(object, 'metadata', 'name'), subresource);
    return this.#call('PUT', path, { body: this.#typed(object) });
  }

  async patch(
    name: string,
    patch: 'merge' | 'strategic-merge',
    body: JsonRecord,
    subresource = '',
  ): Promise<JsonRecord> {
    return this.#call('PATCH', this.#named(name, subresource), { body, patch });
  }

  async delete(name: string, options: JsonRecord = {}): Promise<JsonRecord> {
    return this.#call('DELETE', this.#named(name), { body: this.#deleteOptions(options) });
  }

  async deleteCollection(query: QueryParameters): Promise<JsonRecord> {
    return this.#call('DELETE', this.#path, { body: this.#deleteOptions({}), query });
  }

  /** `RetryOnConflict` of get, change and update. */
  async retryOnConflict(
    name: string,
    change: (object: JsonRecord) => JsonRecord,
    subresource = '',
  ): Promise<JsonRecord> {
    for (let tries = 0; ; tries++) {
      try {
        return await this.update(change(await this.get(name)), subresource);
      } catch (error) {
        if (!(error instanceof StatusError) || error.reason !== 'Conflict' || tries === 4) throw error;
      }
    }
  }

  /** Opens a watch; it is there when this returns. */
  async watch(query: QueryParameters): ReturnType<TypedClient['watch']> {
    return this.#client.watch(this.#path, query);
  }

  /**
   * `watchtools.Until`: a RetryWatcher from a resource version, until an event meets the condition.
   *
   * @throws {StatusError} for an ERROR event.
   */
  async until(
    resourceVersion: string,
    query: QueryParameters,
    condition: (event: TypedEvent) => boolean,
  ): Promise<TypedEvent> {
    const watch = await this.watch({ ...query, resourceVersion, allowWatchBookmarks: true });
    try {
      const event = await watch.until(
        (each) => each.type === 'ERROR' || (each.type !== 'BOOKMARK' && condition(each)),
      );
      if (event.type === 'ERROR') throw statusError(event.object);
      return event;
    } finally {
      watch.stop();
    }
  }

  async #call(...[method, path, sent]: Parameters<TypedClient['call']>): Promise<JsonRecord> {
    const { status, body } = await this.#client.call(method, path, sent);
    if (status >= 400) throw statusError(body);
    return body;
  }

  #named(name: string, subresource = ''): string {
    return `${this.#path}/${name}${subresource === '' ? '' : `/${subresource}`}`;
  }

  #typed(object: JsonRecord): JsonRecord {
    const { apiVersion, kind } = this.#kind;
    return { ...object, apiVersion, kind };
  }

  /** Options are registered in every group version, and sent as of the client's. */
  #deleteOptions(options: JsonRecord): JsonRecord {
    return { ...options, apiVersion: this.#kind.apiVersion, kind: 'DeleteOptions' };
  }
}

function statusError(status: JsonRecord): StatusError {
  return new StatusError(numberAt(status, 'code'), textAt(status, 'reason'), textAt(status, 'message'));
}

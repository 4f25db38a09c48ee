import { isRecord } from '../objects/json.ts';
import { pushAll } from '../objects/lists.ts';
import { type KubeList, type KubeObject, isKubeObject } from '../objects/meta.ts';
import { isNotFound } from './errors.ts';
import { apiVersionOf, resourceName, type ResourceType } from './resources.ts';
import { type QueryParameters, type Transport, UnexpectedAnswer } from './transport.ts';

/** The object of a create: everything but metadata may be left to the server's defaults. */
export type Draft<T extends KubeObject> = Partial<T> & Pick<T, 'metadata'>;

/** One operation of an RFC 6902 patch. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly path: string; readonly from: string };

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds until the whole answer must have arrived. */
  readonly timeoutMs?: number;
}

export interface WriteOptions extends CallOptions {
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
  /** `status`, `finalize`, …; absent: the object itself. */
  readonly subresource?: string;
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Force: take over fields of other managers. */
  readonly force?: boolean;
}

export interface ListRequestOptions extends CallOptions {
  /** Absent or "": all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
}

/** One page of a list. */
export interface Page<T extends KubeObject> extends KubeList<T> {
  /** The number of items without a valid shape, which are left out. */
  readonly dropped: number;
  /** Size of the answer. */
  readonly bytes: number;
}

/** meta/v1 DeleteOptions. */
export interface DeleteOptions extends CallOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  readonly gracePeriodSeconds?: number;
}

/** Bytes of a page that take about 10 ms to parse. */
const pageBytes = 768 * 1024;

/**
 * The verbs of one resource, on plain JSON objects, which keep all fields that the server sends. Every method throws
 * what {@link Transport.request} throws, and {@link UnexpectedAnswer} for an answer of another shape. `namespace` is ""
 * for cluster-scoped kinds.
 */
export class ResourceClient<T extends KubeObject> {
  readonly resource: ResourceType<T>;
  readonly #transport: Transport;

  constructor(transport: Transport, resource: ResourceType<T>) {
    this.#transport = transport;
    this.resource = resource;
  }

  async get(namespace: string, name: string, options: CallOptions = {}): Promise<T> {
    return this.#call('GET', this.path(namespace, name), {}, undefined, undefined, options);
  }

  /** One page (or all, without a limit). Items carry apiVersion and kind. */
  async list(options: ListRequestOptions = {}): Promise<Page<T>> {
    const { namespace = '', signal, timeoutMs, ...query } = options;
    const response = await this.#transport.request('GET', this.path(namespace), {
      query,
      ...callOptions({ ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) }),
    });
    const list = response.json();
    if (!isRecord(list) || !isRecord(list['metadata']) || !Array.isArray(list['items'] ?? [])) {
      throw new UnexpectedAnswer(`${resourceName(this.resource)}: the answer to a list is no list`);
    }
    const sent: unknown[] = Array.isArray(list['items']) ? list['items'] : [];
    const items = sent.flatMap((item) => this.#stamp(item) ?? []);
    return {
      metadata: list['metadata'],
      items,
      dropped: sent.length - items.length,
      bytes: response.bytes.length,
    };
  }

  /**
   * All pages, one after another, of at most `limit` (500) objects each, fewer where objects are large, as a page is
   * parsed at once. A limit of 0 requests everything in one page. Throws 410 when a page's token expires.
   *
   * @throws {UnexpectedAnswer} for a page that names itself as the next one: such a list has no end.
   */
  async *pages(options: ListRequestOptions = {}): AsyncGenerator<Page<T>> {
    const most = options.limit ?? 500;
    let limit = most;
    let token: string | undefined = options.continue;
    do {
      const page = await this.list({
        ...options,
        limit,
        ...(token === undefined ? {} : { continue: token }),
      });
      yield page;
      const fitting = Math.floor((page.items.length * pageBytes) / page.bytes);
      if (limit > 0) limit = Math.min(most, Math.max(1, fitting, Math.floor(limit / 4)));
      const next = page.metadata.continue;
      if (next !== undefined && next !== '' && next === token) {
        throw new UnexpectedAnswer(`a page of ${this.resource.plural} names itself as the next one`);
      }
      token = next;
    } while (token !== undefined && token !== '');
  }

  async create(object: Draft<T>, options: WriteOptions = {}): Promise<T> {
    const namespace = object.metadata.namespace ?? '';
    return this.#call(
      'POST',
      this.path(namespace),
      writeQuery(options),
      this.#typed(object),
      undefined,
      options,
    );
  }

  /** POST to a subresource with a kind of its own: `pods/binding`, `serviceaccounts/token`. @returns the answer. */
  async post(
    namespace: string,
    name: string,
    subresource: string,
    body: unknown,
    options: CallOptions = {},
  ): Promise<unknown> {
    const response = await this.#transport.request('POST', this.path(namespace, name, subresource), {
      body,
      ...callOptions(options),
    });
    return response.json();
  }

  /** PUT. With `metadata.resourceVersion` it fails with 409 when the object has changed since. */
  async replace(object: Draft<T>, options: WriteOptions = {}): Promise<T> {
    const { namespace = '', name = '' } = object.metadata;
    const path = this.path(namespace, name, options.subresource);
    return this.#call('PUT', path, writeQuery(options), this.#typed(object), undefined, options);
  }

  /** PUT of `/status`. */
  async replaceStatus(object: Draft<T>, options: WriteOptions = {}): Promise<T> {
    return this.replace(object, { ...options, subresource: 'status' });
  }

  async jsonPatch(
    namespace: string,
    name: string,
    operations: readonly PatchOperation[],
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#patch(namespace, name, 'application/json-patch+json', operations, options);
  }

  /** RFC 7386. `metadata.resourceVersion` inside the patch makes it conditional. */
  async mergePatch(
    namespace: string,
    name: string,
    patch: Readonly<Record<string, unknown>>,
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#patch(namespace, name, 'application/merge-patch+json', patch, options);
  }

  /** Server-side apply. */
  async applyPatch(object: Draft<T>, options: ApplyOptions): Promise<T> {
    const { namespace = '', name = '' } = object.metadata;
    const path = this.path(namespace, name, options.subresource);
    const query = { ...writeQuery(options), force: options.force === true ? true : undefined };
    return this.#call('PATCH', path, query, this.#typed(object), 'application/apply-patch+yaml', options);
  }

  /** Resolves when the server has accepted the delete; the object may exist until its finalizers are removed. */
  async delete(namespace: string, name: string, options: DeleteOptions = {}): Promise<void> {
    const { preconditions, propagationPolicy, gracePeriodSeconds } = options;
    await this.#transport.request('DELETE', this.path(namespace, name), {
      body: {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        preconditions,
        propagationPolicy,
        gracePeriodSeconds,
      },
      ...callOptions(options),
    });
  }

  /** The request path of the resource, of an object, or of its subresource. */
  path(namespace: string, name?: string, subresource?: string): string {
    const { group, version, plural, namespaced } = this.resource;
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const scope = namespaced && namespace !== '' ? `/namespaces/${encodeURIComponent(namespace)}` : '';
    const object = name === undefined ? '' : `/${encodeURIComponent(name)}`;
    return `${root}${scope}/${plural}${object}${subresource === undefined ? '' : `/${subresource}`}`;
  }

  async #patch(
    namespace: string,
    name: string,
    contentType: string,
    body: unknown,
    options: WriteOptions,
  ): Promise<T> {
    const path = this.path(namespace, name, options.subresource);
    return this.#call('PATCH', path, writeQuery(options), body, contentType, options);
  }

  async #call(
    method: string,
    path: string,
    query: QueryParameters,
    body: unknown,
    contentType: string | undefined,
    options: CallOptions,
  ): Promise<T> {
    const response = await this.#transport.request(method, path, {
      query,
      body,
      ...(contentType === undefined ? {} : { contentType }),
      ...callOptions(options),
    });
    const object = this.#stamp(response.json());
    if (object === undefined) {
      throw new UnexpectedAnswer(`${method} ${path}: the answer is no ${this.resource.kind}`);
    }
    return object;
  }

  #typed(object: Draft<T>): Draft<T> {
    return { ...object, apiVersion: apiVersionOf(this.resource), kind: this.resource.kind };
  }

  /** Adds apiVersion and kind, which objects inside lists do not carry. */
  #stamp(value: unknown): T | undefined {
    if (!isKubeObject(value)) return undefined;
    this.resource.complete?.(value);
    if (!this.resource.isObject(value)) return undefined;
    value.apiVersion ??= apiVersionOf(this.resource);
    value.kind ??= this.resource.kind;
    return value;
  }
}

function callOptions({ signal, timeoutMs }: CallOptions): CallOptions {
  return { ...(signal === undefined ? {} : { signal }), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
}

function writeQuery({ fieldManager, dryRun }: WriteOptions): QueryParameters {
  return { fieldManager, dryRun: dryRun === true ? 'All' : undefined };
}

/** All objects of a resource; undefined if the server does not have the resource. Throws what a list throws. */
export async function listIfServed<T extends KubeObject>(
  transport: Transport,
  resource: ResourceType<T>,
  options: ListRequestOptions = {},
): Promise<T[] | undefined> {
  const all: T[] = [];
  try {
    for await (const page of new ResourceClient(transport, resource).pages(options)) pushAll(all, page.items);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  return all;
}

/** Creates a {@link ResourceClient} of any resource, all on one transport. */
export class Clients {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  for<T extends KubeObject>(resource: ResourceType<T>): ResourceClient<T> {
    return new ResourceClient(this.#transport, resource);
  }
}

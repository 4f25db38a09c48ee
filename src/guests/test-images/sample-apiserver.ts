import { randomBytes, randomUUID } from 'node:crypto';
import type { ServerResponse, IncomingMessage } from 'node:http';
import { matchesFields, parseFieldSelector } from '../../objects/field-selector.ts';
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { matchesLabels, parseLabelSelector } from '../../objects/labels/labels.ts';
import type { KubeObject } from '../../objects/meta.ts';
import {
  alreadyExists,
  badRequest,
  conflict,
  modified,
  notFound,
  StatusError,
  plainError,
  resourceNotFound,
} from '../../objects/status.ts';
import { httpsServer } from '../../host/http-server.ts';
import type { RequestTarget } from '../../objects/request-target.ts';
import type { AgnhostRun } from '../agnhost/context.ts';

/** The discovery documents of the sample API server. */
const group = 'wardle.example.com';
const version = 'v1alpha1';
const groupVersion = `${group}/${version}`;

export interface SampleResource {
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

const sampleResources: readonly SampleResource[] = [
  { plural: 'fischers', kind: 'Fischer', namespaced: false },
  { plural: 'flunders', kind: 'Flunder', namespaced: true },
];

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const named = { groupVersion, version };
const description = { name: group, versions: [named], preferredVersion: named };

const openApi3 = `/openapi/v3/apis/${groupVersion}`;

const documents: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups: [description] }],
  [`/apis/${group}`, { kind: 'APIGroup', apiVersion: 'v1', ...description }],
  [
    `/apis/${groupVersion}`,
    {
      ...{ kind: 'APIResourceList', apiVersion: 'v1', groupVersion },
      resources: sampleResources.map(({ plural: name, kind, namespaced }) => ({
        ...{ name, singularName: kind.toLowerCase(), namespaced, kind, verbs },
      })),
    },
  ],
  ['/openapi/v3', { paths: { [`apis/${groupVersion}`]: { serverRelativeURL: openApi3 } } }],
  [
    openApi3,
    {
      ...{ openapi: '3.0.0', info: { title: 'sample-apiserver', version }, paths: {} },
      components: { schemas: Object.fromEntries(sampleResources.map(schemaOf)) },
    },
  ],
  [
    '/openapi/v2',
    {
      ...{ swagger: '2.0', info: { title: 'sample-apiserver', version }, paths: {} },
      definitions: Object.fromEntries(sampleResources.map(schemaOf)),
    },
  ],
]);

function schemaOf({ kind }: SampleResource): readonly [name: string, schema: object] {
  const text = { type: 'string' };
  const properties = { apiVersion: text, kind: text, metadata: { type: 'object' }, spec: { type: 'object' } };
  const names = [{ group, version, kind }];
  return [
    `io.k8s.sample-apiserver.pkg.apis.wardle.${version}.${kind}`,
    { type: 'object', properties, 'x-kubernetes-group-version-kind': names },
  ];
}

/** The document at a path; undefined where there is none. */
function discoveryDocument(path: string): unknown {
  return documents.get(path);
}

/** Which objects are meant. */
export interface FlunderSelection {
  readonly plural: string;
  readonly kind: string;
  /** "": all of them, or none has one. */
  readonly namespace: string;
  /** Undefined: the collection. */
  readonly name: string | undefined;
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

interface Watcher {
  readonly selection: FlunderSelection;
  readonly response: ServerResponse;
}

class FlunderStore {
  /** By plural, namespace and name. */
  readonly #objects = new Map<string, KubeObject>();
  readonly #watchers = new Set<Watcher>();
  #revision = 1;

  /** @throws {StatusError} 404 */
  get(selection: FlunderSelection): KubeObject {
    const { plural: resource, name = '' } = selection;
    const found = this.#objects.get(keyOf(selection, name));
    if (found === undefined) throw notFound({ group, resource }, name);
    return found;
  }

  list(selection: FlunderSelection): JsonRecord {
    return {
      ...{ kind: `${selection.kind}List`, apiVersion: groupVersion },
      metadata: { resourceVersion: String(this.#revision) },
      items: this.#selected(selection),
    };
  }

  /** @throws {StatusError} 400 or 409 */
  create(selection: FlunderSelection, wanted: JsonRecord): KubeObject {
    const given = isRecord(wanted['metadata']) ? wanted['metadata'] : {};
    const prefix = given['generateName'];
    const generated =
      typeof prefix === 'string' ? `${prefix}${randomBytes(3).toString('hex').slice(0, 5)}` : '';
    const name = typeof given['name'] === 'string' && given['name'] !== '' ? given['name'] : generated;
    if (name === '') throw badRequest('name or generateName is required');
    const { plural: resource, namespace } = selection;
    if (this.#objects.has(keyOf(selection, name))) throw alreadyExists({ group, resource }, name);
    return this.#put(selection, 'ADDED', wanted, {
      ...given,
      name,
      ...(namespace === '' ? {} : { namespace }),
      uid: randomUUID(),
      creationTimestamp: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
    });
  }

  /** @throws {StatusError} 404 or 409 */
  update(selection: FlunderSelection, wanted: JsonRecord): KubeObject {
    const { metadata } = this.get(selection);
    const given = isRecord(wanted['metadata']) ? wanted['metadata'] : {};
    const { resourceVersion } = given;
    if (typeof resourceVersion === 'string' && resourceVersion !== metadata.resourceVersion) {
      throw conflict({ group, resource: selection.plural }, selection.name ?? '', modified);
    }
    const { name, namespace, uid, creationTimestamp } = metadata;
    const kept = { name, namespace, uid, creationTimestamp };
    return this.#put(selection, 'MODIFIED', wanted, { ...given, ...kept });
  }

  /** A merge patch (RFC 7386). @throws {StatusError} 404 or 409 */
  patch(selection: FlunderSelection, patch: JsonRecord): KubeObject {
    return this.update(selection, mergedRecord({ ...this.get(selection) }, patch));
  }

  /** @throws {StatusError} 404 */
  delete(selection: FlunderSelection): JsonRecord {
    const found = this.get(selection);
    this.#remove(selection, found);
    const { name = '', uid = '' } = found.metadata;
    const details = { name, group, kind: selection.plural, uid };
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
  }

  deleteCollection(selection: FlunderSelection): JsonRecord {
    const list = this.list(selection);
    for (const object of this.#selected(selection)) this.#remove(selection, object);
    return list;
  }

  /** Sends what there is, unless a revision is named, and each change, until the client ends. */
  watch(selection: FlunderSelection, resourceVersion: string, response: ServerResponse): void {
    const watcher = { selection, response };
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.flushHeaders();
    if (resourceVersion === '' || resourceVersion === '0') {
      for (const object of this.#selected(selection)) send(watcher, 'ADDED', object);
    }
    this.#watchers.add(watcher);
    response.once('close', () => this.#watchers.delete(watcher));
  }

  #put(selection: FlunderSelection, type: string, object: JsonRecord, metadata: JsonRecord): KubeObject {
    const resourceVersion = String(++this.#revision);
    const stored: KubeObject = {
      ...object,
      ...{ apiVersion: groupVersion, kind: selection.kind },
      metadata: { ...metadata, resourceVersion },
    };
    this.#objects.set(keyOf(selection, stored.metadata.name ?? ''), stored);
    this.#notify(selection, type, stored);
    return stored;
  }

  #remove(selection: FlunderSelection, object: KubeObject): void {
    const { name = '', namespace = '' } = object.metadata;
    this.#objects.delete(keyOf({ plural: selection.plural, namespace }, name));
    this.#revision++;
    this.#notify(selection, 'DELETED', object);
  }

  #notify({ plural }: FlunderSelection, type: string, object: KubeObject): void {
    for (const watcher of this.#watchers) {
      if (watcher.selection.plural === plural && isSelected(watcher.selection, object))
        send(watcher, type, object);
    }
  }

  #selected(selection: FlunderSelection): KubeObject[] {
    return [...this.#objects]
      .filter(([key]) => key.startsWith(`${selection.plural}/`))
      .map(([, object]) => object)
      .filter((object) => isSelected(selection, object));
  }
}

function send({ response }: Watcher, type: string, object: KubeObject): void {
  response.write(`${JSON.stringify({ type, object })}\n`);
}

function keyOf({ plural, namespace }: Pick<FlunderSelection, 'plural' | 'namespace'>, name: string): string {
  return `${plural}/${namespace}/${name}`;
}

function isSelected(
  { namespace, name, labelSelector, fieldSelector }: FlunderSelection,
  { metadata }: KubeObject,
): boolean {
  const fields = { 'metadata.name': metadata.name ?? '', 'metadata.namespace': metadata.namespace ?? '' };
  return (
    (namespace === '' || namespace === metadata.namespace) &&
    (name === undefined || name === metadata.name) &&
    matchesLabels(parseLabelSelector(labelSelector), metadata.labels) &&
    matchesFields(parseFieldSelector(fieldSelector), fields)
  );
}

function mergedRecord(target: JsonRecord, patch: JsonRecord): JsonRecord {
  const kept = Object.entries(target).filter(([member]) => !Object.hasOwn(patch, member));
  const changed = Object.entries(patch).flatMap(([member, value]) => {
    if (!isRecord(value)) return value === null ? [] : [[member, value] as const];
    const before = target[member];
    return [[member, mergedRecord(isRecord(before) ? before : {}, value)] as const];
  });
  return Object.fromEntries([...kept, ...changed]);
}

/** Most bytes of a body. */
const maxBodyBytes = 3 * 1024 * 1024;

/**
 * Kubernetes' sample API server (staging/src/k8s.io/sample-apiserver): `wardle.example.com/v1alpha1` with its flunders and
 * fischers, in memory, by TLS with the files of `--tls-cert-file` and `--tls-private-key-file`. Clients are not
 * authenticated.
 *
 * @throws the system's error.
 */
export async function sampleApiServer(run: AgnhostRun): Promise<void> {
  const { args, container } = run;
  const cert = await container.readFile(args.text('tls-cert-file'));
  const key = await container.readFile(args.text('tls-private-key-file'));
  const store = new FlunderStore();
  await run.listen(args.number('secure-port', 443), () =>
    httpsServer({ cert, key }, async (request, response, url) => {
      try {
        const status = await handle(store, request, response, url);
        run.print(`${request.method ?? ''} ${request.url ?? ''} ${status}`);
      } catch (error) {
        container.write('stderr', `${String(error)}\n`);
        throw error;
      }
    }),
  );
}

/** The object that a path of the group version names. */
interface Target extends FlunderSelection {
  readonly resource: SampleResource;
}

async function handle(
  store: FlunderStore,
  request: IncomingMessage,
  response: ServerResponse,
  url: RequestTarget,
): Promise<number> {
  const body = await bodyOf(request);
  if (['/healthz', '/livez', '/readyz'].includes(url.pathname)) {
    response.writeHead(200, { 'Content-Type': 'text/plain' }).end('ok');
    return 200;
  }
  const target = targetOf(url);
  if (target !== undefined && request.method === 'GET' && isWatch(url)) {
    store.watch(target, url.searchParams.get('resourceVersion') ?? '', response);
    return 200;
  }
  let status = 200;
  let answer: unknown;
  try {
    const document = discoveryDocument(url.pathname);
    if (document !== undefined) answer = document;
    else if (target === undefined) throw resourceNotFound();
    else ({ status, answer } = perform(store, request, target, body));
  } catch (error) {
    const refusal = error instanceof StatusError ? error : plainError(String(error));
    status = refusal.code;
    answer = refusal.toStatus();
  }
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(answer)}\n`);
  return status;
}

/** @throws {StatusError} */
function perform(
  store: FlunderStore,
  { method = '', headers }: IncomingMessage,
  target: Target,
  body: Buffer,
): { readonly status: number; readonly answer: unknown } {
  const object = (): JsonRecord => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(body.toString());
    } catch (error) {
      throw badRequest(String(error));
    }
    if (!isRecord(parsed)) throw badRequest('the body is no object');
    return parsed;
  };
  const isOne = target.name !== undefined;
  if (method === 'GET') return { status: 200, answer: isOne ? store.get(target) : store.list(target) };
  if (method === 'POST' && !isOne) return { status: 201, answer: store.create(target, object()) };
  if (method === 'PUT' && isOne) return { status: 200, answer: store.update(target, object()) };
  if (method === 'PATCH' && isOne) {
    // A strategic merge of kinds without keys of lists is a merge.
    const known = ['application/merge-patch+json', 'application/strategic-merge-patch+json'];
    if (!known.includes(headers['content-type'] ?? '')) {
      throw new StatusError(
        415,
        'UnsupportedMediaType',
        `the body of the request was in an unknown format - accepted media types include: ${known.join(', ')}`,
      );
    }
    return { status: 200, answer: store.patch(target, object()) };
  }
  if (method === 'DELETE') {
    return { status: 200, answer: isOne ? store.delete(target) : store.deleteCollection(target) };
  }
  throw new StatusError(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
  );
}

/** Below `/apis/wardle.example.com/v1alpha1`; undefined for others. */
function targetOf({ pathname, searchParams }: RequestTarget): Target | undefined {
  const root = `/apis/${groupVersion}/`;
  if (!pathname.startsWith(root)) return undefined;
  const parts = pathname.slice(root.length).split('/').filter(Boolean).map(decodeURIComponent);
  const isNamespaced = parts[0] === 'namespaces' && parts.length > 2;
  const [plural = '', name, ...more] = isNamespaced ? parts.slice(2) : parts;
  const resource = sampleResources.find((each) => each.plural === plural);
  if (resource === undefined || more.length > 0) return undefined;
  return {
    resource,
    plural,
    kind: resource.kind,
    namespace: isNamespaced ? (parts[1] ?? '') : '',
    name,
    labelSelector: searchParams.get('labelSelector') ?? '',
    fieldSelector: searchParams.get('fieldSelector') ?? '',
  };
}

function isWatch({ searchParams }: RequestTarget): boolean {
  return ['1', 'true'].includes(searchParams.get('watch') ?? '');
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > maxBodyBytes) throw new Error('request entity too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

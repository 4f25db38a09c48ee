import { createHash } from 'node:crypto';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import type { DiscoveredResource, DiscoveredResources } from '../discovered-resource.ts';
import type { RemoteGroupVersion } from '../remote-group-version.ts';
import type { ApiRequest, Handler, Reply } from '../../http/exchange.ts';
import { firstAccepted } from '../../http/negotiation.ts';
import { replyNotFound } from '../../http/router.ts';
import { runInSlices } from '../../time-slice.ts';
import {
  type Components,
  type CustomSchema,
  completeComponents,
  loadBuiltInComponents,
} from './components.ts';
import { openApiV2 } from './document-v2.ts';
import { openApiV3 } from './document-v3.ts';
import { withRemoteV2 } from './merge-v2.ts';
import { writeGnosticV2 } from './gnostic-v2.ts';
import { writeGnosticV3 } from './gnostic-v3.ts';

/** Documents of one set of served resources, written at the first request for each: in slices, as they may be large. */
interface Snapshot {
  /** When it was made. */
  readonly made: Date;
  readonly resources: readonly DiscoveredResource[];
  readonly remote: readonly RemoteGroupVersion[];
  readonly components: () => Promise<Components>;
  /** By path behind `/openapi/v3/`: `api/v1`, `apis/apps/v1`. */
  readonly groupVersions: ReadonlyMap<string, readonly DiscoveredResource[]>;
  readonly written: Map<string, Promise<WrittenDocument>>;
  /** The same documents in protobuf, by the same names. */
  readonly protobuf: Map<string, Promise<Buffer>>;
}

interface WrittenDocument {
  readonly body: Buffer;
  /** Upper-case hex of its SHA-512. */
  readonly hash: string;
  readonly modified: Date;
}

/** A document, with its builder and its writer. */
interface Source {
  readonly name: string;
  readonly build: (components: Components) => Generator<undefined, JsonRecord, undefined>;
  readonly version: 'v2' | 'v3';
}

/**
 * Serves `/openapi/v2` and `/openapi/v3` (kube-openapi `pkg/handler`, `pkg/handler3`): an index with one address per
 * group version, which carries the hash of its document, and these documents, in JSON and in gnostic's protobuf.
 *
 * Documents of extension API servers are in the index of v3, and are served by them; those of v2 are merged into ours.
 *
 * @param remoteVersions what extension API servers serve; the same list while nothing changes.
 * @param customSchema the schema of a custom resource as its definition has it.
 */
export function openApiHandler(
  served: DiscoveredResources,
  remoteVersions: () => readonly RemoteGroupVersion[],
  customSchema: CustomSchema,
): Handler {
  let builtIn: Promise<Components> | undefined;
  let snapshot: Snapshot | undefined;
  const complete = async (resources: readonly DiscoveredResource[]): Promise<Components> => {
    builtIn ??= loadBuiltInComponents();
    return await runInSlices(completeComponents(await builtIn, resources, customSchema));
  };
  return async (request, reply) => {
    const resources = served();
    const remote = remoteVersions();
    if (snapshot?.resources !== resources || snapshot.remote !== remote) {
      let components: Promise<Components> | undefined;
      snapshot = {
        made: new Date(),
        resources,
        remote,
        components: () => (components ??= complete(resources)),
        groupVersions: byGroupVersion(resources),
        written: new Map(),
        protobuf: new Map(),
      };
    }
    const { path } = request.info;
    if (path === '/openapi/v2') await sendV2(request, reply, snapshot);
    else if (path === '/openapi/v3') await sendIndex(request, reply, snapshot);
    else if (path.startsWith('/openapi/v3/'))
      await sendV3(request, reply, snapshot, path.slice('/openapi/v3/'.length));
    else replyNotFound(reply);
  };
}

function byGroupVersion(resources: readonly DiscoveredResource[]): Map<string, DiscoveredResource[]> {
  const groups = new Map<string, DiscoveredResource[]>();
  for (const resource of resources) {
    const { group, version } = resource;
    const path = group === '' ? `api/${version}` : `apis/${group}/${version}`;
    const present = groups.get(path);
    if (present === undefined) groups.set(path, [resource]);
    else present.push(resource);
  }
  return groups;
}

/** The document, which is made by the first who asks. */
async function write(snapshot: Snapshot, source: Source): Promise<WrittenDocument> {
  const { written, components } = snapshot;
  let document = written.get(source.name);
  if (document === undefined) {
    document = components().then((known) => runInSlices(writtenDocument(source.build(known))));
    written.set(source.name, document);
  }
  return await document;
}

function* writtenDocument(
  build: Generator<undefined, JsonRecord, undefined>,
): Generator<undefined, WrittenDocument, undefined> {
  const hash = createHash('sha512');
  const pieces: Buffer[] = [];
  let text = '';
  for (const part of jsonParts(yield* build, 0)) {
    text += part;
    if (text.length < enough) continue;
    pieces.push(Buffer.from(text));
    text = '';
    yield;
  }
  pieces.push(Buffer.from(text));
  for (const piece of pieces) {
    hash.update(piece);
    yield;
  }
  return { body: Buffer.concat(pieces), hash: hash.digest('hex').toUpperCase(), modified: new Date() };
}

/** Characters that are written in one go. */
const enough = 64 * 1024;

/** Paths, and the schemas under `definitions` or `components.schemas`, are parts of their own. */
const levelsOfParts = 3;

/** The JSON of a document in parts. */
function* jsonParts(value: unknown, level: number): Generator<string, void, undefined> {
  if (level === levelsOfParts || !isRecord(value)) {
    yield JSON.stringify(value);
    return;
  }
  let before = '{';
  for (const [name, member] of Object.entries(value)) {
    yield `${before}${JSON.stringify(name)}:`;
    yield* jsonParts(member, level + 1);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

/** Built once more: only the text of the JSON document is kept, and few clients request protobuf. */
async function writeProtobuf(snapshot: Snapshot, source: Source): Promise<Buffer> {
  const { protobuf, components } = snapshot;
  let body = protobuf.get(source.name);
  if (body === undefined) {
    body = components().then((known) => protobufOf(source, known));
    protobuf.set(source.name, body);
  }
  return await body;
}

async function protobufOf({ build, version }: Source, components: Components): Promise<Buffer> {
  const gnostic = version === 'v2' ? writeGnosticV2 : writeGnosticV3;
  return await runInSlices(gnostic(await runInSlices(build(components))));
}

function sourceV3(name: string, resources: readonly DiscoveredResource[]): Source {
  return { name, build: (components) => openApiV3(resources, components), version: 'v3' };
}

/**
 * The index is always JSON, is labelled as text and has no ETag: kube-aggregator makes it for each request
 * (`openapiv3/aggregator`).
 */
async function sendIndex(request: ApiRequest, reply: Reply, snapshot: Snapshot): Promise<void> {
  const paths: JsonRecord = {};
  for (const [path, resources] of snapshot.groupVersions) {
    const { hash } = await write(snapshot, sourceV3(path, resources));
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` };
  }
  for (const { group, version, openApi } of snapshot.remote) {
    if (openApi !== undefined) paths[`apis/${group}/${version}`] = { serverRelativeURL: openApi };
  }
  const body = Buffer.from(JSON.stringify({ paths }));
  const contentType = 'text/plain; charset=utf-8';
  serveContent(request, reply, { contentType, body, modified: new Date(), made: snapshot.made });
}

async function sendV3(request: ApiRequest, reply: Reply, snapshot: Snapshot, path: string): Promise<void> {
  const resources = snapshot.groupVersions.get(path);
  if (resources === undefined) {
    reply.sendAsIs(404, '', '');
    return;
  }
  await sendDocument(request, reply, snapshot, sourceV3(path, resources), (hash) => {
    const asked = request.query.get('hash') ?? '';
    if (asked === '') return {};
    // An old index: the document has another address since.
    if (asked !== hash) return { Location: `/openapi/v3/${path}?hash=${hash}` };
    return { 'cache-control': 'public, immutable', Expires: inAYear() };
  });
}

/** As Go writes times of RFC 1123 where the clock is set to UTC. */
function inAYear(): string {
  const time = new Date();
  time.setUTCFullYear(time.getUTCFullYear() + 1);
  return time.toUTCString().replace(/GMT$/, 'UTC');
}

function* wholeV2(
  { resources, remote }: Snapshot,
  components: Components,
): Generator<undefined, JsonRecord, undefined> {
  const own = yield* openApiV2(resources, components);
  return yield* withRemoteV2(
    own,
    remote.flatMap(({ openApiV2: document }) => (document === undefined ? [] : [document])),
  );
}

async function sendV2(request: ApiRequest, reply: Reply, snapshot: Snapshot): Promise<void> {
  const source: Source = {
    name: 'v2',
    build: (components) => wholeV2(snapshot, components),
    version: 'v2',
  };
  await sendDocument(request, reply, snapshot, source, () => ({}));
}

/**
 * In the form that the client accepts; both have the same ETag, so `Vary` is set. 406 without a body for others.
 *
 * @param headersOf the headers of the document with this hash; with a `Location` it is a redirect.
 */
async function sendDocument(
  request: ApiRequest,
  reply: Reply,
  snapshot: Snapshot,
  source: Source,
  headersOf: (hash: string) => Readonly<Record<string, string>>,
): Promise<void> {
  const type = `application/com.github.proto-openapi.spec.${source.version}`;
  // the name with an "@" is no media type by RFC 6838; older clients ask for it
  const offered = ['application/json', `${type}.v1.0+protobuf`, `${type}@v1.0+protobuf`];
  const accepted = firstAccepted(request.headers.accept, offered);
  if (accepted === undefined) {
    reply.sendAsIs(406, '', '', { Vary: 'Accept' });
    return;
  }
  const { body, hash, modified } = await write(snapshot, source);
  const isJson = accepted === 'application/json';
  const contentType = isJson ? accepted : `${type}.v1.0+protobuf`;
  const etag = `"${hash}"`;
  const headers: Record<string, string> = { Vary: 'Accept', ...headersOf(hash) };
  if ('Location' in headers) {
    reply.sendAsIs(301, contentType, '', { ...headers, Etag: etag });
    return;
  }
  const written = isJson ? body : await writeProtobuf(snapshot, source);
  serveContent(request, reply, { contentType, body: written, etag, modified, headers });
}

/** A document with its validators for caches. */
interface Content {
  /** A media type, or a text of that form. */
  readonly contentType: string;
  readonly body: Buffer;
  /** In quotes; undefined when the document has none. */
  readonly etag?: string;
  /** When the document was written. */
  readonly modified: Date;
  /**
   * When what it is written from became as it is. A client that has a document of that second may have the last one.
   * (kube-aggregator answers 304 then, and `kubectl explain` does not find new kinds.)
   */
  readonly made?: Date;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Answers as Go's `http.ServeContent` does, but for ranges: the document as it is, 304 without its type when the client
 * has this one.
 */
function serveContent(request: ApiRequest, reply: Reply, content: Content): void {
  const { contentType, body, etag, modified } = content;
  const headers = { ...content.headers, ...(etag === undefined ? {} : { Etag: etag }) };
  const lastModified = { 'Last-Modified': modified.toUTCString() };
  if (isKnown(request, content)) {
    reply.sendAsIs(304, '', '', etag === undefined ? { ...headers, ...lastModified } : headers);
  } else reply.sendAsIs(200, contentType, body, { ...headers, ...lastModified });
}

/** An ETag decides alone; the time only without one. */
function isKnown({ headers }: ApiRequest, { etag = '', modified, made }: Content): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined && tags !== '') {
    const known = tags.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
    return known.includes('*') || (etag !== '' && known.includes(etag));
  }
  const since = Date.parse(headers['if-modified-since'] ?? '');
  if (made !== undefined && wholeSeconds(made) === since) return false;
  return wholeSeconds(modified) <= since;
}

/** Times of headers are whole seconds. */
function wholeSeconds(time: Date): number {
  return Math.floor(time.getTime() / 1000) * 1000;
}

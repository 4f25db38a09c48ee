import { createHash } from 'node:crypto';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import type { DiscoveredResource, DiscoveredResources } from '../discovered-resource.ts';
import type { RemoteGroupVersion } from '../documents.ts';
import { type ApiRequest, type Handler, type Reply, replyNotFound } from '../../http/exchange.ts';
import { firstAccepted } from '../../http/negotiation.ts';
import { runInSlices } from '../../../telemetry/time-slice.ts';
import {
  type Components,
  type CustomSchema,
  completeComponents,
  loadBuiltInComponents,
} from './components.ts';
import { openApiV2, withRemoteV2 } from './document-v2.ts';
import { openApiV3 } from './document-v3.ts';
import { writeGnosticV2, writeGnosticV3 } from './gnostic.ts';

/** The documents of one set of served resources, each written in slices at the first request for it. */
interface Snapshot {
  readonly created: Date;
  readonly resources: readonly DiscoveredResource[];
  readonly remote: readonly RemoteGroupVersion[];
  readonly components: () => Promise<Components>;
  /** By the path below `/openapi/v3/`: `api/v1`, `apis/apps/v1`. */
  readonly groupVersions: ReadonlyMap<string, readonly DiscoveredResource[]>;
  readonly written: Map<string, Promise<WrittenDocument>>;
  /** The documents in protobuf, by the same names. */
  readonly protobuf: Map<string, Promise<Buffer>>;
}

interface WrittenDocument {
  readonly body: Buffer;
  /** SHA-512 in upper-case hex. */
  readonly hash: string;
  readonly modified: Date;
}

/** A document and how it is built. */
interface Source {
  readonly name: string;
  readonly build: (components: Components) => Generator<undefined, JsonRecord, undefined>;
  readonly version: 'v2' | 'v3';
}

/**
 * Serves `/openapi/v2` and `/openapi/v3` (kube-openapi `pkg/handler`, `pkg/handler3`): the v2 document, the index of
 * v3, whose addresses contain the hash of their documents, and the v3 document of each group version; in JSON and in
 * gnostic's protobuf. Extension API servers serve their own v3 documents, which are in the index; their v2 documents
 * are merged into the v2 document.
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
        created: new Date(),
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

async function writtenOf(snapshot: Snapshot, source: Source): Promise<WrittenDocument> {
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
    if (text.length < pieceCharacters) continue;
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

/** Characters after which writing a document yields. */
const pieceCharacters = 64 * 1024;

/** Down to paths, and schemas under `definitions` or `components.schemas`. */
const partLevels = 3;

/** The JSON of a document, in parts of {@link partLevels} levels. */
function* jsonParts(value: unknown, level: number): Generator<string, void, undefined> {
  if (level === partLevels || !isRecord(value)) {
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

/** Built again for protobuf, which few clients request: of the JSON document, only the text is kept. */
async function protobufOf(snapshot: Snapshot, source: Source): Promise<Buffer> {
  const { protobuf, components } = snapshot;
  let body = protobuf.get(source.name);
  if (body === undefined) {
    body = components().then((known) => buildProtobuf(source, known));
    protobuf.set(source.name, body);
  }
  return await body;
}

async function buildProtobuf({ build, version }: Source, components: Components): Promise<Buffer> {
  const gnostic = version === 'v2' ? writeGnosticV2 : writeGnosticV3;
  return await runInSlices(gnostic(await runInSlices(build(components))));
}

function sourceV3(name: string, resources: readonly DiscoveredResource[]): Source {
  return { name, build: (components) => openApiV3(resources, components), version: 'v3' };
}

/**
 * Sends the index: JSON with the media type of text and without an ETag, as kube-aggregator does
 * (`openapiv3/aggregator`).
 */
async function sendIndex(request: ApiRequest, reply: Reply, snapshot: Snapshot): Promise<void> {
  const paths: JsonRecord = {};
  for (const [path, resources] of snapshot.groupVersions) {
    const { hash } = await writtenOf(snapshot, sourceV3(path, resources));
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` };
  }
  for (const { group, version, openApi } of snapshot.remote) {
    if (openApi !== undefined) paths[`apis/${group}/${version}`] = { serverRelativeURL: openApi };
  }
  const body = Buffer.from(JSON.stringify({ paths }));
  const contentType = 'text/plain; charset=utf-8';
  serveContent(request, reply, { contentType, body, modified: new Date(), created: snapshot.created });
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
    // The address is from an older index.
    if (asked !== hash) return { Location: `/openapi/v3/${path}?hash=${hash}` };
    return { 'cache-control': 'public, immutable', Expires: inAYear() };
  });
}

/** As Go's `time.RFC1123` in UTC. */
function inAYear(): string {
  const time = new Date();
  time.setUTCFullYear(time.getUTCFullYear() + 1);
  return time.toUTCString().replace(/GMT$/, 'UTC');
}

function* mergedV2(
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
    build: (components) => mergedV2(snapshot, components),
    version: 'v2',
  };
  await sendDocument(request, reply, snapshot, source, () => ({}));
}

/**
 * Sends a document in the format that the client accepts, or 406 without a body. Both formats have the same ETag, so
 * `Vary` is set.
 *
 * @param headersOf the headers of the document with this hash; a `Location` makes it a redirect.
 */
async function sendDocument(
  request: ApiRequest,
  reply: Reply,
  snapshot: Snapshot,
  source: Source,
  headersOf: (hash: string) => Readonly<Record<string, string>>,
): Promise<void> {
  const type = `application/com.github.proto-openapi.spec.${source.version}`;
  // The name with "@" is not a media type by RFC 6838; older clients request it.
  const offered = ['application/json', `${type}.v1.0+protobuf`, `${type}@v1.0+protobuf`];
  const accepted = firstAccepted(request.headers.accept, offered);
  if (accepted === undefined) {
    reply.sendAsIs(406, '', '', { Vary: 'Accept' });
    return;
  }
  const { body, hash, modified } = await writtenOf(snapshot, source);
  const isJson = accepted === 'application/json';
  const contentType = isJson ? accepted : `${type}.v1.0+protobuf`;
  const etag = `"${hash}"`;
  const headers: Record<string, string> = { Vary: 'Accept', ...headersOf(hash) };
  if ('Location' in headers) {
    reply.sendAsIs(301, contentType, '', { ...headers, Etag: etag });
    return;
  }
  const written = isJson ? body : await protobufOf(snapshot, source);
  serveContent(request, reply, { contentType, body: written, etag, modified, headers });
}

/** A document with its validators for caches. */
interface Content {
  readonly contentType: string;
  readonly body: Buffer;
  /** Quoted; undefined for none. */
  readonly etag?: string;
  /** When the document was written. */
  readonly modified: Date;
  /**
   * When the snapshot was created: a client's document of that second may be of the previous one, so that a 304 would
   * be wrong. (kube-aggregator answers 304, and `kubectl explain` does not find new kinds.)
   */
  readonly created?: Date;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Answers as Go's `http.ServeContent` does, without ranges: with the document, or with 304 where the client has it.
 */
function serveContent(request: ApiRequest, reply: Reply, content: Content): void {
  const { contentType, body, etag, modified } = content;
  const headers = { ...content.headers, ...(etag === undefined ? {} : { Etag: etag }) };
  const lastModified = { 'Last-Modified': modified.toUTCString() };
  if (isNotModified(request, content)) {
    reply.sendAsIs(304, '', '', etag === undefined ? { ...headers, ...lastModified } : headers);
  } else reply.sendAsIs(200, contentType, body, { ...headers, ...lastModified });
}

/** `If-Modified-Since` counts only without `If-None-Match` (RFC 9110, 13.1.3). */
function isNotModified({ headers }: ApiRequest, { etag = '', modified, created }: Content): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined && tags !== '') {
    const known = tags.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
    return known.includes('*') || (etag !== '' && known.includes(etag));
  }
  const since = Date.parse(headers['if-modified-since'] ?? '');
  if (created !== undefined && wholeSeconds(created) === since) return false;
  return wholeSeconds(modified) <= since;
}

/** Milliseconds, rounded down to the seconds of HTTP dates. */
function wholeSeconds(time: Date): number {
  return Math.floor(time.getTime() / 1000) * 1000;
}

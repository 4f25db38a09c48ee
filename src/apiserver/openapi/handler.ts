import { createHash } from 'node:crypto';
import type { JsonRecord } from '../../objects/json.ts';
import type { DiscoveredResource, DiscoveredResources } from '../discovery/discovered-resource.ts';
import type { ApiRequest, Handler, Reply } from '../http/exchange.ts';
import { firstAccepted } from '../http/negotiation.ts';
import { withoutTrailingSlashes } from '../http/request-info.ts';
import { replyNotFound } from '../http/router.ts';
import {
  type Components,
  type CustomSchema,
  completeComponents,
  loadBuiltInComponents,
} from './components.ts';
import { openApiV2 } from './document-v2.ts';
import { openApiV3 } from './document-v3.ts';

/** Documents of one set of served resources, written when they are first asked for. */
interface Snapshot {
  readonly resources: readonly DiscoveredResource[];
  readonly components: Components;
  /** By path behind `/openapi/v3/`: `api/v1`, `apis/apps/v1`. */
  readonly groupVersions: ReadonlyMap<string, readonly DiscoveredResource[]>;
  readonly written: Map<string, WrittenDocument>;
  /** The same documents in protobuf, by the same names. */
  readonly protobuf: Map<string, Buffer>;
}

interface WrittenDocument {
  readonly body: Buffer;
  /** Upper-case hex of its SHA-512. */
  readonly hash: string;
}

/** A document, and how it is built and written. */
interface Source {
  readonly name: string;
  readonly build: () => JsonRecord;
  readonly version: 'v2' | 'v3';
}

/** A year: a document with its hash in the address never changes. */
const immutable = 'public, max-age=31536000, immutable';

/**
 * Serves `/openapi/v2` and `/openapi/v3` (kube-openapi `pkg/handler`, `pkg/handler3`): an index with one address per
 * group version, which carries the hash of its document, and these documents, in JSON and in gnostic's protobuf.
 *
 * @param customSchema the schema of a custom resource as its definition has it.
 */
export function openApiHandler(served: DiscoveredResources, customSchema: CustomSchema): Handler {
  let builtIn: Promise<Components> | undefined;
  let snapshot: Snapshot | undefined;
  return async (request, reply) => {
    builtIn ??= loadBuiltInComponents();
    const components = await builtIn;
    const resources = served();
    if (snapshot?.resources !== resources) {
      snapshot = {
        resources,
        components: completeComponents(components, resources, customSchema),
        groupVersions: byGroupVersion(resources),
        written: new Map(),
        protobuf: new Map(),
      };
    }
    const path = withoutTrailingSlashes(request.info.path);
    if (path === '/openapi/v2') await sendV2(request, reply, snapshot);
    else if (path === '/openapi/v3') sendIndex(request, reply, snapshot);
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

function write({ written }: Snapshot, { name, build }: Pick<Source, 'name' | 'build'>): WrittenDocument {
  let document = written.get(name);
  if (document === undefined) {
    const body = Buffer.from(JSON.stringify(build()));
    document = { body, hash: createHash('sha512').update(body).digest('hex').toUpperCase() };
    written.set(name, document);
  }
  return document;
}

/** Built once more: the JSON that was asked for is kept as a text only, and few clients ask for protobuf. */
async function writeProtobuf({ protobuf }: Snapshot, { name, build, version }: Source): Promise<Buffer> {
  let body = protobuf.get(name);
  if (body === undefined) {
    const gnostic =
      version === 'v2'
        ? (await import('./gnostic-v2.ts')).writeGnosticV2
        : (await import('./gnostic-v3.ts')).writeGnosticV3;
    body = gnostic(build());
    protobuf.set(name, body);
  }
  return body;
}

function sourceV3({ components }: Snapshot, name: string, resources: readonly DiscoveredResource[]): Source {
  return { name, build: () => openApiV3(resources, components), version: 'v3' };
}

/** The index is JSON whatever the client accepts. */
function sendIndex(request: ApiRequest, reply: Reply, snapshot: Snapshot): void {
  const index = write(snapshot, {
    name: 'index',
    build: () => ({
      paths: Object.fromEntries(
        [...snapshot.groupVersions].map(([path, resources]) => {
          const { hash } = write(snapshot, sourceV3(snapshot, path, resources));
          return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }];
        }),
      ),
    }),
  });
  sendBody(request, reply, 'application/json', index.body, etagged(index.hash));
}

async function sendV3(request: ApiRequest, reply: Reply, snapshot: Snapshot, path: string): Promise<void> {
  const resources = snapshot.groupVersions.get(path);
  if (resources === undefined) {
    reply.send(404, '', '');
    return;
  }
  const source = sourceV3(snapshot, path, resources);
  const { hash } = write(snapshot, source);
  const asked = request.query.get('hash');
  if (asked === null || asked === '' || asked === hash) {
    await sendDocument(
      request,
      reply,
      snapshot,
      source,
      asked === hash ? { 'cache-control': immutable } : {},
    );
    return;
  }
  // an index from before a change: the document has another address now
  reply.send(301, 'text/plain; charset=utf-8', '', {
    Location: `/openapi/v3/${path}?hash=${hash}`,
  });
}

async function sendV2(request: ApiRequest, reply: Reply, snapshot: Snapshot): Promise<void> {
  const build = (): JsonRecord => openApiV2(snapshot.resources, snapshot.components);
  await sendDocument(request, reply, snapshot, { name: 'v2', build, version: 'v2' }, {});
}

/** In the form that the client accepts; both have one ETag, `Vary` tells them apart. 406 without a body for others. */
async function sendDocument(
  request: ApiRequest,
  reply: Reply,
  snapshot: Snapshot,
  source: Source,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const type = `application/com.github.proto-openapi.spec.${source.version}`;
  // the name with an "@" is no media type by RFC 6838; older clients ask for it
  const offered = ['application/json', `${type}.v1.0+protobuf`, `${type}@v1.0+protobuf`];
  const accepted = firstAccepted(request.headers.accept, offered);
  if (accepted === undefined) {
    reply.send(406, '', '', { Vary: 'Accept' });
    return;
  }
  const { body, hash } = write(snapshot, source);
  const all = { ...headers, ...etagged(hash), Vary: 'Accept' };
  if (accepted === 'application/json') {
    sendBody(request, reply, accepted, body, all);
  } else {
    sendBody(request, reply, `${type}.v1.0+protobuf`, await writeProtobuf(snapshot, source), all);
  }
}

function etagged(hash: string): { readonly ETag: string } {
  return { ETag: `"${hash}"` };
}

function sendBody(
  request: ApiRequest,
  reply: Reply,
  contentType: string,
  body: Buffer,
  headers: Readonly<Record<string, string>> & { readonly ETag: string },
): void {
  if (request.headers['if-none-match'] === headers.ETag) reply.send(304, contentType, '', headers);
  else reply.send(200, contentType, body, headers);
}

import { createHash } from 'node:crypto';
import { notAcceptable } from '../../objects/status-errors.ts';
import type { DiscoveredResource, DiscoveredResources } from '../discovery/discovered-resource.ts';
import type { ApiRequest, Handler, Reply } from '../http/exchange.ts';
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
}

interface WrittenDocument {
  readonly body: Buffer;
  /** Upper-case hex of its SHA-512. */
  readonly hash: string;
}

/** A year: a document with its hash in the address never changes. */
const immutable = 'public, max-age=31536000, immutable';

/**
 * Serves `/openapi/v2` and `/openapi/v3` in JSON (kube-openapi `pkg/handler3`): an index with one address per group
 * version, which carries the hash of its document, and these documents.
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
      };
    }
    const path = withoutTrailingSlashes(request.info.path);
    if (path === '/openapi/v2') sendV2(request, reply, snapshot);
    else if (path === '/openapi/v3') sendIndex(request, reply, snapshot);
    else if (path.startsWith('/openapi/v3/'))
      sendV3(request, reply, snapshot, path.slice('/openapi/v3/'.length));
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

function write({ written }: Snapshot, name: string, build: () => unknown): WrittenDocument {
  let document = written.get(name);
  if (document === undefined) {
    const body = Buffer.from(JSON.stringify(build()));
    document = { body, hash: createHash('sha512').update(body).digest('hex').toUpperCase() };
    written.set(name, document);
  }
  return document;
}

function writeV3(
  snapshot: Snapshot,
  path: string,
  resources: readonly DiscoveredResource[],
): WrittenDocument {
  return write(snapshot, path, () => openApiV3(resources, snapshot.components));
}

function sendIndex(request: ApiRequest, reply: Reply, snapshot: Snapshot): void {
  const index = write(snapshot, 'index', () => ({
    paths: Object.fromEntries(
      [...snapshot.groupVersions].map(([path, resources]) => [
        path,
        { serverRelativeURL: `/openapi/v3/${path}?hash=${writeV3(snapshot, path, resources).hash}` },
      ]),
    ),
  }));
  sendDocument(request, reply, index, {});
}

function sendV3(request: ApiRequest, reply: Reply, snapshot: Snapshot, path: string): void {
  const resources = snapshot.groupVersions.get(path);
  if (resources === undefined) {
    reply.send(404, '', '');
    return;
  }
  const document = writeV3(snapshot, path, resources);
  const asked = request.query.get('hash');
  if (asked === null || asked === document.hash) {
    sendDocument(request, reply, document, asked === null ? {} : { 'cache-control': immutable });
    return;
  }
  // an index from before a change: the document has another address now
  reply.send(301, 'text/plain; charset=utf-8', '', {
    Location: `/openapi/v3/${path}?hash=${document.hash}`,
  });
}

function sendV2(request: ApiRequest, reply: Reply, snapshot: Snapshot): void {
  const document = write(snapshot, 'v2', () => openApiV2(snapshot.resources, snapshot.components));
  sendDocument(request, reply, document, {});
}

/** @throws {StatusError} 406 for clients that read protobuf only. */
function sendDocument(
  request: ApiRequest,
  reply: Reply,
  { body, hash }: WrittenDocument,
  headers: Readonly<Record<string, string>>,
): void {
  const { accept = '' } = request.headers;
  if (accept !== '' && !/\*\/\*|application\/(json|\*)/.test(accept)) {
    throw notAcceptable('only the following media types are accepted: application/json');
  }
  const etag = `"${hash}"`;
  const all = { ...headers, ETag: etag, Vary: 'Accept' };
  if (request.headers['if-none-match'] === etag) reply.send(304, 'application/json', '', all);
  else reply.send(200, 'application/json', body, all);
}

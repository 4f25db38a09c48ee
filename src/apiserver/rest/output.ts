import type { KubeObject, ListMeta } from '../../objects/meta.ts';
import type { Status } from '../../objects/status.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import { encode as encodeAs } from '../http/encoding.ts';
import type { MediaType } from '../http/media-types.ts';
import { type Endpoint, negotiate, type Negotiated } from '../http/negotiation.ts';
import { encodeObject } from '../schema/encode.ts';
import { partialMetadata, partialMetadataList } from '../tables/partial-metadata.ts';
import { type IncludeObject, includeObjectOf, toTable } from '../tables/table.ts';
import { itemJson, keyOf, presented, type ServedResource, storedJson } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';
import type { StoredObject } from '../storage/storage.ts';

/** How the client wants to see objects of one resource. */
export interface Output {
  readonly negotiated: Negotiated;
  readonly includeObject: IncludeObject;
}

/** Reads what the client accepts. @throws {StatusError} 406, or 400 for a bad `includeObject`. */
export function outputOf(
  request: ApiRequest,
  resource: ServedResource,
  endpoint: 'object' | 'collection' | 'watch' | 'review',
): Output {
  const custom: Endpoint = endpoint === 'watch' ? 'custom-watch' : 'custom';
  const negotiated = negotiate(request.headers.accept, resource.custom ? custom : endpoint);
  return {
    negotiated,
    includeObject: negotiated.as === 'Table' ? includeObjectOf(request.query) : 'Metadata',
  };
}

/** Answers one stored object. */
export function sendStored(
  reply: Reply,
  status: number,
  output: Output,
  resource: ServedResource,
  stored: StoredObject,
  now: number,
): void {
  const { as, mediaType } = output.negotiated;
  if (as === '' && mediaType === 'application/json') {
    reply.send(status, mediaType, Buffer.concat([storedJson(resource, stored), newline]));
    return;
  }
  sendObject(reply, status, output, resource, stored.object, now);
}

/** Answers the object of a write: with the bytes of the stored version when it is the newest one. */
export function sendWritten(
  core: ServerCore,
  reply: Reply,
  status: number,
  output: Output,
  resource: ServedResource,
  object: KubeObject,
): void {
  const { namespace = '', name = '' } = object.metadata;
  const stored = core.storage.get(keyOf(resource, namespace, name));
  if (stored?.object === object) sendStored(reply, status, output, resource, stored, core.now());
  else sendObject(reply, status, output, resource, object, core.now());
}

/** Answers one object, stored or not. */
export function sendObject(
  reply: Reply,
  status: number,
  output: Output,
  resource: ServedResource,
  object: KubeObject,
  now: number,
): void {
  const { as, mediaType } = output.negotiated;
  const shown = presented(resource, object);
  if (as === '') {
    sendJsonText(reply, status, mediaType, encodeObject(resource.schema, shown));
    return;
  }
  sendValue(reply, status, mediaType, convertOne(output, resource, shown, now, true));
}

/** Answers a Status (a delete's success). */
export function sendStatus(reply: Reply, output: Output, status: Status): void {
  sendValue(reply, status.code ?? 200, output.negotiated.mediaType, status);
}

/** The object in the form that the client asked for with `as=`. */
export function convertOne(
  output: Output,
  resource: ServedResource,
  object: KubeObject,
  now: number,
  withColumns: boolean,
): unknown {
  if (output.negotiated.as === 'Table') {
    const metadata: ListMeta =
      object.metadata.resourceVersion === undefined
        ? {}
        : { resourceVersion: object.metadata.resourceVersion };
    return toTable(resource.table, [object], {
      includeObject: output.includeObject,
      now,
      metadata,
      withColumns,
    });
  }
  return partialMetadata(object);
}

/** Answers a list. `metadata` is the list's. */
export function sendList(
  reply: Reply,
  output: Output,
  resource: ServedResource,
  items: readonly StoredObject[],
  metadata: ListMeta,
  now: number,
): void {
  const { as, mediaType } = output.negotiated;
  if (as === '') {
    const json = listJson(resource, items, metadata);
    if (mediaType === 'application/json') reply.send(200, mediaType, json);
    else sendJsonText(reply, 200, mediaType, json.toString());
    return;
  }
  const objects = items.map((item) => presented(resource, item.object));
  if (as === 'Table') {
    const { includeObject } = output;
    sendValue(
      reply,
      200,
      mediaType,
      toTable(resource.table, objects, { includeObject, now, metadata, withColumns: true }),
    );
    return;
  }
  sendValue(reply, 200, mediaType, partialMetadataList(objects, metadata));
}

const comma = Buffer.from(',');
const newline = Buffer.from('\n');

function listJson(resource: ServedResource, items: readonly StoredObject[], metadata: ListMeta): Buffer {
  const { kind } = resource.definition;
  const head = resource.custom
    ? `{"apiVersion":${JSON.stringify(resource.apiVersion)},"items":[`
    : `{"kind":${JSON.stringify(`${kind}List`)},"apiVersion":${JSON.stringify(resource.apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`;
  const chunks: Buffer[] = [Buffer.from(head)];
  items.forEach((item, at) => {
    if (at > 0) chunks.push(comma);
    chunks.push(resource.custom ? storedJson(resource, item) : itemJson(resource, item));
  });
  chunks.push(
    Buffer.from(
      resource.custom
        ? `],"kind":${JSON.stringify(`${kind}List`)},"metadata":${customListMeta(metadata)}}\n`
        : ']}\n',
    ),
  );
  return Buffer.concat(chunks);
}

/** Lists of custom objects are maps: their members come sorted, and the token is there even when it is empty. */
function customListMeta({ continue: token = '', remainingItemCount, resourceVersion }: ListMeta): string {
  return JSON.stringify({ continue: token, remainingItemCount, resourceVersion });
}

function sendJsonText(reply: Reply, status: number, mediaType: MediaType, json: string): void {
  if (mediaType === 'application/json') reply.send(status, mediaType, `${json}\n`);
  else sendValue(reply, status, mediaType, JSON.parse(json));
}

function sendValue(reply: Reply, status: number, mediaType: MediaType, value: unknown): void {
  reply.send(status, mediaType, encodeAs(value, mediaType));
}

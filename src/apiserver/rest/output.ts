import type { KubeObject, ListMeta } from '../../objects/meta.ts';
import type { Status, StatusError } from '../../objects/status.ts';
import { notAcceptable, plainError } from '../../objects/status-errors.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import type { BodyPart, LongBody } from '../http/long-body.ts';
import { encode as encodeAs } from '../http/encoding.ts';
import type { MediaType } from '../http/media-types.ts';
import { type Endpoint, negotiate, type Negotiated } from '../http/negotiation.ts';
import { encodeObject } from '../schema/encode.ts';
import { registeredKind } from '../schema/builtin.ts';
import { partialMetadata, partialMetadataList } from '../tables/partial-metadata.ts';
import { type IncludeObject, includeObjectOf, toTable } from '../tables/table.ts';
import type { Written } from './create.ts';
import { otherJson, presented, type ServedResource, storedJson } from './served-resource.ts';
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
    reply.send(status, mediaType, `${storedJson(resource, stored)}\n`);
    return;
  }
  sendObject(reply, status, output, resource, stored.object, now);
}

/** Answers the object of a write: with the text of the stored version, where there is one. */
export function sendWritten(
  reply: Reply,
  status: number,
  output: Output,
  resource: ServedResource,
  { object, stored }: Written,
  now: number,
): void {
  if (stored === undefined) sendObject(reply, status, output, resource, object, now);
  else sendStored(reply, status, output, resource, stored, now);
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
  if (as === 'PartialObjectMetadataList') throw notAList(resource);
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
  const { as, metaVersion: version } = output.negotiated;
  if (as === 'Table') {
    const metadata: ListMeta =
      object.metadata.resourceVersion === undefined
        ? {}
        : { resourceVersion: object.metadata.resourceVersion };
    return toTable(resource.table, [object], {
      includeObject: output.includeObject,
      now,
      metadata,
      withColumns,
      version,
      inOrder: inOrderOf(resource),
    });
  }
  return partialMetadata(object, version);
}

function inOrderOf({ schema }: ServedResource): (object: KubeObject) => unknown {
  return (object): unknown => JSON.parse(encodeObject(schema, object));
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
  const { as, mediaType, metaVersion: version } = output.negotiated;
  if (as === '') {
    const texts = listTexts(resource, items, metadata);
    if (mediaType === 'application/json') reply.send(200, mediaType, texts);
    else sendValue(reply, 200, mediaType, JSON.parse(texts.join('')));
    return;
  }
  const objects = items.map((item) => presented(resource, item.object));
  if (as === 'Table') {
    const { includeObject } = output;
    sendValue(
      reply,
      200,
      mediaType,
      toTable(resource.table, objects, {
        includeObject,
        now,
        metadata,
        withColumns: true,
        version,
        inOrder: inOrderOf(resource),
      }),
    );
    return;
  }
  if (as === 'PartialObjectMetadata') {
    throw notAcceptable(
      `you requested PartialObjectMetadata, but the requested object is a list (${goType(resource, 'List')})`,
    );
  }
  sendValue(reply, 200, mediaType, partialMetadataList(objects, metadata, version));
}

/** `asPartialObjectMetadataList` of an object: an unstructured one can be a list and is asked for its items. */
function notAList(resource: ServedResource): StatusError {
  if (resource.custom) return plainError('content is not a list');
  return notAcceptable(
    `you requested PartialObjectMetadataList, but the requested object is not a list (${goType(resource)})`,
  );
}

/** The type that kube-apiserver holds an object or list of the resource in. */
function goType(resource: ServedResource, suffix = ''): string {
  if (resource.custom) return `*unstructured.Unstructured${suffix}`;
  const { group, version, kind } = resource.definition;
  return `*${registeredKind(group, version, kind)?.internalPackage ?? ''}.${kind}${suffix}`;
}

/** The JSON of a list in parts, so that the texts of its objects need not be put together. */
function listTexts(resource: ServedResource, items: readonly StoredObject[], metadata: ListMeta): LongBody {
  const { custom, head } = resource;
  const { kind: itemKind, listKind = `${itemKind}List` } = resource.definition;
  const kind = `"kind":${JSON.stringify(listKind)}`;
  const apiVersion = `"apiVersion":${JSON.stringify(resource.apiVersion)}`;
  const texts: (string | BodyPart)[] = custom
    ? [`{${apiVersion},"items":[`]
    : [`{${kind},${apiVersion},"metadata":${JSON.stringify(metadata)},"items":[`];
  // Items of built-in lists go without kind and apiVersion.
  const opening = custom ? '' : '{';
  const skip = custom ? 0 : head.length;
  for (const item of items) {
    const other = otherJson(resource, item);
    texts.push(
      texts.length === 1 ? opening : `,${opening}`,
      other === undefined ? new ListItem(item, skip) : other.slice(skip),
    );
  }
  texts.push(custom ? `],${kind},"metadata":${customListMeta(metadata)}}\n` : ']}\n');
  return texts;
}

/** A stored object in a list, which goes to the client as the bytes that are stored. */
class ListItem implements BodyPart {
  readonly #stored: StoredObject;
  readonly #skip: number;
  /** @param skip bytes of its head that are left out. */
  constructor(stored: StoredObject, skip: number) {
    this.#stored = stored;
    this.#skip = skip;
  }
  get byteLength(): number {
    return this.#stored.byteLength - this.#skip;
  }
  writeTo(target: Buffer, at: number): number {
    return this.#stored.writeTo(target, at, this.#skip);
  }
  toString(): string {
    return this.#stored.text().slice(this.#skip);
  }
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

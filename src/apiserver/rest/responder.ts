import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject, ListMeta } from '../../objects/meta.ts';
import { type Status, type StatusError, notAcceptable, plainError } from '../../objects/status.ts';
import { encode } from '../http/reply.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import type { BodyPart, LongBody } from '../http/long-body.ts';
import { registeredKind } from '../schema/builtin.ts';
import { writeYaml, yamlParts } from '../schema/yaml/write-yaml.ts';
import { writeProtobufItem, writeProtobufList } from '../schema/protobuf/write-protobuf.ts';
import type { StoredObject } from '../storage/storage.ts';
import { partialMetadata, partialMetadataList, toTable } from '../tables/table.ts';
import type { WriteResult } from './create.ts';
import { convertOne, inOrderOf, type Output, outputOf } from './output.ts';
import { encodeOf, otherJson, presented, type ServedResource, storedJson } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';
import { inSlices, mapInSlices } from '../../telemetry/time-slice.ts';

/** Answers a request about one resource in the form that the client accepts. */
export class Responder {
  readonly #core: Pick<ServerCore, 'now'>;
  readonly #resource: ServedResource;
  readonly #reply: Reply;
  readonly #output: Output;

  constructor(core: Pick<ServerCore, 'now'>, resource: ServedResource, reply: Reply, output: Output) {
    this.#core = core;
    this.#resource = resource;
    this.#reply = reply;
    this.#output = output;
  }

  /** Answers one stored object. */
  async stored(code: number, stored: StoredObject): Promise<void> {
    const { as, mediaType } = this.#output.negotiated;
    if (as === '' && mediaType === 'application/json') {
      this.#reply.send(code, mediaType, `${storedJson(this.#resource, stored)}\n`);
      return;
    }
    await this.object(code, stored.object);
  }

  /** Answers the object of a write: with the text of the stored version, where there is one. */
  async written(code: number, { object, stored }: WriteResult): Promise<void> {
    if (stored === undefined) await this.object(code, object);
    else await this.stored(code, stored);
  }

  /** Answers one object, stored or not. @throws {StatusError} 406 when the client accepts a list only. */
  async object(code: number, object: KubeObject): Promise<void> {
    const { as, mediaType } = this.#output.negotiated;
    const shown = presented(this.#resource, object);
    if (as === '') {
      const json = encodeOf(this.#resource, shown);
      if (mediaType === 'application/json') this.#reply.send(code, mediaType, `${json}\n`);
      else await this.#value(code, JSON.parse(json));
      return;
    }
    if (as === 'PartialObjectMetadataList') throw notAList(this.#resource);
    await this.#value(code, convertOne(this.#output, this.#resource, shown, this.#core.now(), true));
  }

  /** Answers a Status: the success of a delete or a binding. Its code is that of the answer; absent: 200. */
  async status(status: Status): Promise<void> {
    await this.#value(status.code ?? 200, status);
  }

  /**
   * Answers a list. Items that are not sent as stored are encoded in slices of time.
   *
   * @param metadata the list's.
   * @throws {StatusError} 406 when the client accepts a single object only.
   */
  async list(items: readonly StoredObject[], metadata: ListMeta): Promise<void> {
    const resource = this.#resource;
    const { as, mediaType, metaVersion: version } = this.#output.negotiated;
    if (as === '') {
      const texts = listTexts(resource, items, metadata);
      if (mediaType === 'application/json') this.#reply.send(200, mediaType, texts);
      else if (mediaType === 'application/yaml') {
        this.#reply.send(200, mediaType, await inSlices(yamlList(resource, items, metadata)));
      } else {
        const { items: _items, ...head } = parsedList(listTexts(resource, [], metadata));
        await this.#long(head, 'items', items, (item) => {
          const { items: one } = parsedList(listTexts(resource, [item], metadata));
          return Array.isArray(one) ? one[0] : undefined;
        });
      }
      return;
    }
    if (as === 'PartialObjectMetadata') {
      throw notAcceptable(
        `you requested PartialObjectMetadata, but the requested object is a list (${goType(resource, 'List')})`,
      );
    }
    const objects = await mapInSlices(items, (item) => presented(resource, item.object));
    if (as === 'PartialObjectMetadataList') {
      const { items: _items, ...head } = partialMetadataList([], metadata, version);
      await this.#long({ ...head }, 'items', objects, (object) => partialMetadata(object, version));
      return;
    }
    const table = resource.table.ofList?.(objects) ?? resource.table;
    const options = {
      includeObject: this.#output.includeObject,
      nowMs: this.#core.now(),
      metadata,
      withColumns: true,
      version,
      inOrder: inOrderOf(resource),
    };
    const { rows: _rows, ...head } = toTable(table, [], options);
    const sorted = table.order === undefined ? objects : objects.toSorted(table.order);
    await this.#long({ ...head }, 'rows', sorted, (object) => toTable(table, [object], options).rows[0]);
  }

  /** Answers an object whose last member is a long list, of which each item is made and encoded on its own. */
  async #long<T>(
    head: JsonRecord,
    member: 'items' | 'rows',
    items: readonly T[],
    convert: (item: T) => unknown,
  ): Promise<void> {
    const { mediaType } = this.#output.negotiated;
    if (mediaType === 'application/vnd.kubernetes.protobuf' && member === 'items') {
      const { apiVersion = '', kind = '' } = head;
      const list = { ...head, apiVersion: String(apiVersion), kind: String(kind) };
      const parts = await mapInSlices(items, (item) => writeProtobufItem(list, convert(item)));
      this.#reply.send(200, mediaType, writeProtobufList(list, parts));
      return;
    }
    if (mediaType !== 'application/json') {
      await this.#value(200, { ...head, [member]: await mapInSlices(items, convert) });
      return;
    }
    const texts = await mapInSlices(items, (item) => JSON.stringify(convert(item)));
    const [before = '', after = ''] = JSON.stringify({ ...head, [member]: [0] }).split(/0(?=\]\}$)/);
    const parts = texts.flatMap((text, i) => (i === 0 ? [text] : [',', text]));
    this.#reply.send(200, mediaType, [before, ...parts, `${after}\n`]);
  }

  async #value(code: number, value: unknown): Promise<void> {
    const { mediaType } = this.#output.negotiated;
    const body =
      mediaType === 'application/yaml' ? await inSlices(yamlParts(value)) : encode(value, mediaType);
    this.#reply.send(code, mediaType, body);
  }
}

/** The responder to a request. @throws {StatusError} 406, or 400 for a bad `includeObject`. */
export function responderTo(
  core: ServerCore,
  resource: ServedResource,
  request: ApiRequest,
  reply: Reply,
  endpoint: 'object' | 'collection' | 'review',
): Responder {
  return new Responder(core, resource, reply, outputOf(request, resource, endpoint));
}

/** `asPartialObjectMetadataList` of an object: an unstructured one can be a list with items. */
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

/** A list as YAML. Members are sorted: `items` is between `apiVersion` and `kind`. */
function* yamlList(
  resource: ServedResource,
  items: readonly StoredObject[],
  metadata: ListMeta,
): Generator<string> {
  const { apiVersion, ...rest } = parsedList(listTexts(resource, [], metadata));
  yield writeYaml({ apiVersion });
  if (items.length > 0) yield 'items:\n';
  else yield writeYaml({ items });
  for (const item of items) yield* yamlParts(parsedList(listTexts(resource, [item], metadata))['items']);
  delete rest['items'];
  yield writeYaml(rest);
}

function parsedList(texts: LongBody): JsonRecord {
  const list: unknown = JSON.parse(texts.join(''));
  return isRecord(list) ? list : {};
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

/** A stored object in a list, sent as its stored bytes. */
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

/** The objects of the sample API server, in memory. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { matchesFields, parseFieldSelector } from '../../../objects/field-selector.ts';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { matchesLabels, parseLabelSelector } from '../../../objects/labels/labels.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { alreadyExists, badRequest, conflict, modified, notFound } from '../../../objects/status-errors.ts';
import { group, groupVersion } from './sample-discovery.ts';

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

export class FlunderStore {
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

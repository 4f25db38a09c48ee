import { deepFreeze } from '../../objects/freeze.ts';
import { countJsonValues } from '../../objects/json-size.ts';
import { type KubeObject, hasMetadata } from '../../objects/meta.ts';
import { plainError } from '../../objects/status-errors.ts';
import type { StoredObject } from './storage.ts';

/** Turns an object into the text that every reader shares: JSON, in Kubernetes' field order. */
export type Encode = (object: KubeObject) => string;

/**
 * Makes the version of an object that is written. Only its text is kept: most objects that are written are never looked
 * at again. Writes the revision into `metadata.resourceVersion`, of a copy where the object or its metadata is frozen.
 *
 * @throws {StatusError} 500 in etcd's words for an object that is too large to be read and written in a moment.
 */
export function writtenVersion(
  key: string,
  revision: number,
  object: KubeObject,
  encode: Encode,
): StoredObject {
  const own = Object.isFrozen(object) ? { ...object } : object;
  if (Object.isFrozen(own.metadata)) own.metadata = { ...own.metadata };
  own.metadata.resourceVersion = String(revision);
  const text = encode(own);
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  const version = new TextVersion(key, revision, bytes);
  checkSize(version);
  return version;
}

/** etcd takes 1.5 MiB, where built-in kinds are protobuf; a body of JSON may have twice that. */
const maxBytes = 3 * 1024 * 1024;
/** A body may have a third of it: its managers own as many fields, and patches add to what is stored. */
const maxValues = 120_000;

function checkSize(version: StoredObject): void {
  const { byteLength } = version;
  // A value takes two bytes at least.
  const isLarge =
    byteLength > maxBytes ||
    (byteLength > 2 * maxValues && countJsonValues(version.text(), maxValues) > maxValues);
  if (isLarge) throw plainError('etcdserver: request is too large');
}

/** Makes a version of the UTF-8 that an earlier process wrote. */
export function loadedVersion(key: string, revision: number, encoded: Buffer): StoredObject {
  // A copy: what was read of the file would stay in memory as long as one object of it.
  const bytes = Buffer.allocUnsafeSlow(encoded.length);
  encoded.copy(bytes);
  return new TextVersion(key, revision, bytes);
}

/**
 * A version that is kept as UTF-8 text in a buffer, outside V8's heap: as strings, texts take up to twice their
 * size until the next collection.
 */
class TextVersion implements StoredObject {
  readonly key: string;
  readonly revision: number;
  isDecorated = false;
  readonly #bytes: Buffer;
  /** Held weakly: of a Pod, the object takes 5.3 KB besides 2.7 KB of text; of 50,000 Pods a third of all memory. */
  #object: WeakRef<KubeObject> | undefined;

  constructor(key: string, revision: number, bytes: Buffer) {
    this.key = key;
    this.revision = revision;
    this.#bytes = bytes;
  }

  get object(): KubeObject {
    let object = this.#object?.deref();
    if (object === undefined) this.#object = new WeakRef((object = decode(this.text())));
    return object;
  }

  get byteLength(): number {
    return this.#bytes.length;
  }

  text(): string {
    return this.#bytes.toString();
  }

  writeTo(target: Buffer, at: number, skip = 0): number {
    return at + this.#bytes.copy(target, at, skip);
  }
}

function decode(text: string): KubeObject {
  const object: unknown = JSON.parse(text);
  // Guards against a broken encoder only: damage on the disk is found by checksums.
  if (!hasMetadata(object)) throw new TypeError('a stored version is not a Kubernetes object');
  deepFreeze(object);
  return object;
}

/**
 * The last version of a deleted object as watchers see it: with the revision of the delete. Made at its first use: most
 * deletes are watched by few clients.
 */
export class DeletedVersion implements StoredObject {
  readonly key: string;
  readonly revision: number;
  isDecorated = false;
  readonly #last: StoredObject;
  readonly #encode: Encode;

  constructor(last: StoredObject, revision: number, encode: Encode) {
    this.key = last.key;
    this.revision = revision;
    this.#last = last;
    this.#encode = encode;
  }

  /** All but the object and its metadata is shared with the frozen version before. */
  get object(): KubeObject {
    const { object } = this.#last;
    const metadata = Object.freeze({ ...object.metadata, resourceVersion: String(this.revision) });
    return Object.freeze({ ...object, metadata });
  }

  text(): string {
    return this.#encode(this.object);
  }

  get byteLength(): number {
    return Buffer.byteLength(this.text());
  }

  writeTo(target: Buffer, at: number, skip = 0): number {
    return at + target.write(this.text().slice(skip), at);
  }
}

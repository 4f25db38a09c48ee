import { deepFreeze } from '../../objects/freeze.ts';
import { countJsonValues } from '../../objects/json-size.ts';
import { type KubeObject, hasMetadata } from '../../objects/meta.ts';
import { plainError } from '../../objects/status-errors.ts';
import type { StoredObject } from './storage.ts';

/** Encodes an object as JSON, in Kubernetes' order of fields. */
export type Encode = (object: KubeObject) => string;

/**
 * The version of an object that is written, of which only the text is kept. Sets `metadata.resourceVersion`, in a copy
 * where the object or its metadata is frozen.
 *
 * @throws {StatusError} 500 with etcd's message for an object that is too large.
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

/** etcd takes 1.5 MiB, in which built-in kinds are protobuf; JSON is about twice as large. */
const maxBytes = 3 * 1024 * 1024;
/** Three times the limit of request bodies, since managed fields and patches add values. */
const maxValues = 120_000;

function checkSize(version: StoredObject): void {
  const { byteLength } = version;
  // A JSON value has at least two bytes with its separator.
  const isLarge =
    byteLength > maxBytes ||
    (byteLength > 2 * maxValues && countJsonValues(version.text(), maxValues) > maxValues);
  if (isLarge) throw plainError('etcdserver: request is too large');
}

/** A version of a log or snapshot. @param encoded UTF-8. */
export function loadedVersion(key: string, revision: number, encoded: Buffer): StoredObject {
  // Copied, since a slice would keep the whole piece of the file in memory.
  const bytes = Buffer.allocUnsafeSlow(encoded.length);
  encoded.copy(bytes);
  return new TextVersion(key, revision, bytes);
}

/**
 * A version that is kept as UTF-8 in a buffer outside of V8's heap, where strings can take twice the space.
 */
class TextVersion implements StoredObject {
  readonly key: string;
  readonly revision: number;
  isDecorated = false;
  readonly #bytes: Buffer;
  /** Weak, since the object takes about twice the memory of its text. */
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
  // Only a faulty encoder leads here: checksums detect damage on the disk.
  if (!hasMetadata(object)) throw new TypeError('a stored version is not a Kubernetes object');
  deepFreeze(object);
  return object;
}

/**
 * The last version of a deleted object with the revision of the delete, as watchers get it. It is encoded at each use,
 * since few clients watch most deletes.
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

  /** Shares all but the object itself and its metadata with the last version. */
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

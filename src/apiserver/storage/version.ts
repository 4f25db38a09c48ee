import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { StoredObject } from './storage.ts';

/** Turns an object into the text that every reader shares: JSON, in Kubernetes' field order. */
export type Encode = (object: KubeObject) => string;

/** A stored version that also says roughly how much memory it holds. */
export interface Version extends StoredObject {
  /** Bytes, roughly: to bound what old versions hold. */
  readonly weight: number;
  /** Bytes of the text in UTF-8. */
  byteLength(): number;
  /** Writes the text as UTF-8 to `target` from `at` on, where there is room for it; returns where it ends. */
  writeTo(target: Buffer, at: number): number;
  /** Another version took its place and was told of: the text is let go, and made again if somebody asks. */
  supersede(): void;
}

/** A version whose object is in memory: the text is made when somebody asks. */
abstract class EncodedVersion implements Version {
  readonly key: string;
  readonly revision: number;
  readonly weight: number;
  abstract readonly object: KubeObject;
  private readonly encode: Encode;
  private encoded: string | undefined = undefined;
  constructor(key: string, revision: number, weight: number, encode: Encode) {
    this.key = key;
    this.revision = revision;
    this.weight = weight;
    this.encode = encode;
  }
  text(): string {
    return (this.encoded ??= this.encode(this.object));
  }
  byteLength(): number {
    return Buffer.byteLength(this.text());
  }
  writeTo(target: Buffer, at: number): number {
    return at + target.write(this.text(), at);
  }
  supersede(): void {
    this.encoded = undefined;
  }
}

/** A version made by a write. */
class WrittenVersion extends EncodedVersion {
  readonly object: KubeObject;
  constructor(key: string, revision: number, object: KubeObject, weight: number, encode: Encode) {
    super(key, revision, weight, encode);
    this.object = object;
  }
}

/**
 * Makes a version of an object that the store owns from now on: writes the revision into
 * `metadata.resourceVersion` and freezes it. An object or metadata that is frozen already (shared with another
 * version) is copied first.
 */
export function writtenVersion(key: string, revision: number, object: KubeObject, encode: Encode): Version {
  const own = Object.isFrozen(object) ? { ...object } : object;
  if (Object.isFrozen(own.metadata)) own.metadata = { ...own.metadata };
  own.metadata.resourceVersion = String(revision);
  return new WrittenVersion(key, revision, own, freeze(own), encode);
}

/** A version that was read back from disk: the bytes are there, the object is made when somebody asks. */
class LoadedVersion implements Version {
  readonly key: string;
  readonly revision: number;
  private readonly encoded: Buffer;
  private decoded: KubeObject | undefined = undefined;
  constructor(key: string, revision: number, encoded: Buffer) {
    this.key = key;
    this.revision = revision;
    this.encoded = encoded;
  }
  get weight(): number {
    return this.encoded.length;
  }
  get object(): KubeObject {
    return (this.decoded ??= decode(this.encoded));
  }
  text(): string {
    return this.encoded.toString();
  }
  byteLength(): number {
    return this.encoded.length;
  }
  writeTo(target: Buffer, at: number): number {
    return at + this.encoded.copy(target, at);
  }
  supersede(): void {
    // Its bytes are all that it has.
  }
}

/** Makes a version of bytes that an earlier process wrote. Decoding waits until somebody needs the object. */
export function loadedVersion(key: string, revision: number, encoded: Buffer): Version {
  return new LoadedVersion(key, revision, encoded);
}

function decode(encoded: Buffer): KubeObject {
  const object: unknown = JSON.parse(encoded.toString());
  // The checksum says that these are the bytes that were written: this guards against a broken encoder only.
  if (!isKubeObject(object)) throw new TypeError('a stored version is not a Kubernetes object');
  freeze(object);
  return object;
}

function isKubeObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']);
}

/** The last version of a deleted object, made when somebody watches. */
class DeletedVersion extends EncodedVersion {
  private readonly last: StoredObject;
  private made: KubeObject | undefined = undefined;
  constructor(last: StoredObject, revision: number, encode: Encode) {
    super(last.key, revision, DELETED_WEIGHT, encode);
    this.last = last;
  }
  get object(): KubeObject {
    return (this.made ??= this.copy());
  }
  /** All but the object and its metadata is shared with the frozen version before. */
  private copy(): KubeObject {
    const { object } = this.last;
    const metadata = Object.freeze({ ...object.metadata, resourceVersion: String(this.revision) });
    return Object.freeze({ ...object, metadata });
  }
}

/** The last version of a deleted object as watchers see it: with the revision of the delete. */
export function deletedVersion(last: StoredObject, revision: number, encode: Encode): Version {
  return new DeletedVersion(last, revision, encode);
}

/** What a deleted version weighs on its own. */
const DELETED_WEIGHT = 512;
/** V8's price of a container and of a member, and its share of hidden bookkeeping. */
const CONTAINER_WEIGHT = 32;
const MEMBER_WEIGHT = 8;

/**
 * Freezes a tree of plain objects and lists, and says roughly how many bytes it holds. What is frozen already is
 * taken to be frozen all the way down and is shared, so it is neither walked nor counted. Keeps its own stack: a
 * client can nest deeper than the call stack reaches.
 */
function freeze(root: object): number {
  let weight = 0;
  const stack: object[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    weight += CONTAINER_WEIGHT;
    if (Array.isArray(node)) {
      for (const item of node) weight += visit(item, stack);
    } else if (isRecord(node)) {
      for (const name in node) weight += visit(node[name], stack);
    }
    Object.freeze(node);
  }
  return weight;
}

function visit(value: unknown, stack: object[]): number {
  if (typeof value === 'string') return MEMBER_WEIGHT + value.length;
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) stack.push(value);
  return MEMBER_WEIGHT;
}

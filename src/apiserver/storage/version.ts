import { deepFreeze } from '../../objects/freeze.ts';
import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Held, RecentObjects } from './recent-objects.ts';
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
}

/** A version that is kept as its text. The object is made of it when somebody asks, and kept for a while. */
abstract class KeptVersion implements Version {
  readonly key: string;
  readonly revision: number;
  private readonly recent: RecentObjects;
  private held: Held | undefined = undefined;
  constructor(key: string, revision: number, recent: RecentObjects) {
    this.key = key;
    this.revision = revision;
    this.recent = recent;
  }
  abstract readonly weight: number;
  abstract text(): string;
  abstract byteLength(): number;
  abstract writeTo(target: Buffer, at: number): number;

  get object(): KubeObject {
    const { held } = this;
    if (held === undefined) return this.hold(decode(this.text()));
    held.used = true;
    return held.object;
  }
  forget(): void {
    this.held = undefined;
  }
  protected hold(object: KubeObject): KubeObject {
    this.held = this.recent.hold(this, object, this.weight);
    return object;
  }
}

/** A version made by a write. */
class WrittenVersion extends KeptVersion {
  private readonly encoded: string;
  constructor(key: string, revision: number, object: KubeObject, encoded: string, recent: RecentObjects) {
    super(key, revision, recent);
    this.encoded = encoded;
    this.hold(object);
  }
  get weight(): number {
    return this.encoded.length;
  }
  text(): string {
    return this.encoded;
  }
  byteLength(): number {
    return Buffer.byteLength(this.encoded);
  }
  writeTo(target: Buffer, at: number): number {
    return at + target.write(this.encoded, at);
  }
}

/**
 * Makes a version of an object that the store owns from now on: writes the revision into
 * `metadata.resourceVersion` and freezes it. An object or metadata that is frozen already (shared with another
 * version) is copied first.
 */
export function writtenVersion(
  key: string,
  revision: number,
  object: KubeObject,
  encode: Encode,
  recent: RecentObjects,
): Version {
  const own = Object.isFrozen(object) ? { ...object } : object;
  if (Object.isFrozen(own.metadata)) own.metadata = { ...own.metadata };
  own.metadata.resourceVersion = String(revision);
  deepFreeze(own);
  return new WrittenVersion(key, revision, own, encode(own), recent);
}

/** A version that was read back from disk. */
class LoadedVersion extends KeptVersion {
  private readonly encoded: Buffer;
  constructor(key: string, revision: number, encoded: Buffer, recent: RecentObjects) {
    super(key, revision, recent);
    this.encoded = encoded;
  }
  get weight(): number {
    return this.encoded.length;
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
}

/** Makes a version of bytes that an earlier process wrote. */
export function loadedVersion(
  key: string,
  revision: number,
  encoded: Buffer,
  recent: RecentObjects,
): Version {
  return new LoadedVersion(key, revision, encoded, recent);
}

function decode(text: string): KubeObject {
  const object: unknown = JSON.parse(text);
  // This guards against a broken encoder only: a checksum says that bytes on disk are those that were written.
  if (!isKubeObject(object)) throw new TypeError('a stored version is not a Kubernetes object');
  deepFreeze(object);
  return object;
}

function isKubeObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']);
}

/** The last version of a deleted object, made when somebody watches: few do, and none twice. */
class DeletedVersion implements Version {
  readonly key: string;
  readonly revision: number;
  readonly weight = DELETED_WEIGHT;
  private readonly last: StoredObject;
  private readonly encode: Encode;
  constructor(last: StoredObject, revision: number, encode: Encode) {
    this.key = last.key;
    this.revision = revision;
    this.last = last;
    this.encode = encode;
  }
  /** All but the object and its metadata is shared with the frozen version before. */
  get object(): KubeObject {
    const { object } = this.last;
    const metadata = Object.freeze({ ...object.metadata, resourceVersion: String(this.revision) });
    return Object.freeze({ ...object, metadata });
  }
  text(): string {
    return this.encode(this.object);
  }
  byteLength(): number {
    return Buffer.byteLength(this.text());
  }
  writeTo(target: Buffer, at: number): number {
    return at + target.write(this.text(), at);
  }
}

/** The last version of a deleted object as watchers see it: with the revision of the delete. */
export function deletedVersion(last: StoredObject, revision: number, encode: Encode): Version {
  return new DeletedVersion(last, revision, encode);
}

/** What a deleted version weighs on its own. */
const DELETED_WEIGHT = 512;

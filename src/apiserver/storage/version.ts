import { deepFreeze } from '../../objects/freeze.ts';
import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { type Held, RecentObjects } from './recent-objects.ts';
import type { StoredObject } from './storage.ts';
import { type KeptText, TextBlocks } from './text-blocks.ts';
import { keyPrefixes } from './watchers.ts';

/** Turns an object into the text that every reader shares: JSON, in Kubernetes' field order. */
export type Encode = (object: KubeObject) => string;

/** A stored version as the store knows it. */
export interface Version extends StoredObject {
  /** Bytes, roughly: to bound what old versions hold. */
  readonly weight: number;
  /** Says that the store will not give it out again. Who has it can go on reading. Call once. */
  release(): void;
}

/** A version that is kept as its text. The object is made of it when somebody asks, and kept for a while. */
class KeptVersion implements Version {
  readonly key: string;
  readonly revision: number;
  private readonly kept: KeptText;
  private readonly versions: Versions;
  private held: Held | undefined = undefined;
  isDecorated = false;
  constructor(key: string, revision: number, kept: KeptText, versions: Versions) {
    this.key = key;
    this.revision = revision;
    this.kept = kept;
    this.versions = versions;
  }
  get weight(): number {
    return this.kept.length;
  }
  get byteLength(): number {
    return this.kept.length;
  }
  get object(): KubeObject {
    const { held } = this;
    if (held === undefined) return this.hold(decode(this.kept.toString()));
    held.used = true;
    return held.object;
  }
  text(): string {
    return this.kept.toString();
  }
  writeTo(target: Buffer, at: number, skip?: number): number {
    return this.kept.copy(target, at, skip);
  }
  private hold(object: KubeObject): KubeObject {
    this.held = this.versions.recent.hold({ version: this, object, weight: this.weight });
    return object;
  }
  forget(): void {
    this.held = undefined;
  }
  release(): void {
    this.versions.texts.release(this.kept);
  }
}

/** Makes the versions of one store, and owns their texts and those of their objects that are in memory. */
export class Versions {
  readonly recent: RecentObjects;
  readonly texts = new TextBlocks();
  private readonly encode: Encode;

  constructor(encode: Encode, recent = new RecentObjects()) {
    this.encode = encode;
    this.recent = recent;
  }

  /**
   * Makes a version of an object, whose text alone is kept: most objects that are written are never looked at again.
   * Writes the revision into `metadata.resourceVersion`, of a copy where the object or its metadata is frozen.
   */
  written(key: string, revision: number, object: KubeObject): Version {
    const own = Object.isFrozen(object) ? { ...object } : object;
    if (Object.isFrozen(own.metadata)) own.metadata = { ...own.metadata };
    own.metadata.resourceVersion = String(revision);
    return new KeptVersion(key, revision, this.texts.add(this.encode(own), keyPrefixes(key)[0]), this);
  }

  /** Makes a version of bytes that an earlier process wrote. */
  loaded(key: string, revision: number, encoded: Uint8Array): Version {
    return new KeptVersion(key, revision, this.texts.addBytes(encoded), this);
  }

  /** The last version of a deleted object as watchers see it: with the revision of the delete. */
  deleted(last: StoredObject, revision: number): Version {
    return new DeletedVersion(last, revision, this.encode);
  }
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
  isDecorated = false;
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
  get byteLength(): number {
    return Buffer.byteLength(this.text());
  }
  writeTo(target: Buffer, at: number, skip = 0): number {
    return at + Buffer.from(this.text()).copy(target, at, skip);
  }
  release(): void {
    // It has no text of its own.
  }
}

/** What a deleted version weighs on its own. */
const DELETED_WEIGHT = 512;

import { isRecord } from '../../objects/json.ts';
import type { KubeObject, ObjectMeta } from '../../objects/meta.ts';
import type { StoredObject } from './storage.ts';

/** Turns an object into the bytes that every reader shares: JSON, in Kubernetes' field order. */
export type Encode = (object: KubeObject) => Buffer;

/** A stored version that also says roughly how much memory it holds. */
export interface Version extends StoredObject {
  /** Bytes, roughly: to bound what old versions hold. */
  readonly weight: number;
}

/** A version made by a write: the object is there, its bytes are made when somebody asks. */
class WrittenVersion implements Version {
  readonly key: string;
  readonly revision: number;
  readonly object: KubeObject;
  readonly weight: number;
  private readonly encode: Encode;
  private encoded: Buffer | undefined = undefined;
  constructor(key: string, revision: number, object: KubeObject, weight: number, encode: Encode) {
    this.key = key;
    this.revision = revision;
    this.object = object;
    this.weight = weight;
    this.encode = encode;
  }
  bytes(): Buffer {
    return (this.encoded ??= this.encode(this.object));
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

/** The last version of a deleted object as watchers see it: with the revision of the delete. */
export function deletedVersion(last: StoredObject, revision: number, encode: Encode): Version {
  const metadata: ObjectMeta = Object.freeze({ ...last.object.metadata, resourceVersion: String(revision) });
  // Everything below is shared with the frozen version before.
  const object: KubeObject = Object.freeze({ ...last.object, metadata });
  return new WrittenVersion(last.key, revision, object, SHALLOW_WEIGHT, encode);
}

/** What a version weighs that shares all but the object and its metadata with another. */
const SHALLOW_WEIGHT = 512;
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

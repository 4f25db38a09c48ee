import { deepFreeze } from '../../objects/freeze.ts';
import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { encodeSorted } from '../schema/encode.ts';
import type { StoredObject } from '../storage/storage.ts';

/** A stored version in another version of its resource, or with defaults that it was not stored with. */
export class ConvertedVersion implements StoredObject {
  readonly key: string;
  readonly revision: number;
  isDecorated = true;
  readonly #bytes: Buffer;
  /** The object is held weakly: the text is what lasts, as with stored versions. */
  #held: WeakRef<KubeObject> | undefined;

  constructor({ key, revision }: StoredObject, object: KubeObject) {
    this.key = key;
    this.revision = revision;
    this.#bytes = Buffer.from(encodeSorted(object));
  }

  get object(): KubeObject {
    let object = this.#held?.deref();
    if (object === undefined) {
      const parsed: unknown = JSON.parse(this.text());
      if (!isKubeObject(parsed)) throw new TypeError('a converted version is not a Kubernetes object');
      deepFreeze(parsed);
      object = parsed;
      this.#held = new WeakRef(object);
    }
    return object;
  }

  text(): string {
    return this.#bytes.toString();
  }

  get byteLength(): number {
    return this.#bytes.length;
  }

  writeTo(target: Buffer, at: number, skip = 0): number {
    return at + this.#bytes.copy(target, at, skip);
  }
}

function isKubeObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']);
}

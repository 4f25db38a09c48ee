import type { JSONSchemaProps } from '../../objects/types/apiextensions.generated.ts';
import { type KubeObject, hasMetadata } from '../../objects/meta.ts';
import { plainError } from '../../objects/status-errors.ts';
import { dropNulls, mayDefault, withDefaults } from '../../registry/apiextensions/schema/defaulting.ts';

import type { VersionConversion } from '../rest/served-resource.ts';
import { pruneCustomObject } from '../schema/custom-object.ts';
import { DecodeError } from '../schema/decode.ts';
import type { StructSchema } from '../schema/schema.ts';
import type { StoredObject } from '../storage/storage.ts';
import type { WebhookConverter } from './webhook-converter.ts';
import { deepFreeze } from '../../objects/freeze.ts';
import { encodeSorted } from '../schema/encode.ts';

/** The schemas of one version of a definition. */
export interface VersionSchemas {
  readonly schema: StructSchema;
  /** Undefined for a version without one. */
  readonly openAPIV3Schema: JSONSchemaProps | undefined;
}

/** One version of a resource, among the others. */
export interface ConvertedResource {
  readonly converter: WebhookConverter;
  /** Of requests, `<group>/<version>`. */
  readonly apiVersion: string;
  /** The version in which objects are stored from now on. */
  readonly storedApiVersion: string;
  /** By apiVersion: of all versions of the definition. */
  readonly versions: ReadonlyMap<string, VersionSchemas>;
  /** The revision since which the definition has these schemas. */
  readonly since: number;
}

/**
 * Objects of one version of a resource and what is stored of them (apiextensions `crdConversionRESTOptionsGetter`):
 * what is read has the defaults of the version that it is stored in, is converted, and loses what the version of the
 * request does not declare; what is written is converted, and loses what the stored version does not declare.
 */
export class ConvertedObjects implements VersionConversion {
  readonly #of: ConvertedResource;
  /**
   * Conversions for lists and watches, kept as long as the stored version: kube-apiserver's watch cache keeps them
   * too.
   */
  readonly #known = new WeakMap<StoredObject, Promise<StoredObject>>();
  /** The first bytes of an object's text that is stored in the version of requests. */
  readonly #head: string;

  constructor(of: ConvertedResource) {
    this.#of = of;
    this.#head = `{"apiVersion":${JSON.stringify(of.apiVersion)},`;
  }

  async read(stored: readonly StoredObject[]): Promise<readonly StoredObject[]> {
    const missing = stored.filter((item) => !this.#isServed(item) && !this.#known.has(item));
    if (missing.length > 0) {
      const converted = this.#convertAll(missing);
      for (const [i, item] of missing.entries()) this.#remember(item, this.#itemOf(converted, i));
    }
    return Promise.all(stored.map(async (item) => this.#known.get(item) ?? item));
  }

  async readNow(stored: StoredObject): Promise<StoredObject> {
    if (this.#isServed(stored)) return stored;
    const converted = this.#itemOf(this.#convertAll([stored]), 0);
    this.#remember(stored, converted);
    return converted;
  }

  async show(object: KubeObject): Promise<KubeObject> {
    const [shown = object] = await this.#objects([object]);
    return shown;
  }

  async write(object: KubeObject): Promise<KubeObject> {
    const { converter, storedApiVersion } = this.#of;
    if (object.apiVersion === storedApiVersion) return object;
    const [converted = object] = await converter.convert([unversioned(object)], storedApiVersion);
    return withRevision(this.#coerced(converted), object);
  }

  async toVersion(object: KubeObject, apiVersion: string): Promise<KubeObject> {
    const { converter, apiVersion: hub } = this.#of;
    // Ownership is worked out by way of the version of the request (`newCRDVersionConverter`).
    const [here = object] = await converter.convert([object], hub);
    const [there = here] = await converter.convert([here], apiVersion);
    return there;
  }

  schemaOf(apiVersion: string): StructSchema | undefined {
    return this.#of.versions.get(apiVersion)?.schema;
  }

  /** True for what is stored as it is served. */
  #isServed(stored: StoredObject): boolean {
    const { apiVersion, since, versions } = this.#of;
    const { openAPIV3Schema } = versions.get(apiVersion) ?? {};
    if (stored.revision <= since || (openAPIV3Schema !== undefined && mayDefault(openAPIV3Schema)))
      return false;
    return stored.text().startsWith(this.#head);
  }

  #remember(stored: StoredObject, converted: Promise<StoredObject>): void {
    this.#known.set(stored, converted);
    // The next read calls the webhook again.
    converted.catch(() => {
      if (this.#known.get(stored) === converted) this.#known.delete(stored);
    });
  }

  async #itemOf(converted: Promise<readonly StoredObject[]>, index: number): Promise<StoredObject> {
    const item = (await converted)[index];
    if (item === undefined) throw new Error('a conversion has fewer objects than were asked about');
    return item;
  }

  async #convertAll(stored: readonly StoredObject[]): Promise<readonly StoredObject[]> {
    const objects = await this.#objects(stored.map(({ object }) => object));
    return stored.map((item, i) => new ConvertedVersion(item, objects[i] ?? item.object));
  }

  /** Objects as they are stored, in the version of requests. */
  async #objects(stored: readonly KubeObject[]): Promise<readonly KubeObject[]> {
    const { converter, apiVersion } = this.#of;
    const decoded = stored.map((object) => unversioned(this.#decoded(object)));
    const converted = await converter.convert(decoded, apiVersion);
    return converted.map((object, i) => {
      const own = object === decoded[i] ? object : this.#coerced(object);
      return withRevision(own, stored[i] ?? object);
    });
  }

  /** A stored object as the schemas of its own version have it now. @throws {StatusError} 500 */
  #decoded(object: KubeObject): KubeObject {
    const own = this.#of.versions.get(object.apiVersion ?? '');
    if (own === undefined) return object;
    const coerced = this.#coerced(object);
    return own.openAPIV3Schema === undefined ? coerced : withDefaults(own.openAPIV3Schema, coerced);
  }

  /** The object without what its version does not declare. @throws {StatusError} 500 */
  #coerced(object: KubeObject): KubeObject {
    const { schema, openAPIV3Schema } = this.#of.versions.get(object.apiVersion ?? '') ?? {};
    if (schema === undefined) return object;
    try {
      const pruned = pruneCustomObject(schema, {
        value: object,
        repeated: undefined,
        hasRawNumbers: false,
      }).object;
      if (openAPIV3Schema !== undefined) dropNulls(openAPIV3Schema, pruned);
      return pruned;
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      throw plainError(error.message);
    }
  }
}

/** Stored objects have no resourceVersion, and webhooks see none. */
function unversioned(object: KubeObject): KubeObject {
  const { resourceVersion: _revision, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function withRevision(object: KubeObject, { metadata: { resourceVersion } }: KubeObject): KubeObject {
  if (resourceVersion !== undefined) object.metadata = { ...object.metadata, resourceVersion };
  return object;
}

/** A stored version in another version of its resource, or with defaults that it was not stored with. */
class ConvertedVersion implements StoredObject {
  readonly key: string;
  readonly revision: number;
  isDecorated = true;
  readonly #bytes: Buffer;
  #object: KubeObject | undefined;

  constructor({ key, revision }: StoredObject, object: KubeObject) {
    this.key = key;
    this.revision = revision;
    this.#bytes = Buffer.from(encodeSorted(object));
  }

  get object(): KubeObject {
    if (this.#object === undefined) {
      const parsed: unknown = JSON.parse(this.text());
      if (!hasMetadata(parsed)) throw new TypeError('a converted version is not a Kubernetes object');
      deepFreeze(parsed);
      this.#object = parsed;
    }
    return this.#object;
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

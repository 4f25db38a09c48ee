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
  /** Undefined for a version without a schema. */
  readonly openAPIV3Schema: JSONSchemaProps | undefined;
}

/** One served version of a custom resource that a webhook converts. */
export interface ConvertedResource {
  readonly converter: WebhookConverter;
  /** The served version, `<group>/<version>`. */
  readonly apiVersion: string;
  /** The version in which objects are stored from now on. */
  readonly storedApiVersion: string;
  /** All versions of the definition, by apiVersion. */
  readonly versions: ReadonlyMap<string, VersionSchemas>;
  /** The revision since which the definition has these schemas. */
  readonly since: number;
}

/**
 * Converts between the served and the stored version of objects (apiextensions `crdConversionRESTOptionsGetter`). A read
 * sets the defaults of the stored version, converts, and prunes by the schema of the served version; a write converts,
 * and prunes by the schema of the stored version.
 */
export class ConvertedObjects implements VersionConversion {
  readonly #resource: ConvertedResource;
  /** Converted versions by stored version, as in the watch cache of kube-apiserver. */
  readonly #conversions = new WeakMap<StoredObject, Promise<StoredObject>>();
  /** The start of the text of objects that are stored in the served version. */
  readonly #servedPrefix: string;

  constructor(resource: ConvertedResource) {
    this.#resource = resource;
    this.#servedPrefix = `{"apiVersion":${JSON.stringify(resource.apiVersion)},`;
  }

  async read(stored: readonly StoredObject[]): Promise<readonly StoredObject[]> {
    const missing = stored.filter((item) => !this.#isServed(item) && !this.#conversions.has(item));
    if (missing.length > 0) {
      const converted = this.#convertAll(missing);
      for (const [i, item] of missing.entries()) this.#cache(item, this.#itemOf(converted, i));
    }
    return Promise.all(stored.map(async (item) => this.#conversions.get(item) ?? item));
  }

  async readNow(stored: StoredObject): Promise<StoredObject> {
    if (this.#isServed(stored)) return stored;
    const converted = this.#itemOf(this.#convertAll([stored]), 0);
    this.#cache(stored, converted);
    return converted;
  }

  async show(object: KubeObject): Promise<KubeObject> {
    const [shown = object] = await this.#objects([object]);
    return shown;
  }

  async write(object: KubeObject): Promise<KubeObject> {
    const { converter, storedApiVersion } = this.#resource;
    if (object.apiVersion === storedApiVersion) return object;
    const [converted = object] = await converter.convert([unversioned(object)], storedApiVersion);
    return withRevision(this.#coerced(converted), object);
  }

  async toVersion(object: KubeObject, apiVersion: string): Promise<KubeObject> {
    const { converter, apiVersion: served } = this.#resource;
    // Conversions for field ownership go by way of the served version (`newCRDVersionConverter`).
    const [inServed = object] = await converter.convert([object], served);
    const [converted = inServed] = await converter.convert([inServed], apiVersion);
    return converted;
  }

  schemaOf(apiVersion: string): StructSchema | undefined {
    return this.#resource.versions.get(apiVersion)?.schema;
  }

  /** True for objects that are served as they are stored. */
  #isServed(stored: StoredObject): boolean {
    const { apiVersion, since, versions } = this.#resource;
    const { openAPIV3Schema } = versions.get(apiVersion) ?? {};
    if (stored.revision <= since || (openAPIV3Schema !== undefined && mayDefault(openAPIV3Schema)))
      return false;
    return stored.text().startsWith(this.#servedPrefix);
  }

  #cache(stored: StoredObject, converted: Promise<StoredObject>): void {
    this.#conversions.set(stored, converted);
    // After a failure, the next read calls the webhook again.
    converted.catch(() => {
      if (this.#conversions.get(stored) === converted) this.#conversions.delete(stored);
    });
  }

  async #itemOf(converted: Promise<readonly StoredObject[]>, index: number): Promise<StoredObject> {
    const item = (await converted)[index];
    if (item === undefined) throw new Error('a conversion has fewer objects than its request');
    return item;
  }

  async #convertAll(stored: readonly StoredObject[]): Promise<readonly StoredObject[]> {
    const objects = await this.#objects(stored.map(({ object }) => object));
    return stored.map((item, i) => new ConvertedVersion(item, objects[i] ?? item.object));
  }

  /** Stored objects in the served version. */
  async #objects(stored: readonly KubeObject[]): Promise<readonly KubeObject[]> {
    const { converter, apiVersion } = this.#resource;
    const decoded = stored.map((object) => unversioned(this.#decoded(object)));
    const converted = await converter.convert(decoded, apiVersion);
    return converted.map((object, i) => {
      const pruned = object === decoded[i] ? object : this.#coerced(object);
      return withRevision(pruned, stored[i] ?? object);
    });
  }

  /** A stored object, pruned and defaulted by the present schema of its own version. @throws {StatusError} 500 */
  #decoded(object: KubeObject): KubeObject {
    const own = this.#resource.versions.get(object.apiVersion ?? '');
    if (own === undefined) return object;
    const coerced = this.#coerced(object);
    return own.openAPIV3Schema === undefined ? coerced : withDefaults(own.openAPIV3Schema, coerced);
  }

  /** The object, pruned by the schema of its version. @throws {StatusError} 500 */
  #coerced(object: KubeObject): KubeObject {
    const { schema, openAPIV3Schema } = this.#resource.versions.get(object.apiVersion ?? '') ?? {};
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

/** Neither stored objects nor those that webhooks get have a resourceVersion. */
function unversioned(object: KubeObject): KubeObject {
  const { resourceVersion: _revision, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function withRevision(object: KubeObject, { metadata: { resourceVersion } }: KubeObject): KubeObject {
  if (resourceVersion !== undefined) object.metadata = { ...object.metadata, resourceVersion };
  return object;
}

/** A stored object that was converted to another API version, or that was given further defaults. */
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

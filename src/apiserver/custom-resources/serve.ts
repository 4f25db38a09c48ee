import type {
  JSONSchemaProps,
  CustomResourceDefinition,
  CustomResourceDefinitionVersion,
} from '../../objects/types/apiextensions.generated.ts';
import { type KubeObject, hasMetadata } from '../../objects/meta.ts';
import { plainError } from '../../objects/status.ts';
import { dropNulls, mayDefault, withDefaults } from '../../registry/apiextensions/schema/defaulting.ts';
import {
  type VersionConversion,
  type VersionForm,
  serveResource,
  type ServedResource,
} from '../rest/served-resource.ts';
import { pruneCustomObject } from '../schema/custom-object.ts';
import { DecodeError } from '../schema/decode.ts';
import type { StructSchema } from '../schema/schema.ts';
import type { StoredObject } from '../storage/storage.ts';
import type { WebhookConverter } from './webhook-converter.ts';
import { deepFreeze } from '../../objects/json.ts';
import { encodeSorted } from '../schema/encode.ts';
import { createHash } from 'node:crypto';
import { customScale, customResourceStrategy } from '../../registry/apiextensions/customresource.ts';
import { hasCondition } from '../../registry/apiextensions/customresourcedefinition/strategy.ts';
import type { LateSchemas } from './late-schemas.ts';
import { customTableConverter } from '../tables/custom-columns.ts';

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
class ConvertedObjects implements VersionConversion {
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

const verbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];
const verbsWhileTerminating = ['delete', 'deletecollection', 'get', 'list', 'watch'];

/** The time in which the spec and the names of a definition stay the same. */
export interface Generation {
  /** The revision of the definition that began it. */
  readonly since: number;
  /** Aborts when the next generation begins, or the definition is deleted. */
  readonly replaced: AbortSignal;
  /** For the conversion strategy Webhook. */
  readonly converter: WebhookConverter | undefined;
  readonly schemas: LateSchemas;
}

/** The resources of an established definition: one for each served version, by its accepted names. */
export function resourcesOf(definition: CustomResourceDefinition, generation: Generation): ServedResource[] {
  const versions = definition.spec.versions ?? [];
  return versions
    .filter((version) => version.served)
    .map((version) => serveVersion(definition, version, generation));
}

/** The resource of the version that objects are stored in, whether it is served or not. */
export function storageResourceOf(
  definition: CustomResourceDefinition,
  generation: Generation,
): ServedResource | undefined {
  const storage = storageVersion(definition);
  return storage === undefined ? undefined : serveVersion(definition, storage, generation);
}

function storageVersion({ spec }: CustomResourceDefinition): CustomResourceDefinitionVersion | undefined {
  return (spec.versions ?? []).find((version) => version.storage);
}

/** The conversion between a served version and the stored one; neither member where there is one version only. */
function conversionOf(
  { spec, status }: CustomResourceDefinition,
  { name }: CustomResourceDefinitionVersion,
  storage: string,
  { converter, since, schemas }: Generation,
): Pick<ServedResource, 'shared' | 'conversion'> {
  const versions = spec.versions ?? [];
  if (versions.length <= 1 && (status.storedVersions ?? []).length <= 1) return { shared: undefined };
  if (converter === undefined) return { shared: sameFieldsForm(spec.group, name, storage) };
  const { kind } = status.acceptedNames;
  const bySchema = versions.map(({ name: version }) => {
    const openAPIV3Schema = schemas.openAPIV3SchemaOf(version);
    return [
      `${spec.group}/${version}`,
      { schema: schemas.structOf(version, kind), openAPIV3Schema },
    ] as const;
  });
  const conversion = new ConvertedObjects({
    converter,
    apiVersion: `${spec.group}/${name}`,
    storedApiVersion: `${spec.group}/${storage}`,
    versions: new Map(bySchema),
    since,
  });
  return { shared: undefined, conversion };
}

function serveVersion(
  definition: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  generation: Generation,
): ServedResource {
  const { spec, status } = definition;
  const storage = storageVersion(definition);
  const storedVersion = storage?.name ?? version.name;
  const conversions = conversionOf(definition, version, storedVersion, generation);
  const versions = spec.versions ?? [];
  // Nothing that is called later may hold the definition: its schemas are large.
  const { schemas } = generation;
  const names = new Set(versions.map(({ name }) => name));
  const { name, additionalPrinterColumns: columns = [] } = version;
  const {
    plural,
    singular = '',
    shortNames = [],
    kind,
    listKind = '',
    categories = [],
  } = status.acceptedNames;
  const namespaced = spec.scope === 'Namespaced';
  const apiVersion = `${spec.group}/${version.name}`;
  // The conversion by webhook sets the defaults itself, and the strategy gets objects in the served version.
  const storedForm =
    conversions.conversion === undefined
      ? { storedApiVersion: `${spec.group}/${storedVersion}`, since: generation.since }
      : { storedApiVersion: apiVersion, since: undefined };
  const warning = deprecation(spec.group, kind, version, versions);
  return serveResource(
    {
      group: spec.group,
      version: version.name,
      plural,
      singular,
      kind,
      ...(listKind === '' ? {} : { listKind }),
      namespaced,
      shortNames,
      categories,
      verbs: hasCondition(definition, 'Terminating') ? verbsWhileTerminating : verbs,
      schema: `${spec.group.split('.').reverse().join('.')}.${version.name}.${kind}`,
      strategy: customResourceStrategy({
        ...{ apiVersion, ...storedForm, kind, namespaced },
        version: schemas.late(version),
      }),
      ...(storage?.served === true
        ? { storageVersionHash: storageVersionHash(spec.group, storage.name, kind) }
        : {}),
      ...(version.subresources?.scale === undefined
        ? {}
        : { scale: customScale(version.subresources.scale) }),
      ...(warning === undefined ? {} : { deprecationWarning: warning }),
    },
    () => schemas.structOf(name, kind),
    () => customTableConverter(columns),
    (other) => (names.has(other) ? schemas.structOf(other, kind) : undefined),
    { ...conversions, replaced: generation.replaced },
  );
}

/** The hash of the storage version in discovery (apiserver `endpoints/discovery/storageversionhash.go`). */
function storageVersionHash(group: string, version: string, kind: string): string {
  return createHash('sha256')
    .update(`${group}/${version}/${kind}`)
    .digest()
    .subarray(0, 8)
    .toString('base64');
}

/**
 * For the conversion strategy None: versions differ in their apiVersion only. An object of another version is left as
 * it is, and the strategy refuses it.
 */
function sameFieldsForm(group: string, version: string, storage: string): VersionForm {
  return {
    toStored: (object) =>
      object.apiVersion === `${group}/${version}`
        ? { ...object, apiVersion: `${group}/${storage}` }
        : { ...object },
    fromStored: (object) => ({ ...object, apiVersion: `${group}/${version}` }),
  };
}

function deprecation(
  group: string,
  kind: string,
  version: CustomResourceDefinitionVersion,
  versions: readonly CustomResourceDefinitionVersion[],
): string | undefined {
  if (version.deprecated !== true) return undefined;
  if (version.deprecationWarning !== undefined) return version.deprecationWarning;
  const newer = versions.find((other) => other.served && other.deprecated !== true);
  const old = `${group}/${version.name} ${kind} is deprecated`;
  return newer === undefined ? old : `${old}; use ${group}/${newer.name} ${kind}`;
}

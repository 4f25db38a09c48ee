import type { KubeObject } from '../../objects/meta.ts';
import type { GroupResource } from '../../objects/status.ts';
import type { InvalidSubject } from '../../registry/validation/field-errors.ts';
import type { ResourceDefinition } from '../../registry/generic/strategy.ts';
import type { StructSchema } from '../schema/schema.ts';
import { encodeObject, encodeSorted } from '../schema/encode.ts';
import type { TableConverter } from '../tables/table.ts';
import { listPrefix, objectKey, type StoredObject } from '../storage/storage.ts';

/** A resource with all that the verbs need of it, worked out once. */
export interface ServedResource {
  readonly definition: ResourceDefinition;
  /** Of a custom resource it is made when it is first asked for. */
  readonly schema: StructSchema;
  /** Custom resources: the schemas of the other versions, undefined for one that there is not. */
  readonly schemaOfVersion: ((version: string) => StructSchema | undefined) | undefined;
  /** `v1`, or `discovery.k8s.io/v1`. */
  readonly apiVersion: string;
  readonly groupResource: GroupResource;
  /** For 422s and delete preconditions, which name the Kind, in the group that owns the stored objects. */
  readonly groupKind: { readonly group: string; readonly kind: string };
  /** A custom resource: decoded as unstructured, no strategic merge patch. */
  readonly custom: boolean;
  /** Its table. */
  readonly table: TableConverter;
  /** Objects are stored in another form than they are served in (events.k8s.io; further versions of custom resources). */
  readonly shared: VersionForm | undefined;
  /** Custom resources whose versions a webhook converts (`spec.conversion`). */
  readonly conversion?: VersionConversion;
  /** Custom resources: aborts when the definition is another one, or gone: then watches end. */
  readonly replaced?: AbortSignal;
  /** The head of every encoding: `{"kind":"Service","apiVersion":"v1",`. Items of lists go without. */
  readonly head: string;
}

/** The two forms of objects that several resources share. Both directions return new objects or the argument. */
export interface VersionForm {
  toStored(object: KubeObject): KubeObject;
  fromStored(object: KubeObject): KubeObject;
}

/**
 * Converts objects from and to the storage version where a webhook is needed. All methods reject with a StatusError,
 * 500, when there is no answer.
 */
export interface VersionConversion {
  /**
   * Stored versions as the resource serves them, in their order; those that were converted lately are not converted
   * again.
   */
  read(stored: readonly StoredObject[]): Promise<readonly StoredObject[]>;
  /** One stored version as the resource serves it: its webhook is always called. */
  readNow(stored: StoredObject): Promise<StoredObject>;
  /** An object in the form that it would be stored in, as the resource serves it. */
  show(object: KubeObject): Promise<KubeObject>;
  /** An object of the resource as it is stored. */
  write(object: KubeObject): Promise<KubeObject>;
  /** Converts an object of any version of the resource to another one. */
  toVersion(object: KubeObject, apiVersion: string): Promise<KubeObject>;
  /** By an apiVersion of the resource; undefined for an unknown one. */
  schemaOf(apiVersion: string): StructSchema | undefined;
}

/**
 * @param schema of the kind, with apiVersion, kind and metadata among its fields; a function is called for it each time.
 * @param table is called for the first table.
 * @param schemaOfVersion only custom resources have it: the schema of any version of the definition.
 * @param forms how objects are stored; absent: as in the definition.
 */
export function serveResource(
  definition: ResourceDefinition,
  schema: StructSchema | (() => StructSchema),
  table: () => TableConverter,
  schemaOfVersion?: (version: string) => StructSchema | undefined,
  forms: Pick<ServedResource, 'shared' | 'conversion' | 'replaced'> = { shared: definition.storedAs },
): ServedResource {
  const custom = schemaOfVersion !== undefined;
  const { group, version, kind, plural } = definition;
  const apiVersion = group === '' ? version : `${group}/${version}`;
  return {
    definition,
    get schema() {
      return typeof schema === 'function' ? schema() : schema;
    },
    schemaOfVersion,
    apiVersion,
    groupResource: { group, resource: plural },
    groupKind: { group: definition.storedAs?.group ?? group, kind },
    custom,
    get table() {
      return table();
    },
    ...forms,
    head: custom
      ? `{"apiVersion":${JSON.stringify(apiVersion)},"kind":${JSON.stringify(kind)},`
      : `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`,
  };
}

/** The key of an object; kinds that share their storage share keys. */
export function storageKeyOf(resource: ServedResource, namespace: string, name: string): string {
  const { group, plural } = resource.definition.storedAs ?? resource.definition;
  return objectKey(group, plural, resource.definition.namespaced ? namespace : '', name);
}

/** The prefix of a list; namespace "" means all. */
export function storagePrefixOf(resource: ServedResource, namespace: string): string {
  const { group, plural } = resource.definition.storedAs ?? resource.definition;
  return listPrefix(
    group,
    plural,
    resource.definition.namespaced && namespace !== '' ? namespace : undefined,
  );
}

/** What a 422 about an object names: its own kind, which differs for a custom object of a wrong kind or group. */
export function invalidSubjectOf(resource: ServedResource, object: KubeObject): InvalidSubject {
  const { group, kind } = resource.groupKind;
  const { apiVersion = '' } = object;
  const own = resource.custom ? apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/'))) : group;
  return { group: own, kind: object.kind ?? kind, name: object.metadata.name ?? '' };
}

/** The object as this resource serves it: in its version, and as readers of the main resource see it. */
export function presented(resource: ServedResource, object: KubeObject): KubeObject {
  const { strategy } = resource.definition;
  const decorated = strategy.decorate === undefined ? object : strategy.decorate(object);
  return resource.shared === undefined ? decorated : resource.shared.fromStored(decorated);
}

/** The JSON of a stored object as this resource serves it. */
export function storedJson(resource: ServedResource, stored: StoredObject): string {
  const other = otherJson(resource, stored);
  return other ?? stored.text();
}

/** The JSON of a stored object where this resource serves another one than is stored. */
export function otherJson(resource: ServedResource, stored: StoredObject): string | undefined {
  const { strategy } = resource.definition;
  if (resource.shared === undefined) {
    if (strategy.decorate === undefined) return undefined;
    // The object is not in memory, as a rule.
    if (strategy.isDecorated?.(stored) === true) return undefined;
  }
  const { object } = stored;
  const shown = presented(resource, object);
  return shown === object ? undefined : encodeOf(resource, shown);
}

/** The JSON of an object of this resource. Custom objects are maps, whose schema is not needed for that. */
export function encodeOf(resource: ServedResource, object: KubeObject): string {
  return resource.custom ? encodeSorted(object) : encodeObject(resource.schema, object);
}

/** A stored version as the resource serves it; the webhook of its definition is called. @throws {StatusError} 500 */
export async function readServedVersion<T extends StoredObject | undefined>(
  { conversion }: ServedResource,
  stored: T,
): Promise<T | StoredObject> {
  return conversion === undefined || stored === undefined ? stored : conversion.readNow(stored);
}

/**
 * The answer of a dry run: the object as it would be read again.
 *
 * @param stored as it would be stored; undefined if that is the object itself.
 * @throws {StatusError} 500
 */
export async function toServedVersion(
  { conversion }: ServedResource,
  object: KubeObject,
  stored: KubeObject | undefined,
): Promise<KubeObject> {
  return conversion === undefined || stored === undefined ? object : conversion.show(stored);
}

function storedResource({ definition }: ServedResource): { readonly group: string; readonly plural: string } {
  return definition.storedAs ?? definition;
}

/** The resources that are served now. Custom resources come and go. */
export class ResourceTable {
  readonly #resources = new Map<string, ServedResource>();
  readonly #kinds = new Map<string, ServedResource>();
  #all: readonly ServedResource[] | undefined;
  #equivalents = new WeakMap<ServedResource, readonly ServedResource[]>();
  #version = 0;

  /** Grows with every change: discovery and OpenAPI cache by it. */
  get version(): number {
    return this.#version;
  }

  add(resource: ServedResource): void {
    const { group, version, plural, kind } = resource.definition;
    this.#resources.set(`${group}/${version}/${plural}`, resource);
    this.#kinds.set(`${group}/${version}/${kind}`, resource);
    this.#changed();
  }

  remove({
    group,
    version,
    plural,
    kind,
  }: Pick<ResourceDefinition, 'group' | 'version' | 'plural' | 'kind'>): void {
    if (!this.#resources.delete(`${group}/${version}/${plural}`)) return;
    this.#kinds.delete(`${group}/${version}/${kind}`);
    this.#changed();
  }

  #changed(): void {
    this.#all = undefined;
    this.#equivalents = new WeakMap();
    this.#version++;
  }

  find(group: string, version: string, plural: string): ServedResource | undefined {
    return this.#resources.get(`${group}/${version}/${plural}`);
  }

  /** The resource of a kind, for objects that name only their kind. */
  ofKind(group: string, version: string, kind: string): ServedResource | undefined {
    return this.#kinds.get(`${group}/${version}/${kind}`);
  }

  /** True for a group that only custom resources are in. */
  isCustomGroup(group: string): boolean {
    const own = this.all().filter(({ definition }) => definition.group === group);
    return own.length > 0 && own.every(({ custom }) => custom);
  }

  /** In the order in which they were added; the same array while nothing changes. */
  all(): readonly ServedResource[] {
    this.#all ??= [...this.#resources.values()];
    return this.#all;
  }

  /**
   * Other resources with the same objects: other versions of a custom resource, Events of the other group. The same array
   * while nothing changes: every write asks for them.
   */
  equivalentsOf(resource: ServedResource): readonly ServedResource[] {
    let equivalents = this.#equivalents.get(resource);
    if (equivalents === undefined) {
      const { group, plural } = storedResource(resource);
      equivalents = this.all().filter((other) => {
        if (other === resource) return false;
        const stored = storedResource(other);
        return stored.group === group && stored.plural === plural;
      });
      this.#equivalents.set(resource, equivalents);
    }
    return equivalents;
  }

  /** True when anything is served in the group version. */
  hasGroupVersion(group: string, version: string): boolean {
    const prefix = `${group}/${version}/`;
    for (const key of this.#resources.keys()) if (key.startsWith(prefix)) return true;
    return false;
  }
}

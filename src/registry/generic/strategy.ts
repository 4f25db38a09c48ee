import type { KubeObject } from '../../objects/meta.ts';
import type { StatusError } from '../../objects/status.ts';
import type { FieldError } from '../validation/field-errors.ts';
import type { ScaleForm } from './scale.ts';

/** The context of a strategy: request and stored objects. A strategy reads no clock and no randomness itself. */
export interface StrategyContext {
  /** RFC 3339, UTC, whole seconds: the time of this request. */
  readonly now: string;
  /** Random numbers in [0, 1). */
  random(): number;
  /** True for `dryRun=All`: nothing is stored, allocators hand out dummies. */
  readonly dryRun: boolean;
  /**
   * The user of the request; absent for requests of the server itself: then fields about the author are not checked.
   */
  readonly user?: UserInfo;
  /** The verb of an update: `update` or `patch`. */
  readonly verb?: string;
  /** The other objects, as they are now, for rules that read them (default IngressClass). */
  readonly cluster: ClusterReader;
}

/** The user of a request (authentication.k8s.io UserInfo). */
export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Read access to stored objects, newest version, in key order. */
export interface ClusterReader {
  list(group: string, plural: string, namespace?: string): readonly KubeObject[];
  get(group: string, plural: string, namespace: string, name: string): KubeObject | undefined;
}

/**
 * An allocation for one request. Exactly one of `commit` and `rollback` is called, once: `commit` after the write is
 * stored, `rollback` when the request fails or was a dry run.
 */
export interface Reservation {
  /** Objects that must be stored in the same transaction, before the object itself (IPAddress). */
  readonly creates: readonly SideObject[];
  /** Objects that must be removed in the same transaction, after the object itself. */
  readonly deletes: readonly SideObjectKey[];
  commit(): void;
  rollback(): void;
}

export interface SideObjectKey {
  readonly group: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
}

export interface SideObject extends SideObjectKey {
  readonly object: KubeObject;
  /** The error when an object of that name was stored during the request. */
  nameTaken(): StatusError;
}

/**
 * The rules of one kind: the counterpart of a registry `strategy.go`. Objects arrive decoded (types checked, unknown
 * fields dropped, defaults of {@link setDefaults} applied) and belong to the callee, who may change them in place;
 * `old` never changes.
 *
 * Order of a create: `setDefaults` (on decode) → `authorize` → `beginCreate` → `prepareValidation` → `prepareForCreate` →
 * `validateCreate` → `warningsOnCreate` → store. Of an update: `setDefaults` → `authorize` → `beginUpdate` → `prepareValidation` →
 * `prepareForUpdate` → `validateUpdate` → `warningsOnUpdate` → store.
 *
 * Methods, not function properties: a `Strategy<Service>` must be usable where any kind's strategy is held.
 */
export interface Strategy<T extends KubeObject = KubeObject> extends OwnableFields {
  /** PUT of a missing object creates it (`AllowCreateOnUpdate`). */
  readonly allowCreateOnUpdate: boolean;
  /** An update without resourceVersion is allowed (`AllowUnconditionalUpdate`). */
  readonly allowUnconditionalUpdate: boolean;
  /** DELETE returns the deleted object; else a Status. */
  readonly deleteReturnsObject: boolean;
  /**
   * The treatment of dependents when a delete does not set it (`DefaultGarbageCollectionPolicy`); default: they are
   * deleted. `Unsupported`: the kind has no dependents.
   */
  readonly defaultGarbageCollectionPolicy?: 'OrphanDependents' | 'Unsupported';
  /** The warning for a delete that does not set the treatment of dependents. */
  readonly deletionWarning?: string;
  /** Without declarative validation: an error that is found twice is named twice (custom resources). */
  readonly repeatsErrors?: true;

  /** Versioned defaulting (`SetDefaults_X`). Idempotent. */
  setDefaults(object: T): void;
  /**
   * The same for the result of an apply, where it differs: nulls that custom objects do not allow are kept, and
   * refused.
   */
  setAppliedDefaults?(object: T): void;
  /**
   * What the user must be allowed besides the write itself; `old` is undefined for a create. Called when admission has
   * changed the object (`policybased.Storage` of RBAC).
   *
   * @throws {StatusError} 403
   */
  authorize?(object: T, old: T | undefined, context: StrategyContext): void;
  /** Allocates what the object needs; may throw a StatusError, with nothing allocated. */
  beginCreate?(object: T, context: StrategyContext): Reservation;
  beginUpdate?(object: T, old: T, context: StrategyContext): Reservation;
  /** Releases what the object has; called when it is finally removed (after finalizers). */
  beginDelete?(old: T, context: StrategyContext): Reservation;
  /** Drops fields that clients may not set, sets generation 1 where the kind has generations. */
  prepareForCreate(object: T, context: StrategyContext): void;
  /** Restores from `old` what this endpoint may not change, increments generation. */
  prepareForUpdate(object: T, old: T, context: StrategyContext): void;
  /**
   * What validating the object needs and takes long, in steps before {@link prepareForCreate} or
   * {@link prepareForUpdate}, of subresources too: they find it made.
   */
  prepareValidation?(object: T): Generator<undefined, void, undefined>;
  /** All errors, metadata included (registry/generic/metadata.ts), in kube-apiserver's order. */
  validateCreate(object: T, context: StrategyContext): FieldError[];
  validateUpdate(object: T, old: T, context: StrategyContext): FieldError[];
  warningsOnCreate?(object: T): string[];
  warningsOnUpdate?(object: T, old: T): string[];
  /**
   * Changes what clients read (GET, LIST, WATCH of the main resource) of an object stored long ago. Returns a copy or
   * the object itself.
   */
  decorate?(object: T): T;
  /** True when the object's JSON or revision alone shows that {@link decorate} would return it as it is. */
  isDecorated?(stored: { readonly revision: number; isDecorated: boolean; text(): string }): boolean;
  /**
   * Selectable fields besides metadata.name and metadata.namespace; absent members are "". The keys are the same for
   * every object, an object of nothing but metadata included: they are the kind's field labels.
   */
  fields?(object: T): Record<string, string>;
  /**
   * Seconds for which a deleted object stays with a deletionTimestamp; 0 removes it at once. `requested` is
   * `gracePeriodSeconds` of the delete. Kinds without this method are always removed at once
   * (`CheckGracefulDelete`).
   */
  gracePeriodSeconds?(object: T, requested: number | undefined): number;
  /** Kinds whose content is deleted by a controller first (Namespace). */
  readonly termination?: FinalizedDeletion<T>;
  /** The strategy of `/status`, where the kind has one. */
  readonly status?: SubresourceStrategy<T>;
  /** Other subresources that write a part of the object, by name (`finalize`, `ephemeralcontainers`, `resize`). */
  readonly subresources?: ReadonlyMap<string, SubresourceStrategy<T>>;
}

/**
 * The deletion of a kind whose content is deleted first: the first DELETE marks it, the last finalizer removes it.
 */
export interface FinalizedDeletion<T extends KubeObject = KubeObject> {
  /** Marks the object as terminating; `metadata.deletionTimestamp` is set by the caller. */
  mark(object: T): void;
  /** True when the object may be removed. */
  finished(object: T): boolean;
  /** The first DELETE adds the finalizers of the garbage collector (Namespace). */
  readonly takesPropagation?: true;
}

/** Path of fields from the root; `*` is every item of a list. */
export type FieldPath = readonly string[];

/** The fields that an endpoint's writers can own (`GetResetFields`, `GetResetFieldsFilter`). */
export interface OwnableFields {
  /** Fields that the server sets or keeps, whatever a client sends: they and all fields below cannot be owned. */
  readonly resetFields?: readonly FieldPath[];
  /** Only these fields, those below and those above can be owned; absent: all. */
  readonly onlyFields?: readonly FieldPath[];
}

/** The rules of a subresource that writes a part of the object (`/status`, namespaces' `/finalize`). */
export interface SubresourceStrategy<T extends KubeObject = KubeObject> extends OwnableFields {
  prepareForUpdate(object: T, old: T, context: StrategyContext): void;
  validateUpdate(object: T, old: T, context: StrategyContext): FieldError[];
  warningsOnUpdate?(object: T, old: T): string[];
}

/** The names of a resource in discovery. */
export interface ResourceNames {
  /** "" for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  /** The kind of lists; absent: the kind and `List`. */
  readonly listKind?: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
}

/** A served resource: its discovery row, its schema and its strategy. */
export interface ResourceDefinition extends ResourceNames {
  /** Discovery verbs of the main resource. */
  readonly verbs: readonly string[];
  /** OpenAPI component name, e.g. `io.k8s.api.core.v1.Service`. */
  readonly schema: string;
  readonly strategy: Strategy;
  /** The base64 hash that discovery shows; absent where unknown. */
  readonly storageVersionHash?: string;
  /** Shares its objects with another resource (events.k8s.io and core events). */
  readonly storedAs?: SharedStorage;
  /**
   * Read from the store itself, without the watch cache that kube-apiserver has for all other kinds (Events): a limit
   * applies also at version 0, reads do not wait for a version, and watches have no bookmarks except for the one of the
   * initial events.
   */
  readonly uncached?: true;
  /** Field labels that are aliases of others, e.g. `spec.host` of `spec.nodeName`. */
  readonly fieldAliases?: ReadonlyMap<string, string>;
  /**
   * Every field label of this version besides those of the metadata, with the strategy's name for it (`regarding.name`
   * → `involvedObject.name`); absent: the strategy's names are the labels.
   */
  readonly fieldLabels?: ReadonlyMap<string, string>;
  /** `/scale` by the paths of a definition: custom resources. */
  readonly scale?: ScaleForm;
  /** Text of a `Warning` header on every request to the resource, before all other warnings. */
  readonly deprecationWarning?: string;
}

/**
 * The storage of a resource whose objects another resource owns. The strategy of the sharing resource sees objects
 * in the stored form, and errors name the kind of the owning group; decoding, patches and encoding use the served
 * form.
 */
export interface SharedStorage {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** The served form → the stored one. Returns a new object that may share parts with the argument. */
  toStored(object: KubeObject): KubeObject;
  fromStored(object: KubeObject): KubeObject;
}

/** Differences from the default: a namespaced kind of version v1 with all verbs. */
type Differences = Partial<ResourceDefinition>;

/** The verbs of most kinds. */
export const allVerbs = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
] as const;

type RowMaker = (
  kind: string,
  plural: string,
  /** First 8 bytes of SHA-256 over `<group>/<storage version>/<Kind>`, base64. */
  storageVersionHash: string,
  strategy: Strategy,
  differences?: Differences,
) => ResourceDefinition;

/** @param goPackage as in the names of the OpenAPI components, with the prefix where that is not `api`. */
export function rowsOf(group: string, goPackage: string, version = 'v1'): RowMaker {
  const prefix = goPackage.includes('.') ? 'io.k8s' : 'io.k8s.api';
  return (kind, plural, storageVersionHash, strategy, differences = {}) => ({
    group,
    version,
    plural,
    singular: kind.toLowerCase(),
    kind,
    namespaced: true,
    shortNames: [],
    categories: [],
    verbs: allVerbs,
    schema: `${prefix}.${goPackage}.${version}.${kind}`,
    strategy,
    storageVersionHash,
    ...differences,
  });
}

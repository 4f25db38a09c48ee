import { isRecord, jsonEqual, type JsonRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { parseJson, JsonSyntaxError } from '../../schema/json.ts';
import { encodeSorted } from '../../schema/encode.ts';
import { withoutRawNumbers } from '../../schema/decode-leaf.ts';
import type { StructSchema, FieldValidation } from '../../schema/schema.ts';
import { changedFields, fieldsOf, removedFields, mergeValues } from './typed-value.ts';
import {
  fieldSetDifference,
  emptySet,
  type FieldSet,
  PathElementError,
  isEmptySet,
  union,
} from './field-set.ts';
import { plainError } from '../../../objects/status.ts';
import type { OwnableFields } from '../../../registry/generic/strategy.ts';
import { pruneCustomObject } from '../../schema/custom-object.ts';
import type { ExpectedKind } from '../../schema/decode-body.ts';
import { DecodeError } from '../../schema/decode-walk.ts';
import { decodeMapValue } from '../../schema/decode.ts';
import { conflictError, type Conflict, findConflicts, onlyOwnable, stripUnowned } from './conflicts.ts';
import {
  decodeManagers,
  type Managed,
  ManagedFieldsError,
  managerId,
  type Managers,
  takeFields,
  type ChangesByVersion,
  noOtherVersions,
} from './managers.ts';
import { emptyObject, recordUpdate, untracked } from './track-update.ts';
import { joinErrors, validateConfig } from './config.ts';

/**
 * How `kubectl apply --server-side` takes over from client-side apply (apimachinery
 * `managedfields/internal/lastappliedmanager.go`, `lastappliedupdater.go`).
 */

/** The manager of both kubectl's applies. */
const kubectl = 'kubectl';

const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
/** Bytes that all annotations of an object may have together. */
const maxAnnotationBytes = 256 * 1024;

/**
 * Fields that a client-side apply set and that are unchanged since: `kubectl` may take them over from their recorded
 * owner.
 */
function fieldsOfLastApplied(schema: StructSchema, live: KubeObject): FieldSet {
  const text = live.metadata.annotations?.[annotation];
  if (text === undefined) return emptySet;
  try {
    const config = withoutRawNumbers(parseJson(Buffer.from(text)).value);
    const changed = fieldSetDifference(fieldsOf(schema, config), changedFields(schema, config, live));
    return fieldSetDifference(changed, removedFields(schema, config, live));
  } catch (error) {
    if (error instanceof JsonSyntaxError || error instanceof PathElementError) return emptySet;
    throw error;
  }
}

/**
 * The object with its last-applied annotation updated, if it has one, so that client-side applies keep working. The
 * manager does not own the annotation.
 */
function withLastApplied(live: KubeObject, config: unknown): KubeObject {
  const { annotations } = live.metadata;
  if (annotations?.[annotation] === undefined) return live;
  const { [annotation]: _before, ...others } = annotations;
  const text = `${encodeSorted(withoutAnnotation(config))}\n`;
  const size = Object.entries(others).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
  const fits = size + Buffer.byteLength(text) + annotation.length <= maxAnnotationBytes;
  return {
    ...live,
    metadata: { ...live.metadata, annotations: fits ? { ...others, [annotation]: text } : others },
  };
}

function withoutAnnotation(config: unknown): unknown {
  if (!isRecord(config) || !isRecord(config['metadata']) || !isRecord(config['metadata']['annotations'])) {
    return config;
  }
  const { [annotation]: _before, ...others } = config['metadata']['annotations'];
  return { ...config, metadata: { ...config['metadata'], annotations: others } };
}

/** An apply, as a request asks for it. */
export interface ApplyRequest {
  /** YAML or JSON (`application/apply-patch+yaml`). */
  readonly bytes: Buffer;
  /** The stored object; for a create undefined, or an object without a uid. Not changed. */
  readonly live: KubeObject | undefined;
  readonly expected: ExpectedKind;
  readonly fieldValidation: FieldValidation;
  /** The `fieldManager` parameter, which an apply must have. */
  readonly manager: string;
  readonly force: boolean;
  /** "" for the main resource, "status" … */
  readonly subresource: string;
  /** RFC 3339, UTC, whole seconds. */
  readonly now: string;
  /** Which fields an apply to this endpoint can own. */
  readonly ownable: OwnableFields;
  /** Fills in defaults on decode (`Strategy.setDefaults`), in place. */
  setDefaults(object: KubeObject): void;
}

/** The first half of an apply. */
export interface ApplyStart {
  /** The former owners of fields. */
  readonly before: Managers;
  /** As {@link before}, with the row of this apply; changed by the second half. */
  readonly managers: Managers;
  /** This apply's place in {@link managers}. */
  readonly id: string;
  /** The row of this manager's last apply. */
  readonly previous: Managed | undefined;
  /** The stored object with the configuration. */
  readonly merged: unknown;
}

/** The steps of one apply, in their order: {@link start}, pruning, {@link settleConflicts}, {@link made}. */
export class ApplyRun {
  readonly #request: ApplyRequest;
  readonly #schema: StructSchema;
  readonly #config: JsonRecord;
  readonly #live: KubeObject | undefined;
  /** The stored object as apply sees it; for a create an empty one. */
  readonly base: unknown;

  constructor(request: ApplyRequest, config: JsonRecord) {
    const live = request.live?.metadata.uid === undefined ? undefined : request.live;
    this.#request = request;
    this.#schema = request.expected.schema;
    this.#config = config;
    this.#live = live !== undefined && request.manager === kubectl ? withLastApplied(live, config) : live;
    this.base = this.#live === undefined ? emptyObject(this.#schema) : untracked(this.#live);
  }

  /** Merges. Fields that the manager stopped applying are still there: `prune.ts` removes them. */
  *start(): Generator<undefined, ApplyStart, undefined> {
    const errors = validateConfig(this.#schema, this.#config);
    yield;
    if (errors.length > 0) {
      throw plainError(`failed to create typed patch object (${this.#subject()}): ${joinErrors(errors)}`);
    }
    const before = this.#readManagers();
    yield;
    const self = this.#row(this.#filter(fieldsOf(this.#schema, this.#config)));
    yield;
    const id = managerId(self);
    return {
      before,
      managers: new Map(before).set(id, self),
      id,
      previous: before.get(id),
      merged: mergeValues(this.#schema, this.base, this.#config),
    };
  }

  /** The object, still without its managers. */
  *made(
    { managers, id, previous }: ApplyStart,
    pruned: unknown,
  ): Generator<undefined, KubeObject, undefined> {
    takeUnowned(managers, id);
    if (jsonEqual(this.base, pruned) && this.#live !== undefined) {
      const row = managers.get(id);
      // A manager that only becomes an owner of unchanged fields gets no time, or keeps the one it had (ManagedFieldsUpdater).
      if (row !== undefined) managers.set(id, { ...row, time: previous?.time });
      return structuredClone(this.#live);
    }
    yield;
    const object = this.#decode(pruned);
    yield;
    this.#request.setDefaults(object);
    return object;
  }

  /** The error that is answered for what {@link start}, {@link settleConflicts} or {@link made} threw. */
  explain(error: unknown): unknown {
    if (!(error instanceof PathElementError)) return error;
    return plainError(`failed to create typed live object (${this.#subject()}): ${this.#faultsOfLive()}`);
  }

  /** Some kinds may have list items without their key: apply cannot distinguish them. */
  #faultsOfLive(): string {
    const faults = validateConfig(this.#schema, this.base);
    return joinErrors(faults.filter((text) => !text.includes(': duplicate entries')));
  }

  #row(fields: FieldSet): Managed {
    const { manager, subresource, now, expected } = this.#request;
    return {
      manager,
      operation: 'Apply',
      apiVersion: expectedApiVersion(expected),
      subresource,
      time: now,
      fields,
    };
  }

  /**
   * The owners before this apply. An object without managed fields belongs to "before-first-apply", so that the first
   * apply does not silently change it.
   */
  #readManagers(): Managers {
    let managers: Managers;
    try {
      managers = decodeManagers(this.#live?.metadata.managedFields);
    } catch (error) {
      if (!(error instanceof ManagedFieldsError)) throw error;
      throw plainError(`failed to decode managed fields: ${error.message}`);
    }
    if (managers.size === 0 && this.#live !== undefined) {
      const { subresource, now, ownable, expected } = this.#request;
      const update = {
        schema: this.#schema,
        manager: 'before-first-apply',
        subresource,
        apiVersion: expectedApiVersion(expected),
        now,
        ownable,
      };
      try {
        recordUpdate(managers, update, emptyObject(this.#schema), untracked(this.#live), noOtherVersions);
      } catch (error) {
        if (!(error instanceof PathElementError)) throw error;
        const step = 'failed to create manager for existing fields: failed to convert new object';
        throw plainError(`${step} (${this.#subject()}) to smd typed: ${this.#faultsOfLive()}`);
      }
    }
    return managers;
  }

  #filter(set: FieldSet): FieldSet {
    return onlyOwnable(set, this.#request.ownable);
  }

  /**
   * Takes from the other managers what the apply changes.
   *
   * @param others what the apply changes in the versions of other managers.
   * @throws {StatusError} 409 for a conflict, unless forced.
   */
  *settleConflicts(
    { managers, id }: ApplyStart,
    next: unknown,
    others: ChangesByVersion,
  ): Generator<undefined, void, undefined> {
    const changed = this.#filter(changedFields(this.#schema, this.base, next));
    yield;
    const removed = this.#filter(removedFields(this.#schema, this.base, next));
    yield;
    const changesFor = (row: Managed) => others.get(row.apiVersion) ?? { changed, removed };
    const conflicts = findConflicts(managers, id, (owner) => changesFor(owner).changed);
    if (conflicts.size > 0 && !this.#request.force) {
      const refused = this.#withoutAllowed(conflicts);
      if (refused.size > 0) throw conflictError(refused);
    }
    for (const [other, row] of [...managers]) {
      const there = changesFor(row);
      if (other === id) continue;
      takeFields(managers, other, union(there.changed, there.removed));
      yield;
    }
  }

  /** `kubectl` may change what its client-side applies set. */
  #withoutAllowed(conflicts: Map<string, Conflict>): Map<string, Conflict> {
    if (this.#request.manager !== kubectl || this.#live === undefined) return conflicts;
    const allowed = fieldsOfLastApplied(this.#schema, this.#request.live ?? this.#live);
    const refused = new Map<string, Conflict>();
    for (const [id, { owner, fields }] of conflicts) {
      const rest = fieldSetDifference(fields, allowed);
      if (!isEmptySet(rest)) refused.set(id, { owner, fields: rest });
    }
    return refused;
  }

  #decode(value: unknown): KubeObject {
    const { expected } = this.#request;
    try {
      if (this.#schema.custom !== undefined) {
        return pruneCustomObject(this.#schema, { value, repeated: undefined, hasRawNumbers: false }).object;
      }
      const { metadata, ...rest } = decodeMapValue(this.#schema, value).object;
      return {
        ...rest,
        apiVersion: expectedApiVersion(expected),
        kind: expected.kind,
        metadata: isRecord(metadata) ? metadata : {},
      };
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      const subject = this.#subject();
      throw plainError(
        `failed to convert new object (${subject}) to proper version: unable to convert unstructured object to ${kindText(expected)}: ${error.message}`,
      );
    }
  }

  /** `namespace/name; group/version, Kind=kind` of the configuration. */
  #subject(): string {
    const metadata = isRecord(this.#config['metadata']) ? this.#config['metadata'] : {};
    const text = (value: unknown): string => (typeof value === 'string' ? value : '');
    return `${text(metadata['namespace'])}/${text(metadata['name'])}; ${kindText(this.#request.expected)}`;
  }
}

/** Removes names and fields that the server sets from all owners; empty entries are dropped. */
function takeUnowned(managers: Managers, id: string): void {
  const row = managers.get(id);
  if (row === undefined) return;
  const fields = stripUnowned(row.fields);
  if (isEmptySet(fields)) managers.delete(id);
  else managers.set(id, { ...row, fields });
}

/** `group/version`, as objects have it. */
export function expectedApiVersion({ group, version }: ExpectedKind): string {
  return group === '' ? version : `${group}/${version}`;
}

function kindText({ group, version, kind }: ExpectedKind): string {
  return `${group}/${version}, Kind=${kind}`;
}

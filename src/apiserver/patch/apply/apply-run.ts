import { isRecord, jsonEqual, type JsonRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { plainError } from '../../../objects/status-errors.ts';
import type { OwnableFields } from '../../../registry/generic/strategy.ts';
import { pruneCustomObject } from '../../schema/custom-object.ts';
import type { ExpectedKind } from '../../schema/decode-body.ts';
import { DecodeError } from '../../schema/decode-walk.ts';
import { decodeMapValue } from '../../schema/decode.ts';
import type { FieldValidation, StructSchema } from '../../schema/schema.ts';
import { changedFields, fieldsOf, removedFields } from './compare.ts';
import { conflictError, type Conflict, findConflicts } from './conflicts.ts';
import { fieldSetDifference, type FieldSet, isEmptySet, union } from './field-set.ts';
import { fieldsOfLastApplied, kubectl, withLastApplied } from './last-applied.ts';
import {
  decodeManagers,
  type Managed,
  ManagedFieldsError,
  managerId,
  type Managers,
  takeFields,
} from './managers.ts';
import { mergeValues } from './merge.ts';
import { type ChangesByVersion, noOtherVersions } from './other-versions.ts';
import { onlyOwnable, stripUnowned } from './ownership.ts';
import { PathElementError } from './path-element.ts';
import { emptyObject, recordUpdate, untracked } from './track-update.ts';
import { joinErrors, validateConfig } from './validate-config.ts';

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

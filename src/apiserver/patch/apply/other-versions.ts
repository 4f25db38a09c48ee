/**
 * Ownership of fields in other versions than that of a request, for kinds whose versions have different fields
 * (structured-merge-diff `merge/update.go`, which uses a Converter).
 */
import { type KubeObject, hasMetadata } from '../../../objects/meta.ts';
import type { StructSchema } from '../../schema/schema.ts';
import { changedFields, removedFields } from './compare.ts';
import type { FieldSet } from './field-set.ts';
import type { Managers } from './managers.ts';

/** The versions of a kind whose objects have other fields in each. */
export interface OtherVersions {
  /** Undefined for an apiVersion that the kind has not. */
  schemaOf(apiVersion: string): StructSchema | undefined;
  /** @throws {StatusError} when the object cannot be converted. */
  toVersion(object: KubeObject, apiVersion: string): Promise<KubeObject>;
}

/** What a write changes or adds, and what it removes. */
export interface Changes {
  readonly changed: FieldSet;
  readonly removed: FieldSet;
}

/** The changes of a write by the apiVersion in which they are seen; the version of the request is not among them. */
export type ChangesByVersion = ReadonlyMap<string, Changes>;

/** Of a kind that has the same fields in all versions. */
export const noOtherVersions: ChangesByVersion = new Map();

/** Converts the objects of one write, each to a version once. */
export class Conversions {
  readonly #versions: OtherVersions;
  readonly #known = new Map<KubeObject, Map<string, KubeObject>>();

  constructor(versions: OtherVersions) {
    this.#versions = versions;
  }

  /** See {@link OtherVersions.schemaOf}. */
  schemaOf(apiVersion: string): StructSchema | undefined {
    return this.#versions.schemaOf(apiVersion);
  }

  /**
   * A value in a version. What has no version of its own, as the object before a create, is the same in all.
   *
   * @throws {StatusError} when it cannot be converted.
   */
  async convert(value: unknown, apiVersion: string): Promise<unknown> {
    if (!hasMetadata(value) || value.apiVersion === undefined || value.apiVersion === apiVersion)
      return value;
    let known = this.#known.get(value);
    if (known === undefined) this.#known.set(value, (known = new Map<string, KubeObject>()));
    const converted = known.get(apiVersion) ?? (await this.#versions.toVersion(value, apiVersion));
    known.set(apiVersion, converted);
    return converted;
  }

  /**
   * The changes of a write in each version of the managers but that of the request. An object that cannot be converted
   * to one of them fails the whole (`reconcileManagedFieldsWithSchemaChanges`).
   *
   * @throws {StatusError}
   */
  async changes(managers: Managers, own: string, from: unknown, to: unknown): Promise<ChangesByVersion> {
    const changes = new Map<string, Changes>();
    for (const { apiVersion } of managers.values()) {
      if (apiVersion === own || changes.has(apiVersion)) continue;
      const before = await this.convert(from, apiVersion);
      const after = await this.convert(to, apiVersion);
      const schema = this.schemaOf(apiVersion);
      if (schema === undefined) continue;
      changes.set(apiVersion, {
        changed: changedFields(schema, before, after),
        removed: removedFields(schema, before, after),
      });
    }
    return changes;
  }
}

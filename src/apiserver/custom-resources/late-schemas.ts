import { jsonEqual } from '../../objects/json.ts';
import type {
  CustomResourceDefinitionVersion,
  JSONSchemaProps,
} from '../../objects/types/apiextensions.generated.ts';
import { isCustomResourceDefinition } from '../../registry/apiextensions/customresourcedefinition/strategy.ts';
import { schemaFromCustomResource } from '../schema/custom-object.ts';
import type { StructSchema } from '../schema/schema.ts';
import type { StoredObject } from '../storage/storage.ts';

/**
 * The schemas of a definition's versions, each read from the stored definition when it is first asked for: most kinds
 * of a cluster are never used, and a schema takes ten times the memory of its text. Versions with equal schemas share
 * one, and what is compiled of it.
 */
export class LateSchemas {
  readonly #stored: StoredObject;
  readonly #loaded = new Map<string, JSONSchemaProps | undefined>();
  readonly #structs = new Map<JSONSchemaProps | undefined, StructSchema>();

  constructor(stored: StoredObject) {
    this.#stored = stored;
  }

  /** As the definition has it; undefined for a version without one. */
  openAPIV3SchemaOf(version: string): JSONSchemaProps | undefined {
    if (this.#loaded.has(version)) return this.#loaded.get(version);
    const { object } = this.#stored;
    const versions = isCustomResourceDefinition(object) ? (object.spec.versions ?? []) : [];
    const own = versions.find(({ name }) => name === version)?.schema?.openAPIV3Schema;
    const equal = [...this.#loaded.values()].find((loaded) => jsonEqual(loaded, own));
    this.#loaded.set(version, equal ?? own);
    return equal ?? own;
  }

  /** @param kind for error texts. */
  structOf(version: string, kind: string): StructSchema {
    const schema = this.openAPIV3SchemaOf(version);
    let struct = this.#structs.get(schema);
    if (struct === undefined) this.#structs.set(schema, (struct = schemaFromCustomResource(schema, kind)));
    return struct;
  }

  /** The version, with its schema only when that is read. */
  late(version: CustomResourceDefinitionVersion): CustomResourceDefinitionVersion {
    const { schema, ...rest } = version;
    if (schema === undefined) return rest;
    const read = (): JSONSchemaProps | undefined => this.openAPIV3SchemaOf(rest.name);
    return {
      ...rest,
      get schema() {
        const openAPIV3Schema = read();
        return openAPIV3Schema === undefined ? {} : { openAPIV3Schema };
      },
    };
  }
}

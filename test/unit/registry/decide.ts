/** Runs the strategies of built-in kinds on JSON, between the real decoder and the real encoder. */
import { certificateReader } from '../../../src/apiserver/pki/signing-request.ts';
import { builtinSchema } from '../../../src/apiserver/schema/builtin.ts';
import { decodeBody } from '../../../src/apiserver/schema/decode-body.ts';
import { encodeObject } from '../../../src/apiserver/schema/encode.ts';
import { isRecord, type JsonRecord } from '../../../src/objects/json.ts';
import type { KubeObject } from '../../../src/objects/meta.ts';
import { builtInResources } from '../../../src/registry/catalog.ts';
import type { FieldError } from '../../../src/registry/validation/field-errors.ts';
import { ServiceAllocators } from '../../../src/registry/core/service/allocators.ts';
import { createServiceStrategy } from '../../../src/registry/core/service/strategy.ts';
import type {
  ResourceDefinition,
  StrategyContext,
  SubresourceStrategy,
} from '../../../src/registry/generic/strategy.ts';

/** Addresses that IPAddress objects took and freed, in order. */
export const addressLog: string[] = [];

const allocators = new ServiceAllocators({
  families: ['IPv4'],
  nodePortRange: { first: 30_000, last: 32_767 },
});

/** The catalog. There is no ServiceCIDR: no Service gets an address. */
export const definitions: readonly ResourceDefinition[] = builtInResources({
  service: createServiceStrategy(allocators),
  addresses: {
    commit: (address) => addressLog.push(`hold ${address}`),
    release: (address) => addressLog.push(`release ${address}`),
  },
  certificates: certificateReader,
  openshift: () => true,
});

export const now = '2020-01-01T00:00:00Z';

export function contextOf(objects: readonly KubeObject[] = []): StrategyContext {
  return {
    now,
    random: () => 0.5,
    dryRun: false,
    cluster: { list: () => objects, get: () => undefined },
  };
}

export interface Decision {
  /** As a client would read it. */
  readonly object: unknown;
  /** As it would be stored. */
  readonly stored: KubeObject;
  /** `field: body` of each error. */
  readonly errors: string[];
  readonly warnings: string[];
}

export function definitionOf(kind: string, group?: string): ResourceDefinition {
  const found = definitions.find((row) => row.kind === kind && (group === undefined || row.group === group));
  if (found === undefined) throw new Error(`no kind ${kind}`);
  return found;
}

/** Decodes and defaults, as every request does first. */
export function read(definition: ResourceDefinition, body: object): KubeObject {
  const { group, version, kind, namespaced } = definition;
  const { object } = decodeBody({
    bytes: Buffer.from(JSON.stringify(body)),
    contentType: 'application/json',
    expected: { group, version, kind, schema: builtinSchema(definition.schema) },
    fieldValidation: 'Ignore',
  });
  if (namespaced) object.metadata.namespace = 'ns';
  const stored = definition.storedAs?.toStored(object) ?? object;
  definition.strategy.setDefaults(stored);
  return stored;
}

/** The path of a create from admission to the store. `body` needs no name. */
export function create(definition: ResourceDefinition, body: object, context = contextOf()): Decision {
  const { strategy } = definition;
  const stored = read(definition, { metadata: { name: 'a' }, ...body });
  stored.metadata.uid ??= 'uid';
  const reservation = strategy.beginCreate?.(stored, context);
  strategy.prepareForCreate(stored, context);
  const errors = strategy.validateCreate(stored, context);
  if (errors.length === 0) reservation?.commit();
  else reservation?.rollback();
  return decision(definition, stored, errors, () => strategy.warningsOnCreate?.(stored));
}

/** The path of an update of the main resource or a subresource. `body` replaces everything but the metadata. */
export function update(
  definition: ResourceDefinition,
  old: KubeObject,
  body: object,
  subresource?: string,
  context = contextOf(),
): Decision {
  const { strategy } = definition;
  const stored = read(definition, { metadata: old.metadata, ...body });
  const part: SubresourceStrategy | undefined =
    subresource === undefined
      ? strategy
      : subresource === 'status'
        ? strategy.status
        : strategy.subresources?.get(subresource);
  if (part === undefined) throw new Error(`no ${subresource ?? ''}`);
  part.prepareForUpdate(stored, old, context);
  const errors = part.validateUpdate(stored, old, context);
  return decision(definition, stored, errors, () => part.warningsOnUpdate?.(stored, old));
}

/** A member of an object that is an object itself. @throws {Error} when it is not. */
export function memberOf(object: object, name: string): JsonRecord {
  const value: unknown = Reflect.get(object, name);
  if (!isRecord(value)) throw new Error(`no ${name}`);
  return value;
}

function decision(
  definition: ResourceDefinition,
  stored: KubeObject,
  errors: readonly FieldError[],
  warnings: () => string[] | undefined,
): Decision {
  const shown = definition.storedAs?.fromStored(stored) ?? stored;
  const object: unknown = JSON.parse(encodeObject(builtinSchema(definition.schema), shown));
  return {
    object,
    stored,
    errors: errors.map(({ field, body }) => `${field}: ${body}`),
    warnings: errors.length === 0 ? (warnings() ?? []) : [],
  };
}

import type {
  CustomResourceDefinition,
  CustomResourceDefinitionCondition,
  JSONSchemaProps,
} from '../../../objects/types/apiextensions.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { type FieldError, invalid, required } from '../../validation/field-errors.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import type { Strategy } from '../../generic/strategy.ts';
import { mayKeepWrongBundle } from './conversion.ts';
import {
  compileVersions,
  validateAcceptedNames,
  validateDefinition,
  validateDefinitionName,
  validateImmutableNames,
  validatePreservation,
} from './validation.ts';
import { checkedFormat } from '../../../objects/formats/string-formats.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';

/** True for a decoded CustomResourceDefinition. */
export function isCustomResourceDefinition(object: KubeObject): object is CustomResourceDefinition {
  return object.kind === 'CustomResourceDefinition' && 'spec' in object && 'status' in object;
}

/** True when a condition of that type has status True. */
export function hasCondition(definition: CustomResourceDefinition, type: string): boolean {
  return (definition.status.conditions ?? []).some(
    (condition) => condition.type === type && condition.status === 'True',
  );
}

/** The conditions with `next` in the place of that type; the transition time stays while the status does. */
export function withCondition(
  conditions: readonly CustomResourceDefinitionCondition[] | null,
  next: CustomResourceDefinitionCondition,
): CustomResourceDefinitionCondition[] {
  const list = [...(conditions ?? [])];
  const at = list.findIndex(({ type }) => type === next.type);
  const before = list[at];
  if (before === undefined) return [...list, next];
  const kept = before.status === next.status ? before.lastTransitionTime : undefined;
  const time = kept ?? next.lastTransitionTime;
  list[at] = { ...next, ...(time === undefined ? {} : { lastTransitionTime: time }) };
  return list;
}

const annotation = 'api-approved.kubernetes.io';
const see = 'see https://github.com/kubernetes/enhancements/pull/1111';

type State = 'missing' | 'invalid' | 'approved' | 'bypassed';

interface Approval {
  readonly state: State;
  readonly message: string;
}

const reasons: Readonly<Record<State, string>> = {
  missing: 'MissingAnnotation',
  invalid: 'InvalidAnnotation',
  approved: 'ApprovedAnnotation',
  bypassed: 'UnapprovedAnnotation',
};

/** Groups that belong to the Kubernetes community (`IsProtectedCommunityGroup`). */
function isProtected(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}

/** The value of the annotation (`GetAPIApprovalState`): the URL of a review, or that there was none. */
function approvalOf({ metadata: { annotations = {} } }: KubeObject): Approval {
  const text = Object.hasOwn(annotations, annotation) ? (annotations[annotation] ?? '') : '';
  const must = `protected groups must have approval annotation "${annotation}"`;
  if (text === '') return { state: 'missing', message: `${must}, ${see}` };
  if (text.startsWith('unapproved')) {
    return { state: 'bypassed', message: `not approved: ${JSON.stringify(text)}` };
  }
  if (/^[a-z][a-z\d+.-]*:\/\/[^/?#]/i.test(text) && URL.canParse(text)) {
    return { state: 'approved', message: `approved in ${text}` };
  }
  const either = 'with either a URL or a reason starting with "unapproved"';
  return { state: 'invalid', message: `${must} ${either}, ${see}` };
}

/**
 * A definition in a protected group must name its approval (KEP-1111). An update that does not change the state of
 * approval is never refused.
 */
export function validateApproval(definition: KubeObject, group: string, old?: KubeObject): FieldError[] {
  if (!isProtected(group)) return [];
  const { state, message } = approvalOf(definition);
  if (old !== undefined && approvalOf(old).state === state) return [];
  const path = `metadata.annotations[${annotation}]`;
  if (state === 'missing') return [required(path, message)];
  if (state !== 'invalid') return [];
  return [invalid(path, definition.metadata.annotations?.[annotation], message)];
}

/** The definition with its condition of conformance when its group is protected (`calculateCondition`). */
export function withApproval(definition: CustomResourceDefinition, now: string): CustomResourceDefinition {
  if (!isProtected(definition.spec.group)) return definition;
  const { state, message } = approvalOf(definition);
  const conditions = withCondition(definition.status.conditions, {
    type: 'KubernetesAPIApprovalPolicyConformant',
    status: state === 'approved' ? 'True' : 'False',
    lastTransitionTime: now,
    reason: reasons[state],
    message,
  });
  return { ...definition, status: { ...definition.status, conditions } };
}

/** The finalizer that keeps a deleted definition until its objects are gone (apiextensions `finalizer` controller). */
export const customResourceCleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io';

function storageVersion({ spec }: CustomResourceDefinition): string | undefined {
  return (spec.versions ?? []).find((version) => version.storage)?.name;
}

const rules = genericStrategy<CustomResourceDefinition>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  metadataRules: 'machinery',
  hasStatus: true,
  allowUnconditionalUpdate: false,
  deleteReturnsObject: false,
  generationChanges: (definition, old) => !jsonEqual(definition.spec, old.spec),
  setDefaults(definition) {
    const spec: Partial<CustomResourceDefinition['spec']> = definition.spec;
    const { names } = spec;
    if (names !== undefined) {
      if ((names.singular ?? '') === '') names.singular = names.kind.toLowerCase();
      if ((names.listKind ?? '') === '' && names.kind !== '') names.listKind = `${names.kind}List`;
      if (names.singular === '') delete names.singular;
    }
    spec.conversion ??= { strategy: 'None' };
    const service = spec.conversion.webhook?.clientConfig?.service;
    if (service !== undefined) service.port ??= 443;
    const status: Partial<CustomResourceDefinition['status']> = definition.status;
    const storage = storageVersion(definition);
    if (storage !== undefined && (status.storedVersions ?? []).length === 0)
      status.storedVersions = [storage];
  },
  prepareForCreate(definition) {
    const storage = storageVersion(definition);
    definition.status = {
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      storedVersions: storage === undefined ? null : [storage],
    };
  },
  prepareForUpdate(definition) {
    const storage = storageVersion(definition);
    const known = definition.status.storedVersions ?? [];
    if (storage !== undefined && !known.includes(storage)) {
      definition.status = { ...definition.status, storedVersions: [...known, storage] };
    }
  },
  validateCreate: (definition) => [
    ...validateDefinitionName(definition),
    ...validateDefinition(definition),
    ...validateApproval(definition, definition.spec.group),
    ...validatePreservation(definition),
  ],
  validateStatus: ({ status }) => validateAcceptedNames(status.acceptedNames),
  warningsOnCreate: (definition) => schemaWarnings(definition),
  warningsOnUpdate: schemaWarnings,
  validateUpdate(definition, old) {
    const established = hasCondition(old, 'Established');
    const immutable = validateImmutableNames(definition, old, established);
    return [
      ...validateDefinition(definition, immutable, mayKeepWrongBundle(old.spec.conversion, established)),
      ...validateApproval(definition, definition.spec.group, old),
      ...validatePreservation(definition, old),
    ];
  },
});

/**
 * The rules of CustomResourceDefinitions (apiextensions-apiserver `registry/customresourcedefinition`). A delete marks
 * one as terminating; it is removed when its objects are gone.
 */
export const customResourceDefinitionStrategy: Strategy<CustomResourceDefinition> = {
  ...rules,
  repeatsErrors: true,
  prepareValidation: compileVersions,
  termination: {
    mark: (definition) => {
      const { metadata } = definition;
      const finalizers = metadata.finalizers ?? [];
      if (!finalizers.includes(customResourceCleanupFinalizer))
        metadata.finalizers = [...finalizers, customResourceCleanupFinalizer];
      const time = metadata.deletionTimestamp;
      definition.status = {
        ...definition.status,
        conditions: withCondition(definition.status.conditions, {
          type: 'Terminating',
          status: 'True',
          ...(time === undefined ? {} : { lastTransitionTime: time }),
          reason: 'InstanceDeletionPending',
          message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
        }),
      };
    },
    finished: () => true,
  },
};

/** The depth limit of schemas; deeper ones are refused before warnings are made. */
const maxDepth = 100;

/**
 * Warnings of unknown formats (apiextensions `registry/customresourcedefinition/strategy.go`), each once. An update
 * warns of formats that the stored definition does not have.
 */
export function schemaWarnings(
  definition: CustomResourceDefinition,
  old?: CustomResourceDefinition,
): string[] {
  const before = old === undefined ? undefined : unsupportedIn(old);
  const { formats, sets } = unsupportedIn(definition);
  return [
    ...[...formats]
      .filter((format) => before?.formats.has(format) !== true)
      .map((format) => `unrecognized format ${JSON.stringify(format)}`),
    ...[...sets]
      .sort()
      .filter((type) => before?.sets.has(type) !== true)
      .map(
        (type) =>
          `x-kubernetes-list-type: set for items of type "${type}" is not supported by server-side apply or CEL validation rules`,
      ),
  ];
}

/** What warnings are about. */
interface Unsupported {
  /** Formats that nothing checks. */
  readonly formats: Set<string>;
  /** The types of items of sets that are no scalars. */
  readonly sets: Set<string>;
}

function unsupportedIn({ spec }: CustomResourceDefinition): Unsupported {
  const found: Unsupported = { formats: new Set(), sets: new Set() };
  for (const { schema } of spec.versions ?? []) {
    if (schema?.openAPIV3Schema !== undefined) collect(schema.openAPIV3Schema, found, 0);
  }
  return found;
}

function collect(schema: JSONSchemaProps, found: Unsupported, depth: number): void {
  const { type = '', format = '' } = schema;
  if (format !== '' && checkedFormat(type, format) === '') found.formats.add(format);
  const items = itemSchemaOf(schema)?.type ?? '';
  if (schema['x-kubernetes-list-type'] === 'set' && (items === 'object' || items === 'array'))
    found.sets.add(items);
  if (depth === maxDepth) return;
  const parts = [
    itemSchemaOf(schema),
    ...(schema.allOf ?? []),
    ...(schema.anyOf ?? []),
    ...(schema.oneOf ?? []),
    schema.not,
    ...Object.values(schema.properties ?? {}),
    valuesOf(schema),
  ];
  for (const part of parts) if (part !== undefined) collect(part, found, depth + 1);
}

import type { KubeObject } from '../../../objects/meta.ts';
import type { WebhookClientConfig } from '../../validation/client-config.ts';
import type { JsonSchema } from '../schema/json-schema.ts';

/** apiextensions.k8s.io/v1 CustomResourceDefinition. */
export interface CustomResourceDefinition extends KubeObject {
  spec: CustomResourceDefinitionSpec;
  status: CustomResourceDefinitionStatus;
}

export interface CustomResourceDefinitionSpec {
  group: string;
  names: CustomResourceNames;
  scope: string;
  versions: CustomResourceVersion[] | null;
  conversion?: CustomResourceConversion;
  preserveUnknownFields?: boolean;
}

export interface CustomResourceConversion {
  strategy: string;
  webhook?: {
    clientConfig?: WebhookClientConfig;
    conversionReviewVersions?: string[];
  };
}

export interface CustomResourceNames {
  plural: string;
  singular?: string;
  shortNames?: string[];
  kind: string;
  listKind?: string;
  categories?: string[];
}

export interface CustomResourceVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: { openAPIV3Schema?: JsonSchema };
  subresources?: {
    status?: object;
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string };
  };
  additionalPrinterColumns?: {
    name: string;
    type: string;
    format?: string;
    description?: string;
    priority?: number;
    jsonPath: string;
  }[];
  selectableFields?: { jsonPath: string }[];
}

export interface CustomResourceCondition {
  type: string;
  status: string;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}

export interface CustomResourceDefinitionStatus {
  conditions: CustomResourceCondition[] | null;
  acceptedNames: CustomResourceNames;
  storedVersions: string[] | null;
}

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
  conditions: readonly CustomResourceCondition[] | null,
  next: CustomResourceCondition,
): CustomResourceCondition[] {
  const list = [...(conditions ?? [])];
  const at = list.findIndex(({ type }) => type === next.type);
  const before = list[at];
  if (before === undefined) return [...list, next];
  const kept = before.status === next.status ? before.lastTransitionTime : undefined;
  const time = kept ?? next.lastTransitionTime;
  list[at] = { ...next, ...(time === undefined ? {} : { lastTransitionTime: time }) };
  return list;
}

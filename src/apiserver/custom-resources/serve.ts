import type {
  CustomResourceDefinition,
  CustomResourceDefinitionVersion,
} from '../../objects/types/apiextensions.generated.ts';
import { createHash } from 'node:crypto';
import { forbidden } from '../../objects/status-errors.ts';
import { customScale } from '../../registry/apiextensions/customresource/scale.ts';
import { customResourceStrategy } from '../../registry/apiextensions/customresource/strategy.ts';
import { hasCondition } from '../../registry/apiextensions/customresourcedefinition/definition.ts';
import type { Strategy } from '../../registry/generic/strategy.ts';
import { type ServedForm, serveResource, type ServedResource } from '../rest/served-resource.ts';
import { schemaFromCustomResource } from '../schema/custom-schema.ts';
import { customTableConverter } from '../tables/custom-columns.ts';
import { ConvertedObjects } from './converted-objects.ts';
import type { WebhookConverter } from './webhook-converter.ts';

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
  { converter, since }: Generation,
): Pick<ServedResource, 'shared' | 'conversion'> {
  const versions = spec.versions ?? [];
  if (versions.length <= 1 && (status.storedVersions ?? []).length <= 1) return { shared: undefined };
  if (converter === undefined) return { shared: sameFieldsForm(spec.group, name, storage) };
  const { kind } = status.acceptedNames;
  const schemas = versions.map((version) => {
    const openAPIV3Schema = version.schema?.openAPIV3Schema;
    const schema = schemaFromCustomResource(openAPIV3Schema, kind);
    return [`${spec.group}/${version.name}`, { schema, openAPIV3Schema }] as const;
  });
  const conversion = new ConvertedObjects({
    converter,
    apiVersion: `${spec.group}/${name}`,
    storedApiVersion: `${spec.group}/${storage}`,
    versions: new Map(schemas),
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
      strategy: {
        ...customResourceStrategy({ apiVersion, ...storedForm, kind, namespaced, version }),
        ...creationRefusal(definition),
      },
      ...(storage?.served === true
        ? { storageVersionHash: storageVersionHash(spec.group, storage.name, kind) }
        : {}),
      ...(version.subresources?.scale === undefined
        ? {}
        : { scale: customScale(version.subresources.scale) }),
      ...(warning === undefined ? {} : { deprecationWarning: warning }),
    },
    schemaFromCustomResource(version.schema?.openAPIV3Schema, kind),
    () => customTableConverter(version.additionalPrinterColumns ?? []),
    (name) => {
      const other = versions.find((candidate) => candidate.name === name);
      return other === undefined ? undefined : schemaFromCustomResource(other.schema?.openAPIV3Schema, kind);
    },
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

/** Refuses new objects while those of a definition are being deleted (`customresource_handler.go` forbidCreateAdmission). */
function creationRefusal(definition: CustomResourceDefinition): Pick<Strategy, 'admitCreate'> {
  if (!hasCondition(definition, 'Terminating')) return {};
  const { spec, status } = definition;
  return {
    admitCreate: ({ metadata: { name = '' } }) => {
      const resource = { group: spec.group, resource: status.acceptedNames.plural };
      throw forbidden(resource, name, 'create not allowed while custom resource definition is terminating');
    },
  };
}

/**
 * For the conversion strategy None: versions differ in their apiVersion only. An object of another version is left as
 * it is, and the strategy refuses it.
 */
function sameFieldsForm(group: string, version: string, storage: string): ServedForm {
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

import { createHash } from 'node:crypto';
import { forbidden } from '../../objects/status-errors.ts';
import { customScale } from '../../registry/customresource/scale.ts';
import { customResourceStrategy } from '../../registry/customresource/strategy.ts';
import {
  type CustomResourceDefinition,
  type CustomResourceVersion,
  hasCondition,
} from '../../registry/customresourcedefinition/definition.ts';
import type { Strategy } from '../../registry/strategy.ts';
import { type ServedForm, serveResource, type ServedResource } from '../rest/served-resource.ts';
import { schemaFromCustomResource } from '../schema/custom-schema.ts';
import { customTableConverter } from '../tables/custom-columns.ts';

const verbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];
const verbsAtTheEnd = ['delete', 'deletecollection', 'get', 'list', 'watch'];

/** The resources of an established definition: one for each served version, by its accepted names. */
export function resourcesOf(definition: CustomResourceDefinition): ServedResource[] {
  const versions = definition.spec.versions ?? [];
  const several = versions.length > 1 || (definition.status.storedVersions ?? []).length > 1;
  const storage = versions.find((version) => version.storage);
  return versions
    .filter((version) => version.served)
    .map((version) => {
      const served = serveVersion(definition, version, storage);
      return several
        ? {
            ...served,
            shared: versionForm(definition.spec.group, version.name, storage?.name ?? version.name),
          }
        : served;
    });
}

function serveVersion(
  definition: CustomResourceDefinition,
  version: CustomResourceVersion,
  storage: CustomResourceVersion | undefined,
): ServedResource {
  const { spec, status } = definition;
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
  const forms = {
    apiVersion: `${spec.group}/${version.name}`,
    storedApiVersion: `${spec.group}/${storage?.name ?? version.name}`,
    since: Number(definition.metadata.resourceVersion),
  };
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
      verbs: hasCondition(definition, 'Terminating') ? verbsAtTheEnd : verbs,
      schema: `${spec.group.split('.').reverse().join('.')}.${version.name}.${kind}`,
      strategy: {
        ...customResourceStrategy({ ...forms, kind, namespaced, version }),
        ...endOfCreation(definition),
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
  );
}

/** What discovery shows of the version that objects are stored in (apiserver `endpoints/discovery/storageversionhash.go`). */
function storageVersionHash(group: string, version: string, kind: string): string {
  return createHash('sha256')
    .update(`${group}/${version}/${kind}`)
    .digest()
    .subarray(0, 8)
    .toString('base64');
}

/** Nothing new comes to a definition whose objects go (apiextensions `customresource_handler.go` forbidCreateAdmission). */
function endOfCreation(definition: CustomResourceDefinition): Pick<Strategy, 'admitCreate'> {
  if (!hasCondition(definition, 'Terminating')) return {};
  const { spec, status } = definition;
  return {
    admitCreate: ({ metadata: { name = '' } }) => {
      const resource = { group: spec.group, resource: status.acceptedNames.plural };
      throw forbidden(resource, name, 'create not allowed while custom resource definition is terminating');
    },
  };
}

/** Conversion None: versions differ in their apiVersion only. What is of another one stays so, for the strategy to refuse. */
function versionForm(group: string, version: string, storage: string): ServedForm {
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
  version: CustomResourceVersion,
  versions: readonly CustomResourceVersion[],
): string | undefined {
  if (version.deprecated !== true) return undefined;
  if (version.deprecationWarning !== undefined) return version.deprecationWarning;
  const newer = versions.find((other) => other.served && other.deprecated !== true);
  const old = `${group}/${version.name} ${kind} is deprecated`;
  return newer === undefined ? old : `${old}; use ${group}/${newer.name} ${kind}`;
}

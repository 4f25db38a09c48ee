import type { ServiceCidr } from '../allocation/address-range.ts';
import { jsonEqual } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';
import type { ServiceCIDR } from '../objects/types/networking.generated.ts';
import { builtInResources } from '../registry/catalog.ts';
import type { MaySign } from '../registry/certificates/podcertificaterequest.ts';
import type { GrantChecks } from '../registry/rbac/roles.ts';
import type { RefusalOf } from '../registry/resource/resourceclaim.ts';
import type { ReviewAccess } from '../registry/route/custom-host.ts';
import { customResourceDefinitionStrategy } from '../registry/apiextensions/customresourcedefinition/strategy.ts';
import type { ResourceDefinition } from '../registry/generic/strategy.ts';
import { ServiceAllocators } from '../registry/core/service/allocators.ts';
import {
  createServiceStrategy,
  createUnallocatedServiceStrategy,
} from '../registry/core/service/strategy.ts';
import { certificateReader } from './pki/signing-request.ts';
import { reviewKinds } from './authorization/reviews.ts';
import { serveResource, type ResourceTable } from './rest/served-resource.ts';
import type { ServerCore } from './rest/server-core.ts';
import { builtinSchema, registeredSchema } from './schema/builtin.ts';
import { listPrefix, objectKey, type Storage } from './storage/storage.ts';
import { virtualResources } from './subresources/handlers.ts';
import { tableConverter } from './tables/converters.ts';
import { isService } from './bootstrap/system-objects.ts';
import type { Logger } from 'pino';
import { createMemoryStorage, type MultiVersionOptions } from './storage/multi-version.ts';
import { encodeObject, encodeSorted } from './schema/encode.ts';
import type { StructSchema } from './schema/schema.ts';

/** The ranges of the flags `--service-cluster-ip-range` and `--service-node-port-range`. */
export interface ServiceRangeOptions {
  /** Primary first. */
  readonly cidrs: readonly [ServiceCidr, ...ServiceCidr[]];
  readonly nodePorts: { readonly first: number; readonly last: number };
  /** With `controller` Services are stored without addresses and node ports, for a controller to give; default `server`. */
  readonly allocation?: 'server' | 'controller';
}

const networking = 'networking.k8s.io';

const customResourceDefinitions: ResourceDefinition = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  kind: 'CustomResourceDefinition',
  namespaced: false,
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  schema: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
  storageVersionHash: 'jfWCUB31mvA=',
  strategy: customResourceDefinitionStrategy,
};

/**
 * Serves all built-in kinds. What Services hold in the store is taken in the allocators first.
 *
 * @param openshift serves OpenShift's own kinds too: what their rules ask.
 * @param grants what writers of roles and bindings may grant; undefined: anything.
 * @param maySign who may answer requests for certificates of Pods.
 * @param refusalOf who may allocate and report devices.
 */
export function registerBuiltIns(
  core: ServerCore,
  ranges: ServiceRangeOptions,
  openshift: ReviewAccess | undefined,
  grants: GrantChecks | undefined,
  maySign: MaySign,
  refusalOf: RefusalOf,
): void {
  const [primary, secondary] = ranges.cidrs;
  const allocators = new ServiceAllocators({
    families:
      secondary === undefined ? [primary.range.family] : [primary.range.family, secondary.range.family],
    nodePortRange: ranges.nodePorts,
  });
  const service =
    ranges.allocation === 'controller'
      ? createUnallocatedServiceStrategy(allocators.families)
      : createServiceStrategy(allocators);
  const resources = [
    ...builtInResources({
      service,
      addresses: allocators,
      certificates: certificateReader,
      openshift,
      grants,
      maySign,
      refusalOf,
    }),
    customResourceDefinitions,
  ];
  for (const definition of resources) {
    const table = () => tableConverter(definition.group, definition.kind);
    core.resources.add(serveResource(definition, builtinSchema(definition.schema), table));
  }
  for (const definition of [
    ...virtualResources,
    ...[...reviewKinds.values()].map((kind) => kind.definition),
  ]) {
    const table = () => tableConverter(definition.group, definition.kind);
    core.resources.add(serveResource(definition, builtinSchema(definition.schema), table));
  }
  warnOfOtherRanges(core, ranges);
  seed(core, allocators);
}

/** The stored ranges count, as in kube-apiserver (`defaultservicecidr`): Services have addresses of them. */
function warnOfOtherRanges(core: ServerCore, { cidrs }: ServiceRangeOptions): void {
  const stored = core.storage.get(objectKey(networking, 'servicecidrs', '', 'kubernetes'))?.object;
  if (stored === undefined || !isServiceCidr(stored)) return;
  const flag = cidrs.map(({ range }) => range.text);
  if (jsonEqual(stored.spec.cidrs, flag)) return;
  core.log.warn(
    { stored: stored.spec.cidrs, flag },
    'the ServiceCIDR kubernetes has other ranges than the flag; the stored ranges are used',
  );
}

/**
 * All forms of a Service's node ports in JSON. Stored Services without node ports are not decoded, nor are IPAddresses,
 * whose name is enough: with many objects decoding would take most of the start, and keep memory.
 */
const nodePortField = /odePort":/;

/** Fills the allocators from the store, and follows the ServiceCIDRs from there. */
function seed(core: ServerCore, allocators: ServiceAllocators): void {
  const { storage } = core;
  const prefix = listPrefix(networking, 'servicecidrs');
  const cidrs = storage.list(prefix);
  for (const { object } of cidrs.items) followCidr(allocators, object);
  const addresses = listPrefix(networking, 'ipaddresses', '');
  for (const { key } of storage.list(addresses).items) allocators.commit(key.slice(addresses.length));
  for (const service of storage.list(listPrefix('', 'services')).items) {
    if (!nodePortField.test(service.text())) continue;
    const { object } = service;
    if (isService(object)) allocators.adopt(object);
  }
  storage.watch(prefix, cidrs.revision, ({ type, current }) => {
    if (type === 'DELETED') allocators.removeServiceCIDR(current.object.metadata.name ?? '');
    else followCidr(allocators, current.object);
  });
}

/** A CIDR that is deleted gives no new addresses; one without a condition counts as ready. */
function followCidr(allocators: ServiceAllocators, object: KubeObject): void {
  if (!isServiceCidr(object)) return;
  const ready = object.status.conditions?.find((condition) => condition.type === 'Ready')?.status ?? 'True';
  const usable = object.metadata.deletionTimestamp === undefined && ready === 'True';
  allocators.setServiceCIDR(object.metadata.name ?? '', object.spec.cidrs ?? [], usable);
}

function isServiceCidr(object: KubeObject): object is ServiceCIDR {
  return object.kind === 'ServiceCIDR' && 'spec' in object && 'status' in object;
}

/** The store with the resources by which its objects are encoded. */
export interface Store {
  readonly storage: Storage;
  /** Filled by the server. */
  readonly resources: ResourceTable;
}

/**
 * Revisions that watches can resume from, and for how long, as etcd's compaction of five minutes; fewer when many
 * large objects change at once, so that the past does not outgrow the present. A watch that has yet to see what is
 * forgotten is ended.
 */
const retain = { revisions: 100_000, milliseconds: 5 * 60_000, bytes: 32 * 2 ** 20 };

/**
 * Opens the store of a server.
 *
 * @param directory where it is kept (`--data-dir`); undefined keeps it in memory only.
 * @throws {StorageLockedError} when another process uses the directory.
 * @throws {DamagedStorageError} when a file does not hold what was written to it.
 */
export async function openStore(
  resources: ResourceTable,
  log: Logger,
  directory: string | undefined,
): Promise<Store> {
  const options: MultiVersionOptions = {
    encode: (object) => encodeStored(resources, object),
    retain,
    clock: () => Date.now(),
    onListenerError: (error) => log.error({ err: error }, 'a watcher failed, the others go on'),
  };
  if (directory === undefined) return { resources, storage: createMemoryStorage(options) };
  // Loading this costs more than starting the rest of the server does.
  const { openDiskStorage } = await import('./storage/disk/disk-storage.ts');
  return { resources, storage: await openDiskStorage(directory, { ...options, log }) };
}

/**
 * The JSON of an object as it is stored: by its own apiVersion and kind. The members of custom objects are sorted,
 * also in versions that are not served.
 */
function encodeStored(resources: ResourceTable, object: KubeObject): string {
  const schema = schemaOf(resources, object);
  return schema === undefined ? encodeSorted(object) : encodeObject(schema, object);
}

/** The schema of a built-in kind. */
function schemaOf(resources: ResourceTable, object: KubeObject): StructSchema | undefined {
  const { apiVersion = '', kind = '' } = object;
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  // A kind may be built in on one platform, and a custom one on others.
  const served = resources.ofKind(group, apiVersion.slice(slash + 1), kind);
  if (served?.custom === true) return undefined;
  return served?.schema ?? registeredSchema(apiVersion, kind);
}

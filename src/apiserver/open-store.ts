import type { Logger } from 'pino';
import type { ResourceTable } from './rest/resource-table.ts';
import { createMemoryStorage } from './storage/memory-storage.ts';
import type { MultiVersionOptions } from './storage/multi-version.ts';
import type { Storage } from './storage/storage.ts';
import type { KubeObject } from '../objects/meta.ts';
import { registeredSchema } from './schema/builtin.ts';
import { encodeObject, encodeSorted } from './schema/encode.ts';
import type { StructSchema } from './schema/schema.ts';

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

function schemaOf(resources: ResourceTable, object: KubeObject): StructSchema | undefined {
  const { apiVersion = '', kind = '' } = object;
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  // A kind may be built in on one platform, and a custom one on others.
  return (
    resources.ofKind(group, apiVersion.slice(slash + 1), kind)?.schema ?? registeredSchema(apiVersion, kind)
  );
}

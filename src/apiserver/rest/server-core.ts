import type { Logger } from 'pino';
import type { ClusterReader, StrategyContext, UserInfo } from '../../registry/generic/strategy.ts';
import { listPrefix, objectKey, type Storage } from '../storage/storage.ts';
import type { Admission, AdmissionAttributes } from './admission.ts';
import type { OpenWatches } from './watch/open-watches.ts';
import type { ResourceTable } from './served-resource.ts';

/** What every verb needs: the store, the served resources, and the sources of time, randomness and identity. */
export interface ServerCore {
  readonly storage: Storage;
  readonly resources: ResourceTable;
  admission: Admission;
  /** Refuses an update or an apply that creates its object, unless the user may create it. @throws {StatusError} 403 */
  checkCreateOnUpdate?: (attributes: AdmissionAttributes) => void;
  /** Refuses a delete of what cannot be read, unless the user may do that. @throws {StatusError} 403 */
  checkUnsafeDelete?: (attributes: AdmissionAttributes) => void;
  readonly log: Logger;
  readonly watches: OpenWatches;
  /**
   * The first revision of a new store that is served: clients were never given an older one, and clients that request
   * revision 1 expect that it is too old.
   */
  firstRevision: number;
  /** In [0, 1). */
  random(): number;
  /** Milliseconds since the epoch. */
  now(): number;
  newUid(): string;
}

/** RFC 3339 with whole seconds, as Kubernetes writes times. */
export function timestamp(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000);
  if (lastTimestamp.second !== second) {
    lastTimestamp = { second, text: `${new Date(second * 1000).toISOString().slice(0, 19)}Z` };
  }
  return lastTimestamp.text;
}

/** Most requests fall into the second of the one before. */
let lastTimestamp = { second: NaN, text: '' };

/** The view of stored objects that strategies get. Objects are frozen. */
function clusterReader(storage: Storage): ClusterReader {
  return {
    list: (group, plural, namespace) =>
      storage.list(listPrefix(group, plural, namespace)).items.map((item) => item.object),
    get: (group, plural, namespace, name) =>
      storage.getForUpdate(objectKey(group, plural, namespace, name))?.object,
  };
}

/** The context of one request for strategies. */
export function strategyContext(core: ServerCore, dryRun: boolean, user?: UserInfo): StrategyContext {
  return {
    now: timestamp(core.now()),
    random: () => core.random(),
    dryRun,
    cluster: clusterReader(core.storage),
    ...(user === undefined ? {} : { user }),
  };
}

import { isRecord } from '../../objects/json.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { listPrefix, PreconditionError } from '../storage/storage.ts';

/** Events live so long (milliseconds, `--event-ttl`). */
const eventTtl = 3_600_000;

/** Removes Events whose last change is older than the TTL. */
export async function expireEvents(core: ServerCore): Promise<void> {
  const oldest = core.now() - eventTtl;
  for (const stored of core.storage.list(listPrefix('', 'events')).items) {
    const event: object = stored.object;
    const seen =
      isRecord(event) && typeof event['lastTimestamp'] === 'string' ? event['lastTimestamp'] : undefined;
    const changed = Date.parse(seen ?? stored.object.metadata.creationTimestamp ?? '');
    if (!(changed < oldest)) continue;
    try {
      await core.storage.commit([{ key: stored.key, expect: stored.revision, object: undefined }]);
    } catch (error) {
      // It changed in between, so it is not old any more.
      if (!(error instanceof PreconditionError)) throw error;
    }
  }
}

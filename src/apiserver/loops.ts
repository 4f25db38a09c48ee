import type { Logger } from 'pino';
import { listPrefix, PreconditionError } from './storage/storage.ts';
import type { ServerCore } from './rest/server-core.ts';
import { isRecord } from '../objects/json.ts';

/** Stops a loop. */
export type Stop = () => void;

/** Runs `work` at an interval in milliseconds until stopped, one run at a time. A failure is logged. */
export function every(milliseconds: number, name: string, log: Logger, work: () => Promise<void>): Stop {
  let running = false;
  const timer = setInterval(() => {
    if (running) return;
    running = true;
    work()
      .catch((error: unknown) =>
        log.error({ loop: name, err: error }, 'a loop of the server failed, it goes on'),
      )
      .finally(() => {
        running = false;
      });
  }, milliseconds);
  timer.unref();
  return () => clearInterval(timer);
}

/** The age in milliseconds at which Events are removed (`--event-ttl`). */
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
      // It changed in between, so it is not old.
      if (!(error instanceof PreconditionError)) throw error;
    }
  }
}

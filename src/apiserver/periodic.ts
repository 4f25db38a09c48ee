import type { Logger } from 'pino';
import { listPrefix, PreconditionError } from './storage/storage.ts';
import type { ServerCore } from './rest/server-core.ts';

/** Stops a loop. */
export type Stop = () => void;

/** Runs `work` at an interval until stopped, one run at a time. A failure is logged. */
export function runPeriodically(
  intervalMs: number,
  name: string,
  log: Logger,
  work: () => Promise<void>,
): Stop {
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
  }, intervalMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** The age at which Events are removed (`--event-ttl`). */
const eventTtlMs = 3_600_000;

/**
 * Removes Events that were last written longer ago than the TTL, as etcd's leases do: the times in an Event are those of
 * its author, and do not count.
 */
export async function expireEvents(core: Pick<ServerCore, 'storage' | 'now'>): Promise<void> {
  const oldest = core.now() - eventTtlMs;
  for (const stored of core.storage.list(listPrefix('', 'events')).items) {
    const { creationTimestamp, managedFields = [] } = stored.object.metadata;
    const written = [creationTimestamp, ...managedFields.map(({ time }) => time)];
    if (written.some((time) => time !== undefined && Date.parse(time) >= oldest)) continue;
    try {
      await core.storage.commit([{ key: stored.key, expect: stored.revision, object: undefined }]);
    } catch (error) {
      // It changed in between, so it is not old.
      if (!(error instanceof PreconditionError)) throw error;
    }
  }
}

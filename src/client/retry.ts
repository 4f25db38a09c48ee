import type { Clock, Random } from './clock.ts';
import { isConflict } from './errors.ts';

/** How often and how fast a conflict is tried again; client-go's `retry.DefaultRetry`. */
const attempts = 5;
/** Milliseconds, with up to as much again at random. */
const pause = 10;

/**
 * Calls `write` again after a conflict (409). `write` must read the object anew each time.
 *
 * @throws what `write` throws last; anything but a conflict at once.
 */
export async function retryOnConflict<R>(
  write: () => Promise<R>,
  {
    clock,
    random,
    signal,
  }: { readonly clock: Clock; readonly random: Random; readonly signal?: AbortSignal },
): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write();
    } catch (error) {
      if (!isConflict(error) || attempt === attempts || signal?.aborted === true) throw error;
    }
    await clock.sleep(pause * (1 + random()), signal);
  }
}

import type { Logger } from 'pino';

/** Milliseconds after the introduction: the controllers have settled. */
const delay = 1000;
/** Bytes of heap above which a collection would be noticed: a store that was kept on disk. */
const largestHeap = 64 * 2 ** 20;

/**
 * Collects once what the start left behind, 20 MiB of it, in some 60 ms: V8 does not by itself as long as hardly anything
 * happens. Only where Node was started with `--expose-gc`, as `npm start` does.
 */
export function giveBackMemory(log: Logger): void {
  const { gc } = globalThis;
  if (gc === undefined) return;
  const timer = setTimeout(() => {
    if (process.memoryUsage().heapUsed > largestHeap) return;
    // Only this flavour makes the young generation small again.
    gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    log.debug({ residentBytes: process.memoryUsage.rss() }, 'gave memory back');
  }, delay);
  timer.unref();
}

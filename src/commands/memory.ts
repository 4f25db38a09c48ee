import { getHeapStatistics } from 'node:v8';
import type { Logger } from 'pino';

/** Milliseconds between looks; after the first, counted from the introduction, the controllers have settled. */
const interval = 1000;
/** Looks after which it is given up: a server that is never idle has collected by itself. */
const maxLooks = 60;
/** Share of the time since the last look that the event loop may have been at work: nobody would wait then. */
const idleBelow = 0.1;
/** Bytes of heap above which a collection would be noticed: a store that was kept on disk. */
const largestHeap = 64 * 2 ** 20;

/**
 * Collects once what the start left behind, 20 MiB of it, in some 60 ms that nothing else can be done in: V8 does not
 * by itself as long as hardly anything happens. Waits until hardly anything happens, so that no client does. Only
 * where Node was started with `--expose-gc`, as `npm start` does.
 */
export function giveBackMemory(log: Logger): void {
  const { gc } = globalThis;
  if (gc === undefined) return;
  let looks = 0;
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    // Not by process.memoryUsage(): it opens a file, and throws while a flood of connections leaves it none.
    const tooLarge = getHeapStatistics().used_heap_size > largestHeap;
    if (utilization < idleBelow && !tooLarge) {
      // Only this flavour makes the young generation small again.
      gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
      log.debug({ heapBytes: getHeapStatistics().total_heap_size }, 'gave memory back');
    } else if (!tooLarge && ++looks < maxLooks) {
      return;
    }
    clearInterval(timer);
  }, interval);
  timer.unref();
}

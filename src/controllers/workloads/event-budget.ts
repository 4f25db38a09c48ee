import type { Clock } from '../../client/clock.ts';
import type { EventRecorder } from '../../client/events.ts';

/** Events at once, and per second after that (a kubelet may send 50 a second, which is for one node). */
const burst = 50;
const perSecond = 5;

/**
 * Leaves Normal Events out when there are too many: a cluster has a budget for each of its nodes, here one process
 * plays them all, and thousands of Pods that start at once have better uses for its time.
 */
export function budgetEvents(events: EventRecorder, clock: Clock): EventRecorder {
  let tokens = burst;
  let at = clock.monotonic();
  return {
    event(regarding, type, reason, message) {
      const now = clock.monotonic();
      tokens = Math.min(burst, tokens + ((now - at) / 1000) * perSecond);
      at = now;
      if (type === 'Normal') {
        if (tokens < 1) return;
        tokens--;
      }
      events.event(regarding, type, reason, message);
    },
  };
}

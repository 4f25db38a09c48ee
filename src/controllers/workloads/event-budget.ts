import type { Clock } from '../../client/clock.ts';
import type { EventRecorder } from '../../client/events/events.ts';

/** Events in a burst, and per second after that (a kubelet may send 50 a second for one node). */
const burst = 50;
const perSecond = 5;

/**
 * Drops Normal Events above a rate. In a cluster each kubelet has its own budget; here one process simulates all of
 * them.
 */
export function budgetEvents(events: EventRecorder, clock: Clock): EventRecorder {
  let tokens = burst;
  let refilledAtMs = clock.monotonic();
  return {
    event(regarding, type, reason, message, fieldPath) {
      const nowMs = clock.monotonic();
      tokens = Math.min(burst, tokens + ((nowMs - refilledAtMs) / 1000) * perSecond);
      refilledAtMs = nowMs;
      if (type === 'Normal') {
        if (tokens < 1) return;
        tokens--;
      }
      events.event(regarding, type, reason, message, fieldPath);
    },
  };
}

import type { Metrics } from '../telemetry/metrics.ts';

/** The metrics of a queue (client-go `util/workqueue/metrics.go`). Times in seconds. */
export interface QueueRecorder {
  added(depth: number): void;
  taken(waited: number, depth: number): void;
  done(worked: number): void;
  retried(): void;
  emptied(): void;
  /**
   * Passes a function that returns the start times of the running keys, in milliseconds of one clock. Called once, by
   * the queue.
   */
  observe(look: () => RunningKeys): void;
}

interface RunningKeys {
  readonly startedAt: Iterable<number>;
  readonly now: number;
}

/** Records a queue under a name in the `workqueue_*` metrics. */
export function recordQueue(metrics: Metrics, name: string): QueueRecorder {
  const depthGauge = metrics.queueDepth.labels({ name });
  const adds = metrics.queueAdds.labels({ name });
  const retries = metrics.queueRetries.labels({ name });
  const waiting = metrics.queueSeconds.labels({ name });
  const working = metrics.workSeconds.labels({ name });
  const unfinished = metrics.unfinishedSeconds.labels({ name });
  const longest = metrics.longestRunning.labels({ name });
  return {
    added(depth) {
      adds.inc();
      depthGauge.set(depth);
    },
    taken(waited, depth) {
      waiting.observe(waited);
      depthGauge.set(depth);
    },
    done: (worked) => working.observe(worked),
    retried: () => retries.inc(),
    emptied: () => depthGauge.set(0),
    observe(look) {
      metrics.beforeScrape(() => {
        const { startedAt, now } = look();
        let sum = 0;
        let oldest = 0;
        for (const start of startedAt) {
          const age = (now - start) / 1000;
          sum += age;
          oldest = Math.max(oldest, age);
        }
        unfinished.set(sum);
        longest.set(oldest);
      });
    },
  };
}

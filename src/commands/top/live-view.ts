import type { Logger } from 'pino';
import { systemClock } from '../../client/clock.ts';
import { AvailabilityTracker } from '../../client/availability-tracker.ts';
import type { Transport } from '../../client/transport.ts';
import type { ObjectKey } from '../../objects/key.ts';
import { Follower } from './follow.ts';
import type { View } from './model.ts';
import { PlainLines } from './plain-lines.ts';
import { interruptByKey, LiveScreen } from './terminal.ts';

/** Options of {@link showLiveView}. */
export interface LiveViewOptions {
  readonly transport: Transport;
  readonly log: Logger;
  /** Only this namespace, for Services and Events; undefined: all. */
  readonly namespace: string | undefined;
  /** The first line on a terminal. */
  readonly title: string;
  /** Commands to try, which stay on a terminal. */
  readonly hints?: readonly string[];
  /** Takes a listener for how often Pods have answered, by their keys. Absent: that is not counted. */
  readonly onAnswers?: (tell: (answers: Iterable<readonly [ObjectKey, number]>) => void) => void;
}

/**
 * Shows Services, pools and Events on standard output as they change, until the signal aborts. On a terminal, `q` is what
 * Ctrl-C is.
 */
export async function showLiveView(options: LiveViewOptions, signal: AbortSignal): Promise<void> {
  const { transport, log, namespace, title, hints = [] } = options;
  const output = process.stdout;
  if (output.isTTY) {
    let problem: string | undefined;
    const view = (): View => ({ ...follower.view(), ...(problem === undefined ? {} : { problem }) });
    const screen = new LiveScreen(output, title, hints, view);
    // A line of the log would be drawn into the screen.
    const silent = log.child({}, { level: 'silent' });
    const watched = new AvailabilityTracker(transport, silent, systemClock, (present) => {
      problem = present;
      screen.changed();
    });
    const follower = new Follower(watched, log, namespace, { changed: () => screen.changed() });
    options.onAnswers?.((answers) => follower.answered(answers));
    screen.open();
    const leaveKeys = interruptByKey(process.stdin);
    try {
      await follower.start(signal);
      await follower.finished();
    } finally {
      leaveKeys();
      screen.close();
    }
    return;
  }
  const lines = new PlainLines(output);
  const watched = new AvailabilityTracker(transport, log, systemClock);
  const follower = new Follower(watched, log, namespace, lines);
  await follower.start(signal);
  lines.begin(follower.view().services);
  await follower.finished();
}

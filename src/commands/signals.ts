import type { Logger } from 'pino';

/** A wait for the end of the process. */
export interface SignalWait {
  /** Resolves at the first SIGINT or SIGTERM. A second one ends the process at once. */
  readonly received: Promise<Signal>;
  /** Removes the handlers: a later signal has its default effect. */
  release(): void;
}

export type Signal = 'SIGINT' | 'SIGTERM';

/** Exit codes by convention: 128 plus the number of the signal. */
export const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/** Waits for SIGINT or SIGTERM. */
export function untilSignal(log: Logger): SignalWait {
  let stopping = false;
  let stop: (name: Signal) => void = () => undefined;
  const received = new Promise<Signal>((resolve) => {
    stop = resolve;
  });
  const onSignal = (name: Signal): void => {
    if (stopping) process.exit(exitCodes[name]);
    stopping = true;
    log.info({ signal: name }, 'stopping; a second signal stops at once');
    stop(name);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    received,
    release: () => {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    },
  };
}

/**
 * Makes SIGINT and SIGTERM end process 1 of a container while no command waits for them. Every other process ends by
 * itself; process 1 gets no signal that it has no handler for (pid_namespaces(7)), so that a Pod deleted during its
 * start would continue, and lead, until the kubelet kills it.
 */
export function handleSignalsAsPid1(): void {
  if (process.pid !== 1) return;
  for (const [name, code] of Object.entries(exitCodes)) {
    process.on(name, () => {
      if (process.listenerCount(name) === 1) process.exit(code);
    });
  }
}

/** Stops something that was started. */
export type End = () => Promise<void>;

/**
 * Stops what was started, in reverse order, one after the other. A failure does not keep the rest from being stopped.
 *
 * @throws the first error, after all were stopped.
 */
export async function endInReverse(started: readonly End[]): Promise<void> {
  const errors: unknown[] = [];
  for (const end of started.toReversed()) {
    try {
      await end();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

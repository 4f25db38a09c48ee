import type { Logger } from 'pino';

/** Stops a loop. */
export type Stop = () => void;

/** Runs `work` every so many milliseconds until stopped, never twice at once; a failure is logged and the loop goes on. */
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

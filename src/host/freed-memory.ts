import type { Logger } from 'pino';

/** Milliseconds of CPU of the process from which on there may be something to return; to look for it takes 1 to 20. */
const worthwhileCpuMs = 250;

/**
 * Returns memory that was freed to the system, as long as the process runs. glibc keeps what lies between blocks in use
 * for blocks to come: after large requests, several times as much as lives. `malloc_trim` (malloc_trim(3)) returns its
 * whole pages. Other C libraries do not have it: with them, nothing happens.
 *
 * @param intervalMs milliseconds between two times.
 * @returns ends it.
 */
export function returnFreedMemory(log: Logger, intervalMs = 10_000): () => void {
  let trim: Promise<() => void> | undefined;
  let before = 0;
  const timer = setInterval(() => {
    if (cpuMs() - before < worthwhileCpuMs) return;
    trim ??= loadTrim();
    trim.then(
      (call) => {
        call();
        before = cpuMs();
      },
      (error: unknown) => {
        clearInterval(timer);
        log.debug({ err: error }, 'freed memory is not returned: the C library has no malloc_trim');
      },
    );
  }, intervalMs).unref();
  return () => clearInterval(timer);
}

/** @throws {Error} where the C library has no `malloc_trim`, or koffi does not run. */
async function loadTrim(): Promise<() => void> {
  const { load } = await import('koffi');
  const call = load(null).func('int malloc_trim(size_t pad)');
  return () => void call(0);
}

/** Milliseconds of CPU that the process has taken. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

import type { Logger } from 'pino';

/** Milliseconds of CPU of the process from which on there may be something to return; to look for it takes 1 to 20. */
const worthwhileCpuMs = 250;

/**
 * Returns freed memory to the system while the process runs. glibc keeps blocks between those in use: after large
 * requests, several times what is in use. `malloc_trim` (malloc_trim(3)) returns whole pages. Other C libraries
 * lack it: nothing happens with them.
 *
 * @param intervalMs milliseconds between two calls.
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

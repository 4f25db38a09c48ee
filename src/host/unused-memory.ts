import { readFile } from 'node:fs/promises';
import type { LibraryHandle } from 'koffi';
import type { Logger } from 'pino';

/**
 * From how much CPU of the process on there may be something to return: milliseconds, and times what the last call took,
 * which is 1 ms in a small process and 20 in a large one.
 */
const worthwhileCpu = { ms: 50, timesOfCall: 20 };

/** Linux: `madvise`'s advice that pages are not needed (madvise(2)). */
const madvDontNeed = 4;

/**
 * Returns memory that is not in use to the system while the process runs.
 *
 * - What was freed: glibc keeps blocks between those in use, after large requests several times what is in use.
 *   `malloc_trim` (malloc_trim(3)) returns whole pages. Other C libraries lack it.
 * - Pages of Node.js's program and of libraries, 50 MiB after a start, which uses most of them once. They are as their
 *   files are, and come back from the page cache where they are used again.
 *
 * What the system lacks is left out.
 *
 * @param intervalMs milliseconds between two calls.
 * @returns ends it.
 */
export function returnUnusedMemory(log: Logger, intervalMs = 10_000): () => void {
  let loaded: Promise<() => void> | undefined;
  let [before, tookMs] = [0, 0];
  const timer = setInterval(() => {
    if (cpuMs() - before < Math.max(worthwhileCpu.ms, worthwhileCpu.timesOfCall * tookMs)) return;
    loaded ??= loadCalls(log);
    loaded.then(
      (call) => {
        const began = cpuMs();
        call();
        before = cpuMs();
        tookMs = before - began;
      },
      (error: unknown) => {
        clearInterval(timer);
        log.debug({ err: error }, 'unused memory is not returned: koffi does not run here');
      },
    );
  }, intervalMs).unref();
  return () => clearInterval(timer);
}

/** @throws {Error} where koffi does not run. */
async function loadCalls(log: Logger): Promise<() => void> {
  const { load } = await import('koffi');
  const libc = load(null);
  const calls: (() => void)[] = [];
  for (const [what, prepare] of [
    ['freed memory', trimming],
    ['pages of the program', unmapping],
  ] as const) {
    try {
      calls.push(await prepare(libc));
    } catch (error) {
      log.debug({ err: error }, `${what} is not returned: the system has no call for it`);
    }
  }
  return () => {
    for (const call of calls) call();
  };
}

/** @throws {Error} where the C library has no `malloc_trim`. */
function trimming(libc: LibraryHandle): () => void {
  const trim = libc.func('int malloc_trim(size_t pad)');
  return () => void trim(0);
}

/** @throws {Error} where there is no `/proc/self/smaps`, as on other systems than Linux. */
async function unmapping(libc: LibraryHandle): Promise<() => void> {
  const madvise = libc.func('int madvise(uintptr_t addr, size_t length, int advice)');
  const mappings = unchangedMappings(await readFile('/proc/self/smaps', 'utf8'));
  return () => {
    for (const { start, length } of mappings) madvise(start, length, madvDontNeed);
  };
}

/** Part of the address space, in bytes. */
interface Mapping {
  readonly start: bigint;
  readonly length: number;
}

const header = /^([0-9a-f]+)-([0-9a-f]+) r-[-x]p \S+ \S+ \d+ +\/\S/;

/**
 * The mappings of files that can only be read or run, and of which no page is the process's own (`Anonymous`, as the
 * pages are that the dynamic linker has changed): to drop a page of them loses nothing.
 *
 * @param smaps `/proc/PID/smaps` (proc_pid_smaps(5)).
 */
export function unchangedMappings(smaps: string): Mapping[] {
  const found: Mapping[] = [];
  let current: Mapping | undefined;
  for (const line of smaps.split('\n')) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) {
      const [, start = '', end = ''] = header.exec(line) ?? [];
      const first = BigInt(`0x${start || '0'}`);
      current = start === '' ? undefined : { start: first, length: Number(BigInt(`0x${end}`) - first) };
    } else if (current !== undefined && /^Anonymous: +0 kB$/.test(line)) {
      found.push(current);
    }
  }
  return found;
}

/** Milliseconds of CPU that the process has taken. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

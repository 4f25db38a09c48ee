import { readFile } from 'node:fs/promises';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { LibraryHandle } from 'koffi';
import type { Logger } from 'pino';

/**
 * From how much CPU of the process on there may be something to return: milliseconds, and times what the last call took,
 * which is 1 ms in a small process and 20 in a large one.
 */
const worthwhileCpu = { ms: 50, timesOfCall: 20 };

/**
 * When V8's heap is collected: when it is so many times what the last collection left, once the process takes less than
 * this part of a core.
 */
const collection = { growth: 1.2, restingShare: 0.05 };

/** Bytes of the largest heap that is collected where clients wait: it holds its thread for 0.1 s. */
const quickHeap = 96 * 2 ** 20;

/** Milliseconds between two looks. */
const intervalMs = 5000;

/** Linux: `madvise`'s advice that pages are not needed (madvise(2)). */
const madvDontNeed = 4;

/**
 * Returns memory that is not in use to the system while the process runs.
 *
 * - What was freed: glibc keeps blocks between those in use, after large requests several times what is in use.
 *   `malloc_trim` (malloc_trim(3)) returns whole pages. Other C libraries lack it.
 * - Pages of Node.js's program and of libraries, 50 MiB after a start, which uses most of them once. They are as their
 *   files are, and come back from the page cache where they are used again.
 * - What V8's heap grew by for work that is over: V8 itself keeps it.
 *
 * What the system lacks is left out.
 *
 * @returns ends it.
 */
export function returnUnusedMemory(log: Logger): () => void {
  let loaded: Promise<() => void> | undefined;
  const collectIfResting = heapCollection(quickHeap, log);
  let [before, tookMs] = [0, 0];
  const timer = setInterval(() => {
    collectIfResting();
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

/**
 * Returns what the heap of this thread grew by for work that is over, as {@link returnUnusedMemory} does for the main
 * thread: for a thread that answers no clients.
 *
 * @param largestHeap bytes; one of 350 MiB holds the thread for a second.
 * @returns ends it.
 */
export function collectHeapAtRest(log: Logger, largestHeap: number): () => void {
  const timer = setInterval(heapCollection(largestHeap, log), intervalMs).unref();
  return () => clearInterval(timer);
}

/** @returns to be called at each interval: collects when it is time. */
function heapCollection(largestHeap: number, log: Logger): () => void {
  let [last, left] = [0, 0];
  let isPossible = true;
  return () => {
    const now = cpuMs();
    const isResting = now - last < intervalMs * collection.restingShare;
    last = now;
    const size = heapSize();
    if (!isPossible || !isResting || size < left * collection.growth || size > largestHeap) return;
    try {
      collectHeap();
    } catch (error) {
      isPossible = false;
      log.debug({ err: error }, 'the heap is not collected at rest');
    }
    left = heapSize();
  };
}

/** Bytes. */
function heapSize(): number {
  return getHeapStatistics().total_heap_size;
}

/**
 * As V8 does before it gives up: twice and more, with code that is not in use, and without gaps between objects, which are
 * a third of a large heap after work.
 *
 * @throws {Error} where V8 has no such call.
 */
function collectHeap(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  if (typeof collect !== 'function') throw new Error('this V8 does not collect its heap by order');
  Reflect.apply(collect, undefined, [{ type: 'major', execution: 'sync', flavor: 'last-resort' }]);
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

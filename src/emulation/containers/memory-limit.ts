import { readdir, readFile } from 'node:fs/promises';

/** Without cgroups, the memory of a container is looked at by time; with them, whether the kernel has found it too much. */

/** Milliseconds between two looks: near the limit, at the start, and otherwise. */
const nearMs = 100;
const farMs = 500;
const startMs = 2000;
/** Part of the limit below which a container is far from it. */
const farPart = 0.5;
/** Bytes of a page: of Linux on amd64, and on arm64 as distributions build it. */
const pageBytes = 4096;

/**
 * Calls back once when a container has more memory than its limit.
 *
 * @param part of the limit that it has: above 1, too much. Resolves.
 * @param signal ends the watch.
 */
export function watchMemory(part: () => Promise<number>, signal: AbortSignal, onExceeded: () => void): void {
  const begun = performance.now();
  const look = async (): Promise<void> => {
    const present = await part();
    if (signal.aborted) return;
    if (present > 1) {
      onExceeded();
      return;
    }
    const isNear = present > farPart || performance.now() - begun < startMs;
    plan(isNear ? nearMs : farMs);
  };
  const plan = (ms: number): void => {
    const timer = setTimeout(() => void look(), ms);
    timer.unref();
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  };
  plan(nearMs);
}

/**
 * Bytes of memory that some processes, and those below them, have of their own: without what they share, such as programs
 * and libraries.
 */
export async function memoryOfAll(pids: readonly number[]): Promise<number> {
  let used = 0;
  for (const pid of pids) used += await memoryOf(pid);
  return used;
}

/** Bytes of a process and those below it; 0 for one that has ended (proc(5): `statm`, `children`). */
async function memoryOf(pid: number): Promise<number> {
  try {
    const [, resident = 0, shared = 0] = (await readFile(`/proc/${pid}/statm`, 'latin1'))
      .split(' ')
      .map(Number);
    let sum = (resident - shared) * pageBytes;
    // Each thread has children of its own.
    for (const thread of await readdir(`/proc/${pid}/task`)) {
      const children = await readFile(`/proc/${pid}/task/${thread}/children`, 'latin1');
      for (const child of children.split(' ').filter((each) => each !== ''))
        sum += await memoryOf(Number(child));
    }
    return sum;
  } catch {
    return 0;
  }
}

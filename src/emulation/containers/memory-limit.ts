import { readdir, readFile } from 'node:fs/promises';

/** The memory of a container is looked at by time, since cgroups need root and a hierarchy of their own. */

/** Milliseconds between two looks: near the limit, at the start, and otherwise. */
const nearMs = 100;
const farMs = 500;
const startMs = 2000;
/** Part of the limit below which a container is far from it. */
const farPart = 0.5;
/** Bytes of a page: of Linux on amd64, and on arm64 as distributions build it. */
const pageBytes = 4096;

/**
 * Calls back once when the processes of a container have more memory of their own than their limit (`memory.max`): without
 * what they share, such as programs and libraries.
 *
 * @param first process 1 of the container, and those that were put beside it: what is below them counts, too.
 * @param signal ends the watch.
 */
export function watchMemory(
  first: () => Promise<readonly number[]>,
  limitBytes: number,
  signal: AbortSignal,
  onExceeded: () => void,
): void {
  const begun = performance.now();
  const look = async (): Promise<void> => {
    let used = 0;
    for (const pid of await first()) used += await memoryOf(pid);
    if (signal.aborted) return;
    if (used > limitBytes) {
      onExceeded();
      return;
    }
    const isNear = used > limitBytes * farPart || performance.now() - begun < startMs;
    plan(isNear ? nearMs : farMs);
  };
  const plan = (ms: number): void => {
    const timer = setTimeout(() => void look(), ms);
    timer.unref();
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  };
  plan(nearMs);
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

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { memoryOfAll, watchMemory } from '../../../../src/emulation/containers/memory-limit.ts';

const mebibyte = 1024 * 1024;
let child: ChildProcess | undefined;

afterEach(() => child?.kill('SIGKILL'));

/** A shell whose child has so much memory, writes a line, and ends with its standard input. */
async function taking(mebibytes: number): Promise<ChildProcess> {
  const program = `const all = Buffer.alloc(${mebibytes * mebibyte}, 1); console.log(all.length); process.stdin.resume()`;
  // The second command keeps the shell.
  const script = `"${process.execPath}" -e '${program}'; true`;
  const started = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  child = started;
  await once(started.stdout, 'data');
  return started;
}

describe('the memory of a container', () => {
  test('is that of all its processes', async () => {
    const { pid } = await taking(200);
    const exceeded = Promise.withResolvers<string>();
    const ending = new AbortController();
    watchMemory(
      async () => (await memoryOfAll(pid === undefined ? [] : [pid])) / (150 * mebibyte),
      ending.signal,
      () => exceeded.resolve('exceeded'),
    );
    expect(await exceeded.promise).toBe('exceeded');
  });

  test('may be as much as its limit, and nothing is asked of a container that has ended', async () => {
    const started = await taking(20);
    const ending = new AbortController();
    let isExceeded = false;
    let looks = 0;
    const lookedTwice = Promise.withResolvers<undefined>();
    const part = async (): Promise<number> => {
      if (++looks === 3) lookedTwice.resolve(undefined);
      return (await memoryOfAll([started.pid ?? 0])) / (400 * mebibyte);
    };
    watchMemory(part, ending.signal, () => (isExceeded = true));
    await lookedTwice.promise;
    ending.abort();
    started.stdin?.end();
    await once(started, 'exit');
    expect(isExceeded).toBe(false);
    expect(looks).toBe(3);
  });
});

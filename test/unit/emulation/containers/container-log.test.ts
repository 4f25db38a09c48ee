import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LogLine } from '../../../../src/controllers/kubelet/container-runtime.ts';
import { ContainerLog } from '../../../../src/emulation/containers/container-log.ts';
import { cpuMs } from '../../../support/reference-time.ts';

const mebibyte = 1024 * 1024;

async function linesOf(lines: AsyncIterable<readonly LogLine[]>): Promise<LogLine[]> {
  const found: LogLine[] = [];
  for await (const some of lines) found.push(...some);
  return found;
}

const textsOf = async (lines: AsyncIterable<readonly LogLine[]>): Promise<string[]> =>
  (await linesOf(lines)).map(({ text }) => text.toString());

describe('the log of a container', () => {
  let folder: string;
  let log: ContainerLog;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'servicenet-log-'));
    log = new ContainerLog(join(folder, '0'));
    await log.open();
  });
  afterEach(() => {
    log.close();
    rmSync(folder, { recursive: true });
  });

  it('has lines of both streams, in the form of the container runtime interface', async () => {
    log.write('stdout', Buffer.from('one\ntw'));
    log.write('stderr', Buffer.from('three\n'));
    log.write('stdout', Buffer.from('o\nfour'));
    expect(await textsOf(log.lines())).toEqual(['one', 'three', 'two']);
    log.close();
    const all = await linesOf(log.lines());
    expect(all.map(({ stream, isWhole, text }) => [stream, isWhole, text.toString()])).toEqual([
      ['stdout', true, 'one'],
      ['stderr', true, 'three'],
      ['stdout', true, 'two'],
      // Without an end, as the program left it.
      ['stdout', false, 'four'],
    ]);
    const [first = ''] = readFileSync(join(log.folder, '0'), 'utf8').split('\n');
    expect(first).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stdout F one$/);
  });

  it('has a line of 40 KiB in parts of 16 KiB', async () => {
    log.write('stdout', Buffer.from(`${'x'.repeat(40 * 1024)}\nnext\n`));
    const all = await linesOf(log.lines());
    expect(all.map(({ isWhole, text }) => [isWhole, text.length])).toEqual([
      ...[
        [false, 16 * 1024],
        [false, 16 * 1024],
        [true, 8 * 1024],
      ],
      [true, 4],
    ]);
  });

  it('that has no end takes three files at most, and keeps the newest lines', async () => {
    const line = 'x'.repeat(1000);
    const lines = 20_000;
    for (let i = 0; i < lines; i++) log.write('stdout', Buffer.from(`${i} ${line}\n`));
    const files = readdirSync(log.folder);
    expect(files).toHaveLength(3);
    const sizes = files.map((file) => statSync(join(log.folder, file)).size);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4 * mebibyte);
    const numbers = (await textsOf(log.lines())).map((text) => Number.parseInt(text, 10));
    const [first = 0] = numbers;
    expect(numbers).toEqual(Array.from({ length: lines - first }, (_, i) => first + i));
    expect(numbers.length).toBeGreaterThan(8000);
  });

  it('is followed to its end, over changes of files', async () => {
    const followed = textsOf(log.lines({ follow: true }));
    const piece = Array.from({ length: 100 }, (_, i) => `${i} ${'x'.repeat(1000)}\n`).join('');
    for (let i = 0; i < 60; i++) {
      log.write('stdout', Buffer.from(piece));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    log.close();
    expect(await followed).toHaveLength(6000);
  });

  it.each([0, 1, 3, 9_000, 100_000])(
    'is read from the last %d lines on, over several files',
    async (tailLines) => {
      for (let i = 0; i < 12_000; i += 100) {
        const piece = Array.from({ length: 100 }, (_, n) => `${i + n} ${'x'.repeat(1000)}\n`);
        log.write('stdout', Buffer.from(piece.join('')));
      }
      const all = await textsOf(log.lines());
      expect(await textsOf(log.lines({ tailLines }))).toEqual(all.slice(Math.max(0, all.length - tailLines)));
      const followed = textsOf(log.lines({ tailLines, follow: true }));
      await new Promise((resolve) => setTimeout(resolve, 20));
      log.write('stdout', Buffer.from('more\n'));
      log.close();
      expect((await followed).slice(-2).map((text) => text.slice(0, 6))).toEqual([
        ...(tailLines === 0 ? [] : ['11999 ']),
        'more',
      ]);
    },
  );

  it('is read to where it ends now, whatever is written meanwhile', async () => {
    log.write('stdout', Buffer.from('one\ntwo\n'));
    const texts: string[] = [];
    for await (const some of log.lines()) {
      texts.push(...some.map(({ text }) => text.toString()));
      log.write('stdout', Buffer.from('endless\n'.repeat(1000)));
    }
    expect(texts).toEqual(['one', 'two']);
  });

  it('is read from its end on though the file of that is deleted meanwhile', async () => {
    const piece = `${'x'.repeat(1000)}\n`.repeat(1000);
    for (let i = 0; i < 3; i++) log.write('stdout', Buffer.from(piece));
    const lines = log.lines({ tailLines: 2000 });
    // More than is read at once: the reader has the file open, and most of it before it.
    const first = await lines.next();
    for (let i = 0; i < 20; i++) log.write('stdout', Buffer.from(piece));
    expect(readdirSync(log.folder)).not.toContain('0');
    const begun = first.done === true ? [] : first.value;
    expect(begun.length).toBeGreaterThan(0);
    expect(begun.length).toBeLessThan(2000);
    expect(begun.length + (await linesOf(lines)).length).toBe(2000);
  });

  it('takes empty lines in short turns, and says how much it has more', () => {
    const chunk = Buffer.alloc(64 * 1024, 10);
    let bytes = 0;
    const taken = cpuMs(() => {
      for (let i = 0; i < 8; i++) bytes += log.write('stdout', chunk);
    });
    expect(bytes).toBe(8 * chunk.length * '2026-01-01T00:00:00.000000000Z stdout F \n'.length);
    expect(taken / 8).toBeLessThan(50);
  });

  it('keeps bytes that are no text', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => (i === 10 ? 0 : i)));
    log.write('stdout', bytes.subarray(0, 200));
    log.write('stdout', Buffer.concat([bytes.subarray(200), Buffer.from('\n')]));
    expect((await linesOf(log.lines()))[0]?.text).toEqual(bytes);
  });

  it('goes on for who reads it while files that were not read yet are gone', async () => {
    const followed = log.lines({ follow: true });
    log.write('stdout', Buffer.from('first\n'));
    expect((await followed.next()).value).toMatchObject([{ text: Buffer.from('first') }]);
    for (let i = 0; i < 20_000; i++) log.write('stdout', Buffer.from(`${i} ${'x'.repeat(1000)}\n`));
    log.close();
    const rest = await textsOf(followed);
    expect(rest.at(-1)).toMatch(/^19999 /);
  });

  it('ends for who follows it when that one is gone', async () => {
    const gone = new AbortController();
    const followed = textsOf(log.lines({ follow: true, signal: gone.signal }));
    log.write('stdout', Buffer.from('one\n'));
    await new Promise((resolve) => setTimeout(resolve, 20));
    gone.abort();
    expect(await followed).toEqual(['one']);
  });

  it('has no room while one that is attached has none', async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const heard: string[] = [];
    const detach = log.onWrite((stream, chunk) => {
      heard.push(`${stream}: ${chunk.toString()}`);
      return promise;
    });
    log.onWrite(() => undefined);
    expect(log.room()).toBeUndefined();
    log.write('stdout', Buffer.from('one'));
    log.write('stderr', Buffer.from('two'));
    detach();
    log.write('stdout', Buffer.from('three'));
    expect(heard).toEqual(['stdout: one', 'stderr: two']);
    const room = log.room();
    expect(room).toBeInstanceOf(Promise);
    resolve(undefined);
    await room;
    await Promise.resolve();
    expect(log.room()).toBeUndefined();
  });
});

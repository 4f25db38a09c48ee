import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { textAt } from '../../../src/objects/json.ts';
import { unchangedMappings } from '../../../src/host/unused-memory.ts';

/** Fills 200 MiB between small blocks that stay, lets it go, and says how many MiB are resident before and after. */
const program = `
import { setTimeout as sleep } from 'node:timers/promises';
import { returnUnusedMemory } from './src/host/unused-memory.ts';
const residentMiB = () => process.memoryUsage.rss() / 2 ** 20;
let large = [];
const small = [];
for (let n = 0; n < 3200; n++) {
  large.push(Buffer.allocUnsafeSlow(65_536).fill(1));
  if (n % 10 === 0) small.push(Buffer.allocUnsafeSlow(100));
}
const most = residentMiB();
large = [];
gc();
await sleep(500);
const kept = residentMiB();
const end = returnUnusedMemory({ debug: console.error }, 20);
for (let n = 0; n < 500 && residentMiB() > most - 150; n++) await sleep(20);
end();
console.log(most - kept, most - residentMiB(), small.length);
`;

test('memory that malloc keeps between blocks in use goes back to the system', ({ skip }) => {
  skip(
    textAt(process.report.getReport(), 'header', 'glibcVersionRuntime') === '',
    'the C library is not glibc',
  );
  const words = ['--expose-gc', '--input-type=module', '--eval', program];
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  expect(stderr).toBe('');
  const [byItself, returned] = stdout.split(' ').map(Number);
  expect(byItself).toBeLessThan(100);
  expect(returned).toBeGreaterThan(150);
});

/** Says how many MiB of pages of files are resident before and after, and runs on. */
const fileProgram = `
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { returnUnusedMemory } from './src/host/unused-memory.ts';
const fileMiB = () => Number(/RssFile:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
const digest = () => createHash('sha256').update(JSON.stringify({ a: [1, 2, 3] })).digest('hex');
// Less work than this has nothing worth returning.
for (let n = 0; n < 50_000; n++) digest();
const [before, wanted] = [fileMiB(), digest()];
const end = returnUnusedMemory({ debug: console.error }, 20);
let least = before;
for (let n = 0; n < 500 && least > before / 2; n++) {
  await sleep(20);
  least = Math.min(least, fileMiB());
}
end();
console.log(before, least, digest() === wanted);
`;

test('pages of the program that only the start used go back to the system, and come again', ({ skip }) => {
  skip(process.platform !== 'linux', 'the system is not Linux');
  const words = ['--input-type=module', '--eval', fileProgram];
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  expect(stderr).toBe('');
  const [before, least, runs] = stdout.trim().split(' ');
  expect(Number(least)).toBeLessThan(Number(before) / 2);
  expect(runs).toBe('true');
});

/** Works for a while with many objects, lets them go, and says how many MiB the heap has after it and at rest. */
const workProgram = `
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { returnUnusedMemory } from './src/host/unused-memory.ts';
// To ask costs next to nothing: a process that works is not collected, nor is a heap of more than 96 MiB.
const heapMiB = () => getHeapStatistics().total_heap_size / 2 ** 20;
const end = returnUnusedMemory({ debug: console.error }, 500);
let objects = Array.from({ length: 150_000 }, (_, n) => ({ text: 'x' + n, n: n / 2 }));
while (process.cpuUsage().user < 1_000_000) createHash('sha256').update(String(objects.length)).digest();
objects = objects.filter((_, n) => n % 100 === 0);
const worked = heapMiB();
for (let n = 0; n < 600 && heapMiB() > worked - 10; n++) await sleep(100);
end();
console.log(worked, heapMiB());
`;

test('what the heap grew by for work goes back to the system at rest', () => {
  const words = ['--max-semi-space-size=4', '--input-type=module', '--eval', workProgram];
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  expect(stderr).toBe('');
  const [worked = 0, rested = 0] = stdout.split(' ').map(Number);
  expect(rested).toBeLessThan(worked - 10);
});

test('only mappings of files of which no page is the own one are dropped', () => {
  const mapping = (range: string, permissions: string, name: string, anonymous: number): string =>
    `${range} ${permissions} 00000000 fe:00 1234  ${name}\nRss: 8 kB\nAnonymous:             ${anonymous} kB\nVmFlags: rd ex\n`;
  const smaps = [
    mapping('400000-402000', 'r--p', '/usr/bin/node', 0),
    mapping('402000-500000', 'r-xp', '/usr/bin/node', 0),
    mapping('500000-502000', 'r--p', '/usr/bin/node', 8),
    mapping('502000-503000', 'rw-p', '/usr/bin/node', 0),
    mapping('600000-700000', 'r-xp', '', 0),
    mapping('700000-701000', 'r-xp', '[vdso]', 0),
    mapping('701000-702000', 'r--s', '/dev/shm/x', 0),
    mapping('7fff00000000-7fff00003000', 'r-xp', '/lib/libc.so.6', 0),
  ].join('');
  expect(unchangedMappings(smaps)).toEqual([
    { start: 0x400000n, length: 0x2000 },
    { start: 0x402000n, length: 0xfe000 },
    { start: 0x7fff00000000n, length: 0x3000 },
  ]);
});

import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { textAt } from '../../../src/objects/json.ts';

/** Fills 200 MiB between small blocks that stay, lets it go, and says how many MiB are resident before and after. */
const program = `
import { setTimeout as sleep } from 'node:timers/promises';
import { returnFreedMemory } from './src/host/freed-memory.ts';
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
const end = returnFreedMemory({ debug: console.error }, 20);
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

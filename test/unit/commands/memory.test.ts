import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';

const memory = path.resolve('src/commands/memory.ts');
/** Opens files until there is none left to open, then gives memory back. */
const script = `
  import fs from 'node:fs';
  import { giveBackMemory } from ${JSON.stringify(memory)};
  const log = { debug: (_members, message) => { fs.writeSync(1, message); process.exit(0); } };
  try { for (;;) fs.openSync('/dev/null', 'r'); } catch { giveBackMemory(log); }
  setTimeout(() => undefined, 60_000);
`;

test('memory is given back, and the process lives, while no file can be opened', () => {
  const node = ['--expose-gc', '--input-type=module', '-e', script];
  const limited = ['-c', 'ulimit -n 64; exec "$0" "$@"', process.execPath, ...node];
  expect(execFileSync('sh', limited, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })).toBe(
    'gave memory back',
  );
});

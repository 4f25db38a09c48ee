import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { startApiServer } from '../../src/testing/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'servicenet-ways-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What docs/internals.md says of a way: the files that hand the object on, and those that run beside it. */
function described(title: string): { readonly way: readonly string[]; readonly beside: readonly string[] } {
  const page = readFileSync('docs/internals.md', 'utf8');
  const [, text = ''] = page.split(`**${title}**`);
  const [way = '', beside = ''] = text.split('\n\n');
  const files = (part: string) => [...part.matchAll(/`([^`]+\.ts)`/g)].map(([, file = '']) => file);
  return { way: files(way), beside: files(beside) };
}

/** The files that a program of test/support/ways finds. */
async function measured(program: string, ...args: readonly string[]): Promise<readonly string[]> {
  const file = join(import.meta.dirname, '../support/ways', program);
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...args], { timeout: 110_000 });
  const files: unknown = JSON.parse(stdout);
  return Array.isArray(files) ? files.map(String) : [];
}

function compare(files: readonly string[], title: string): void {
  const { way, beside } = described(title);
  console.info(`${title}, ${way.length} files, ${files.length} with those beside it:\n  ${way.join('\n  ')}`);
  expect(way.filter((file) => !files.includes(file))).toEqual([]);
  expect(files.filter((file) => !way.includes(file) && !beside.includes(file))).toEqual([]);
  expect(way.length).toBeLessThanOrEqual(15);
}

test(
  'a slice passes the files that docs/internals.md names, and no others',
  { timeout: 120_000 },
  async () => {
    // In a process of its own: what the server does is not on the way.
    const server = await startApiServer({ nodes: 0 });
    const ca = join(folder, 'ca.pem');
    writeFileSync(ca, server.ca);
    try {
      compare(
        await measured('slice-to-nft.ts', server.url, ca, server.token),
        'A slice, from its watch to nft',
      );
    } finally {
      await server.stop();
    }
  },
);

test(
  'a created object passes the files that docs/internals.md names, and no others',
  {
    timeout: 120_000,
  },
  async () => {
    compare(await measured('created-object.ts'), 'A created object, from its request to the answer');
  },
);

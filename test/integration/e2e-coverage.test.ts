import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const here = new URL('.', import.meta.url);
const rows = readFileSync(new URL('e2e-coverage.md', here), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ['))
  .map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim().replaceAll('`', '')),
  );

/** The texts that a file gives to `test` and `test.each`. */
function titlesOf(file: string): Set<string> {
  const text = readFileSync(new URL(file, here), 'utf8');
  return new Set([...text.matchAll(/'(\[sig-[^\n]*?)'(?:,|\s)/g)].map(([, title]) => title ?? ''));
}

const files = readdirSync(here).filter((name) => name.endsWith('.test.ts'));
const titles = new Map(files.map((file) => [file, titlesOf(file)]));

test('every row of e2e-coverage.md names a test that there is', () => {
  expect(rows.length).toBeGreaterThan(60);
  const missing = rows.filter(([, title = '', file = '']) => titles.get(file)?.has(title) !== true);
  expect(missing).toEqual([]);
});

test('every test that carries the name of an e2e test has its row', () => {
  const listed = new Set(rows.map(([, title, file]) => `${file ?? ''} ${title ?? ''}`));
  const unlisted = [...titles].flatMap(([file, own]) => [...own].map((title) => `${file} ${title}`));
  expect(unlisted.filter((each) => !listed.has(each))).toEqual([]);
});

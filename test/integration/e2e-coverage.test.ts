import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const here = new URL('.', import.meta.url);

/** A row of the tables: the full name of an e2e test, and the file that replays it. */
interface Row {
  readonly name: string;
  readonly file: string;
}

/** The rows of all tables; a heading gives the `[sig-…]` that their names begin with. */
function rowsOf(markdown: string): readonly Row[] {
  let sig = '';
  return markdown.split('\n').flatMap((line) => {
    sig = /^## (sig-[a-z-]+)$/.exec(line)?.[1] ?? sig;
    const cells = line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim());
    const [name = '', , , file = ''] = cells;
    return /^[a-z0-9/.-]+\.ts$/.test(file) ? [{ name: `[${sig}] ${name}`, file }] : [];
  });
}
const rows = rowsOf(readFileSync(new URL('e2e-coverage.md', here), 'utf8'));

/** The texts that a file gives to `test` and `test.each`. */
function titlesOf(file: string): readonly string[] {
  const text = readFileSync(new URL(file, here), 'utf8');
  return [...text.matchAll(/(['"])(\[sig-[^\n]*?)\1(?:,|\s)/g)].map(([, , title]) => title ?? '');
}

const files = [
  ...readdirSync(here).filter((name) => name.endsWith('.test.ts')),
  ...readdirSync(new URL('e2e-calls', here)).map((name) => `e2e-calls/${name}`),
];
const titles = new Map(files.map((file) => [file, titlesOf(file)]));

/**
 * Whether a test of this title is the e2e test of this name: the same, or one of `test.each` with `%s` for what differs
 * between e2e tests, or with `: %s` at its end for what is tried in one.
 */
const isTitleOf = (title: string, name: string): boolean => {
  const text = title.replace(/: %s$/, '');
  return text === name || (text.includes('%s') && fits(text.split('%s'), name));
};

/** Whether a name is these texts with something between each two of them. */
function fits([first = '', ...others]: readonly string[], name: string): boolean {
  const last = others.at(-1) ?? '';
  return name.length > first.length + last.length && name.startsWith(first) && name.endsWith(last);
}

test('every row of e2e-coverage.md names a test that there is', () => {
  expect(rows.length).toBeGreaterThan(60);
  const missing = rows.filter(
    ({ name, file }) => titles.get(file)?.some((title) => isTitleOf(title, name)) !== true,
  );
  expect(missing).toEqual([]);
});

test('every test that carries the name of an e2e test has its row', () => {
  const unlisted = [...titles].flatMap(([file, own]) =>
    own.filter((title) => !rows.some((row) => row.file === file && isTitleOf(title, row.name))),
  );
  expect(unlisted).toEqual([]);
});

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildPage, reasonTexts } from '../../../hack/build-page.ts';
import { loadBalancerReasons, noEndpointReasons, notAnnouncedReasons } from '../../../src/objects/reasons.ts';

test('the page knows what the documentation says of each reason', () => {
  const texts = reasonTexts(readFileSync('docs/troubleshooting.md', 'utf8'));
  for (const reason of [...loadBalancerReasons, ...noEndpointReasons, ...notAnnouncedReasons]) {
    expect(texts[reason]?.meaning, reason).toMatch(/\w/);
  }
});

test('links become their words, code stays code', () => {
  const table =
    '| `Aa`, `Bb` | See [the rules](pools.md#sharing) of `x \\| y` | Nothing |\n| `not-a-word` | a | b |\n';
  const row = { meaning: 'See the rules of `x | y`', whatToDo: 'Nothing' };
  expect(reasonTexts(table)).toEqual({ Aa: row, Bb: row });
});

test('what is built takes little of the package, as each file is there once for each encoding', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'page-'));
  await buildPage(folder);
  const files = readdirSync(folder);
  const kinds = files.map((name) => name.replace(/-[\w-]{10}\./, '.')).toSorted();
  expect(kinds).toEqual([
    'LICENSES.txt',
    'icon.svg',
    'index.html',
    'script.js.br',
    'script.js.gz',
    'style.css.br',
    'style.css.gz',
  ]);
  const size = files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  expect(size).toBeLessThan(120_000);
  rmSync(folder, { recursive: true });
});

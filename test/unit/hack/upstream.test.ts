import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { judge, listedTests, upstreamSuites } from '../../e2e/upstream/suites.ts';

const readme = readFileSync(new URL('../../e2e/README.md', import.meta.url), 'utf8');

describe('the tests of Kubernetes that README.md of test/e2e lists', () => {
  test('are read, each row of each suite', () => {
    const rows = readme.split('\n').filter((line) => line.startsWith('| `['));
    const listed = upstreamSuites.flatMap(({ name }) => listedTests(name));
    expect(listed).toHaveLength(rows.length);
    expect(new Set(listed.map(({ name }) => name)).size).toBe(rows.length);
    for (const { name } of upstreamSuites) expect(listedTests(name), name).not.toEqual([]);
  });

  test('have the conformance tests of sig-network among them, all 47, and all pass', () => {
    const network = listedTests('network');
    expect(network).toHaveLength(47);
    expect(network.filter(({ missing }) => missing !== undefined)).toEqual([]);
  });

  test('have those of conformance of 1.37 beside them, each with a place', () => {
    const bare = (name: string) =>
      name
        .replaceAll(/\[[^\]]*\]/g, '')
        .replaceAll(/\s+/g, ' ')
        .trim();
    const passing = upstreamSuites.flatMap(({ name }) => listedTests(name));
    const runs = new Set(passing.flatMap(({ name, missing }) => (missing === undefined ? [bare(name)] : [])));
    const [, list = ''] = readme.split('\n## The conformance list of 1.37\n');
    const counts = list
      .split('\n### Conformance of sig-')
      .slice(1)
      .map((section) => {
        const rows = [...section.matchAll(/^\| `(.+?)` +\| (.+?) +\|$/gm)];
        for (const [, name = '', here = ''] of rows) {
          if (here === 'runs') expect(runs).toContain(name);
          else expect(here).toMatch(/^(`test\/\S+`|cannot: |no test of its own: )/);
          for (const [, file = ''] of here.matchAll(/`(test\/\S+?)`/g)) {
            expect(existsSync(new URL(`../../../${file}`, import.meta.url)), file).toBe(true);
          }
        }
        return [section.split('\n')[0], rows.length];
      });
    expect(counts).toEqual([
      ['network', 47],
      ['api-machinery', 100],
      ['apps', 60],
      ['auth', 27],
      ['node', 104],
    ]);
  });

  test('are compared with a run', () => {
    const text =
      '\n### a\n\n| Test | State |\n| --- | --- |\n| `[x] one` | passes |\n| `[x] two` | cannot: a disk |\n\n## B\n';
    const listed = listedTests('a', text);
    expect(listed).toEqual([
      { name: '[x] one', missing: undefined },
      { name: '[x] two', missing: 'a disk' },
    ]);
    const ran = (name: string, state: string, message = '') => ({ name, state, seconds: 1, message });
    const problems = (...results: ReturnType<typeof ran>[]) =>
      judge(results, listed).map(({ name, problem }) => [name, problem]);
    expect(problems(ran('[x] one', 'passed'))).toEqual([['[x] one', undefined]]);
    expect(problems(ran('[x] one', 'failed', 'no'))).toEqual([['[x] one', 'no']]);
    expect(problems(ran('[x] one', 'skipped', 'needs y'))).toEqual([['[x] one', 'needs y']]);
    expect(problems()).toEqual([['[x] one', expect.stringContaining('did not run')]]);
    expect(problems(ran('[x] one', 'passed'), ran('[x] new', 'passed'))).toContainEqual([
      '[x] new',
      expect.stringContaining('not listed'),
    ]);
  });
});

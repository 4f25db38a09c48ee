import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { longScenarios, scenariosUsing, shortScenarios } from '../network/support/policy-scenarios.ts';
import { scenarios } from './scenarios.ts';
import { workloadScenarios } from './workload-scenarios.ts';

const all = [...scenarios, ...workloadScenarios];

const root = new URL('../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');

/** The titles that a file gives to `it`, `test` and their `each` and `for`. */
const titlesOf = (file: string): readonly string[] =>
  [...read(file).matchAll(/(?:\b(?:it|test)|\b(?:it|test)\.\w+\([^()]*\))\(\s*'([^'\n]+)'/g)].map(
    ([, title]) => title ?? '',
  );

test('every scenario is named once, and sig-network has 47 of conformance', () => {
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  expect(scenarios.filter(({ conformance }) => conformance)).toHaveLength(47);
});

test('README.md says how many scenarios there are, and what the tests of them send', () => {
  const counts = (kind: 'file' | 'calls' | 'reason') => {
    const found = scenarios.filter(({ here }) => kind in here);
    return [found.length, found.filter(({ conformance }) => conformance).length] as const;
  };
  const [[packets, ofConformance], [calls, callsThere], [missing, missingThere]] = [
    counts('file'),
    counts('calls'),
    counts('reason'),
  ];
  const readme = read('README.md');
  expect(readme).toContain(`lists ${scenarios.length} of its tests of sig-network`);
  expect(readme).toContain(
    `send the packets of ${packets} (of conformance ${ofConformance}) and make the calls of ${calls} that send none (${callsThere}); for ${missing} (${missingThere}) it says`,
  );
  expect(readme).toContain(`lists ${workloadScenarios.length} of other SIGs, all with a test`);
  expect(workloadScenarios.every(({ here }) => 'file' in here)).toBe(true);
});

test('every scenario that has a test, or a row of API calls, has one that there is', () => {
  // Some names carry labels in brackets there.
  const rows = [...read('test/integration/e2e-coverage.md').matchAll(/^\| (.+?) +\| network\//gm)].map(
    ([, name]) => (name ?? '').replaceAll(/ \[(?:LinuxOnly|Serial|Slow)\]/g, ''),
  );
  const missing = all.filter(({ name, here }) => {
    if ('file' in here) return !titlesOf(here.file).includes(here.test);
    return 'calls' in here && !rows.includes(name);
  });
  expect(missing).toEqual([]);
});

test("every test of Kubernetes' scenarios with packets is one of them", () => {
  const folder = 'test/network/e2e';
  const written = readdirSync(new URL(folder, root)).flatMap((name) =>
    titlesOf(`${folder}/${name}`).map((title) => `${folder}/${name}: ${title}`),
  );
  const listed = all.flatMap(({ here }) => ('file' in here ? [`${here.file}: ${here.test}`] : []));
  expect(written.filter((each) => !listed.includes(each))).toEqual([]);
});

test("all of Kubernetes' tests of NetworkPolicies are there: 42 by TCP, 3 by UDP and 3 by SCTP", () => {
  const names = [...shortScenarios, ...longScenarios].map(({ name }) => name);
  expect([names.length, new Set(names).size]).toEqual([42, 42]);
  expect([scenariosUsing('UDP').length, scenariosUsing('SCTP').length]).toEqual([3, 3]);
});

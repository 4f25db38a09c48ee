import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestResult } from '../../cluster/suite.ts';
import { needsZones, suites as rigSuites } from '../../cluster/suites.ts';

/** A part of Kubernetes' suite that runs against `up`. Its tests are listed in README.md of `test/e2e`, by its name. */
export interface UpstreamSuite {
  readonly name: string;
  /** Regular expressions of Go: tests to run (`--ginkgo.focus`). */
  readonly focus: readonly string[];
  /** And not to run. */
  readonly skip?: readonly string[];
}

const conformance = (sig: string): UpstreamSuite => ({
  name: sig,
  focus: [String.raw`\[sig-${sig}\].*\[Conformance\]`],
});

/** A suite of the rig, with what it leaves out but for the tests of zones: `up` has three. */
function asInRig(name: string): UpstreamSuite {
  const suite = rigSuites.find((each) => each.name === name);
  const { [needsZones]: _, ...skipped } = suite?.skipped ?? {};
  return { name, focus: suite?.focus ?? [], skip: Object.values(skipped).flat() };
}

export const upstreamSuites: readonly UpstreamSuite[] = [
  ...['network', 'api-machinery', 'apps', 'auth', 'cli', 'instrumentation', 'architecture'].map(conformance),
  // Beside conformance: the resizes of several containers at once.
  {
    name: 'node',
    focus: [...conformance('node').focus, 'Pod InPlace Resize Container guaranteed pods with'],
  },
  ...['scheduling', 'storage'].map(conformance),
  ...['core', 'network-policy'].map(asInRig),
];

/** What README.md says of a test: that it passes, or what is missing for it. */
export interface ListedTest {
  readonly name: string;
  /** Undefined: it passes. */
  readonly missing: string | undefined;
}

/** The tests of a suite in README.md of `test/e2e`: the rows below the heading of its name. */
export function listedTests(suite: string, text = readme()): readonly ListedTest[] {
  const [, section = ''] = text.split(`\n### ${suite}\n`);
  const [rows = ''] = section.split('\n#');
  return [...rows.matchAll(/^\| `(.+)` +\| (passes|cannot: ([^|]+?)) +\|$/gm)].map(
    ([, name = '', , missing]) => ({
      name,
      missing,
    }),
  );
}

function readme(): string {
  return readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
}

/** A test of a run, and why it does not count as passed. */
export interface JudgedTest {
  readonly name: string;
  readonly state: string;
  readonly seconds: number;
  readonly problem: string | undefined;
}

/**
 * Compares a run with what README.md lists: each listed test has to pass, and each test that ran to be listed.
 *
 * @param listed undefined: not compared.
 */
export function judge(
  results: readonly TestResult[],
  listed: readonly ListedTest[] | undefined,
): readonly JudgedTest[] {
  const names = new Map(listed?.map((test) => [test.name, test]));
  const judged = results.map(({ name, state, seconds, message }) => {
    const isListed = listed === undefined || names.has(name);
    const notListed = state === 'passed' && !isListed ? 'it is not listed in test/e2e/README.md' : undefined;
    return { name, state, seconds, problem: state === 'passed' ? notListed : message || state };
  });
  const ran = new Set(results.map(({ name }) => name));
  const absent = [...names.values()].filter(({ name, missing }) => missing === undefined && !ran.has(name));
  return [
    ...judged,
    ...absent.map(({ name }) => ({
      ...{ name, state: 'absent', seconds: 0 },
      problem: 'test/e2e/README.md lists it, and it did not run',
    })),
  ];
}

/**
 * Kubernetes' own end-to-end suite against `servicenet up`: `npm run test:upstream`. README.md of `test/e2e` says which tests
 * pass, and what is missing for the others.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isBuilt, program } from '../../cluster/programs.ts';
import { runSuite, type TestResult } from '../../cluster/suite.ts';
import { startUp } from '../../cluster/up.ts';
import { imagePrograms, makeImages } from './images.ts';
import { judge, listedTests, type UpstreamSuite, upstreamSuites } from './suites.ts';

const { values } = parseArgs({
  options: {
    suites: { type: 'string', default: upstreamSuites.map(({ name }) => name).join(',') },
    focus: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    'if-built': { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const usage = `npm run test:upstream [-- OPTION...]

  --suites=network,...   of ${upstreamSuites.map(({ name }) => name).join(', ')}
  --focus=TEXT           only the tests of the suites whose name has this, listed or not
  --list                 also run what is listed as missing something, and print rows for README.md
  --if-built             nothing, where Kubernetes' programs have not been built before
  --keep                 leave the cluster until Ctrl-C
`;

/** Parts that run at the same time, and the tests in one: most of a test is waiting. */
const partsAtOnce = 6;
const testsOfPart = 8;
const minutes = 120;

const programs = ['e2e.test', 'kubectl', ...imagePrograms] as const;
const notBuilt = programs.filter((name) => !isBuilt(name));

if (values.help) {
  console.log(usage);
} else if (values['if-built'] && notBuilt.length > 0) {
  const suites = values.suites.split(',');
  const count = suites.flatMap((name) =>
    listedTests(name).filter(({ missing }) => missing === undefined),
  ).length;
  console.log(
    `skipped: ${count} tests of ${values.suites}: missing ${notBuilt.join(', ')}, which npm run test:upstream builds`,
  );
  console.log(`\n0 passed, 0 failed, ${count} skipped`);
} else {
  await main();
}

async function main(): Promise<void> {
  const chosen = values.suites.split(',').map((name) => {
    const suite = upstreamSuites.find((each) => each.name === name);
    if (suite === undefined) throw new Error(`there is no suite ${name}`);
    return suite;
  });
  programs.forEach(program);
  const logs = mkdtempSync(join(tmpdir(), 'servicenet-upstream-'));
  const home = mkdtempSync('/var/tmp/servicenet-upstream-');
  const kubeconfig = join(home, 'kubeconfig');
  const stop = await startUp({
    // Two in each of three zones.
    ...{ home, kubeconfig, nodes: 6, images: makeImages(home) },
    // And an image that is there nowhere: a rollout that stops.
    flags: ['--writable-host-paths', '--missing-images', 'webserver:404'],
  });
  try {
    const asked = { minutes, kubeconfig, logs, before: [] };
    /** Runs tests of a suite by their names; one after the other. */
    const runTests = async (suite: UpstreamSuite, name: string, tests: readonly string[]): Promise<void> => {
      const focus = tests.map((test) => `${escaped(test)}$`);
      ran.push({
        suite,
        results: await runSuite({ ...asked, name: `${suite.name}-${name}`, focus, skip: [] }),
      });
    };
    const ran: Ran[] = [];
    const parts: (() => Promise<void>)[] = [];
    for (const suite of chosen) {
      const focus = values.focus === '' ? suite.focus : [values.focus];
      const missing = new Set(
        listedTests(suite.name).flatMap((test) =>
          test.missing === undefined || values.list ? [] : test.name,
        ),
      );
      const dry = { ...asked, name: `${suite.name}-list`, focus, labels: '!Serial', isDry: true };
      const listed = await runSuite({ ...dry, skip: suite.skip ?? [] });
      const tests = listed.flatMap(({ name }) => (missing.has(name) ? [] : name));
      for (let at = 0; at < tests.length; at += testsOfPart) {
        parts.push(() => runTests(suite, String(at), tests.slice(at, at + testsOfPart)));
      }
    }
    await Promise.all(
      Array.from({ length: partsAtOnce }, async () => {
        for (let part = parts.shift(); part !== undefined; part = parts.shift()) await part();
      }),
    );
    console.log(`logs: ${logs}`);
    process.exitCode = report(chosen, ran);
    if (values.keep) {
      console.log(`export KUBECONFIG=${kubeconfig}`);
      await once(process, 'SIGINT');
    }
  } finally {
    await stop();
    rmSync(home, { recursive: true, force: true });
  }
}

interface Ran {
  readonly suite: UpstreamSuite;
  readonly results: readonly TestResult[];
}

/** Prints every test. @returns the exit code. */
function report(chosen: readonly UpstreamSuite[], ran: readonly Ran[]): number {
  let passed = 0;
  let failed = 0;
  for (const suite of chosen) {
    const results = ran.filter((each) => each.suite === suite).flatMap((each) => each.results);
    if (values.list) {
      console.log(`\n### ${suite.name}\n\n| Test | State |\n| --- | --- |`);
      for (const { name, state, message } of results.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
        console.log(
          `| \`${name}\` | ${state === 'passed' ? 'passes' : `cannot: ${message.replaceAll('|', '/')}`} |`,
        );
      }
      continue;
    }
    const listed = values.focus === '' ? listedTests(suite.name) : undefined;
    for (const { name, state, seconds, problem } of judge(results, listed)) {
      if (problem === undefined) passed++;
      else failed++;
      const words = problem === undefined ? '' : `: ${problem}`;
      console.log(`${state.padEnd(8)} ${seconds.toFixed(0).padStart(4)} s  ${name}${words}`);
    }
  }
  console.log(`\n${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

/** A text as a regular expression of Go. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.|?*+()[\]{}]/g, String.raw`\$&`);
}

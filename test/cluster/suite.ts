import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { words } from './node.ts';
import { program } from './programs.ts';
import type { Suite } from './suites.ts';

/** One test of a suite. */
export interface TestResult {
  readonly name: string;
  /** Of Ginkgo's report: `passed`, `failed`, `timedout`, `panicked`, `interrupted`. */
  readonly state: string;
  readonly seconds: number;
  /** Why it failed. */
  readonly message: string;
}

/**
 * Runs a part of Kubernetes' suite; what is printed goes to `SUITE.log` of the folder of logs.
 *
 * @returns the tests that ran, in their order; those that a test itself skips are not among them.
 */
export async function runSuite(suite: Suite, kubeconfig: string, logs: string): Promise<TestResult[]> {
  const report = join(logs, `${suite.name}.json`);
  const log = openSync(join(logs, `${suite.name}.log`), 'a');
  const skipped = Object.values(suite.skipped ?? {}).flat();
  const [nsenter = '', ...rest] = words(
    suite.machine ?? 'cp',
    program('e2e.test'),
    ...[`--kubeconfig=${kubeconfig}`, '--provider=skeleton', '--kubectl-path=kubectl'],
    ...['--allowed-not-ready-nodes=-1', '--minStartupPods=0', '--ginkgo.no-color', '--ginkgo.v'],
    ...suite.focus.map((text) => `--ginkgo.focus=${text}`),
    ...skipped.map((text) => `--ginkgo.skip=${text}`),
    ...[`--ginkgo.timeout=${suite.minutes}m`, '--ginkgo.poll-progress-after=1h'],
    `--ginkgo.json-report=${report}`,
  );
  const child = spawn(nsenter, rest, { stdio: ['ignore', log, log] });
  await once(child, 'exit');
  return resultsOf(JSON.parse(readFileSync(report, 'utf8')));
}

function resultsOf(report: unknown): TestResult[] {
  const suites: unknown[] = Array.isArray(report) ? report : [];
  const [suite] = suites;
  return listAt(suite, 'SpecReports')
    .filter((spec) => textAt(spec, 'LeafNodeType') === 'It')
    .filter((spec) => !['skipped', 'pending', 'invalid'].includes(textAt(spec, 'State')))
    .map((spec) => ({
      name: [...listAt(spec, 'ContainerHierarchyTexts').map(String), textAt(spec, 'LeafNodeText')].join(' '),
      state: textAt(spec, 'State'),
      // Nanoseconds.
      seconds: Number(at(spec, 'RunTime')) / 1e9,
      message: textAt(spec, 'Failure', 'Message').split('\n')[0] ?? '',
    }));
}

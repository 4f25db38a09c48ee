import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { program } from './programs.ts';

/** One test of a suite. */
export interface TestResult {
  readonly name: string;
  /** Of Ginkgo's report: `passed`, `failed`, `skipped` (by the test itself), `timedout`, `panicked`, `interrupted`. */
  readonly state: string;
  readonly seconds: number;
  /** Why it failed, or what it says to be missing. */
  readonly message: string;
}

/** A run of a part of Kubernetes' suite. */
export interface SuiteRun {
  readonly name: string;
  /** Regular expressions of Go: tests to run, and of those not to run. */
  readonly focus: readonly string[];
  readonly skip: readonly string[];
  /** Labels that tests have to have (`--ginkgo.label-filter`). Default: any. */
  readonly labels?: string;
  /** Only says which tests would run: all of them passed. */
  readonly isDry?: boolean;
  /** How long it may take. */
  readonly minutes: number;
  readonly kubeconfig: string;
  /** The words before the program: where it runs. */
  readonly before: readonly string[];
  /** The folder that gets `NAME.log`, with what is printed, and `NAME.json`, the report. */
  readonly logs: string;
}

/**
 * Runs a part of Kubernetes' suite.
 *
 * @returns the tests that ran, in their order.
 */
export async function runSuite(run: SuiteRun): Promise<TestResult[]> {
  const report = join(run.logs, `${run.name}.json`);
  const log = openSync(join(run.logs, `${run.name}.log`), 'a');
  const [first, ...rest] = [
    ...run.before,
    program('e2e.test'),
    ...[`--kubeconfig=${run.kubeconfig}`, '--provider=skeleton', `--kubectl-path=${program('kubectl')}`],
    ...['--allowed-not-ready-nodes=-1', '--minStartupPods=0', '--ginkgo.no-color', '--ginkgo.v'],
    ...run.focus.map((text) => `--ginkgo.focus=${text}`),
    ...run.skip.map((text) => `--ginkgo.skip=${text}`),
    ...[`--ginkgo.label-filter=${run.labels ?? ''}`, `--ginkgo.dry-run=${run.isDry === true}`],
    ...[`--ginkgo.timeout=${run.minutes}m`, '--ginkgo.poll-progress-after=1h'],
    `--ginkgo.json-report=${report}`,
  ];
  const child = spawn(first, rest, { stdio: ['ignore', log, log] });
  await once(child, 'exit');
  return resultsOf(JSON.parse(readFileSync(report, 'utf8')));
}

function resultsOf(report: unknown): TestResult[] {
  const suites: unknown[] = Array.isArray(report) ? report : [];
  const [suite] = suites;
  return (
    listAt(suite, 'SpecReports')
      .filter((spec) => textAt(spec, 'LeafNodeType') === 'It')
      .filter((spec) => !['pending', 'invalid'].includes(textAt(spec, 'State')))
      // One that was not to run has no message.
      .filter((spec) => textAt(spec, 'State') !== 'skipped' || textAt(spec, 'Failure', 'Message') !== '')
      .map((spec) => ({
        name: [...listAt(spec, 'ContainerHierarchyTexts').map(String), textAt(spec, 'LeafNodeText')].join(
          ' ',
        ),
        state: textAt(spec, 'State'),
        // Nanoseconds.
        seconds: Number(at(spec, 'RunTime')) / 1e9,
        message: textAt(spec, 'Failure', 'Message').split('\n')[0] ?? '',
      }))
  );
}

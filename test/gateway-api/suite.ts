import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { program } from '../cluster/programs.ts';
import type { TestResult } from '../cluster/suite.ts';

/** A run of the conformance suite of Gateway API. */
export interface GatewaySuiteRun {
  readonly kubeconfig: string;
  /** The words before the program: where it runs. */
  readonly before: readonly string[];
  /** An address that a Gateway can have, and one that it cannot. */
  readonly usable: string;
  readonly unusable: string;
  readonly minutes: number;
  /** Further flags. */
  readonly flags: readonly string[];
  /** Gets each line that is printed. */
  readonly onLine: (line: string) => void;
}

/**
 * Runs the suite.
 *
 * @returns its tests, which are one level below TestConformance; one of the suite itself, where that alone fails.
 */
export async function runGatewaySuite(run: GatewaySuiteRun): Promise<TestResult[]> {
  const [first = '', ...rest] = [
    ...[...run.before, program('gateway-api.test')],
    ...['-test.v', `-test.timeout=${run.minutes}m`, '-gateway-class=servicenet'],
    ...[`-usable-address=${run.usable}`, `-unusable-address=${run.unusable}`, ...run.flags],
  ];
  const env = { ...process.env, KUBECONFIG: run.kubeconfig };
  const suite = spawn(first, rest, { stdio: ['ignore', 'pipe', 'inherit'], env });
  const results: TestResult[] = [];
  const states = { PASS: 'passed', FAIL: 'failed', SKIP: 'skipped' } as const;
  let text = '';
  suite.stdout.on('data', (chunk) => {
    const lines = (text + String(chunk)).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      run.onLine(line);
      const [, word, name = '', seconds] =
        /^ {4}--- (PASS|FAIL|SKIP): \w+\/(\S+) \(([\d.]+)s\)/.exec(line) ?? [];
      if (word !== 'PASS' && word !== 'FAIL' && word !== 'SKIP') continue;
      results.push({ name, state: states[word], seconds: Number(seconds), message: '' });
    }
  });
  const [code] = (await once(suite, 'exit')) as [number | null];
  if (code !== 0 && results.every(({ state }) => state !== 'failed')) {
    results.push({ name: 'the suite', state: 'failed', seconds: 0, message: `it ended with ${code}` });
  }
  return results;
}

/** The images of a name that the manifests of the suite have, with their tags. */
export function suiteImages(name: string): readonly string[] {
  const cwd = import.meta.dirname;
  const module = ['list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/gateway-api/conformance'];
  const folder = execFileSync('go', module, { cwd, encoding: 'utf8' }).trim();
  const texts = globSync('**/*.yaml', { cwd: folder }).map((file) =>
    readFileSync(join(folder, file), 'utf8'),
  );
  const images = texts.flatMap((each) =>
    [...each.matchAll(/^ +image: (\S+)$/gm)].map(([, image = '']) => image),
  );
  return [...new Set(images)].filter((image) => image.startsWith(`${name}:`));
}

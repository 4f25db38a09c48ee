import { styleText } from 'node:util';
import type { Verdict } from './suite.ts';

/** Passed and all cases of a file. */
export interface Score {
  readonly file: string;
  readonly passed: number;
  readonly total: number;
}

/** The score of each file, in the order of their names. */
export function scores(verdicts: readonly Verdict[]): Score[] {
  const files = [...new Set(verdicts.map(({ file }) => file))].sort();
  return files.map((file) => {
    const ofFile = verdicts.filter((verdict) => verdict.file === file);
    return {
      file,
      passed: ofFile.filter(({ failure }) => failure === undefined).length,
      total: ofFile.length,
    };
  });
}

/** A table of scores with a line for the sum. */
export function scoreTable(verdicts: readonly Verdict[]): string {
  const rows = scores(verdicts);
  const sum = { file: 'all', passed: add(rows, 'passed'), total: add(rows, 'total') };
  return [...rows, sum]
    .map(({ file, passed, total }) => {
      const percent = total === 0 ? 100 : (100 * passed) / total;
      return `${file.padEnd(24)} ${String(passed).padStart(4)} of ${String(total).padStart(4)}  ${percent.toFixed(1).padStart(5)}%`;
    })
    .join('\n');
}

/**
 * One failed case: the step, its request, and one line a difference (path, recorded, ours).
 *
 * @param limit differences to show.
 */
export function failureText({ file, test, failure }: Verdict, limit: number): string {
  if (failure === undefined) return '';
  const { step, request, differences } = failure;
  const lines = [
    `${styleText('red', '✗')} ${styleText('bold', `${file} / ${test.name}`)} (${test.cluster})  step ${step} of ${test.steps.length}`,
    ...(test.about === undefined ? [] : [`  ${styleText('dim', test.about)}`]),
    `  ${requestText(request)}`,
  ];
  for (const { path, expected, got } of differences.slice(0, limit)) {
    lines.push(`    ${path}: expected ${styleText('green', expected)}, got ${styleText('red', got)}`);
  }
  if (differences.length > limit) lines.push(`    … ${differences.length - limit} more`);
  return lines.join('\n');
}

function requestText(request: Record<string, unknown>): string {
  const verb = ['get', 'head', 'options', 'post', 'put', 'patch', 'delete', 'watch', 'settle'].find(
    (name) => request[name] !== undefined,
  );
  if (verb === undefined) return JSON.stringify(request);
  const { [verb]: path, body, raw, ...rest } = request;
  const sent = raw ?? body;
  const parts = [`${verb.toUpperCase()} ${String(path)}`];
  if (Object.keys(rest).length > 0) parts.push(JSON.stringify(rest));
  if (sent !== undefined) parts.push(cut(typeof sent === 'string' ? sent : JSON.stringify(sent), 600));
  return parts.join('\n  ');
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}

function add(rows: readonly Score[], part: 'passed' | 'total'): number {
  return rows.reduce((sum, row) => sum + row[part], 0);
}

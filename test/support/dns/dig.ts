import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What `dig` shows of an answer. */
export interface Dug {
  /** `NOERROR`, …; `timeout` where nothing came. */
  readonly status: string;
  /** `qr aa rd ra`. */
  readonly flags: readonly string[];
  /** Lines of records, with single blanks. */
  readonly answers: readonly string[];
  readonly authorities: readonly string[];
  readonly additionals: readonly string[];
  readonly text: string;
}

/** Asks as people do; the arguments are those of dig, such as `+tcp`. */
export async function dig(port: number, ...args: readonly string[]): Promise<Dug> {
  const common = ['@127.0.0.1', '-p', String(port), '+timeout=20', '+tries=1', '+nocookie'];
  const { stdout } = await run('dig', [...common, ...args]).catch((error: unknown) => {
    // 9: no answer. The text tells why.
    if (error instanceof Error && 'stdout' in error) return { stdout: String(error.stdout) };
    throw error;
  });
  const section = (name: string): string[] =>
    (new RegExp(`;; ${name} SECTION:\n((?:.+\n)*)`).exec(stdout)?.[1] ?? '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.replaceAll(/\s+/g, ' '));
  return {
    status: /status: (\w+)/.exec(stdout)?.[1] ?? 'timeout',
    flags: (/;; flags: ([a-z ]*);/.exec(stdout)?.[1] ?? '').trim().split(' '),
    answers: section('ANSWER'),
    authorities: section('AUTHORITY'),
    additionals: section('ADDITIONAL'),
    text: stdout,
  };
}

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../support/free-port.ts';
import type { Target } from './connection.ts';
import { MeasuredProcess } from './measured-process.ts';
import { until } from './until.ts';

/** Our programs that run in clusters. */
export type Command = 'dns' | 'controller' | 'node' | 'router';

/** A program of ours that serves its health and metrics. */
export interface OwnProcess {
  readonly process: MeasuredProcess;
  /** Where /readyz and /metrics are. */
  readonly url: string;
}

const main = new URL(
  process.env['BENCH_DIST'] === '1' ? '../../dist/main.js' : '../../src/main.js',
  import.meta.url,
).pathname;

/** Starts one of our programs with the flag that the image gives to Node.js. */
export async function startOwn(command: Command, flags: readonly string[]): Promise<OwnProcess> {
  const metrics = `127.0.0.1:${await freePort()}`;
  const common = ['--metrics-bind-address', metrics, '--log-level', 'error'];
  const words = ['--max-semi-space-size=4', main, command, ...flags, ...common];
  return { process: new MeasuredProcess(process.execPath, words), url: `http://${metrics}` };
}

/** Waits until a program is ready. @throws {Error} where it ends, or is not within a minute. */
export async function untilReady({ process: measured, url }: OwnProcess): Promise<void> {
  await until(`${url}/readyz`, async () => {
    await measured.cpuSeconds(); // throws where it has ended
    return await fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
}

/** Flags of a Pod's service account, whose files are written into a folder. */
export async function serviceAccount({ url, ca, token }: Target, folder: string): Promise<readonly string[]> {
  const files = { ca: join(folder, 'ca.crt'), token: join(folder, 'token') };
  await writeFile(files.ca, ca);
  await writeFile(files.token, token, { mode: 0o600 });
  return ['--server', url, '--token-file', files.token, '--certificate-authority', files.ca];
}

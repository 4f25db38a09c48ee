import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createTransport } from '../../../src/client/connect.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { numberAt, textAt } from '../../../src/objects/json.ts';

export interface Measures {
  /** CPU time of the longest turn of the server's event loop since the last question, as the reference machine takes it. */
  readonly longestTurnMs: number;
  /** CPU time of all threads of the process, since its start. */
  readonly cpuMs: number;
  readonly residentMiB: number;
  readonly heapMiB: number;
}

/** An API server in a process of its own, whose event loop is watched: what tests do beside it is not measured. */
export class WatchedServer {
  readonly url: string;
  readonly token: string;
  /** PEM. */
  readonly ca: string;
  readonly client: Transport;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, client: Transport, url: string, token: string, ca: string) {
    this.#child = child;
    this.client = client;
    this.url = url;
    this.token = token;
    this.ca = ca;
  }

  static async start(): Promise<WatchedServer> {
    // The limit of the young generation that the image has (Dockerfile).
    const execArgv = ['--max-semi-space-size=4'];
    const child = fork(new URL('./watched-process.ts', import.meta.url), { execArgv });
    const ready = await messageOf(child);
    const [url, token, ca] = [textAt(ready, 'url'), textAt(ready, 'token'), textAt(ready, 'ca')];
    const client = await createTransport({ kind: 'endpoint', url, ca, token });
    return new WatchedServer(child, client, url, token, ca);
  }

  /** The figures of now. `collect`: after a garbage collection. */
  async measure(collect = false): Promise<Measures> {
    const answer = messageOf(this.#child);
    this.#child.send(collect ? 'collect' : 'measure');
    const measures = await answer;
    const figure = (name: keyof Measures): number => numberAt(measures, name);
    return {
      longestTurnMs: figure('longestTurnMs'),
      cpuMs: figure('cpuMs'),
      residentMiB: figure('residentMiB'),
      heapMiB: figure('heapMiB'),
    };
  }

  /** Milliseconds of CPU that the main thread, whose number is the process's, has taken (proc_pid_schedstat: in ns). */
  mainThreadMs(): number {
    const pid = this.#child.pid ?? 0;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  }

  /** What the process has of the machine's memory now (`VmRSS` of proc_pid_status, which is in KiB). */
  residentMiB(): number {
    const status = readFileSync(`/proc/${this.#child.pid ?? 0}/status`, 'utf8');
    return Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024);
  }

  async stop(): Promise<void> {
    await this.client.close();
    const end = once(this.#child, 'exit');
    this.#child.disconnect();
    await end;
  }
}

/** What a process says next. */
async function messageOf(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => child.once('message', resolve));
}

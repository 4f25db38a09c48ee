import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ExecResult } from '../../../src/host/host.ts';
import type { Machine } from './machine.ts';

const main = fileURLToPath(new URL('../../../src/main.js', import.meta.url));

/** Where a machine finds the API server. */
const relayPort = 6443;

/**
 * A machine's way to an API server on the loopback of this process, and a kubeconfig for it: the machine's listening
 * socket is here, and what comes to it goes on to the server.
 */
export class ApiRelay {
  readonly url = `https://127.0.0.1:${relayPort}`;
  readonly kubeconfig: string;
  readonly #folder: string;
  readonly #server: Server;
  /** Both ends of each connection. */
  readonly #connections = new Set<readonly [inside: Socket, outside: Socket]>();
  #isCut = false;

  private constructor(kubeconfig: string, folder: string, server: Server) {
    this.kubeconfig = kubeconfig;
    this.#folder = folder;
    this.#server = server;
  }

  /** @param kubeconfig one with a server at 127.0.0.1. */
  static async open(machine: Machine, kubeconfig: string): Promise<ApiRelay> {
    const [found = '', port = ''] = /https:\/\/127\.0\.0\.1:(\d+)/.exec(kubeconfig) ?? [];
    const server = createServer();
    await machine.host.listen(server, '127.0.0.1', relayPort);
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-node-'));
    const file = join(folder, 'kubeconfig');
    await writeFile(file, kubeconfig.replace(found, `https://127.0.0.1:${relayPort}`));
    // The user of the namespaces, who is not always the one who runs the tests, reads it and writes a file beside it.
    await chmod(folder, 0o777);
    const relay = new ApiRelay(file, folder, server);
    server.on('connection', (inside) => relay.#forward(inside, Number(port)));
    return relay;
  }

  /** Loses what comes, silently as a cut cable does, until {@link mend}. */
  cut(): void {
    this.#isCut = true;
    for (const pair of this.#connections) for (const end of pair) end.unpipe().pause();
  }

  /** Connections that were cut end; new ones lead to the server. */
  mend(): void {
    this.#isCut = false;
    for (const pair of this.#connections) for (const end of pair) end.destroy();
  }

  /** A file that programs in the machine may write. */
  file(name: string): string {
    return join(this.#folder, name);
  }

  #forward(inside: Socket, port: number): void {
    const outside = connect(port, '127.0.0.1');
    const pair = [inside, outside] as const;
    this.#connections.add(pair);
    inside.on('close', () => this.#connections.delete(pair));
    inside.on('error', () => outside.destroy());
    outside.on('error', () => inside.destroy());
    if (!this.#isCut) inside.pipe(outside).pipe(inside);
  }

  async close(): Promise<void> {
    this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** `servicenet node` in a machine. */
export class NodeProgram {
  /** How it ended, and what it logged. */
  readonly ended: Promise<ExecResult>;
  /** What it has logged so far. */
  logged = '';
  readonly #machine: Machine;
  readonly #pidFile: string;
  #hasEnded = false;

  /** @param flags beside the kubeconfig's, which are left out where they name a server. */
  constructor(machine: Machine, relay: ApiRelay, name: string, ...flags: readonly string[]) {
    this.#machine = machine;
    this.#pidFile = relay.file(`${name}.pid`);
    const words = [
      ...['-c', 'echo $$ > "$0"; export NODE_COMPILE_CACHE="$1"; shift; exec "$@" 2>&1', this.#pidFile],
      // The second start is that of a package: it strips no types.
      relay.file('compile-cache'),
      // As the image starts it.
      ...[process.execPath, '--max-semi-space-size=4', main, 'node'],
      ...(flags.includes('--server') ? [] : ['--kubeconfig', relay.kubeconfig]),
      ...['--log-format', 'json', ...flags],
    ];
    const output = (text: string): void => void (this.logged += text);
    this.ended = machine.host
      .exec('sh', words, { output })
      .then(({ exitCode }) => ({ exitCode, stdout: '', stderr: this.logged }));
    // It may end with its machine, and be awaited by no test.
    const ended = (): void => void (this.#hasEnded = true);
    this.ended.then(ended, ended);
  }

  /** Ends it. */
  async signal(signal: 'TERM' | 'KILL'): Promise<ExecResult> {
    await this.send(signal);
    return this.ended;
  }

  /** Sends a signal that it may live on with. */
  async send(signal: 'TERM' | 'KILL' | 'STOP' | 'CONT'): Promise<void> {
    await this.#machine.host.exec('kill', [`-${signal}`, await this.#pid()]);
  }

  /** Resident memory now and at most so far, in MiB, and CPU time so far, in milliseconds. */
  async usage(): Promise<{
    readonly residentMiB: number;
    readonly highestMiB: number;
    readonly cpuMs: number;
  }> {
    const { stdout } = await this.#machine.host.exec('cat', [
      ...[`/proc/${await this.#pid()}/status`, `/proc/${await this.#pid()}/stat`],
    ]);
    const mebibytes = (name: string): number =>
      Number(new RegExp(`${name}:\\s+(\\d+)`).exec(stdout)?.[1]) / 1024;
    // Behind the name, fields 14 and 15 count ticks of 10 ms (proc_pid_stat(5)).
    const fields = stdout.slice(stdout.lastIndexOf(')') + 2).split(' ');
    const cpuMs = (Number(fields[11]) + Number(fields[12])) * 10;
    return { residentMiB: mebibytes('VmRSS'), highestMiB: mebibytes('VmHWM'), cpuMs };
  }

  /** Memory of the process and of those that it has started, in MiB: resident, and by PSS what they share in parts. */
  async memory(): Promise<{ readonly residentMiB: number; readonly pssMiB: number }> {
    const script =
      'of() { cat "/proc/$1/smaps_rollup"; for c in $(cat "/proc/$1/task/"*/children); do of "$c"; done; }; of "$0"';
    const { stdout } = await this.#machine.host.exec('sh', ['-c', script, await this.#pid()]);
    const sum = (name: string): number =>
      [...stdout.matchAll(new RegExp(`^${name}:\\s+(\\d+) kB`, 'gm'))].reduce(
        (all, [, kibibytes]) => all + Number(kibibytes) / 1024,
        0,
      );
    return { residentMiB: sum('Rss'), pssMiB: sum('Pss') };
  }

  /** The shell writes it shortly after the start. */
  async #pid(): Promise<string> {
    for (;;) {
      const pid = await readFile(this.#pidFile, 'utf8').catch(() => '');
      if (pid.endsWith('\n')) return pid.trim();
      if (this.#hasEnded) throw new Error('the program ended before it had a PID');
      await sleep(5);
    }
  }
}

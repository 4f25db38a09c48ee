import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Go's own variables for runs of a moment: no garbage collection below a limit, and no threads for it. Takes a third of
 * the CPU time of a `kubectl create`.
 */
const shortRuns = { GOGC: 'off', GOMEMLIMIT: '256MiB', GOMAXPROCS: '1' };

/** What a run of kubectl printed. */
export interface KubectlRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** kubectl against one server, with its configuration and caches in a directory of its own. */
export class Kubectl {
  readonly #directory: string;
  readonly #kubeconfig: string;

  /** @throws {Error} that says how to get a kubectl when there is none on the PATH. */
  constructor(kubeconfig: string) {
    if (spawnSync('kubectl', ['version', '--client']).status !== 0) {
      throw new Error(
        "no kubectl on the PATH: install one, 1.31 or later (.ci/run takes it from npm's registry)",
      );
    }
    this.#directory = mkdtempSync(join(tmpdir(), 'servicenet-kubectl-'));
    this.#kubeconfig = join(this.#directory, 'config');
    writeFileSync(this.#kubeconfig, kubeconfig, { mode: 0o600 });
  }

  /** Runs it to its end, whatever that is. `input` is its standard input, for `-f -`. */
  async run(args: readonly string[], input = '', environment: NodeJS.ProcessEnv = {}): Promise<KubectlRun> {
    return new Promise((resolve) => {
      const child = execFile(
        'kubectl',
        this.#arguments(args),
        { timeout: 90_000, env: { ...this.#environment(), ...environment } },
        (error, stdout, stderr) => {
          const code = typeof error?.code === 'number' ? error.code : error === null ? 0 : -1;
          resolve({ code, stdout, stderr });
        },
      );
      // a kubectl that does not read its input closes it
      child.stdin?.on('error', () => undefined).end(input);
    });
  }

  /** What a successful run printed. @throws {Error} with what it complained of. */
  async ok(args: readonly string[], input = '', environment: NodeJS.ProcessEnv = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, input, environment);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  }

  /** What a run that fails complained of. @throws {Error} when it succeeds. */
  async fails(args: readonly string[], input = ''): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, input);
    if (code === 0) throw new Error(`kubectl ${args.join(' ')} succeeded: ${stdout}`);
    return stderr;
  }

  /** Starts one that goes on; the caller kills it. */
  start(args: readonly string[], environment: NodeJS.ProcessEnv = {}): ChildProcess {
    return spawn('kubectl', this.#arguments(args), { env: { ...this.#environment(), ...environment } });
  }

  /** A file for `-f`; returns its path. */
  file(name: string, text: string): string {
    const path = join(this.#directory, name);
    writeFileSync(path, text);
    return path;
  }

  dispose(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #arguments(args: readonly string[]): string[] {
    return ['--kubeconfig', this.#kubeconfig, '--cache-dir', join(this.#directory, 'cache'), ...args];
  }

  /** Nothing of the user's own configuration. */
  #environment(): NodeJS.ProcessEnv {
    return { ...shortRuns, PATH: process.env['PATH'], HOME: this.#directory };
  }
}

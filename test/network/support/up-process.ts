import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { asUser, type Maker } from './gate.ts';

const main = join(import.meta.dirname, '../../../src/main.js');

/** A home of its own for one `servicenet up` at a time, and the programs that are run in its cluster network. */
export class UpHome {
  readonly folder = mkdtempSync('/tmp/servicenet-network-');
  readonly kubeconfig = join(this.folder, 'kubeconfig');
  readonly environment = {
    ...process.env,
    HOME: this.folder,
    KUBECONFIG: this.kubeconfig,
    TERM: 'xterm',
  };
  readonly #words: readonly string[];

  constructor(maker: Maker) {
    chmodSync(this.folder, 0o777);
    this.#words = [...(maker === 'user' ? asUser : []), process.execPath, main];
  }

  /** Starts `up` on any free port. @returns it when its cluster network is ready. @throws {Error} where it ends before. */
  async start(flags: readonly string[]): Promise<ChildProcess> {
    const up = this.launch(flags);
    await up.said('cluster network is ready');
    return up.process;
  }

  /** Begins `up` on any free port. */
  launch(flags: readonly string[]): LaunchedUp {
    return this.#launch(this.#up(flags));
  }

  /** The same on a terminal, where it shows the live view: the process is that of the terminal, and its only child `up`. */
  onTerminal(flags: readonly string[]): LaunchedUp {
    const line = `stty columns 120 rows 40; exec ${this.#up(flags).join(' ')}`;
    return this.#launch(['script', '-qfec', line, '/dev/null']);
  }

  #up(flags: readonly string[]): readonly string[] {
    const own = ['--port', '0', '--network', 'on', '--write-kubeconfig', this.kubeconfig];
    return [...this.#words, 'up', ...own, ...flags];
  }

  #launch([program = '', ...args]: readonly string[]): LaunchedUp {
    const process = spawn(program, args, { env: this.environment, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    process.stdout.on('data', (chunk) => (output += String(chunk)));
    const said = (words: string): Promise<void> =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (output.includes(words)) resolve();
        };
        look();
        process.stdout.on('data', look);
        process.once('exit', () => reject(new Error(`up has ended: ${output}`)));
      });
    return { process, said };
  }

  /** The words of a command of servicenet. */
  argv(...args: readonly string[]): readonly string[] {
    return [...this.#words, ...args];
  }

  /** Runs a command of servicenet to its end, in the folder of this home; `typed` is its standard input. */
  servicenet(...args: readonly string[]) {
    const [program = '', ...rest] = [...this.#words, ...args];
    return spawnSync(program, rest, {
      ...{ encoding: 'utf8', env: this.environment, input: 'typed', cwd: this.folder },
    });
  }

  /** `servicenet run`, to the end of the program. */
  run(place: readonly string[], ...program: readonly string[]) {
    return this.servicenet('run', ...place, '--', ...program);
  }

  /** What `servicenet run` prints, to the end of the program: whatever its exit code is. */
  async output(place: readonly string[], ...program: readonly string[]): Promise<string> {
    const [first = '', ...rest] = [...this.#words, 'run', ...place, '--', ...program];
    const process = spawn(first, rest, { env: this.environment, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    process.stdout.on('data', (chunk) => (output += String(chunk)));
    await once(process, 'close');
    return output;
  }

  /** Begins `servicenet run`. */
  begin(place: readonly string[], ...program: readonly string[]): ChildProcess {
    const [first = '', ...rest] = [...this.#words, 'run', ...place, '--', ...program];
    return spawn(first, rest, { env: this.environment, stdio: 'ignore' });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

/** A folder that is a PATH of its own, with all programs of this machine but bubblewrap. @param folder gets it. */
export function pathWithoutBubblewrap(folder: string): string {
  const path = join(folder, 'bin');
  mkdirSync(path);
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  // The first one that has a program counts.
  for (const from of folders.filter((each) => existsSync(each)).toReversed()) {
    for (const name of readdirSync(from)) {
      rmSync(join(path, name), { force: true });
      if (name !== 'bwrap') symlinkSync(join(from, name), join(path, name));
    }
  }
  return path;
}

/** An `up` that may not be ready yet. */
export interface LaunchedUp {
  readonly process: ChildProcess;
  /** Resolves when it has printed some words. @throws {Error} where it ends before. */
  said(words: string): Promise<void>;
}

/** Ends a process with a signal. @returns its exit code; null where the signal ended it. */
export async function end(process: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  const ended = once(process, 'exit');
  process.kill(signal);
  await ended;
  return process.exitCode;
}

/** All processes that a process has begun, and theirs; those that end meanwhile may be left out. */
export function familyOf({ pid = 0 }: { readonly pid?: number | undefined }): readonly string[] {
  const children = ifThere(() => readdirSync(`/proc/${pid}/task`)).flatMap((task) =>
    ifThere(() => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean)),
  );
  return children.flatMap((child) => [child, ...familyOf({ pid: Number(child) })]);
}

/** Processes come and go, and some may not be looked at: then there is nothing. */
export function ifThere(read: () => readonly string[]): readonly string[] {
  try {
    return read();
  } catch {
    return [];
  }
}

/** The process inside the cluster network of an `up`. */
export function insideOf(up: { readonly pid?: number | undefined }): number {
  const inside = familyOf(up).find((pid) => {
    // sh has the file among its arguments, too.
    const [program = '', ...args] = ifThere(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0'));
    return program.endsWith('node') && args.some((word) => word.includes('network-process'));
  });
  if (inside === undefined) throw new Error('there is no process inside');
  return Number(inside);
}

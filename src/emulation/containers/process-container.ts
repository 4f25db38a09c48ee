import { closeSync, constants, openSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { load } from 'koffi';
import type { TerminalSize, ContainerExit } from '../../controllers/kubelet/container-runtime.ts';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile, statfs } from 'node:fs/promises';
import { constants as osConstants } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ContainerLog } from './container-log.ts';
import {
  belowUsage,
  type ContainerCgroup,
  memoryLimitOf,
  memoryOfAll,
  watchMemory,
} from './resource-limits.ts';
import { folderBytes } from './volume-folder.ts';
import { writtenIn } from './container-root.ts';
import { report, sandboxArgv, type SandboxCommandOptions, withPrivileges } from './sandbox-command.ts';
import type { ResourceRequirements } from '../../objects/types/core.generated.ts';
import type { ExecBeside, ContainerProgram } from '../program.ts';
import { checkStreams } from '../../host/local-host.ts';

/** A pseudo terminal (pty(7)): a program has one end as its standard streams, and the other one is read and written. */
interface Terminal {
  /** The program's end; to be closed here once the program has it. */
  readonly programEnd: number;
  /** Our end, both ways. Ends when no program has the other end open. */
  readonly stream: ReadStream;
  readonly resize: (size: TerminalSize) => void;
}

const ioctl = load(null).func('int ioctl(int descriptor, unsigned long request, void *argument)');
const ioctlOfNumber = load(null).func('int ioctl(int descriptor, unsigned long request, long argument)');

/** Requests of asm-generic/ioctls.h, which x86 and ARM share. */
const getPeer = 0x5441; // TIOCGPTPEER
const setLock = 0x40045431; // TIOCSPTLCK
const setSize = 0x5414; // TIOCSWINSZ

/** Opens a terminal. @param ptmx the file of the container that makes it. @throws the system's error where there is none left. */
export function openTerminal(ptmx = '/dev/ptmx'): Terminal {
  const flags = constants.O_RDWR | constants.O_NOCTTY;
  const master = openSync(ptmx, flags);
  try {
    const isUnlocked = ioctl(master, setLock, Buffer.alloc(4)) === 0;
    // Not by its name: that is one of the container's file system.
    const programEnd: unknown = isUnlocked ? ioctlOfNumber(master, getPeer, flags) : -1;
    if (typeof programEnd !== 'number' || programEnd < 0) throw new Error('the terminal cannot be opened');
    return {
      programEnd,
      stream: new ReadStream(master),
      resize: ({ columns, rows }) => {
        const size = Buffer.from(Uint16Array.from([rows, columns, 0, 0]).buffer);
        void ioctl(master, setSize, size);
      },
    };
  } catch (error) {
    closeSync(master);
    throw error;
  }
}

export interface ProcessOptions {
  readonly sandbox: SandboxCommandOptions;
  /** The file of its network namespace. */
  readonly network: string;
  /** The program and its arguments. */
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
  readonly log: ContainerLog;
  /** Its standard input stays open. */
  readonly hasStdin: boolean;
  /** Its standard streams are a terminal. */
  readonly hasTerminal: boolean;
  readonly resources: ResourceRequirements;
  /** Absent: the machine has none for it. */
  readonly cgroup?: ContainerCgroup | undefined;
}

/** Between two bursts of a log, and the bytes of one: an endless writer leaves time for others. */
const pauseMs = 100;
const burstBytes = 512 * 1024;

const exec128 =
  'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: ';

/** Before a program that others in the container may see: nothing of the machine's environment is in /proc then. */
const bare = withEnvironment({ PATH: process.env['PATH'] ?? '' });

/** A process of this machine in namespaces of its own. */
export class ProcessContainer implements ContainerProgram {
  readonly ended: Promise<ContainerExit>;
  failed: ContainerExit | undefined;
  readonly #options: ProcessOptions;
  readonly #child: ChildProcess;
  readonly #terminal: Terminal | undefined;
  #inside: number | undefined;
  /** Its memory is watched. */
  #isWatched = false;
  /** Programs that run beside its own. */
  readonly #beside = new Set<number>();
  #memoryLimit: number | undefined;
  /** Resolves when its cgroup has its limits, or cannot have them. */
  #bounded: Promise<void> | undefined;
  #isKilled = false;
  #isOutOfMemory = false;

  private constructor(
    options: ProcessOptions,
    child: ChildProcess,
    terminal: Terminal | undefined,
    ended: Promise<ContainerExit>,
  ) {
    this.#options = options;
    this.#child = child;
    this.#terminal = terminal;
    this.#memoryLimit = memoryLimitOf(options.resources.limits);
    this.ended = ended;
  }

  /** Resolves when the program has started, or has failed to: then `ended` has the reason. */
  static async start(options: ProcessOptions): Promise<ProcessContainer> {
    const { network, sandbox, argv, workingDirectory, environment, log, hasStdin, hasTerminal } = options;
    const terminal = hasTerminal ? openTerminal() : undefined;
    const [first = '', ...rest] = [
      ...[...(options.cgroup?.argv ?? []), ...bare],
      ...['nsenter', `--net=${network}`, '--', ...sandboxArgv(sandbox)],
      // Process 1 is to lead the session of its terminal: shells with jobs need that.
      ...(terminal === undefined ? [] : ['setsid', '--ctty']),
      ...withEnvironment(environment),
      ...['sh', '-c', report, workingDirectory, ...argv],
    ];
    const end = terminal?.programEnd;
    const child = spawn(first, rest, {
      stdio:
        end === undefined ? [hasStdin ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe'] : [end, end, end, 'pipe'],
    });
    if (end !== undefined) closeSync(end);
    try {
      checkStreams(child);
    } catch (error) {
      terminal?.stream.destroy();
      throw error;
    }
    const said = Promise.withResolvers<string>();
    let heard = '';
    const reports = child.stdio[3];
    if (isReadable(reports)) {
      reports.on('data', (chunk: Buffer) => {
        heard += chunk.toString();
        // unshare(1) keeps its end open.
        if (heard.endsWith('\n')) said.resolve(heard.trim());
      });
      reports.on('error', () => undefined);
      reports.once('close', () => said.resolve(heard.trim()));
    }
    const printed: Buffer[] = [];
    const hasBegun = (): boolean => heard.trim() === 'started';
    let isPrinted = false;
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    // A client that does not read holds a program back, but not its end.
    const room = (): Promise<unknown> | undefined => {
      const taken = log.room();
      return taken === undefined ? undefined : Promise.race([taken, exited]);
    };
    throttled(child.stdout, room, (chunk) => log.write('stdout', chunk));
    const errors = terminal === undefined ? 'stderr' : 'stdout';
    throttled(terminal?.stream ?? child.stderr, room, (chunk) => {
      // Output before the program begins is an error of its sandbox.
      if (isPrinted) return log.write(errors, chunk);
      printed.push(chunk);
      return 0;
    });
    const ended = terminal === undefined ? endOf(child) : endInTerminal(child, terminal);
    const container: ProcessContainer = new ProcessContainer(
      options,
      child,
      terminal,
      ended.then(async (exitCode) => {
        if (exitCode !== 0) container.#isOutOfMemory ||= await container.#hasExceeded();
        await container.#bounded;
        await options.cgroup?.remove();
        // unshare(1) fails with 1 where SIGKILL has ended its child.
        const isKilled = exitCode === 1 && container.#isKilled && !sandbox.hasBubblewrap;
        if (hasBegun()) {
          const reason = container.#isOutOfMemory ? { reason: 'OOMKilled' } : {};
          return { exitCode: isKilled ? 128 + osConstants.signals.SIGKILL : exitCode, ...reason };
        }
        const why = heard.trim() || Buffer.concat(printed).toString().trim();
        return { exitCode: 128, reason: 'StartError', message: `${exec128}${why}: unknown` };
      }),
    );
    child.stdin?.on('error', () => undefined);
    await Promise.race([said.promise, ended]);
    if (hasBegun()) {
      for (const chunk of printed) log.write(errors, chunk);
      isPrinted = true;
      await container.#bound();
    } else container.failed = await container.ended;
    return container;
  }

  /** @throws the system's error, after its end. */
  async #bound(): Promise<void> {
    const { cgroup, resources } = this.#options;
    const bounding = cgroup?.begun(resources);
    // A program that ends at once has its cgroup for as long as this takes.
    this.#bounded = bounding?.catch(() => undefined);
    try {
      await bounding;
    } catch (error) {
      this.signal('SIGKILL');
      await this.ended;
      throw error;
    }
    this.#watchMemory();
  }

  #watchMemory(): void {
    if (this.#memoryLimit === undefined || this.#isWatched) return;
    this.#isWatched = true;
    const ending = new AbortController();
    void this.ended.then(() => ending.abort());
    const part = async (): Promise<number> => {
      if (this.#options.cgroup === undefined) return (await this.#memory()) / (this.#memoryLimit ?? Infinity);
      return (await this.#hasExceeded()) ? Infinity : 0;
    };
    watchMemory(part, ending.signal, () => {
      this.#isOutOfMemory = true;
      this.signal('SIGKILL');
    });
  }

  /** Bytes of all that runs in it. */
  async #memory(): Promise<number> {
    return await memoryOfAll([(await this.processOne()) ?? [], ...this.#beside].flat());
  }

  /** Whether the kernel has ended a process of it that wanted more memory: not all of them, with cgroups of version 1. */
  async #hasExceeded(): Promise<boolean> {
    return (await this.#options.cgroup?.wasOutOfMemory()) === true;
  }

  async setResources(name: string, resources: ResourceRequirements): Promise<void> {
    const limit = memoryLimitOf(resources.limits);
    const { cgroup } = this.#options;
    if (cgroup === undefined && limit !== undefined) {
      const used = await this.#memory();
      if (used > limit) throw new Error(belowUsage(name, limit, used));
    }
    await cgroup?.set(name, resources);
    this.#memoryLimit = limit;
    this.#watchMemory();
  }

  get stdin(): Writable | undefined {
    const { hasStdin } = this.#options;
    return (hasStdin ? this.#terminal?.stream : undefined) ?? this.#child.stdin ?? undefined;
  }

  get resize(): Terminal['resize'] | undefined {
    return this.#terminal?.resize;
  }

  signal(name: NodeJS.Signals): void {
    if (name === 'SIGKILL') {
      this.#isKilled = true;
      // When process 1 ends, the kernel ends all processes of its PID namespace.
      if (this.#inside !== undefined && this.#child.exitCode === null) sendSignal(this.#inside, name);
      else this.#child.kill(name);
      return;
    }
    this.processOne().then(
      (pid) => {
        if (pid !== undefined && this.#child.exitCode === null) sendSignal(pid, name);
      },
      () => undefined,
    );
  }

  readonly exec: ExecBeside = async (command) => {
    const { environment, workingDirectory, sandbox } = this.#options;
    await this.#ready();
    if (this.#inside === undefined) throw new Error('the container has ended');
    const argv = [
      ...[...(this.#options.cgroup?.argv ?? []), ...bare],
      ...['setpriv', '--pdeathsig', 'KILL', 'nsenter', `--target=${this.#inside}`],
      ...['--mount', '--uts', '--ipc', '--net', '--pid', '--', 'setpriv', '--pdeathsig', 'KILL'],
      ...withPrivileges(sandbox).slice(1),
      ...withEnvironment(environment),
      ...['sh', '-c', 'cd "$0" && unset OLDPWD && exec "$@"', workingDirectory, ...command],
    ];
    return {
      argv,
      ptmx: `/proc/${this.#inside}/root/dev/pts/ptmx`,
      began: (process) => {
        const { pid } = process;
        if (pid === undefined) return;
        this.#beside.add(pid);
        process.once('exit', () => this.#beside.delete(pid));
      },
    };
  };

  readonly usage = async (): Promise<number> => {
    const root = `/proc/${(await this.processOne()) ?? ''}/root`;
    let sum = await folderBytes(writtenIn(this.#options.sandbox.folder));
    for (const path of ['/', '/tmp', '/run']) {
      try {
        const { blocks, bfree, bsize } = await statfs(join(root, path));
        sum += (blocks - bfree) * bsize;
      } catch {
        // It has ended.
      }
    }
    return sum;
  };

  async #ready(): Promise<void> {
    for (let tries = 0; tries < 50 && (await this.processOne()) === undefined; tries++) await delay(2);
  }

  /** Process 1 of the container, or its first one among those of another. */
  readonly processOne = async (): Promise<number | undefined> => {
    const { hasBubblewrap, target } = this.#options.sandbox;
    if (this.#inside !== undefined || this.#child.pid === undefined) return this.#inside;
    // nsenter(1) stays, and so does bubblewrap's monitor.
    const depth = target !== undefined && hasBubblewrap ? 2 : 1;
    let pid = this.#child.pid;
    try {
      for (let level = 0; level < depth; level++) {
        const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
        const [first = ''] = children.trim().split(' ');
        if (first === '') return undefined;
        pid = Number(first);
      }
      this.#inside = pid;
    } catch {
      // It has ended.
    }
    return this.#inside;
  };
}

/** 128 and the signal's number where a signal ended it. */
async function endOf(child: ChildProcess): Promise<number> {
  const ended = Promise.withResolvers<number>();
  child.once('error', () => ended.resolve(128));
  child.once('close', (code, signal) => {
    ended.resolve(code ?? (signal === null ? 1 : 128 + osConstants.signals[signal]));
  });
  return await ended.promise;
}

/** Its end, and that of what it printed. */
async function endInTerminal(child: ChildProcess, { stream }: Terminal): Promise<number> {
  // Reading fails with EIO once no program has the terminal open.
  stream.on('error', () => stream.destroy());
  const printed = new Promise<void>((resolve) => stream.once('close', () => resolve()));
  const code = await endOf(child);
  await printed;
  return code;
}

/** Nothing of this process's own environment. */
function withEnvironment(environment: Readonly<Record<string, string>>): readonly string[] {
  return ['env', '-i', ...Object.entries(environment).map(([name, value]) => `${name}=${value}`)];
}

/**
 * Hears a stream no faster than bursts allow, and waits for room where there is none (undefined: there is).
 *
 * @param hear returns the bytes that a log has more: empty lines take far more there than here.
 */
function throttled(
  stream: Readable | null,
  room: () => Promise<unknown> | undefined,
  hear: (chunk: Buffer) => number,
): void {
  let heard = 0;
  stream?.on('data', (chunk: Buffer) => {
    heard += Math.max(chunk.length, hear(chunk));
    const isBurst = heard >= burstBytes;
    const taken = room();
    if (!isBurst && taken === undefined) return;
    stream.pause();
    if (isBurst) heard = 0;
    void Promise.all([taken, isBurst ? delay(pauseMs, undefined, { ref: false }) : undefined]).then(() =>
      stream.resume(),
    );
  });
  stream?.on('error', () => undefined);
}

function isReadable(stream: unknown): stream is Readable {
  return typeof stream === 'object' && stream !== null && 'readable' in stream && 'on' in stream;
}

/**
 * Sends a signal to a process that may have ended: its parent, which waits for it, has not ended itself yet.
 *
 * @throws the system's error where it may not be sent.
 */
export function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

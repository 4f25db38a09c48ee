import { readFile, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ContainerExit,
  ContainerError,
  type ContainerRuntime,
  type ExecStreams,
  type LogLine,
  type LogRequest,
  type WantedContainer,
  type WantedSandbox,
  type WantedVolume,
} from '../../controllers/kubelet/container-runtime.ts';
import type { Container, Pod, Probe } from '../../objects/types/core.generated.ts';
import { ClaimFolders } from './volume-folder.ts';
import { ContainerLog } from './container-log.ts';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { LocalUsage } from '../../controllers/kubelet/volumes/plan-eviction.ts';
import { run } from '../../host/local-host.ts';
import type { NamespaceSandboxes, PodNetwork } from '../machines/namespace-sandboxes.ts';
import type { ContainerProgram } from '../program.ts';
import { ContainerPrograms, type ContainerProgramsOptions, type ProgramPod } from './container-programs.ts';
import { attachTo, execBeside } from './remote-command.ts';
import { PodFolder, podsFolder } from './pod-folder.ts';
import { folderBytes } from './volume-folder.ts';
import { isMapped } from './sandbox-command.ts';
import { canBeAsked } from './images.ts';
import { errorMessage } from '../../objects/status.ts';

/** Bytes of `/dev/termination-log`, and bytes and lines of the end of the log that stands in for it. */
const maxMessageBytes = 4096;
const maxLogMessageBytes = 2048;
const maxLogMessageLines = 80;

/**
 * The message of a container that has ended: what it wrote into `/dev/termination-log`, or the end of its log
 * (`terminationMessagePolicy`).
 *
 * @param folder of the Pod.
 */
async function terminationMessage(
  folder: string,
  { name, terminationMessagePolicy }: Container,
  { exitCode, message }: ContainerExit,
  log: ContainerLog,
): Promise<{ message?: string }> {
  if (message !== undefined) return {};
  try {
    const text = await readFile(join(folder, 'containers', name, 'termination-log'), 'utf8');
    if (text !== '') return { message: text.slice(-maxMessageBytes) };
  } catch {
    // It has no process, or its Pod is deleted.
  }
  if (terminationMessagePolicy !== 'FallbackToLogsOnError' || exitCode === 0) return {};
  const lines: string[] = [];
  for await (const some of log.lines({ tailLines: maxLogMessageLines })) {
    for (const { text, isWhole } of some) lines.push(`${text.toString()}${isWhole ? '\n' : ''}`);
  }
  const text = lines.join('').slice(-maxLogMessageBytes);
  return text === '' ? {} : { message: text };
}

export interface SandboxRuntimeOptions extends ContainerProgramsOptions {
  readonly networks: NamespaceSandboxes;
  /** The folder that those of claims are kept in; undefined: they end with the network. */
  readonly claimsFolder: string | undefined;
}

interface Running {
  readonly attempt: number;
  readonly program: ContainerProgram;
  readonly log: ContainerLog;
  /** When it is killed, by a monotonic clock. */
  killAtMs: number;
  timer: NodeJS.Timeout | undefined;
}

interface PodRecord extends ProgramPod {
  readonly pod: Pod;
  readonly running: Map<string, Running>;
  /** By the name of the container: the log of its last attempt, and of the one before. */
  readonly logs: Map<string, { readonly last: ContainerLog; readonly previous: ContainerLog | undefined }>;
  /** What is being made: it is waited for before the Pod's files are removed. */
  readonly pending: Set<Promise<unknown>>;
  healthy: boolean;
  /** It is removed, or about to be: nothing more is made. */
  isRemoved: boolean;
}

/** Share of the machine's memory that volumes and logs may take. */
const poolSize = '25%';

/** Containers in the sandboxes of `up`: programs of ours, and processes of this machine. */
export class SandboxRuntime implements ContainerRuntime {
  readonly isReal = true;
  readonly #options: SandboxRuntimeOptions;
  readonly #programs: ContainerPrograms;
  readonly #claims: ClaimFolders;
  /** By uid. */
  readonly #pods = new Map<string, PodRecord>();
  #pool: Promise<void> | undefined;

  constructor(options: SandboxRuntimeOptions) {
    this.#options = options;
    this.#programs = new ContainerPrograms(options);
    this.#claims = new ClaimFolders(options.claimsFolder ?? join(podsFolder, 'claims'));
  }

  isStandIn(_pod: Pod, container: Container): boolean {
    return this.#options.images.resolve(container).kind === 'stand-in';
  }

  isAsked(pod: Pod, container: Container, probe: Probe): boolean {
    return !this.isStandIn(pod, container) || canBeAsked(container, probe);
  }

  ensureSandbox(wanted: WantedSandbox): Promise<void> {
    return this.#options.networks.ensure(wanted);
  }

  attachNetworks(pod: Pod): Promise<readonly string[]> {
    return this.#options.networks.attach(pod);
  }

  async removeSandbox(pod: Pod): Promise<void> {
    const record = this.#pods.get(uidOf(pod));
    if (record !== undefined) {
      record.isRemoved = true;
      // What starts at this moment is killed by its start.
      while (record.running.size > 0 || record.pending.size > 0) {
        const all = [...record.running.values()];
        for (const { program } of all) program.signal('SIGKILL');
        await Promise.allSettled([...all.map(({ program }) => program.ended), ...record.pending]);
      }
      await this.#programs.removePod(pod);
      await record.folder.empty();
    }
    await this.#options.networks.remove(pod);
  }

  async removePod(pod: Pod): Promise<void> {
    const uid = uidOf(pod);
    const record = this.#pods.get(uid);
    await this.removeSandbox(pod);
    await record?.folder.remove();
    // Until here, nothing new was made of it: another removal may have been faster.
    if (this.#pods.get(uid) === record) this.#pods.delete(uid);
  }

  setHealthy(pod: Pod, healthy: boolean): void {
    const record = this.#pods.get(uidOf(pod));
    if (record === undefined || record.healthy === healthy) return;
    record.healthy = healthy;
    for (const { program } of record.running.values()) program.setHealthy?.(healthy);
  }

  async writeVolume(pod: Pod, volume: WantedVolume): Promise<void> {
    const { fsGroup } = pod.spec.securityContext ?? {};
    const group = fsGroup !== undefined && isMapped('gid', fsGroup) ? fsGroup : undefined;
    await this.#makes(pod, async ({ folder }) => {
      await this.#makePool();
      await folder.write(volume, group);
    });
  }

  async removeFolder(name: string): Promise<void> {
    await this.#claims.remove(name);
  }

  async start(
    wanted: WantedContainer,
    ended: (exit: ContainerExit) => void,
  ): Promise<ContainerExit | undefined> {
    return await this.#makes(wanted.pod, (record) => this.#start(record, wanted, ended));
  }

  async #start(
    record: PodRecord,
    wanted: WantedContainer,
    ended: (exit: ContainerExit) => void,
  ): Promise<ContainerExit | undefined> {
    const { pod, container, attempt } = wanted;
    const network = this.#networkOf(pod);
    const { name } = container;
    // The last attempt may still be ending.
    await record.running.get(name)?.program.ended;
    const log = await this.#openLog(record, container, attempt);
    let program: ContainerProgram;
    try {
      program = await this.#programs.start(record, network, wanted, log);
    } catch (error) {
      log.close();
      if (error instanceof ContainerError) throw error;
      throw new ContainerError('RunContainerError', errorMessage(error));
    }
    if (program.failed !== undefined) {
      log.close();
      return program.failed;
    }
    if (record.isRemoved) {
      program.signal('SIGKILL');
      await program.ended;
      log.close();
      throw removed();
    }
    const running: Running = { attempt, program, log, killAtMs: Infinity, timer: undefined };
    record.running.set(name, running);
    program.setHealthy?.(record.healthy);
    void program.ended.then(async (exit) => {
      clearTimeout(running.timer);
      log.close();
      record.running.delete(name);
      ended({ ...exit, ...(await terminationMessage(record.folder.path, container, exit, log)) });
    });
    return undefined;
  }

  async stop(pod: Pod, name: string, graceMs: number): Promise<void> {
    const running = this.#pods.get(uidOf(pod))?.running.get(name);
    if (running === undefined) return;
    const { program } = running;
    const killAtMs = performance.now() + graceMs;
    if (graceMs === 0) program.signal('SIGKILL');
    else if (killAtMs < running.killAtMs) {
      if (running.killAtMs === Infinity) program.signal(stopSignalOf(pod, name));
      running.killAtMs = killAtMs;
      clearTimeout(running.timer);
      running.timer = setTimeout(() => program.signal('SIGKILL'), graceMs);
      running.timer.unref();
    }
    await program.ended;
  }

  async resize(pod: Pod, container: Container): Promise<void> {
    await this.#programs.resize(pod, container, this.#runningOf(pod, container.name).program);
  }

  async exec(pod: Pod, name: string, command: readonly string[], streams: ExecStreams): Promise<number> {
    return await execBeside(this.#runningOf(pod, name).program, command, streams);
  }

  async attach(pod: Pod, name: string, streams: ExecStreams): Promise<void> {
    const { program, log } = this.#runningOf(pod, name);
    await attachTo(program, log, streams, containerOf(pod, name)?.stdinOnce === true);
  }

  async connectInside(pod: Pod, port: number, signal: AbortSignal): Promise<Socket> {
    return await this.#networkOf(pod).host.connect('127.0.0.1', port, { signal });
  }

  async connect(pod: Pod, address: string, port: number, signal: AbortSignal): Promise<Socket> {
    return await this.#networkOf(pod).node.host.connect(address, port, { signal });
  }

  async *logs(
    pod: Pod,
    name: string,
    { previous = false, ...reading }: LogRequest,
  ): AsyncGenerator<readonly LogLine[]> {
    const logs = this.#pods.get(uidOf(pod))?.logs.get(name);
    const log = previous ? logs?.previous : logs?.last;
    if (log === undefined) {
      const which = previous ? 'previous terminated container' : 'container';
      throw new ContainerError('NoLog', `${which} "${name}" in pod "${pod.metadata.name ?? ''}" not found`);
    }
    yield* log.lines(reading);
  }

  async usageOf(pod: Pod): Promise<LocalUsage> {
    const record = this.#recordOf(pod);
    const containers = new Map<string, number>();
    for (const [name, { program }] of record.running) {
      const logs = await folderBytes(join(record.folder.path, 'logs', name));
      containers.set(name, logs + ((await program.usage?.()) ?? 0));
    }
    return { volumes: await record.folder.usage(), containers };
  }

  /** Makes something of a Pod. @throws {ContainerError} where the Pod is removed. */
  async #makes<T>(pod: Pod, work: (record: PodRecord) => Promise<T>): Promise<T> {
    const record = this.#recordOf(pod);
    if (record.isRemoved) throw removed();
    const made = work(record);
    record.pending.add(made);
    try {
      return await made;
    } finally {
      record.pending.delete(made);
    }
  }

  #networkOf(pod: Pod): PodNetwork {
    const network = this.#options.networks.get(pod);
    if (network !== undefined) return network;
    throw new ContainerError('RunContainerError', 'the sandbox of the Pod is gone');
  }

  #runningOf(pod: Pod, name: string): Running {
    const running = this.#pods.get(uidOf(pod))?.running.get(name);
    if (running !== undefined) return running;
    throw new ContainerError(
      'RunContainerError',
      `container ${name} is not running in Pod ${pod.metadata.name ?? ''}`,
    );
  }

  #recordOf(pod: Pod): PodRecord {
    const uid = uidOf(pod);
    const known = this.#pods.get(uid);
    if (known !== undefined) return known;
    const made: PodRecord = {
      pod,
      folder: new PodFolder(uid, this.#options.hostPaths, this.#claims, this.#options.images),
      ...{ running: new Map(), logs: new Map(), pending: new Set(), healthy: true, isRemoved: false },
    };
    this.#pods.set(uid, made);
    return made;
  }

  async #openLog(record: PodRecord, { name }: Container, attempt: number): Promise<ContainerLog> {
    await this.#makePool();
    const before = record.logs.get(name);
    const log = new ContainerLog(join(record.folder.path, 'logs', name, String(attempt)));
    await log.open();
    record.logs.set(name, { last: log, previous: before?.last });
    if (before?.previous !== undefined) await rm(before.previous.folder, { recursive: true, force: true });
    return log;
  }

  /** Volumes and logs are in a file system of their own: where it is full, nothing else is. */
  #makePool(): Promise<void> {
    this.#pool ??= (async () => {
      await mkdir(podsFolder, { recursive: true });
      const { exitCode, stderr } = await run('mount', [
        ...['-t', 'tmpfs', '-o', `mode=0755,size=${poolSize}`, 'tmpfs', podsFolder],
      ]);
      if (exitCode !== 0)
        this.#options.log.warn({ said: stderr.trim() }, 'volumes and logs have no limit of their own');
    })();
    return this.#pool;
  }
}

function removed(): ContainerError {
  return new ContainerError('RunContainerError', 'the Pod is removed');
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? '';
}

function containerOf({ spec }: Pod, name: string): Container | undefined {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec;
  return [...containers, ...initContainers, ...ephemeralContainers].find((each) => each.name === name);
}

function stopSignalOf(pod: Pod, name: string): NodeJS.Signals {
  const wanted = containerOf(pod, name)?.lifecycle?.stopSignal;
  const known = Object.keys(constants.signals).find((signal) => signal === wanted);
  return isSignal(known) ? known : 'SIGTERM';
}

function isSignal(name: string | undefined): name is NodeJS.Signals {
  return name !== undefined && Object.hasOwn(constants.signals, name);
}

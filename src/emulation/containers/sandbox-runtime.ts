import { existsSync, realpathSync, statSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { dirname, extname, join } from 'node:path';
import type { Logger } from 'pino';
import {
  ContainerError,
  type ContainerExit,
  type ContainerRuntime,
  type ExecStreams,
  type LogLine,
  type LogRequest,
  type WantedContainer,
  type WantedSandbox,
  type WantedVolume,
} from '../../controllers/kubelet/container-runtime.ts';
import { expand } from '../../controllers/kubelet/plan-environment.ts';
import type { LocalUsage } from '../../controllers/kubelet/plan-eviction.ts';
import { run } from '../../host/run.ts';
import { keyOf } from '../../objects/key.ts';
import type { Container, Pod, Probe } from '../../objects/types/core.generated.ts';
import type { NamespaceSandboxes, PodNetwork } from '../machines/namespace-sandboxes.ts';
import type { AgnhostPlace } from '../programs/agnhost/context.ts';
import { resolveName } from '../programs/agnhost/resolve.ts';
import { startAgnhost } from '../programs/agnhost/start.ts';
import { startTestImage, webRootOf } from '../programs/test-images/start.ts';
import { BesideProcess } from './beside-process.ts';
import { builtInCommand, refusal, refusedCommand } from './built-in-commands.ts';
import { ContainerLog } from './container-log.ts';
import type { Images } from './images.ts';
import { runInTerminal, runWords } from './exec-process.ts';
import { hostnameOf, hostsFile, PodFolder, podsFolder, folderBytes } from './pod-folder.ts';
import { ProcessContainer } from './process-container.ts';
import type { ContainerProgram } from '../programs/program.ts';
import { makeRoot, scratchFolders } from './root.ts';
import type { Identity } from './sandbox-words.ts';
import { areMapped, capabilitiesOf, identityOf, isMapped } from './security-context.ts';
import { canBeAsked, startStandIn } from './stand-in.ts';

export interface SandboxRuntimeOptions {
  readonly networks: NamespaceSandboxes;
  readonly images: Images;
  /** `--containers=processes`. */
  readonly runsProcesses: boolean;
  /** A Pod's `/etc/resolv.conf`. */
  readonly resolvConfOf: (pod: Pod) => string;
  readonly log: Logger;
}

interface Running {
  readonly attempt: number;
  readonly program: ContainerProgram;
  readonly log: ContainerLog;
  /** When it is killed, by a monotonic clock. */
  killAt: number;
  timer: NodeJS.Timeout | undefined;
}

interface PodRecord {
  readonly pod: Pod;
  readonly folder: PodFolder;
  readonly running: Map<string, Running>;
  /** By the name of the container: the log of its last attempt, and of the one before. */
  readonly logs: Map<string, { readonly last: ContainerLog; readonly previous: ContainerLog | undefined }>;
  healthy: boolean;
}

/** Bytes of `/dev/termination-log`, and of the end of the log that stands in for it. */
const maxMessageBytes = 4096;
const maxLogMessageBytes = 2048;

/** Share of the machine's memory that volumes and logs may take. */
const poolSize = '25%';

/** Containers in the sandboxes of `up`: programs of ours in this process, and processes of this machine. */
export class SandboxRuntime implements ContainerRuntime {
  readonly isReal = true;
  readonly #options: SandboxRuntimeOptions;
  /** By uid. */
  readonly #pods = new Map<string, PodRecord>();
  #pool: Promise<void> | undefined;
  #bubblewrap: Promise<boolean> | undefined;

  constructor(options: SandboxRuntimeOptions) {
    this.#options = options;
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
      const all = [...record.running.values()];
      for (const { program } of all) program.signal('SIGKILL');
      await Promise.all(all.map(({ program }) => program.ended));
      await record.folder.empty();
    }
    await this.#options.networks.remove(pod);
  }

  async removePod(pod: Pod): Promise<void> {
    await this.removeSandbox(pod);
    const record = this.#pods.get(uidOf(pod));
    this.#pods.delete(uidOf(pod));
    await record?.folder.remove();
  }

  setHealthy(pod: Pod, healthy: boolean): void {
    const record = this.#pods.get(uidOf(pod));
    if (record !== undefined) record.healthy = healthy;
  }

  async writeVolume(pod: Pod, volume: WantedVolume): Promise<void> {
    await this.#makePool();
    const { fsGroup } = pod.spec.securityContext ?? {};
    const group = fsGroup !== undefined && isMapped('gid', fsGroup) ? fsGroup : undefined;
    await this.#recordOf(pod).folder.write(volume, group);
  }

  async start(
    wanted: WantedContainer,
    ended: (exit: ContainerExit) => void,
  ): Promise<ContainerExit | undefined> {
    const { pod, container, attempt } = wanted;
    const network = this.#options.networks.get(pod);
    if (network === undefined)
      throw new ContainerError('RunContainerError', 'the sandbox of the Pod is gone');
    const record = this.#recordOf(pod);
    const { name } = container;
    // The last attempt may still be ending.
    await record.running.get(name)?.program.ended;
    const log = await this.#openLog(record, container, attempt);
    let program: ContainerProgram;
    try {
      program = await this.#program(record, network, wanted, log);
    } catch (error) {
      log.close();
      if (error instanceof ContainerError) throw error;
      throw new ContainerError('RunContainerError', error instanceof Error ? error.message : String(error));
    }
    if (program.failed !== undefined) {
      log.close();
      return program.failed;
    }
    const running: Running = { attempt, program, log, killAt: Infinity, timer: undefined };
    record.running.set(name, running);
    void program.ended.then(async (exit) => {
      clearTimeout(running.timer);
      log.close();
      record.running.delete(name);
      ended({ ...exit, ...(await terminationMessage(record, container, exit, log)) });
    });
    return undefined;
  }

  async stop(pod: Pod, name: string, grace: number): Promise<void> {
    const running = this.#pods.get(uidOf(pod))?.running.get(name);
    if (running === undefined) return;
    const { program } = running;
    const killAt = performance.now() + grace;
    if (grace === 0) program.signal('SIGKILL');
    else if (killAt < running.killAt) {
      if (running.killAt === Infinity) program.signal(stopSignalOf(pod, name));
      running.killAt = killAt;
      clearTimeout(running.timer);
      running.timer = setTimeout(() => program.signal('SIGKILL'), grace);
      running.timer.unref();
    }
    await program.ended;
  }

  async exec(pod: Pod, name: string, command: readonly string[], streams: ExecStreams): Promise<number> {
    const { exec } = this.#runningOf(pod, name).program;
    if (exec === undefined) {
      const { stdout, stderr, terminal } = streams;
      (terminal === undefined ? stderr : stdout).write(`${refusal(command)}\n`);
      return 127;
    }
    const words = await exec(command);
    return await (streams.terminal === undefined ? runWords(words, streams) : runInTerminal(words, streams));
  }

  async attach(
    pod: Pod,
    name: string,
    { stdin, stdout, stderr, terminal, signal }: ExecStreams,
  ): Promise<void> {
    const { program, log } = this.#runningOf(pod, name);
    const detach = log.onWrite((stream, chunk) => (stream === 'stdout' ? stdout : stderr).write(chunk));
    const gone = Promise.withResolvers<never>();
    signal?.addEventListener('abort', () => gone.reject(asError(signal.reason)), { once: true });
    // The container's input outlives the client, but for `stdinOnce`.
    const endsInput = stdin !== undefined && containerOf(pod, name)?.stdinOnce === true;
    const input = program.stdin;
    if (input !== undefined) stdin?.pipe(input, { end: endsInput && program.resize === undefined });
    terminal?.onResize((size) => program.resize?.(size));
    try {
      await Promise.race([program.ended, gone.promise]);
    } finally {
      detach();
      stdin?.unpipe();
      if (endsInput && program.resize === undefined) input?.end();
    }
  }

  async connectInside(pod: Pod, port: number, signal: AbortSignal): Promise<Socket> {
    const network = this.#options.networks.get(pod);
    if (network === undefined)
      throw new ContainerError('RunContainerError', 'the sandbox of the Pod is gone');
    return await network.host.connect('127.0.0.1', port, { signal });
  }

  #runningOf(pod: Pod, name: string): Running {
    const running = this.#pods.get(uidOf(pod))?.running.get(name);
    if (running !== undefined) return running;
    throw new ContainerError(
      'RunContainerError',
      `container ${name} is not running in Pod ${pod.metadata.name ?? ''}`,
    );
  }

  async connect(pod: Pod, address: string, port: number, signal: AbortSignal): Promise<Socket> {
    const network = this.#options.networks.get(pod);
    if (network === undefined)
      throw new ContainerError('RunContainerError', 'the sandbox of the Pod is gone');
    return await network.node.host.connect(address, port, { signal });
  }

  async *logs(
    pod: Pod,
    name: string,
    { previous = false, follow = false, signal }: LogRequest,
  ): AsyncGenerator<LogLine> {
    const logs = this.#pods.get(uidOf(pod))?.logs.get(name);
    const log = previous ? logs?.previous : logs?.last;
    if (log === undefined) {
      const which = previous ? 'previous terminated container' : 'container';
      throw new ContainerError('NoLog', `${which} "${name}" in pod "${pod.metadata.name ?? ''}" not found`);
    }
    yield* log.lines(follow, signal);
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

  #recordOf(pod: Pod): PodRecord {
    const uid = uidOf(pod);
    const known = this.#pods.get(uid);
    if (known !== undefined) return known;
    const made: PodRecord = {
      ...{ pod, folder: new PodFolder(uid), running: new Map(), logs: new Map(), healthy: true },
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

  async #program(
    record: PodRecord,
    network: PodNetwork,
    wanted: WantedContainer,
    log: ContainerLog,
  ): Promise<ContainerProgram> {
    const { pod, container, environment } = wanted;
    const resolved = this.#options.images.resolve(container);
    const { runsProcesses } = this.#options;
    const beside = new BesideProcess(() =>
      this.#process(record, network, wanted, ['sleep', 'infinity'], log),
    );
    const withExec = (own: ContainerProgram): ContainerProgram => (runsProcesses ? beside.joinTo(own) : own);
    if (resolved.kind === 'stand-in')
      return withExec(await startStandIn(pod, container, network, () => record.healthy));
    const place = (pages?: string): AgnhostPlace => {
      const hostname = pod.spec.hostNetwork === true ? network.node.name : hostnameOf(pod);
      return {
        ...{ host: network.host, listenAt: network.listenAt, environment, hostname },
        resolve: (name) => {
          const hosts = hostsFile(pod, network.addresses, hostname);
          return resolveName(network.host, { hosts, resolvConf: this.#options.resolvConfOf(pod) }, name);
        },
        write: (stream, text) => log.write(stream, Buffer.from(text)),
        readFile: (path) => record.folder.readFile(container, path, pages),
        exec: async (command) => {
          if (!runsProcesses) throw new Error(refusal(command));
          const [first = '', ...rest] = await beside.words(command);
          return await run(first, rest);
        },
      };
    };
    if (resolved.kind === 'test-image') {
      const root = webRootOf(resolved.name);
      if (root !== undefined) await record.folder.writePages(container, root.index);
      const args = resolved.args.map((word) => expand(word, [environment]));
      return withExec(await startTestImage(resolved.name, args, place(root?.path)));
    }
    const words = resolved.words.map((word) => expand(word, [environment]));
    if (resolved.kind === 'agnhost') {
      const own = await startAgnhost(words, place());
      if (own !== undefined) return withExec(own);
      if (!runsProcesses) return refusedCommand(words, log);
      return await this.#process(record, network, wanted, ['/agnhost', ...words.slice(1)], log);
    }
    if (!runsProcesses || words[0] === '/pause') {
      return builtInCommand(words) ?? refusedCommand(words, log);
    }
    return await this.#process(record, network, wanted, words, log);
  }

  async #process(
    record: PodRecord,
    network: PodNetwork,
    { pod, container, environment }: WantedContainer,
    words: readonly string[],
    log: ContainerLog,
  ): Promise<ProcessContainer> {
    const folder = join(record.folder.path, 'containers', container.name);
    await rm(folder, { recursive: true, force: true });
    const hostname = pod.spec.hostNetwork === true ? network.node.name : hostnameOf(pod);
    const resolved = this.#options.images.resolve(container);
    const mounts = await record.folder.mounts(pod, container, {
      hostname,
      hosts: hostsFile(pod, network.addresses, hostname),
      resolvConf: this.#options.resolvConfOf(pod),
      agnhost: agnhostScript,
      hidden: hiddenFolders,
      shell,
      pages: resolved.kind === 'test-image' ? webRootOf(resolved.name)?.path : undefined,
    });
    const variables = Object.fromEntries(environment);
    const identity = this.#identityOf(pod, container);
    const isWritable = container.securityContext?.readOnlyRootFilesystem !== true;
    const home = identity === undefined || identity.user === 0 ? '/root' : '/';
    return await ProcessContainer.start({
      sandbox: {
        ...{ root: await makeRoot(folder, mounts, isWritable), hostname, folder },
        hasBubblewrap: await this.#hasBubblewrap(),
        capabilities: capabilitiesOf(container),
        identity,
        hasTerminal: container.tty === true,
      },
      network: network.path,
      words,
      environment: { PATH: defaultPath, HOSTNAME: hostname, HOME: home, ...variables },
      workingDirectory: container.workingDir ?? '/',
      log,
      hasStdin: container.stdin === true,
      hasTerminal: container.tty === true,
    });
  }

  /** @throws {ContainerError} for root where it is refused. */
  #identityOf(pod: Pod, container: Container): Identity | undefined {
    const identity = identityOf(pod, container);
    if (identity === undefined || areMapped(identity)) return identity;
    const users = `${identity.user}:${[identity.group, ...identity.groups].join()}`;
    this.#options.log.warn(
      { pod: keyOf(pod), container: container.name, users },
      'a container runs as root of its namespaces: only root can give it another user or group',
    );
    return undefined;
  }

  #hasBubblewrap(): Promise<boolean> {
    this.#bubblewrap ??= run('bwrap', ['--version']).then(
      ({ exitCode }) => exitCode === 0,
      () => false,
    );
    return this.#bubblewrap;
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

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Shells of small images know `[[`, which Debian's own does not: bash is nearer to them. */
const shell = existsSync('/bin/bash') ? realpathSync('/bin/bash') : undefined;

/** Our agnhost as a program of the container: TypeScript in the source tree, JavaScript in the package. */
const agnhostScript = `#!/bin/sh
exec ${process.execPath} ${join(import.meta.dirname, '..', 'programs', 'agnhost', `main${extname(import.meta.filename)}`)} "$@"
`;

/**
 * Where Node.js and this installation are, which agnhost needs, if containers would not see them: below a folder of which
 * each has its own, or in another file system than the folder that is layered. Of an installed package, the folder with
 * all its dependencies.
 */
const hiddenFolders: readonly string[] = [
  dirname(process.execPath),
  join(import.meta.dirname, '..', '..', '..').replace(/\/node_modules\/.*/, '/node_modules'),
].filter((path) => {
  const device = (of: string): number => statSync(of).dev;
  const [top = ''] = path.slice(1).split('/');
  return scratchFolders.some((folder) => path.startsWith(`${folder}/`)) || device(path) !== device(`/${top}`);
});

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

async function terminationMessage(
  record: PodRecord,
  { name, terminationMessagePolicy }: Container,
  { exitCode, message }: ContainerExit,
  log: ContainerLog,
): Promise<{ message?: string }> {
  if (message !== undefined) return {};
  try {
    const text = await readFile(join(record.folder.path, 'containers', name, 'termination-log'), 'utf8');
    if (text !== '') return { message: text.slice(-maxMessageBytes) };
  } catch {
    // It has no process, or its Pod is deleted.
  }
  if (terminationMessagePolicy !== 'FallbackToLogsOnError' || exitCode === 0) return {};
  const lines: string[] = [];
  for await (const { text } of log.lines(false)) {
    lines.push(`${text.toString()}\n`);
    if (lines.length > 80) lines.shift();
  }
  const text = lines.join('').slice(-maxLogMessageBytes);
  return text === '' ? {} : { message: text };
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

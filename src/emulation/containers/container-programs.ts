import type { ContainerExit, WantedContainer } from '../../controllers/kubelet/container-runtime.ts';
import type { ContainerLog } from './container-log.ts';
import type { BesideProgram, ContainerProgram } from '../program.ts';
import type { Answers, BuiltInPrograms } from '../programs/built-in-programs.ts';
import type { WantedProgram } from '../programs/messages.ts';
import { existsSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from 'pino';
import { expand } from '../../controllers/kubelet/plan-environment.ts';
import { sysctlsOf } from '../../controllers/kubelet/sysctls.ts';
import { run } from '../../host/local-host.ts';
import { keyOf } from '../../objects/meta.ts';
import { errorMessage } from '../../objects/status.ts';
import type { Container, Pod } from '../../objects/types/core.generated.ts';
import type { PodNetwork } from '../machines/namespace-sandboxes.ts';
import { Cgroups } from './resource-limits.ts';
import { documentsOf } from '../stand-ins/document-root.ts';
import { type Images, standInPorts, webServerOf } from './images.ts';
import { namesOf } from './container-root.ts';
import type { PodFolder } from './pod-folder.ts';
import { ProcessContainer } from './process-container.ts';
import { type MachineView, isSeen, makeRoot } from './container-root.ts';
import { builtInCommandLine, type CommandPlace, refusal } from './built-in-commands.ts';
import type { HostPathRules } from './host-paths.ts';
import type { Host } from '../../host/host.ts';
import {
  defaultCapabilities,
  sandboxArgv,
  type Identity,
  areMapped,
  capabilitiesOf,
  identityOf,
} from './sandbox-command.ts';

/** A command line that needs no process; undefined for others. */
function builtInProgram(
  argv: readonly string[],
  place: CommandPlace,
  log: ContainerLog,
): ContainerProgram | undefined {
  const ending = new AbortController();
  if (basename(argv[0] ?? '') === 'pause') {
    const ended = Promise.withResolvers<ContainerExit>();
    const signal = (name: NodeJS.Signals): void => ended.resolve({ exitCode: name === 'SIGKILL' ? 137 : 0 });
    return { ended: ended.promise, signal };
  }
  const run = builtInCommandLine(argv, place.environment);
  if (run === undefined) return undefined;
  const output = {
    stdout: (text: string | Buffer): void => void log.write('stdout', Buffer.from(text)),
    stderr: (text: string): void => void log.write('stderr', Buffer.from(text)),
  };
  const ended = run(place, output, ending.signal).then(
    (exitCode) => ({ exitCode }),
    (error: unknown) => {
      if (!ending.signal.aborted) output.stderr(`${errorMessage(error)}\n`);
      return { exitCode: ending.signal.aborted ? 137 : 1 };
    },
  );
  // As process 1 without a handler it does not hear others.
  return { ended, signal: (name) => name === 'SIGKILL' && ending.abort() };
}

/** A command that would need a process of this machine. */
function refusedCommand(argv: readonly string[], log: ContainerLog): ContainerProgram {
  log.write('stderr', Buffer.from(`${refusal(argv)}\n`));
  const failed = { exitCode: 127, reason: 'StartError', message: refusal(argv) };
  return { failed, ended: Promise.resolve(failed), signal: () => undefined };
}

export interface ContainerProgramsOptions {
  readonly images: Images;
  readonly builtIn: Pick<BuiltInPrograms, 'start'>;
  /** Whether commands of containers are run, as processes of this machine. */
  readonly runsProcesses: boolean;
  /** What those see of it. */
  readonly view: MachineView;
  readonly hostPaths: HostPathRules;
  /** A Pod's `/etc/resolv.conf`. */
  readonly resolvConfOf: (pod: Pod) => string;
  /** Resolves a name as a program of the Pod does. @throws {Error} where no server has it. */
  readonly lookUp: (pod: Pod, host: Host, name: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** The name of the folder of cgroups. */
  readonly cgroups: string;
  readonly log: Logger;
}

/** The parts of its Pod that a program needs. */
export interface ProgramPod {
  readonly folder: PodFolder;
  readonly running: ReadonlyMap<string, { readonly program: ContainerProgram }>;
  /** Whether the probes of stand-ins succeed; it changes. */
  readonly healthy: boolean;
}

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Shells of small images have `[[`, which Debian's sh lacks: bash is closer to them. */
const shell = existsSync('/bin/bash') ? realpathSync('/bin/bash') : undefined;

let bubblewrap: Promise<boolean> | undefined;

function hasBubblewrap(): Promise<boolean> {
  bubblewrap ??= run('bwrap', ['--version']).then(
    ({ exitCode }) => exitCode === 0,
    () => false,
  );
  return bubblewrap;
}

/**
 * Runs a program in a sandbox as `--containers=auto` makes them.
 *
 * @param folder is made; it is empty again afterwards.
 * @returns why this machine cannot; empty: it can.
 */
export async function commandsObstacle(folder: string): Promise<string> {
  try {
    const root = await makeRoot({ folder, mounts: [], isWritable: true, view: 'programs', cgroups: [] });
    const sandbox = { root, folder, hostname: 'probe', hasBubblewrap: await hasBubblewrap() };
    const argv = sandboxArgv({ ...sandbox, capabilities: defaultCapabilities, hasTerminal: false });
    // What refuses a layer says so on descriptor 3.
    const { exitCode, stderr } = await run('sh', ['-c', 'exec 3>&2; exec "$@"', 'sh', ...argv, 'true']);
    if (exitCode === 0) return '';
    const [first = ''] = stderr.trim().split('\n');
    return first === '' ? `a sandbox ended with ${exitCode}` : first;
  } catch (error) {
    return errorMessage(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts what the image and the command of a container say: programs of ours, or processes of this machine. */
export class ContainerPrograms {
  readonly #options: ContainerProgramsOptions;
  #madeCgroups: Promise<Cgroups | undefined> | undefined;

  constructor(options: ContainerProgramsOptions) {
    this.#options = options;
  }

  /**
   * Starts a container.
   *
   * @throws {ContainerError} where it may not run so.
   * @throws the system's error.
   */
  async start(
    record: ProgramPod,
    network: PodNetwork,
    wanted: WantedContainer,
    log: ContainerLog,
  ): Promise<ContainerProgram> {
    if (this.#options.runsProcesses) return await this.#start(record, network, wanted, log);
    const place = this.#placeOf(record, network, wanted);
    const resolved = this.#options.images.resolve(wanted.container);
    const argv =
      resolved.kind === 'command' ? resolved.argv.map((word) => expand(word, [wanted.environment])) : [];
    const program =
      resolved.kind === 'command'
        ? (builtInProgram(argv, place, log) ?? refusedCommand(argv, log))
        : await this.#start(record, network, wanted, log);
    return {
      ...{ ended: program.ended, failed: program.failed, place },
      signal: (name) => program.signal(name),
      setHealthy: (healthy) => program.setHealthy?.(healthy),
    };
  }

  /** Gives a container that runs the limits of its `resources`. @throws {Error} where that cannot be done. */
  async resize(pod: Pod, { name, resources = {} }: Container, program: ContainerProgram): Promise<void> {
    const cgroups = await this.#madeCgroups;
    // Until the container has its own: the kernel refuses one above that of its Pod.
    await cgroups?.setPod(pod, {});
    await program.setResources?.(name, resources);
    await cgroups?.setPod(pod);
  }

  /** The containers of a Pod have ended. */
  async removePod(pod: Pod): Promise<void> {
    await (await this.#madeCgroups)?.removePod(pod);
  }

  #cgroups(): Promise<Cgroups | undefined> {
    this.#madeCgroups ??= Cgroups.open(this.#options.cgroups, this.#options.log);
    return this.#madeCgroups;
  }

  /** The files and the network of a container, for commands that are built in. */
  #placeOf(
    { folder }: ProgramPod,
    network: PodNetwork,
    { pod, container, environment }: WantedContainer,
  ): CommandPlace {
    const { resolvConfOf, lookUp } = this.#options;
    const { hostname, hosts } = namesOf(pod, network);
    const own = new Map([
      ['/etc/hosts', () => hosts],
      ['/etc/hostname', () => `${hostname}\n`],
      ['/etc/resolv.conf', () => resolvConfOf(pod)],
    ]);
    return {
      ...{ hostname, workingDirectory: container.workingDir ?? '/' },
      environment: new Map([
        ['PATH', defaultPath],
        ['HOSTNAME', hostname],
        ['HOME', '/root'],
        ...environment,
      ]),
      readFile: async (path) => {
        const text = own.get(join('/', path))?.();
        return text === undefined ? await folder.readFile(container, path) : Buffer.from(text);
      },
      list: (path) => folder.list(container, path, [...own.keys()]),
      resolve: (name, signal) => lookUp(pod, network.host, name, signal),
      lookUp: async (name, signal) => {
        const known = hosts.split('\n').filter((line) => line.split(/\s+/).slice(1).includes(name));
        const [address] = known.map((line) => line.split(/\s+/)[0] ?? '');
        return address === undefined ? await lookUp(pod, network.host, name, signal) : [address];
      },
      connect: (address, port, signal) => network.host.connect(address, port, { signal }),
    };
  }

  async #start(
    record: ProgramPod,
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
    const inNetwork = { namespace: basename(network.path), listenAt: network.listenAt };
    const answers: Answers = {
      write: (stream, text) => log.write(stream, Buffer.from(text)),
      readFile: (path) => record.folder.readFile(container, path),
      resolvConf: () => Promise.resolve(this.#options.resolvConfOf(pod)),
      exec: async (command) => {
        if (!runsProcesses) throw new Error(refusal(command));
        const [first = '', ...rest] = (await beside.join(command)).argv;
        return await run(first, rest);
      },
    };
    if (resolved.kind === 'stand-in') {
      const { name = '', namespace = '' } = pod.metadata;
      const { image = '' } = container;
      const server = webServerOf(image);
      const standIn: WantedProgram = {
        ...{ kind: 'stand-in', ...inNetwork, ports: standInPorts(pod, container), healthy: record.healthy },
        identity: {
          ...{ pod: name, namespace, node: network.node.name, addresses: network.addresses },
          ...{ container: container.name, image },
        },
        logFormat: server === undefined || server.name === 'caddy' ? 'short' : 'combined',
        documents: documentsOf(server, container, (volume) => record.folder.isOfMachine(volume)),
      };
      const readFile = (path: string): Promise<Buffer> => record.folder.readDocument(container, path);
      return withExec(await this.#options.builtIn.start(standIn, { ...answers, readFile }));
    }
    const argv = resolved.argv.map((word) => expand(word, [environment]));
    if (resolved.kind === 'program') {
      const { entrypoint } = resolved.image;
      const own = await this.#options.builtIn.start(
        { kind: 'image', ...inNetwork, entrypoint, argv, environment, ...namesOf(pod, network) },
        answers,
      );
      return withExec(own);
    }
    if (argv[0] === '/pause' && !this.#options.images.isFile(argv[0])) {
      const pausing = builtInProgram(argv, this.#placeOf(record, network, wanted), log);
      if (pausing !== undefined) return pausing;
    }
    return await this.#process(record, network, wanted, argv, log);
  }

  async #process(
    record: ProgramPod,
    network: PodNetwork,
    { pod, container, environment }: WantedContainer,
    argv: readonly string[],
    log: ContainerLog,
  ): Promise<ProcessContainer> {
    const folder = join(record.folder.path, 'containers', container.name);
    await rm(folder, { recursive: true, force: true });
    const { hostname, hosts } = namesOf(pod, network);
    const { images, view } = this.#options;
    const files = [
      images.fileOf(container.image) ?? [],
      argv.slice(0, 1).filter((path) => images.isFile(path)),
    ].flat();
    const hidden = files.filter((path) => !isSeen(view, path)).map((path) => [path, path] as const);
    const mounts = await record.folder.mounts(pod, container, {
      ...{ hostname, hosts },
      resolvConf: this.#options.resolvConfOf(pod),
      executables: images.executables(container.image),
      machineFiles: new Map([...hidden, ...images.filesOf(container.image)]),
      shell,
    });
    const variables = Object.fromEntries(environment);
    const identity = this.#identityOf(pod, container);
    const isWritable = container.securityContext?.readOnlyRootFilesystem !== true;
    const { resources = {} } = container;
    const cgroup = await (await this.#cgroups())?.container(pod, container);
    const home = identity === undefined || identity.user === 0 ? '/root' : '/';
    return await ProcessContainer.start({
      sandbox: {
        root: await makeRoot({ folder, mounts, isWritable, view, cgroups: cgroup?.steps ?? [] }),
        ...{ folder, hostname },
        hasBubblewrap: await hasBubblewrap(),
        sysctls: sysctlsOf(pod, 'ipc'),
        capabilities: capabilitiesOf(container),
        identity,
        target: await targetOf(record, pod, container.name),
        hasTerminal: container.tty === true,
      },
      network: network.path,
      argv,
      environment: { PATH: defaultPath, HOSTNAME: hostname, HOME: home, ...variables },
      workingDirectory: container.workingDir ?? '/',
      log,
      hasStdin: container.stdin === true,
      hasTerminal: container.tty === true,
      ...{ resources, cgroup },
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
}

/** The sandbox of a program of ours, made when something is to be run in it or to see it: a process that does nothing. */
class BesideProcess {
  readonly #start: () => Promise<ProcessContainer>;
  #process: Promise<ProcessContainer> | undefined;
  #program: ContainerProgram | undefined;
  #hasEnded = false;

  constructor(start: () => Promise<ProcessContainer>) {
    this.#start = start;
  }

  /** @throws {Error} where it cannot be made. */
  async join(command: readonly string[]): Promise<BesideProgram> {
    return await (await this.#made()).exec(command);
  }

  async #made(): Promise<ProcessContainer> {
    if (this.#hasEnded) throw new Error('the container has ended');
    this.#process ??= this.#begin();
    return await this.#process;
  }

  async #begin(): Promise<ProcessContainer> {
    const process = await this.#start();
    // It ends before its program where what runs in it has too much memory.
    void process.ended.then(() => this.#program?.signal('SIGKILL'));
    return process;
  }

  /** Ends with the program. */
  joinTo(program: ContainerProgram): ContainerProgram {
    this.#program = program;
    const ended = program.ended.then(async (exit) => {
      this.#hasEnded = true;
      const process = await this.#process?.catch(() => undefined);
      process?.signal('SIGKILL');
      const end = await process?.ended;
      return end?.reason === 'OOMKilled' ? end : exit;
    });
    return {
      ended,
      signal: (name) => program.signal(name),
      setHealthy: (healthy) => program.setHealthy?.(healthy),
      exec: (command) => this.join(command),
      processOne: async () => await (await this.#made()).processOne(),
      setResources: async (name, resources) => {
        await (await this.#process?.catch(() => undefined))?.setResources(name, resources);
      },
      usage: async () => (await (await this.#process?.catch(() => undefined))?.usage()) ?? 0,
    };
  }
}

/** A process of the container whose processes an ephemeral one is to see (`kubectl debug --target`). */
async function targetOf({ running }: ProgramPod, { spec }: Pod, name: string): Promise<number | undefined> {
  const { targetContainerName: target = '' } =
    spec.ephemeralContainers?.find((each) => each.name === name) ?? {};
  return await running.get(target)?.program.processOne?.();
}

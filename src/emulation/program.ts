import type { ChildProcess } from 'node:child_process';
import type { Writable } from 'node:stream';
import type { ContainerExit, TerminalSize } from '../controllers/kubelet/container-runtime.ts';
import type { ResourceRequirements } from '../objects/types/core.generated.ts';
import type { CommandPlace } from './containers/built-in-commands.ts';
import type { ExecResult, Host } from '../host/host.ts';

/** A program that runs as a container. */
export interface ContainerProgram {
  /** Resolves when it has ended; never rejects. */
  readonly ended: Promise<ContainerExit>;
  /** The exit of a program that could not start. */
  readonly failed?: ContainerExit | undefined;
  /** `SIGKILL` ends it for certain. */
  signal(name: NodeJS.Signals): void;
  /** The command line that runs another program in its namespaces; undefined where none can be. */
  readonly exec?: ExecBeside | undefined;
  /** Its first process, seen from here; undefined where it has none. */
  readonly processOne?: (() => Promise<number | undefined>) | undefined;
  /** Where commands that are built in run, if no other one does. */
  readonly place?: CommandPlace | undefined;
  /** Bytes that it has in file systems of its own, but for volumes and logs. */
  readonly usage?: (() => Promise<number>) | undefined;
  /** Its standard input, where it has one that stays open. */
  readonly stdin?: Writable | undefined;
  /** Sets the size of its terminal, where it has one. */
  readonly resize?: ((size: TerminalSize) => void) | undefined;
  /**
   * Sets its limits, where it has any.
   *
   * @param name of its container, for errors.
   * @throws {Error} where they cannot be set; they are as before then.
   */
  readonly setResources?: ((name: string, resources: ResourceRequirements) => Promise<void>) | undefined;
  /** The answer of `/healthz` of a stand-in. */
  readonly setHealthy?: ((healthy: boolean) => void) | undefined;
}

/** How a program runs in a container. */
export interface BesideProgram {
  /** The command line, with the program and its arguments. */
  readonly argv: readonly string[];
  /** The file that opens a terminal of the container (pts(4)), which programs in it find by its name. */
  readonly ptmx: string;
  /** To be called with the process that the command line began: its memory is the container's. */
  readonly began: (process: ChildProcess) => void;
}

/** @throws {Error} where the container has not begun. */
export type ExecBeside = (command: readonly string[]) => Promise<BesideProgram>;

/** The parts of its container that a program of ours needs. */
export interface ProgramContainer {
  readonly host: Host;
  /** The addresses on which servers listen: `0.0.0.0` and `::`, or a node's. */
  readonly listenAt: readonly string[];
  readonly hostname: string;
  /** The text of `/etc/hosts`. */
  readonly hosts: string;
  /** The text of `/etc/resolv.conf` now. @throws {Error} where its network has ended. */
  readonly resolvConf: () => Promise<string>;
  readonly environment: ReadonlyMap<string, string>;
  readonly write: (stream: 'stdout' | 'stderr', text: string) => void;
  /** @throws the system's error. */
  readonly readFile: (path: string) => Promise<Buffer>;
  /** Runs a program of the container to its end. @throws {Error} where none can be run. */
  readonly exec: (command: readonly string[]) => Promise<ExecResult>;
}

/** An image that is a program of ours, in the process of all of these: it uses the network and the files of its container. */
export interface ProgramImage {
  /** The program of a container without a command. */
  readonly entrypoint: string;
  /** Programs of the image that are ours. A command that names another one is a program of the machine. */
  readonly commands: readonly string[];
  /** What commands of its containers find as the file {@link entrypoint}. */
  readonly script: string;
  /**
   * Starts the program.
   *
   * @param argv the program and its arguments.
   * @throws the system's error.
   */
  start(argv: readonly string[], container: ProgramContainer): Promise<ContainerProgram>;
}

/** The images that are programs of ours. */
export interface ProgramImages {
  /** By the name that `--image` has for them. */
  readonly byName: ReadonlyMap<string, ProgramImage>;
  /** By repository. */
  readonly byRepository: ReadonlyMap<string, ProgramImage>;
}

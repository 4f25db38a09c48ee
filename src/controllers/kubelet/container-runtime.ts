import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import type { Container, Node, Pod } from '../../objects/types/core.generated.ts';
import type { LocalUsage } from './volumes/plan-eviction.ts';

/** The wanted sandbox of a Pod. */
export interface WantedSandbox {
  readonly pod: Pod;
  readonly node: Node;
  /** The Pod's own, or the node's with `hostNetwork`. */
  readonly addresses: readonly string[];
}

/** A container to be started. */
export interface WantedContainer {
  readonly pod: Pod;
  /** Of whatever list of the Pod: an ephemeral container has the same members. */
  readonly container: Container;
  /** 0 at first, one more with every restart. */
  readonly attempt: number;
  readonly environment: ReadonlyMap<string, string>;
}

/** How a container ended. */
export interface ContainerExit {
  /** 0 to 255; 128 and the signal's number where a signal ended it. */
  readonly exitCode: number;
  /** The kubelet's word where it is not `Completed` or `Error`: `StartError`. */
  readonly reason?: string;
  readonly message?: string;
}

/** A file of a volume, by its path in it; parents are made. */
export interface VolumeFile {
  readonly path: string;
  readonly content: Buffer;
  /** Permission bits. */
  readonly mode: number;
}

/** A volume with the content that the kubelet gives it, or an empty folder. */
export interface WantedVolume {
  readonly name: string;
  readonly files: readonly VolumeFile[];
  /** Of an emptyDir in memory: more than this does not fit. */
  readonly sizeLimit?: number;
  /** A folder or file of the node, instead of files. */
  readonly hostPath?: string;
  /** What it must be, and whether it is made (`HostPathType`); default ``. */
  readonly hostPathType?: string;
  /** A folder that outlives the Pod, by its name: Pods with the same one share it. */
  readonly folder?: string;
  readonly isReadOnly?: boolean;
  /** The files of an image. */
  readonly image?: string;
}

/** The size of a terminal, in characters. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** The streams of a program in a container. */
export interface ExecStreams {
  /** Absent: nothing to read. */
  readonly stdin?: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** The program has a terminal: what it prints comes by `stdout`. The listener gets each size of the user's terminal. */
  readonly terminal?: { onResize(listener: (size: TerminalSize) => void): void };
  /** Ends the program; without, only it or its container does. */
  readonly signal?: AbortSignal;
}

/** One line of a container's log, or a part of a long one. */
export interface LogLine {
  /** RFC 3339 with nanoseconds, as the container runtime interface has it. */
  readonly time: string;
  readonly stream: 'stdout' | 'stderr';
  /** False if the line continues in the next entry. */
  readonly isWhole: boolean;
  readonly text: Buffer;
}

/** Which log of a container. */
export interface LogRequest {
  /** That of the attempt before. */
  readonly previous?: boolean;
  /** Yields until the container ends, or the signal aborts. */
  readonly follow?: boolean;
  /** Of the end of what is there, a part of a long line counting as one; undefined: all. */
  readonly tailLines?: number;
  readonly signal?: AbortSignal;
}

/** The result of a probe. */
export interface ProbeResult {
  readonly success: boolean;
  /** For the Event: `HTTP probe failed with statuscode: 500`. */
  readonly output: string;
}

/**
 * Where the kubelet runs Pods (the container runtime interface, with what the kubelet needs of volumes and the network).
 * `exec`, `logs` and `connect` are also what streams of the API are made of.
 */
export interface ContainerRuntime {
  /** False if Pods are objects only: files are not needed. */
  readonly isReal: boolean;

  /**
   * Whether a built-in server replaces the program of a container: it runs until it is stopped, unless annotations
   * set an end; as an init container it ends at once.
   */
  isStandIn(pod: Pod, container: Container): boolean;

  /** Whether the prober can probe a container: a stand-in does not have the image's programs and protocols. */
  isAsked(pod: Pod, container: Container, probe: NonNullable<Container['livenessProbe']>): boolean;

  /** Makes the sandbox of a Pod where there is none. @throws {SandboxError} which the next call may not throw. */
  ensureSandbox(wanted: WantedSandbox): Promise<void>;

  /**
   * Makes the further interfaces that the `network-status` of a Pod names, once; its sandbox is there.
   *
   * @returns what is not made, and why: for Events of the Pod.
   * @throws {SandboxError} which the next call may not throw.
   */
  attachNetworks(pod: Pod): Promise<readonly string[]>;

  /**
   * Kills what runs in the sandbox of a Pod, and removes it with its volumes; logs stay. Does nothing where there is
   * none.
   */
  removeSandbox(pod: Pod): Promise<void>;

  /** The same with the logs: the Pod is gone. */
  removePod(pod: Pod): Promise<void>;

  /** The answer of `/healthz` of a stand-in. */
  setHealthy(pod: Pod, healthy: boolean): void;

  /** Makes a volume, or replaces the files of one as a whole. @throws the system's error. */
  writeVolume(pod: Pod, volume: WantedVolume): Promise<void>;

  /** Removes the folder of a {@link WantedVolume.folder}; no Pod uses it. @throws the system's error. */
  removeFolder(name: string): Promise<void>;

  /**
   * Starts a container; its sandbox and volumes are there.
   *
   * @param ended is called once, where the program has begun.
   * @returns how it ended, where its program could not begin.
   * @throws {ContainerError} where it cannot be made: it waits then.
   */
  start(wanted: WantedContainer, ended: (exit: ContainerExit) => void): Promise<ContainerExit | undefined>;

  /**
   * Sets the limits of a container that runs to those of its `resources`.
   *
   * @throws {Error} where they cannot be set; they are as before then.
   */
  resize(pod: Pod, container: Container): Promise<void>;

  /**
   * Sends the stop signal to a container, and kills it after these milliseconds; a second call can only shorten them.
   * Resolves when it has ended; at once where it does not run.
   */
  stop(pod: Pod, name: string, graceMs: number): Promise<void>;

  /**
   * Runs a program in a container to its end.
   *
   * @returns its exit code; 127 where there is no such program.
   * @throws {ContainerError} where the container does not run; the reason of the signal.
   */
  exec(pod: Pod, name: string, command: readonly string[], streams: ExecStreams): Promise<number>;

  /**
   * Attaches to the program of a container: its output from now on, and its standard input if it has one. Resolves
   * when it has ended; the container's status has the exit.
   *
   * @throws {ContainerError} if the container does not run; the reason of the signal.
   */
  attach(pod: Pod, name: string, streams: ExecStreams): Promise<void>;

  /** Connects to a port of `localhost` in the Pod. @throws the system's error, or the reason of the signal. */
  connectInside(pod: Pod, port: number, signal: AbortSignal): Promise<Socket>;

  /** Connects from the Pod's node. @throws the system's error, or the reason of the signal. */
  connect(pod: Pod, address: string, port: number, signal: AbortSignal): Promise<Socket>;

  /** The log of a container, oldest line first, many lines at once. @throws {ContainerError} where there is none. */
  logs(pod: Pod, name: string, request: LogRequest): AsyncIterable<readonly LogLine[]>;

  /** The present usage of a Pod; of its volumes, those without a file system of their own. */
  usageOf(pod: Pod): Promise<LocalUsage>;
}

/** A sandbox cannot be made now. The message is for an Event of the Pod. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
}

/** A container cannot be made now: the reason and the message of its waiting state. */
export class ContainerError extends Error {
  override readonly name = 'ContainerError';
  /** `CreateContainerConfigError`, `RunContainerError` … */
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

const nowhere = (): never => {
  throw new ContainerError('RunContainerError', 'Pods are only simulated: there is no cluster network');
};

/** The runtime of a cluster without a network: Pods are objects only. */
export const noRuntime: ContainerRuntime = {
  isReal: false,
  isStandIn: () => true,
  isAsked: () => false,
  ensureSandbox: () => Promise.resolve(),
  attachNetworks: () => Promise.resolve([]),
  removeSandbox: () => Promise.resolve(),
  removePod: () => Promise.resolve(),
  setHealthy: () => undefined,
  writeVolume: () => Promise.resolve(),
  removeFolder: () => Promise.resolve(),
  start: () => Promise.resolve(undefined),
  resize: () => Promise.resolve(),
  stop: () => Promise.resolve(),
  exec: nowhere,
  attach: nowhere,
  connectInside: nowhere,
  connect: nowhere,
  logs: nowhere,
  usageOf: () => Promise.resolve({ volumes: new Map(), containers: new Map() }),
};

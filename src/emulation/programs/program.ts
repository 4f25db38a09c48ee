import type { Writable } from 'node:stream';
import type { ContainerExit, TerminalSize } from '../../controllers/kubelet/container-runtime.ts';

/** A program that runs as a container. */
export interface ContainerProgram {
  /** Resolves when it has ended; never rejects. */
  readonly ended: Promise<ContainerExit>;
  /** The exit of a program that could not start. */
  readonly failed?: ContainerExit | undefined;
  /** `SIGKILL` ends it for certain. */
  signal(name: NodeJS.Signals): void;
  /** The words that run another program in its namespaces; undefined where none can be. */
  readonly exec?: ExecBeside | undefined;
  /** Bytes that it has in file systems of its own, but for volumes and logs. */
  readonly usage?: (() => Promise<number>) | undefined;
  /** Its standard input, where it has one that stays open. */
  readonly stdin?: Writable | undefined;
  /** Sets the size of its terminal, where it has one. */
  readonly resize?: ((size: TerminalSize) => void) | undefined;
}

/** Before and with a program and its arguments. @throws {Error} where the container has not begun. */
export type ExecBeside = (command: readonly string[]) => Promise<readonly string[]>;

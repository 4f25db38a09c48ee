import type { ContainerExit } from '../../controllers/kubelet/container-runtime.ts';
import type { ContainerLog } from './container-log.ts';
import type { ContainerProgram } from '../programs/program.ts';

/** Commands that need no process, by themselves or as the only one that a shell is given; undefined for others. */
export function builtInCommand([program = '', argument = '', script]: readonly string[]):
  ContainerProgram | undefined {
  const name = program.slice(program.lastIndexOf('/') + 1);
  if ((name === 'sh' || name === 'bash') && argument === '-c' && script !== undefined) {
    const words = script
      .trim()
      .replace(/^exec /, '')
      .split(/ +/);
    return words.length <= 2 ? builtInCommand(words) : undefined;
  }
  if (name === 'pause') return new Waiting(undefined, 0);
  if (name === 'true') return new Waiting(0, undefined);
  if (name === 'false') return new Waiting(0, undefined, 1);
  if (name !== 'sleep') return undefined;
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(argument) ?? [];
  if (amount !== undefined) return new Waiting(Number(amount) * (units[unit] ?? 1000), undefined);
  return /^inf(?:inity)?$/.test(argument) ? new Waiting(undefined, undefined) : undefined;
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** setTimeout's limit. */
const maxTimeoutMs = 2 ** 31 - 1;

/** Sleeps. */
class Waiting implements ContainerProgram {
  readonly ended: Promise<ContainerExit>;
  readonly #onTerm: number | undefined;
  readonly #end: (exit: ContainerExit) => void;
  readonly #timer: NodeJS.Timeout | undefined;

  /** @param onTerm the exit code by SIGTERM; undefined: as process 1 without a handler it does not hear it. */
  constructor(milliseconds: number | undefined, onTerm: number | undefined, exitCode = 0) {
    const ended = Promise.withResolvers<ContainerExit>();
    this.ended = ended.promise;
    this.#end = ended.resolve;
    this.#onTerm = onTerm;
    this.#timer =
      milliseconds === undefined
        ? undefined
        : setTimeout(() => ended.resolve({ exitCode }), Math.min(milliseconds, maxTimeoutMs));
  }

  signal(name: NodeJS.Signals): void {
    if (name !== 'SIGKILL' && this.#onTerm === undefined) return;
    clearTimeout(this.#timer);
    this.#end({ exitCode: name === 'SIGKILL' ? 137 : (this.#onTerm ?? 0) });
  }
}

/** A command that would need `--containers=processes`. */
export function refusedCommand(words: readonly string[], log: ContainerLog): ContainerProgram {
  log.write('stderr', Buffer.from(`${refusal(words)}\n`));
  const failed = { exitCode: 127, reason: 'StartError', message: refusal(words) };
  return { failed, ended: Promise.resolve(failed), signal: () => undefined };
}

/** Why a command is not run. */
export function refusal([program = '']: readonly string[]): string {
  return `exec: "${program}": not a built-in program: servicenet up runs programs of this machine with --containers=processes, and a server instead of an image with --image NAME=server`;
}

import { type ChildProcess, fork } from 'node:child_process';
import type { Logger } from 'pino';
import { checkStreams } from '../../host/local-host.ts';
import type { ContainerExit } from '../../controllers/kubelet/container-runtime.ts';
import type { PodResponses } from '../pod-server.ts';
import type { ContainerProgram, ProgramContainer } from '../program.ts';
import {
  errorOf,
  failureOf,
  type FromPrograms,
  isFromPrograms,
  type Outcome,
  type Question,
  type ToPrograms,
  type WantedProgram,
} from './messages.ts';

/** What a program asks of its container while it runs. */
export type Answers = Pick<ProgramContainer, 'write' | 'readFile' | 'resolvConf' | 'exec'>;

interface Run extends Answers {
  readonly started: PromiseWithResolvers<undefined>;
  readonly ended: PromiseWithResolvers<ContainerExit>;
}

export interface BuiltInProgramsOptions {
  /** The file that the process runs: it calls `servePrograms`. */
  readonly entry: string;
  readonly log: Logger;
  /** Called with what stand-ins have answered. */
  readonly onResponses: (responses: PodResponses) => void;
}

/** By SIGKILL, as the kernel ends a process that needs too much memory. */
const killed: ContainerExit = { exitCode: 137 };

/**
 * The built-in programs of all containers, in a process of their own: what clients send to them cannot harm the kubelet,
 * the agents, DNS and the router. Where that process ends, its containers have ended, and the next start makes another
 * one.
 */
export class BuiltInPrograms {
  readonly #options: BuiltInProgramsOptions;
  #process: ChildProcess | undefined;
  #runs = new Map<number, Run>();
  #count = 0;

  constructor(options: BuiltInProgramsOptions) {
    this.#options = options;
  }

  /** Starts a program. @throws the system's error. */
  async start(wanted: WantedProgram, answers: Answers): Promise<ContainerProgram> {
    const id = ++this.#count;
    const run: Run = { ...answers, started: Promise.withResolvers(), ended: Promise.withResolvers() };
    this.#process ??= this.#fork();
    this.#runs.set(id, run);
    this.#send({ to: 'start', id, wanted });
    await run.started.promise;
    return {
      ended: run.ended.promise,
      signal: (signal) => this.#send({ to: 'signal', id, signal }),
      setHealthy: (healthy) => this.#send({ to: 'setHealthy', id, healthy }),
    };
  }

  #fork(): ChildProcess {
    const { entry, log } = this.#options;
    const child = fork(entry, { serialization: 'advanced' });
    checkStreams(child);
    child.on('message', (message) => {
      if (isFromPrograms(message)) this.#hear(message);
    });
    child.once('error', (error) =>
      log.error({ err: error }, 'cannot start the process of built-in programs'),
    );
    // `disconnect` comes behind the last message, also where it could not be started.
    child.once('disconnect', () => {
      if (this.#process === child) this.#process = undefined;
      const runs = [...this.#runs.values()];
      this.#runs = new Map();
      log.error(
        { reason: 'ProgramsEnded', containers: runs.length },
        'the process of built-in programs has ended: its containers start again',
      );
      for (const { started, ended } of runs) {
        started.reject(new Error('the process of built-in programs has ended'));
        ended.resolve(killed);
      }
      child.kill('SIGKILL');
    });
    return child;
  }

  #send(message: ToPrograms): void {
    // One that has ended hears nothing more: its runs end with it.
    this.#process?.send(message, () => undefined);
  }

  #hear(message: FromPrograms): void {
    if (message.from === 'responses') {
      this.#options.onResponses(message.responses);
      return;
    }
    const { id } = message;
    const run = this.#runs.get(id);
    if (run === undefined) return;
    switch (message.from) {
      case 'started': {
        const { failure } = message;
        if (failure === undefined) run.started.resolve(undefined);
        else {
          run.started.reject(errorOf(failure));
          this.#runs.delete(id);
        }
        return;
      }
      case 'ended':
        this.#runs.delete(id);
        // Behind this, nothing says any more that it has started.
        run.started.resolve(undefined);
        run.ended.resolve(message.exit);
        return;
      case 'printed':
        run.write(message.stream, message.text);
        return;
      case 'asked': {
        const { question, what } = message;
        const reply = (outcome: Outcome): void => this.#send({ to: 'answer', id, question, ...outcome });
        answerTo(run, what).then(
          (result) => reply({ result }),
          (error: unknown) => reply({ failure: failureOf(error) }),
        );
      }
    }
  }
}

async function answerTo(run: Answers, what: Question): Promise<unknown> {
  switch (what.ask) {
    case 'file':
      return await run.readFile(what.path);
    case 'resolv.conf':
      return await run.resolvConf();
    case 'exec':
      return await run.exec(what.command);
  }
}

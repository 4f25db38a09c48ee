/**
 * Kubernetes' test image agnhost, as far as tutorials use it: three of its commands as programs of ours. None is loaded
 * before the first container runs it.
 */
import type {
  ContainerProgram,
  ProgramContainer,
  ProgramImage,
  ProgramImages,
} from '../emulation/program.ts';
import { errorMessage } from '../objects/status.ts';
import { AgnhostRun } from './run.ts';

/** Resolves when it serves. */
type Command = (run: AgnhostRun) => void | Promise<void>;

const commands: Readonly<Record<string, () => Promise<Command>>> = {
  netexec: async () => (await import('./netexec.ts')).netexec,
  guestbook: async () => (await import('./guestbook.ts')).guestbook,
  pause: () => Promise.resolve(pause),
};

/** Without a quotation mark: a script says it, too. */
const advice =
  'the built-in agnhost has netexec, guestbook and pause, as the command of a container; for all others: servicenet up --image registry.k8s.io/e2e-test-images/agnhost=/path/to/agnhost';

/** The images that are programs of ours. */
export const guestImages: ProgramImages = {
  byName: new Map([['agnhost', agnhost()]]),
  byRepository: new Map(
    ['registry.k8s.io', 'k8s.gcr.io'].map((registry) => [`${registry}/e2e-test-images/agnhost`, agnhost()]),
  ),
};

function agnhost(): ProgramImage {
  return {
    entrypoint: '/agnhost',
    commands: ['/agnhost', 'agnhost'],
    start: startAgnhost,
    script: `#!/bin/sh\necho '${advice}' >&2\nexit 1\n`,
  };
}

/** Runs agnhost in this process: `pause` where no command is named. Another one fails, and says which there are. */
async function startAgnhost(
  [, name = 'pause', ...args]: readonly string[],
  container: ProgramContainer,
): Promise<ContainerProgram> {
  const run = new AgnhostRun(container, args);
  try {
    const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (load === undefined) throw new Error(`Error: unknown command "${name}": ${advice}`);
    const command = await load();
    await command(run);
  } catch (error) {
    container.write('stderr', `${errorMessage(error)}\n`);
    run.end(1);
  }
  return run.asProgram();
}

/** Waits for a signal (test/images/agnhost/pause). */
function pause(run: AgnhostRun): void {
  run.print('Paused\nSignals registered');
  run.onSignal = (name) => {
    run.print(`exiting because of signal "${name === 'SIGINT' ? 'interrupt' : 'terminated'}"`);
    run.end(name === 'SIGINT' ? 1 : 2);
  };
}

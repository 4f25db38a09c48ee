import type { RunConfig } from '../config/run.ts';
import { askControl, controlSocketPath } from '../emulation/control-socket.ts';
import { createLog } from '../telemetry/log.ts';
import { runProgram } from './run-program.ts';
import { untilSignal } from './signals.ts';

/**
 * Runs a program of this machine in the cluster network of an `up`, with the input and output of this process.
 *
 * @returns its exit code.
 * @throws {Error} where there is no such `up`, or no such place in its network.
 */
export async function runProgramInside({ kubeconfigPath, where, program }: RunConfig): Promise<number> {
  const place = await askControl(controlSocketPath(kubeconfigPath), where);
  const signal = untilSignal(createLog({ level: 'silent', format: 'json' }));
  try {
    return await runProgram({
      program: [...place.words, ...program],
      kubeconfig: kubeconfigPath,
      interrupted: signal.received,
      failure: new Promise<never>(() => undefined),
    });
  } finally {
    signal.release();
    place.end();
  }
}

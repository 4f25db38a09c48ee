import { Writable } from 'node:stream';
import type { Clock } from '../../client/clock.ts';
import type { Container, LifecycleHandler, Pod } from '../../objects/types/core.generated.ts';
import { askHttp } from './ask-probe.ts';
import type { ContainerRuntime } from './container-runtime.ts';
import { errorMessage } from '../../objects/error-message.ts';

/**
 * Runs a postStart or preStop handler to its end (pkg/kubelet/lifecycle/handlers.go).
 *
 * @returns why it failed, in the kubelet's words; undefined: it did not.
 */
export async function runHook(
  runtime: ContainerRuntime,
  clock: Clock,
  pod: Pod,
  container: Container,
  { exec, httpGet, sleep }: LifecycleHandler,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    if (sleep !== undefined) {
      await clock.sleep(sleep.seconds * 1000, signal);
      return undefined;
    }
    if (exec !== undefined) {
      const { command = [] } = exec;
      const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
      const code = await runtime.exec(pod, container.name, command, {
        stdout: nothing,
        stderr: nothing,
        signal,
      });
      return code === 0 ? undefined : `command '${command.join(' ')}' exited with ${code}`;
    }
    if (httpGet !== undefined) {
      const { success, output } = await askHttp(runtime, pod, container, httpGet, signal);
      return success ? undefined : output;
    }
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

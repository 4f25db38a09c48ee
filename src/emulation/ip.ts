import { ProgramMissingError } from '../host/host.ts';
import { run } from '../host/run.ts';

/** The folder of `ip netns`. */
export const namespaceFolder = '/run/netns';

/**
 * Runs lines of `ip -batch` (package iproute2), in the namespace of this process or in a named one.
 *
 * @throws {Error} with the message of `ip` about the line that failed; lines before it were done.
 */
export async function ip(lines: readonly string[], namespace?: string): Promise<void> {
  const inside = namespace === undefined ? [] : ['-n', namespace];
  const input = `${lines.join('\n')}\n`;
  const { exitCode, stderr } = await run('ip', [...inside, '-batch', '-'], { input }).catch(
    (error: unknown) => {
      if (!(error instanceof ProgramMissingError)) throw error;
      throw new Error('there is no ip: install the package iproute2', { cause: error });
    },
  );
  if (exitCode === 0) return;
  const [said = ''] = stderr.split('\n');
  const [, line = ''] = /-:(\d+)/.exec(stderr) ?? [];
  throw new Error(`ip ${lines[Number(line) - 1] ?? ''}: ${said}`);
}

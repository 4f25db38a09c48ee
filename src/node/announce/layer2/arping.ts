import { type Host, ProgramMissingError } from '../../../host/host.ts';

/** Why neighbours were not told: a reason word, and what to do. */
export interface ArpingProblem {
  readonly reason: 'NoArping' | 'ReannounceRefused';
  readonly message: string;
  readonly error: unknown;
}

/**
 * Tells neighbours by the program arping that an interface has addresses; those of IPv6 the kernel announces itself. It
 * needs the right NET_RAW.
 *
 * @returns undefined: all were told.
 */
export async function arpingAll(
  host: Host,
  name: string,
  addresses: readonly string[],
): Promise<ArpingProblem | undefined> {
  for (const address of addresses.filter((one) => !one.includes(':'))) {
    try {
      const { exitCode, stderr } = await host.exec('arping', ['-U', '-c', '1', '-I', name, address]);
      if (exitCode !== 0 && stderr !== '') throw new Error(stderr.trim());
    } catch (error) {
      if (error instanceof ProgramMissingError) {
        const message =
          'there is no program arping: install the package iputils-arping, or do without --arping';
        return { reason: 'NoArping', message, error };
      }
      return { reason: 'ReannounceRefused', message: 'arping fails: it needs the right NET_RAW', error };
    }
  }
  return undefined;
}

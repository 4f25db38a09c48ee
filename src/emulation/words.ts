import type { Place } from './calls.ts';
import { namespaceFolder } from './ip.ts';

/**
 * The words before a program that runs at a place.
 *
 * @param enter those that lead into the first namespaces.
 * @param folder where the program begins.
 */
export function wordsAt(enter: readonly string[], place: Place, folder = process.cwd()): readonly string[] {
  return [
    ...enter,
    '--',
    // Without this, the end of nsenter would leave the program.
    ...['setpriv', '--pdeathsig', 'TERM'],
    ...['nsenter', `--net=${namespaceFolder}/${place.namespace}`, '--'],
    // A mount namespace begins at its root.
    ...['sh', '-c', 'cd "$0" && exec "$@"', folder],
  ];
}

import type { Place } from './calls.ts';
import { namespaceFolder } from './ip.ts';

/** The KUBECONFIG of programs inside. It is in a file system of the network, and ends with it. */
export const insideKubeconfigPath = '/run/kubeconfig';

/**
 * The command line before a program that runs at a place.
 *
 * @param enter those that lead into the first namespaces.
 * @param folder where the program begins.
 */
export function wordsAt(enter: readonly string[], place: Place, folder: string): readonly string[] {
  const { namespace, resolvConf } = place;
  return [
    // Without these, the program would outlive its parent or nsenter.
    ...endWithParent,
    ...enter,
    '--',
    ...endWithParent,
    ...['nsenter', `--net=${namespaceFolder}/${namespace}`, '--'],
    ...(resolvConf === undefined ? [] : ['unshare', '--mount', 'sh', '-c', withResolvConf, resolvConf]),
    // A mount namespace begins at its root.
    ...['sh', '-c', 'cd "$0" && exec "$@"', folder, 'env', `KUBECONFIG=${insideKubeconfigPath}`],
  ];
}

const endWithParent = ['setpriv', '--pdeathsig', 'TERM'];

/** The file may be a link into /run, which is empty inside. */
const withResolvConf = `target=$(readlink -m /etc/resolv.conf)
if [ ! -e "$target" ]; then mkdir -p "\${target%/*}" && : >"$target"; fi
mount --bind "$0" "$target" && exec "$@"`;

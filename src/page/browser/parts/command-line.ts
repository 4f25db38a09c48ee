import type { ClusterInfo } from '../../messages.ts';

/** A word of a shell, quoted where it has to be. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** A command line. */
export function commandLine(...words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

/** A command line of kubectl that asks the cluster which the page shows. */
export function kubectlLine(
  cluster: Pick<ClusterInfo, 'clusterFlags'> | undefined,
  ...words: readonly string[]
): string {
  const flags = cluster?.clusterFlags ?? [];
  // It has no flag for the file of a token.
  return commandLine('kubectl', ...(flags.includes('--token-file') ? [] : flags), ...words);
}

/** A word of a shell, quoted where it has to be. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** A command line. */
export function commandLine(...words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

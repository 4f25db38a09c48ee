/** nft refused something, or could not do it. */
export class NftError extends Error {
  override readonly name = 'NftError';

  /** @param said the error message of nft, which repeats the whole input: its first lines are kept. */
  static of(said: string, command = 'nft'): NftError {
    return new NftError(`${command}: ${firstLines(said)}`);
  }
}

function firstLines(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines
    .slice(0, 3)
    .map((line) => line.slice(0, 300))
    .join('; ');
}

import { addressBits, parseCidr } from '../../objects/address.ts';

/**
 * The same addresses without ranges that lie in others: an interval set of nft refuses these. A range of one address is
 * written as the address, as nft lists it.
 *
 * @param cidrs of one family, in canonical form.
 */
export function disjointRanges(cidrs: readonly string[]): readonly string[] {
  const parsed = cidrs
    .flatMap((cidr) => parseCidr(cidr) ?? [])
    .toSorted((a, b) => a.prefixLength - b.prefixLength);
  const kept: typeof parsed = [];
  for (const range of parsed) {
    const bits = addressBits(range.family);
    const isCovered = kept.some(({ network, prefixLength }) => {
      const hostBits = BigInt(bits - prefixLength);
      return network >> hostBits === range.network >> hostBits;
    });
    if (!isCovered) kept.push(range);
  }
  return kept.map(({ canonical, family, prefixLength }) =>
    prefixLength === addressBits(family) ? canonical.slice(0, canonical.indexOf('/')) : canonical,
  );
}

import type { Host } from '../../host/host.ts';
import { type IPFamily, parseAddress } from '../../objects/address.ts';
import { isRecord } from '../../objects/json.ts';

/** The node's own address of each family, where routes lead to; a family without one cannot be announced. */
export type NextHops = Readonly<Partial<Record<IPFamily, string>>>;

/**
 * The next hops of a session: its own end, and for the other family an address of the same interface, since routers take
 * only next hops that they reach on the link to the peer.
 *
 * @param local the node's end of the session.
 * @throws {Error} where `ip` fails.
 */
export async function nextHopsOf(host: Host, local: string): Promise<NextHops> {
  const { exitCode, stdout, stderr } = await host.exec('ip', ['-json', 'address', 'show']);
  if (exitCode !== 0) throw new Error(`ip address show: ${stderr.trim()}`);
  const links: unknown = JSON.parse(stdout);
  return chooseNextHops(Array.isArray(links) ? links : [], local);
}

/** @param links as `ip -json address show` prints them. */
export function chooseNextHops(links: readonly unknown[], local: string): NextHops {
  const own = parseAddress(local);
  if (own === undefined) return {};
  const usable = links
    .map((link) => usableAddresses(link))
    .find((addresses) => addresses.some(({ value, family }) => value === own.value && family === own.family));
  const other = usable?.find(({ family }) => family !== own.family);
  return {
    [own.family]: own.canonical,
    ...(other === undefined ? {} : { [other.family]: other.canonical }),
  };
}

/** Addresses of an interface that others reach, and that stay: announced ones are deprecated. */
function usableAddresses(link: unknown) {
  const listed: unknown = isRecord(link) ? link['addr_info'] : undefined;
  if (!Array.isArray(listed)) return [];
  return listed.flatMap((entry: unknown) => {
    if (!isRecord(entry) || entry['scope'] !== 'global') return [];
    if (entry['deprecated'] === true || entry['temporary'] === true) return [];
    return typeof entry['local'] === 'string' ? (parseAddress(entry['local']) ?? []) : [];
  });
}

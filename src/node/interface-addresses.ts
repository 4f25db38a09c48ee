import type { Host } from '../host/host.ts';
import { type ParsedAddress, parseAddress } from '../objects/address.ts';
import { isRecord } from '../objects/json.ts';

/** The addresses of all interfaces of a machine, by `ip` (package iproute2). @throws {Error} where it fails. */
export async function interfaceAddresses(host: Host): Promise<readonly ParsedAddress[]> {
  const { exitCode, stdout, stderr } = await host.exec('ip', ['-json', 'address', 'show']);
  if (exitCode !== 0) throw new Error(`ip address show: ${stderr.trim()}`);
  const links: unknown = JSON.parse(stdout);
  if (!Array.isArray(links)) return [];
  return links.flatMap((link: unknown) => {
    const addresses: unknown = isRecord(link) ? link['addr_info'] : undefined;
    if (!Array.isArray(addresses)) return [];
    return addresses.flatMap((address: unknown) => {
      const local: unknown = isRecord(address) ? address['local'] : undefined;
      return typeof local === 'string' ? (parseAddress(local) ?? []) : [];
    });
  });
}

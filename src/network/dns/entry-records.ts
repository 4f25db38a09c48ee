import { addressType, type AddressRecord, type DnsRecord, type SrvRecord } from './records.ts';
import type { ZoneAddress } from './zone.ts';

/** An address and a port that a name leads to. */
export interface Entry {
  /** The name that has this address alone: of the Service, or of one endpoint. */
  readonly target: string;
  readonly address: ZoneAddress;
  /** Undefined: it has no ports. */
  readonly port: number | undefined;
}

/** A or AAAA records: each address of the type once. */
export function addressRecords(
  name: string,
  type: 'A' | 'AAAA',
  ttl: number,
  entries: readonly Entry[],
): AddressRecord[] {
  const records: AddressRecord[] = [];
  const seen = new Set<string>();
  for (const { address } of entries) {
    if (addressType(address.family) !== type || seen.has(address.text)) continue;
    seen.add(address.text);
    records.push({ name, type, ttl, address: address.text });
  }
  return records;
}

/**
 * Each port of each target once, and after them the addresses of the targets. The weight is that of CoreDNS
 * (`plugin.SRV`): 100 shared by all entries, before equal ones are left out.
 */
export function srvRecords(
  name: string,
  ttl: number,
  entries: readonly Entry[],
): { readonly answers: readonly DnsRecord[]; readonly additionals: readonly DnsRecord[] } {
  const answers = new Map<string, SrvRecord>();
  const additionals = new Map<string, AddressRecord>();
  const weight = Math.max(1, Math.floor(100 / entries.length));
  for (const { target, address, port } of entries) {
    if (port === undefined) continue;
    answers.set(`${target}:${port}`, { name, type: 'SRV', ttl, priority: 0, weight, port, target });
    const type = addressType(address.family);
    additionals.set(`${target} ${address.text}`, { name: target, type, ttl, address: address.text });
  }
  return { answers: [...answers.values()], additionals: [...additionals.values()] };
}

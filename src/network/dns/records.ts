import type { IPFamily } from '../../objects/address.ts';

/** A question. Names have no dot at the end, and their labels no dots inside. */
export interface Question {
  /** In the case in which it was asked; "" for the root. */
  readonly name: string;
  /** `A`, `SRV`, …; types without a name are `UNKNOWN_65`. */
  readonly type: string;
}

interface Owned {
  readonly name: string;
  /** Seconds. */
  readonly ttl: number;
}

export interface AddressRecord extends Owned {
  readonly type: 'A' | 'AAAA';
  readonly address: string;
}

/** A record whose value is a name. */
export interface NameRecord extends Owned {
  readonly type: 'CNAME' | 'PTR' | 'NS';
  readonly target: string;
}

/** RFC 2782. */
export interface SrvRecord extends Owned {
  readonly type: 'SRV';
  readonly priority: number;
  readonly weight: number;
  readonly port: number;
  readonly target: string;
}

/** RFC 1035, 3.3.13; times are seconds. */
export interface SoaRecord extends Owned {
  readonly type: 'SOA';
  readonly mname: string;
  readonly rname: string;
  readonly serial: number;
  readonly refresh: number;
  readonly retry: number;
  readonly expire: number;
  readonly minimum: number;
}

export interface TxtRecord extends Owned {
  readonly type: 'TXT';
  /** Up to 255 bytes. */
  readonly text: string;
}

export type DnsRecord = AddressRecord | NameRecord | SrvRecord | SoaRecord | TxtRecord;

/** The answer of the zone to a question. */
export interface Answer {
  readonly rcode: 'NOERROR' | 'NXDOMAIN' | 'REFUSED';
  readonly answers: readonly DnsRecord[];
  readonly authorities: readonly DnsRecord[];
  readonly additionals: readonly DnsRecord[];
  /** The name outside the zone that the last CNAME of `answers` leads to: its addresses follow it. */
  readonly outsideTarget?: string;
}

export function addressType(family: IPFamily): 'A' | 'AAAA' {
  return family === 'IPv4' ? 'A' : 'AAAA';
}

import {
  addressBits,
  formatAddress,
  parseAddress,
  parseCidr,
  type ParsedCidr,
  type IPFamily,
} from '../../objects/address.ts';
import { type Library, member, overload1, overload2, stringParam } from '../overload.ts';
import { boolType, intType, stringType } from '../types.ts';
import { EvaluationError, type OpaqueValue } from '../values.ts';
import { instance, opaque } from './opaque.ts';
import { walk } from '../equality.ts';

const ipType = opaque('net.IP');
const cidrType = opaque('net.CIDR');

class IpValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = ipType;
  readonly family: IPFamily;
  readonly value: bigint;

  constructor(family: IPFamily, value: bigint) {
    this.family = family;
    this.value = value;
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof IpValue && other.family === this.family && other.value === this.value;
  }
}

class CidrValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = cidrType;
  readonly family: IPFamily;
  /** The address as written, bits beyond the prefix included. */
  readonly address: bigint;
  readonly network: bigint;
  readonly prefixLength: number;

  constructor(
    { family, network, prefixLength }: Pick<ParsedCidr, 'family' | 'network' | 'prefixLength'>,
    address: bigint,
  ) {
    this.family = family;
    this.network = network;
    this.prefixLength = prefixLength;
    this.address = address;
  }
  equals(other: OpaqueValue): boolean {
    if (!(other instanceof CidrValue) || other.family !== this.family) return false;
    return other.address === this.address && other.prefixLength === this.prefixLength;
  }
  contains({ family, value }: IpValue): boolean {
    const rest = BigInt(addressBits(this.family) - this.prefixLength);
    return family === this.family && value >> rest === this.network >> rest;
  }
  covers(other: CidrValue): boolean {
    return other.prefixLength >= this.prefixLength && this.contains(new IpValue(other.family, other.network));
  }
}

/** @throws {EvaluationError} with Kubernetes' text. */
function readIp(value: string): IpValue {
  const parsed = parseAddress(value);
  const fail = (why: string) =>
    new EvaluationError(
      `IP Address ${JSON.stringify(value)} parse error during conversion from string: ${why}`,
    );
  if (parsed === undefined) throw fail(`ParseAddr(${JSON.stringify(value)}): unable to parse IP`);
  if (parsed.leadingZeros)
    throw fail(`ParseAddr(${JSON.stringify(value)}): IPv4 field has octet with leading zero`);
  if (parsed.ipv4Mapped) throw fail('IPv4-mapped IPv6 address is not allowed');
  return new IpValue(parsed.family, parsed.value);
}

/** @throws {EvaluationError} */
function readCidr(value: string): CidrValue {
  const parsed = parseCidr(value);
  const address = parseAddress(value.slice(0, value.indexOf('/')));
  if (parsed === undefined || address === undefined || parsed.leadingZeros || parsed.ipv4Mapped) {
    throw new EvaluationError(
      `network address parse error during conversion from string: netip.ParsePrefix(${JSON.stringify(value)})`,
    );
  }
  return new CidrValue(parsed, address.value);
}

function reads(read: (value: string) => unknown): (value: string) => boolean {
  return (value) => {
    try {
      read(value);
      return true;
    } catch (error) {
      if (error instanceof EvaluationError) return false;
      throw error;
    }
  };
}

/** True when `value` is in the network of `prefix`. */
function startsWith({ family, value }: IpValue, prefix4: string, prefix6: string): boolean {
  const cidr = parseCidr(family === 'IPv4' ? prefix4 : prefix6);
  return cidr !== undefined && new CidrValue(cidr, cidr.network).contains(new IpValue(family, value));
}

const isUnspecified = ({ value }: IpValue) => value === 0n;
const isLoopback = (ip: IpValue) => startsWith(ip, '127.0.0.0/8', '::1/128');
const isLinkLocalMulticast = (ip: IpValue) => startsWith(ip, '224.0.0.0/24', 'ff02::/16');
const isLinkLocalUnicast = (ip: IpValue) => startsWith(ip, '169.254.0.0/16', 'fe80::/10');
const isMulticast = (ip: IpValue) => startsWith(ip, '224.0.0.0/4', 'ff00::/8');

function isGlobalUnicast(ip: IpValue): boolean {
  const broadcast = ip.family === 'IPv4' && ip.value === 2n ** 32n - 1n;
  return !broadcast && !isUnspecified(ip) && !isLoopback(ip) && !isMulticast(ip) && !isLinkLocalUnicast(ip);
}

const ip = instance(ipType, IpValue);
const cidr = instance(cidrType, CidrValue);

function ipTest(name: string, run: (value: IpValue) => boolean): Library[number] {
  return [name, [member(overload1(ip, boolType, run))]];
}

/** `ip(…)` and `cidr(…)` (`apiserver/pkg/cel/library/{ip,cidr}.go`). */
export const addressFunctions: Library = [
  [
    'ip',
    [
      overload1(stringParam, ipType, (value, meter) => {
        walk(meter, value);
        return readIp(value);
      }),
      member(overload1(cidr, ipType, ({ family, address }) => new IpValue(family, address))),
    ],
  ],
  ['isIP', [overload1(stringParam, boolType, reads(readIp))]],
  [
    'ip.isCanonical',
    [
      overload1(stringParam, boolType, (value) => {
        const { family, value: address } = readIp(value);
        return formatAddress(family, address) === value;
      }),
    ],
  ],
  ['family', [member(overload1(ip, intType, ({ family }) => (family === 'IPv4' ? 4n : 6n)))]],
  ipTest('isUnspecified', isUnspecified),
  ipTest('isLoopback', isLoopback),
  ipTest('isLinkLocalMulticast', isLinkLocalMulticast),
  ipTest('isLinkLocalUnicast', isLinkLocalUnicast),
  ipTest('isGlobalUnicast', isGlobalUnicast),
  [
    'cidr',
    [
      overload1(stringParam, cidrType, (value, meter) => {
        walk(meter, value);
        return readCidr(value);
      }),
    ],
  ],
  ['isCIDR', [overload1(stringParam, boolType, reads(readCidr))]],
  [
    'containsIP',
    [
      member(overload2(cidr, stringParam, boolType, (range, value) => range.contains(readIp(value)))),
      member(overload2(cidr, ip, boolType, (range, value) => range.contains(value))),
    ],
  ],
  [
    'containsCIDR',
    [
      member(overload2(cidr, stringParam, boolType, (range, value) => range.covers(readCidr(value)))),
      member(overload2(cidr, cidr, boolType, (range, value) => range.covers(value))),
    ],
  ],
  ['prefixLength', [member(overload1(cidr, intType, ({ prefixLength }) => BigInt(prefixLength)))]],
  ['masked', [member(overload1(cidr, cidrType, (value) => new CidrValue(value, value.network)))]],
  [
    'string',
    [
      overload1(ip, stringType, ({ family, value }) => formatAddress(family, value)),
      overload1(
        cidr,
        stringType,
        ({ family, address, prefixLength }) => `${formatAddress(family, address)}/${prefixLength}`,
      ),
    ],
  ],
];

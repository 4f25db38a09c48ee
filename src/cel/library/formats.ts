import {
  addressBits,
  formatAddress,
  parseAddress,
  parseCidr,
  type ParsedCidr,
  type IPFamily,
} from '../../objects/address.ts';
import {
  type Library,
  member,
  overload1,
  overload2,
  stringParam,
  overload0,
  instance,
  opaque,
} from '../overload.ts';
import * as types from '../types.ts';
import { boolType, intType, stringType, listType, optionalType } from '../types.ts';
import {
  EvaluationError,
  type OpaqueValue,
  PlainList,
  PlainMap,
  type Value,
  noValue,
  Optional,
} from '../values.ts';
import { walk } from '../equality.ts';
import { hasFormat } from '../../objects/formats/string-formats.ts';
import {
  isDNS1035Label,
  isQualifiedName,
  isValidLabelValue,
  nameIsDNS1035Label,
  nameIsDNSLabel,
  nameIsDNSSubdomain,
} from '../../objects/names.ts';

/** Kubernetes' functions of texts with a form: addresses, URLs, and formats by their names. */

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

const urlType = opaque('kubernetes.URL');

/** The parts of a URL, not decoded. */
class UrlValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = urlType;
  readonly text: string;
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;

  constructor(value: string, scheme: string, host: string, path: string, query: string) {
    this.text = value;
    this.scheme = scheme;
    this.host = host;
    this.path = path;
    this.query = query;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof UrlValue && other.text === this.text;
  }
}

/** An absolute URL or an absolute path (Go's `url.ParseRequestURI`), or the error. */
function parseUrl(value: string): UrlValue | string {
  if (value === '') return 'empty url';
  if (/[\x00-\x1f\x7f]/.test(value)) return 'net/url: invalid control character in URL';
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(value)?.[1]?.toLowerCase() ?? '';
  const rest = scheme === '' ? value : value.slice(scheme.length + 1);
  if (scheme === '' && value.startsWith(':')) return 'missing protocol scheme';
  const question = rest.indexOf('?');
  const query = question === -1 ? '' : rest.slice(question + 1);
  const body = question === -1 ? rest : rest.slice(0, question);
  if (!body.startsWith('/')) {
    return scheme === '' ? 'invalid URI for request' : new UrlValue(value, scheme, '', '', query);
  }
  const hasAuthority = body.startsWith('//') && (scheme !== '' || !body.startsWith('///'));
  if (!hasAuthority) return wrongEscape(body) ?? new UrlValue(value, scheme, '', escapePath(body), query);
  const slash = body.indexOf('/', 2);
  const authority = slash === -1 ? body.slice(2) : body.slice(2, slash);
  const path = slash === -1 ? '' : body.slice(slash);
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  return wrongHost(host) ?? wrongEscape(path) ?? new UrlValue(value, scheme, host, escapePath(path), query);
}

function wrongHost(host: string): string | undefined {
  if (host.startsWith('[') && !host.includes(']')) return `missing ']' in host`;
  const port = host.startsWith('[') ? host.slice(host.lastIndexOf(']') + 1) : (/:.*$/s.exec(host)?.[0] ?? '');
  if (port !== '' && !/^:\d*$/.test(port)) return `invalid port ${JSON.stringify(port)} after host`;
  const odd = /[ "<>\\^`{|}]/.exec(host)?.[0];
  return odd === undefined ? undefined : `invalid character ${JSON.stringify(odd)} in host name`;
}

function wrongEscape(path: string): string | undefined {
  const odd = /%(?![0-9a-fA-F]{2}).{0,2}/s.exec(path)?.[0];
  return odd === undefined ? undefined : `invalid URL escape ${JSON.stringify(odd)}`;
}

function escapePath(path: string): string {
  return path.replace(/[^A-Za-z0-9\-_.~$&+,/:;=@!'()*%]/gu, (character) => encodeURIComponent(character));
}

function queryMap(query: string): PlainMap {
  const values = new Map<string, Value[]>();
  for (const [key, value] of new URLSearchParams(query)) {
    const list = values.get(key) ?? [];
    list.push(value);
    values.set(key, list);
  }
  return new PlainMap([...values].map(([key, list]): [Value, Value] => [key, new PlainList(list)]));
}

const url = instance(urlType, UrlValue);

function getter(name: string, read: (value: UrlValue) => string): Library[number] {
  return [name, [member(overload1(url, types.stringType, read))]];
}

/** `url(…)` and its functions (`apiserver/pkg/cel/library/urls.go`). */
export const urlFunctions: Library = [
  [
    'url',
    [
      overload1(stringParam, urlType, (value, meter) => {
        walk(meter, value);
        const parsed = parseUrl(value);
        if (typeof parsed !== 'string') return parsed;
        const detail = `parse ${JSON.stringify(value)}: ${parsed}`;
        throw new EvaluationError(`URL parse error during conversion from string: ${detail}`);
      }),
    ],
  ],
  [
    'isURL',
    [
      overload1(stringParam, types.boolType, (value, meter) => {
        walk(meter, value);
        return typeof parseUrl(value) !== 'string';
      }),
    ],
  ],
  getter('getScheme', ({ scheme }) => scheme),
  getter('getHost', ({ host }) => host),
  getter('getHostname', ({ host }) => host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1')),
  getter('getPort', ({ host }) => /:(\d*)$/.exec(host)?.[1] ?? ''),
  getter('getEscapedPath', ({ path }) => path),
  [
    'getQuery',
    [
      member(
        overload1(url, types.mapType(types.stringType, types.listType(types.stringType)), ({ query }) =>
          queryMap(query),
        ),
      ),
    ],
  ],
];

const formatType = opaque('kubernetes.NamedFormat');

class FormatValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = formatType;
  readonly name: string;
  /** The errors of a text. */
  readonly faults: (value: string) => readonly string[];

  constructor(name: string, faults: (value: string) => readonly string[]) {
    this.name = name;
    this.faults = faults;
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof FormatValue && other.name === this.name;
  }
}

function schemaFormat(format: string, fault: string): (value: string) => readonly string[] {
  return (value) => (hasFormat(format, value) ? [] : [fault]);
}

const formats: ReadonlyMap<string, FormatValue> = new Map(
  Object.entries({
    dns1123Label: (value: string) => nameIsDNSLabel(value, false),
    dns1123Subdomain: (value: string) => nameIsDNSSubdomain(value, false),
    dns1035Label: isDNS1035Label,
    qualifiedName: isQualifiedName,
    dns1123LabelPrefix: (value: string) => nameIsDNSLabel(value, true),
    dns1123SubdomainPrefix: (value: string) => nameIsDNSSubdomain(value, true),
    dns1035LabelPrefix: (value: string) => nameIsDNS1035Label(value, true),
    labelValue: isValidLabelValue,
    uri: (value: string) => {
      const parsed = parseUrl(value);
      return typeof parsed === 'string' ? [`parse ${JSON.stringify(value)}: ${parsed}`] : [];
    },
    uuid: schemaFormat('uuid', 'does not match the UUID format'),
    byte: schemaFormat('byte', 'invalid base64'),
    date: schemaFormat('date', 'invalid date'),
    datetime: schemaFormat('date-time', 'invalid datetime'),
  }).map(([name, faults]) => [name, new FormatValue(name, faults)]),
);

const format = instance(formatType, FormatValue);

/** Named formats (`apiserver/pkg/cel/library/format.go`). */
export const formatFunctions: Library = [
  [
    'format.named',
    [
      overload1(stringParam, optionalType(formatType), (name) => {
        const found = formats.get(name);
        return found === undefined ? noValue : new Optional(found);
      }),
    ],
  ],
  ...[...formats].map(([name, value]): Library[number] => [
    `format.${name}`,
    [overload0(formatType, () => value)],
  ]),
  [
    'validate',
    [
      member(
        overload2(format, stringParam, optionalType(listType(stringType)), ({ faults }, value, meter) => {
          walk(meter, value, value);
          const found = faults(value);
          return found.length === 0 ? noValue : new Optional(new PlainList(found));
        }),
      ),
    ],
  ],
];

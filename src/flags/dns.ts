import { parseStrictAddress } from '../objects/address.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../objects/names.ts';
import {
  addresses,
  duration,
  type Given,
  list,
  oneOf,
  readFlags,
  type Table,
  text,
  type Values,
  wholeNumber,
  WrongValue,
} from './readers.ts';
import { clusterFlags, logFlags, metricsAddress, workersFlag } from './shared.ts';

/** The flags of `servicenet dns`. */
export const dnsFlags = {
  cluster: clusterFlags,
  clusterDomain: {
    flag: '--cluster-domain <name>',
    about: 'domain of the cluster',
    default: 'cluster.local',
    read: clusterDomain,
  },
  addresses: {
    flag: '--bind-address <addresses>',
    about: 'answer on these addresses of the machine',
    default: '127.0.0.1',
    read: addresses,
  },
  port: {
    flag: '--port <port>',
    about: 'answer on this port, by UDP and TCP; 53 needs root',
    default: '1053',
    read: wholeNumber(1, 65_535),
  },
  ttlSeconds: {
    flag: '--ttl <seconds>',
    about: 'how long clients may keep an answer, 0 to 3600 seconds',
    default: '5',
    read: wholeNumber(0, 3600),
  },
  pods: {
    flag: '--pods <mode>',
    about:
      'names of Pods, such as 10-244-0-7.default.pod.cluster.local: none; of any address; of Pods of the namespace',
    default: 'disabled',
    ...oneOf('disabled', 'insecure', 'verified'),
  },
  upstreams: {
    flag: '--upstream <servers>',
    about: 'servers for names outside the cluster, and files that list some; "" for none',
    default: '/etc/resolv.conf',
    read: (value) => list(value).map(upstream),
  },
  lameduckMs: {
    flag: '--lameduck <duration>',
    about: 'go on answering for so long after a signal',
    default: '0s',
    read: duration,
  },
  workers: workersFlag,
  metrics: metricsAddress('127.0.0.1:9153'),
  ...logFlags('info'),
} satisfies Table;

/** The configuration of `servicenet dns`. */
export type DnsConfig = Values<typeof dnsFlags>;

/** Checks the flags of `servicenet dns`. @throws {ConfigError} naming the flag and what it takes. */
export function dnsConfig(given: Given): DnsConfig {
  return readFlags(dnsFlags, given);
}

/**
 * A name has 255 bytes (RFC 1035, 3.1): before the domain there can be three labels of 63 letters (endpoint, Service,
 * namespace), `svc`, and the lengths of all.
 */
const maxDomain = 57;

/** In lower case, without a dot at the end. */
function clusterDomain(value: unknown): string {
  const domain = text(value).toLowerCase().replace(/\.$/, '');
  const isValid = isDNS1123Subdomain(domain).length === 0 && domain.length <= maxDomain;
  if (isValid && domain.split('.').every((label) => isDNS1123Label(label).length === 0)) return domain;
  throw new WrongValue(`must be a DNS name of at most ${maxDomain} characters, such as cluster.local`);
}

/** A server, or the absolute path of a file like resolv.conf. */
function upstream(
  given: string,
): { readonly address: string; readonly port: number } | { readonly file: string } {
  if (given.startsWith('/')) return { file: given };
  if (parseStrictAddress(given) !== undefined) return { address: given, port: 53 };
  const [, v6, v4, port = ''] = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(given) ?? [];
  const parsed = parseStrictAddress(v6 ?? v4 ?? '');
  if (parsed !== undefined && Number(port) >= 1 && Number(port) <= 65_535) {
    return { address: parsed.canonical, port: Number(port) };
  }
  throw new WrongValue(
    `"${given}" is not an address such as 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:53, nor the path of a file`,
  );
}

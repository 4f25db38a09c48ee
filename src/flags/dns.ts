import { parseStrictAddress } from '../objects/address.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../objects/names.ts';
import { clusterConfig, type ClusterConfig, type LogConfig, logConfig } from './shared.ts';
import { ConfigError, WrongValue } from './readers.ts';
import {
  address,
  bindAddress,
  duration,
  Flags,
  wholeNumber,
  list,
  oneOf,
  someList,
  text,
} from './readers.ts';

/** The configuration of `servicenet dns`: validated, frozen. */
export interface DnsConfig extends LogConfig {
  readonly cluster: ClusterConfig;
  /** Lower case, no dot at the end. */
  readonly clusterDomain: string;
  readonly addresses: readonly string[];
  readonly port: number;
  /** Seconds. */
  readonly ttl: number;
  readonly pods: 'disabled' | 'insecure' | 'verified';
  /** Servers, and absolute paths of files like resolv.conf. */
  readonly upstreams: readonly (
    { readonly address: string; readonly port: number } | { readonly file: string }
  )[];
  /** Milliseconds. */
  readonly lameduck: number;
  /** Where `/healthz`, `/readyz` and `/metrics` answer; undefined: nowhere. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
}

/**
 * Checks the flags of `servicenet dns`.
 *
 * @param isTerminal whether standard error is one: then logs are pretty by default.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function dnsConfig(options: Readonly<Record<string, unknown>>, isTerminal: boolean): DnsConfig {
  const flags = new Flags(options);
  return Object.freeze({
    cluster: clusterConfig(flags),
    clusterDomain: flags.read('clusterDomain', clusterDomain),
    addresses: flags.read('bindAddress', addresses),
    port: flags.read('port', wholeNumber(1, 65_535)),
    ttl: flags.read('ttl', wholeNumber(0, 3600)),
    pods: flags.read('pods', oneOf(['disabled', 'insecure', 'verified'])),
    upstreams: flags.read('upstream', list).map(upstream),
    lameduck: flags.read('lameduck', duration),
    metrics: flags.read('metricsBindAddress', bindAddress),
    ...logConfig(flags, isTerminal),
  });
}

/**
 * A name has 255 bytes (RFC 1035, 3.1): before the domain there can be three labels of 63 letters (endpoint, Service,
 * namespace), `svc`, and the lengths of all.
 */
const maxDomain = 57;

function clusterDomain(value: unknown): string {
  const domain = text(value).toLowerCase().replace(/\.$/, '');
  const isValid = isDNS1123Subdomain(domain).length === 0 && domain.length <= maxDomain;
  if (isValid && domain.split('.').every((label) => isDNS1123Label(label).length === 0)) return domain;
  throw new WrongValue(`must be a DNS name of at most ${maxDomain} characters, such as cluster.local`);
}

function addresses(value: unknown): readonly string[] {
  return [...new Set(someList(value).map(address))];
}

function upstream(given: string): DnsConfig['upstreams'][number] {
  if (given.startsWith('/')) return { file: given };
  if (parseStrictAddress(given) !== undefined) return { address: given, port: 53 };
  const [, v6, v4, port = ''] = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(given) ?? [];
  const parsed = parseStrictAddress(v6 ?? v4 ?? '');
  if (parsed !== undefined && Number(port) >= 1 && Number(port) <= 65_535) {
    return { address: parsed.canonical, port: Number(port) };
  }
  throw new ConfigError(
    `--upstream: "${given}" is not an address such as 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:53, nor the path of a file`,
  );
}

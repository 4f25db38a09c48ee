import { isDNS1123Subdomain } from '../objects/names.ts';
import { clusterConfig, type ClusterConfig, type LogConfig, logConfig } from './shared.ts';
import { WrongValue } from './readers.ts';
import {
  address,
  bindAddress,
  duration,
  Flags,
  list,
  oneOf,
  optional,
  someList,
  text,
  textOf,
  wholeNumber,
  yesOrNo,
} from './readers.ts';

/** The configuration of `servicenet router`: validated, frozen. */
export interface RouterConfig extends LogConfig {
  readonly cluster: ClusterConfig;
  readonly addresses: readonly string[];
  readonly httpPort: number;
  readonly httpsPort: number;
  /** The class that the annotation of an Ingress names. */
  readonly ingressClass: string;
  /** Whether Ingresses that name no class are served. */
  readonly withoutClass: boolean;
  readonly routes: boolean;
  readonly routerName: string;
  /** For Routes with a subdomain and no host; "" for none. */
  readonly domain: string;
  readonly canonicalHostname: string;
  readonly allowedDomains: readonly string[];
  readonly deniedDomains: readonly string[];
  readonly wildcards: boolean;
  readonly ownership: boolean;
  /** `namespace/name` of Secrets and Services. */
  readonly defaultCertificate: string | undefined;
  readonly publishService: string | undefined;
  readonly publishAddresses: readonly string[];
  readonly leaseNamespace: string;
  readonly forwardedPolicy: 'append' | 'replace' | 'if-none' | 'never';
  readonly accessLog: boolean;
  /** Milliseconds, as are the next three. */
  readonly connectTimeout: number;
  readonly backendTimeout: number;
  readonly lameduck: number;
  readonly drainTimeout: number;
  /** Where `/healthz`, `/readyz` and `/metrics` answer; undefined: nowhere. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
}

/**
 * Checks the flags of `servicenet router`.
 *
 * @param isTerminal whether standard error is one: then logs are pretty by default.
 * @throws {ConfigError} naming the flag and what it takes.
 */
export function routerConfig(options: Readonly<Record<string, unknown>>, isTerminal: boolean): RouterConfig {
  const flags = new Flags(options);
  return Object.freeze({
    cluster: clusterConfig(flags),
    addresses: flags.read('bindAddress', (value) => [...new Set(someList(value).map(address))]),
    httpPort: flags.read('httpPort', wholeNumber(1, 65_535)),
    httpsPort: flags.read('httpsPort', wholeNumber(1, 65_535)),
    ingressClass: flags.read('ingressClass', textOf()),
    withoutClass: flags.read('watchIngressWithoutClass', yesOrNo),
    routes: flags.read('routes', (value) => value !== false),
    routerName: flags.read('routerName', textOf()),
    domain: flags.read('routerDomain', domain),
    canonicalHostname: flags.read('canonicalHostname', domain),
    allowedDomains: flags.read('allowedDomains', list).map(domain),
    deniedDomains: flags.read('deniedDomains', list).map(domain),
    wildcards: flags.read('allowWildcardRoutes', yesOrNo),
    ownership: !flags.read('disableNamespaceOwnershipCheck', yesOrNo),
    defaultCertificate: flags.read('defaultCertificate', optional(objectKey)),
    publishService: flags.read('publishService', optional(objectKey)),
    publishAddresses: flags.read('publishAddress', list),
    leaseNamespace: flags.read('leaseNamespace', textOf()),
    forwardedPolicy: flags.read('forwardedHeaders', oneOf(['append', 'replace', 'if-none', 'never'])),
    accessLog: flags.read('accessLog', yesOrNo),
    connectTimeout: flags.read('connectTimeout', duration),
    backendTimeout: flags.read('backendTimeout', duration),
    lameduck: flags.read('lameduck', duration),
    drainTimeout: flags.read('drainTimeout', duration),
    metrics: flags.read('metricsBindAddress', bindAddress),
    ...logConfig(flags, isTerminal),
  });
}

function domain(value: unknown): string {
  const name = text(value).toLowerCase().replace(/\.$/, '');
  if (name === '' || isDNS1123Subdomain(name).length === 0) return name;
  throw new WrongValue('must be a DNS name such as apps.example.com');
}

function objectKey(value: unknown): string {
  const key = text(value);
  if (/^[a-z0-9-]+\/[a-z0-9.-]+$/.test(key)) return key;
  throw new WrongValue('must be a namespace and a name, such as default/tls');
}

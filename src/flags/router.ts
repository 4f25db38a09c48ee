import { isDNS1123Subdomain } from '../objects/names.ts';
import {
  addresses,
  boolean,
  duration,
  type Given,
  list,
  nonEmpty,
  oneOf,
  optional,
  readFlags,
  type Table,
  text,
  unlessNegated,
  type Values,
  wholeNumber,
  WrongValue,
} from './readers.ts';
import { clusterFlags, logFlags, metricsAddress, workersFlag } from './shared.ts';

/** The flags of `servicenet router`. */
export const routerFlags = {
  cluster: clusterFlags,
  addresses: {
    flag: '--bind-address <addresses>',
    about: 'answer on these addresses of the machine',
    default: '127.0.0.1',
    read: addresses,
  },
  httpPort: {
    flag: '--http-port <port>',
    about: 'answer requests without TLS on this port; 80 needs root',
    default: '8080',
    read: wholeNumber(1, 65_535),
  },
  httpsPort: {
    flag: '--https-port <port>',
    about: 'answer TLS on this port; 443 needs root',
    default: '8443',
    read: wholeNumber(1, 65_535),
  },
  ingressClass: {
    flag: '--ingress-class <name>',
    about:
      'serve Ingresses whose annotation kubernetes.io/ingress.class is this, beside those of our IngressClasses',
    default: 'servicenet',
    read: nonEmpty,
  },
  withoutClass: {
    flag: '--watch-ingress-without-class',
    about: 'serve Ingresses that name no class, too',
    default: false,
    read: boolean,
  },
  routes: { flag: '--no-routes', about: 'do not serve Routes', read: unlessNegated },
  gateways: { flag: '--no-gateway-api', about: 'do not serve Gateways', read: unlessNegated },
  routerName: {
    flag: '--router-name <name>',
    about: 'name of this router in the status of Routes and of its Lease',
    default: 'default',
    read: nonEmpty,
  },
  domain: {
    flag: '--router-domain <name>',
    about: 'domain of Routes that have a subdomain and no host',
    default: '',
    read: domain,
  },
  canonicalHostname: {
    flag: '--canonical-hostname <name>',
    about: 'what the DNS names of Routes point to, for their status',
    default: '',
    read: domain,
  },
  allowedDomains: {
    flag: '--allowed-domains <names>',
    isList: true,
    about: 'admit Routes of these domains only',
    default: '',
    read: domains,
  },
  deniedDomains: {
    flag: '--denied-domains <names>',
    isList: true,
    about: 'admit no Routes of these domains',
    default: '',
    read: domains,
  },
  wildcards: {
    flag: '--allow-wildcard-routes',
    about: 'admit Routes with the wildcard policy Subdomain',
    default: false,
    read: boolean,
  },
  ownership: {
    flag: '--disable-namespace-ownership-check',
    about: 'let namespaces share hosts of Ingresses and Routes, each with paths of its own',
    default: false,
    read: (value) => !boolean(value),
  },
  defaultCertificate: {
    flag: '--default-certificate <secret>',
    about: 'namespace/name of the Secret with the certificate for hosts that have none',
    read: optional(objectKey),
  },
  publishService: {
    flag: '--publish-service <service>',
    about: 'namespace/name of the Service whose addresses Ingresses get in their status',
    read: optional(objectKey),
  },
  publishAddresses: {
    flag: '--publish-address <addresses>',
    about: 'addresses and host names that Ingresses get instead',
    default: '',
    read: list,
  },
  leaseNamespace: {
    flag: '--lease-namespace <name>',
    about: 'where the Lease of the one that writes status is',
    default: 'servicenet-system',
    read: nonEmpty,
  },
  forwardedPolicy: {
    flag: '--forwarded-headers <policy>',
    about: 'what to do with X-Forwarded-* and Forwarded of clients',
    default: 'replace',
    ...oneOf('append', 'replace', 'if-none', 'never'),
  },
  maxClientRequests: {
    flag: '--max-client-requests <number>',
    about: 'requests and tunnels that one client address may have at a time; 0: any number',
    default: '1000',
    read: wholeNumber(0, 1_000_000),
  },
  upgrades: {
    flag: '--upgrade-protocols <names>',
    about: 'protocols that clients may change their connection to (the header Upgrade)',
    default: 'websocket',
    read: (value) => list(value).map((name) => name.toLowerCase()),
  },
  accessLog: { flag: '--access-log', about: 'log each request', default: false, read: boolean },
  connectTimeoutMs: {
    flag: '--connect-timeout <duration>',
    about: 'time to connect to a backend',
    default: '5s',
    read: duration,
  },
  backendTimeoutMs: {
    flag: '--backend-timeout <duration>',
    about: 'how long a backend may be silent',
    default: '60s',
    read: duration,
  },
  lameduckMs: {
    flag: '--lameduck <duration>',
    about: 'go on answering for so long after a signal',
    default: '0s',
    read: duration,
  },
  drainTimeoutMs: {
    flag: '--drain-timeout <duration>',
    about: 'time for requests to end after that',
    default: '30s',
    read: duration,
  },
  workers: workersFlag,
  metrics: metricsAddress('127.0.0.1:9154'),
  ...logFlags('info'),
} satisfies Table;

/** The configuration of `servicenet router`. */
export type RouterConfig = Values<typeof routerFlags>;

/** Checks the flags of `servicenet router`. @throws {ConfigError} naming the flag and what it takes. */
export function routerConfig(given: Given): RouterConfig {
  return readFlags(routerFlags, given);
}

/** In lower case, without a dot at the end; empty for none. */
function domain(value: unknown): string {
  const name = text(value).toLowerCase().replace(/\.$/, '');
  if (name === '' || isDNS1123Subdomain(name).length === 0) return name;
  throw new WrongValue('must be a DNS name such as apps.example.com');
}

function domains(value: unknown): readonly string[] {
  return list(value).map(domain);
}

/** `namespace/name` of a Secret or a Service. */
function objectKey(value: unknown): string {
  const key = text(value);
  if (/^[a-z0-9-]+\/[a-z0-9.-]+$/.test(key)) return key;
  throw new WrongValue('must be a namespace and a name, such as default/tls');
}

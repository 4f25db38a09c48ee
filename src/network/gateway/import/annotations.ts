import { maxOf, splitList } from '../../../objects/lists.ts';
import { isDNS1123Subdomain } from '../../../objects/names.ts';
import type { HTTPCORSFilter, HTTPRouteFilter, HTTPRouteRule } from '../../../objects/types/gateway.ts';
import { classAnnotation } from '../../http/ingress.ts';
import { redirectAnnotation } from '../../http/rules.ts';
import { expressionProblem } from '../expressions.ts';

/** What the annotations of an Ingress ask, those of ingress-nginx above all. Pure. */

const prefix = 'nginx.ingress.kubernetes.io/';

export interface IngressSettings {
  /** In the place of the backends. */
  readonly redirect: HTTPRouteFilter | undefined;
  /** Where requests for `/` are sent. */
  readonly appRoot: string | undefined;
  /** Whether requests without TLS are sent to https where the host has a certificate. */
  readonly isRedirected: boolean;
  /** Whether they are also where it has none. */
  readonly isForced: boolean;
  readonly rewriteTarget: string | undefined;
  /** Whether paths are expressions. */
  readonly isExpression: boolean;
  /** The host that backends get. */
  readonly rewriteHost: string | undefined;
  readonly requestHeaders: HTTPRouteFilter | undefined;
  readonly cors: HTTPRouteFilter | undefined;
  readonly timeouts: HTTPRouteRule['timeouts'];
  /** Further hosts. */
  readonly aliases: readonly string[];
  /** Whether TLS ends at the backends. */
  readonly isPassthrough: boolean;
  /** Upper case. */
  readonly protocol: string;
  /** Whether backends get no requests, because what kept clients out or sent them elsewhere has no counterpart. */
  readonly isClosed: boolean;
  /** Undefined: the Ingress is no canary. */
  readonly canary: Canary | undefined;
}

/** Which requests go to a canary. */
export interface Canary {
  readonly header: string | undefined;
  /** What the header has to be; undefined: `always`, and `never` keeps requests from it. */
  readonly value: { readonly text: string; readonly isExpression: boolean } | undefined;
  readonly weight: number;
  readonly weightTotal: number;
}

/** Annotations that tools leave, and that nothing serves by. */
const bookkeeping =
  /^(?:kubectl\.kubernetes\.io|meta\.helm\.sh|argocd\.argoproj\.io|field\.cattle\.io|kustomize\.toolkit\.fluxcd\.io)\//;

/** Those that keep clients out. */
const restrictions = new Set([
  ...['auth-type', 'auth-secret', 'auth-url', 'auth-tls-secret'],
  ...['whitelist-source-range', 'allowlist-source-range', 'denylist-source-range'],
]);

/** Those that ask for nothing where they are `false`. */
const switches = new Set([
  ...['from-to-www-redirect', 'service-upstream', 'http2-push-preload', 'enable-modsecurity'],
  ...['enable-owasp-core-rules', 'enable-opentracing', 'enable-opentelemetry', 'enable-rewrite-log'],
  ...['preserve-trailing-slash', 'auth-tls-pass-certificate-to-upstream', 'proxy-ssl-verify'],
]);

/** What else is left out, and why. The first that fits counts. */
const losses: readonly { readonly names: RegExp; readonly why: string }[] = [
  {
    names: /^(?:auth-|satisfy$|enable-global-auth$)/,
    why: 'a Route asks nobody who they are; client certificates are in spec.tls.frontend of the Gateway, for all hosts of a port',
  },
  { names: /^(?:whitelist|allowlist|denylist)-source-range$/, why: 'a Route knows no addresses of clients' },
  { names: /^(?:limit-|global-rate-limit)/, why: 'a Route has no limits' },
  {
    names: /^(?:affinity|session-cookie-|upstream-hash-by|load-balance)/,
    why: 'each request goes to any Pod, whoever sends it',
  },
  { names: /-snippet$/, why: 'configuration of nginx has no counterpart' },
  { names: /^proxy-ssl-/, why: 'a BackendTLSPolicy says whom backends are and who vouches for them' },
  { names: /^mirror-/, why: 'write a filter RequestMirror that names a Service' },
  {
    names: /^from-to-www-redirect$/,
    why: 'write an HTTPRoute with the other host and a filter RequestRedirect',
  },
  { names: /^cors-/, why: 'it has no effect without enable-cors' },
  {
    names: /^(?:permanent|temporal)-redirect-code$/,
    why: 'it has no effect without an address, or Gateway API has no such status',
  },
  { names: /^canary-/, why: 'it has no effect without canary' },
  { names: /(?:)/, why: 'it has no counterpart' },
];

/** The annotations of ingress-nginx, and which of them were read. */
class NginxAnnotations {
  readonly #values: ReadonlyMap<string, string>;
  readonly #read = new Set<string>();

  constructor(annotations: Readonly<Record<string, string>>) {
    const ours = Object.entries(annotations).filter(([name]) => name.startsWith(prefix));
    this.#values = new Map(ours.map(([name, value]) => [name.slice(prefix.length), value.trim()]));
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** An empty value is as none. */
  read(name: string): string | undefined {
    this.#read.add(name);
    const value = this.#values.get(name);
    return value === '' ? undefined : value;
  }

  isTrue(name: string): boolean {
    return this.read(name)?.toLowerCase() === 'true';
  }

  /** Those that were not read and ask for something, sorted. */
  unread(): string[] {
    return [...this.#values]
      .filter(([name, value]) => !this.#read.has(name) && !(switches.has(name) && value === 'false'))
      .map(([name]) => name)
      .sort();
  }
}

/** Adds a sentence for the user about what gets lost. */
export type Note = (sentence: string) => void;

/** Reads the annotations of an Ingress. What has no counterpart is noted. */
export function readAnnotations(all: Readonly<Record<string, string>>, note: Note): IngressSettings {
  const nginx = new NginxAnnotations(all);
  noteForeign(all, note);
  const canary = nginx.isTrue('canary') ? readCanary(nginx, note) : undefined;
  if (canary !== undefined) {
    const others = nginx.unread();
    if (others.length > 0)
      note(`${others.join(', ')} not imported: the Ingress beside a canary decides these`);
    return { ...plainSettings, canary };
  }
  const isClosed = [...restrictions].some((name) => nginx.has(name));
  const redirect = readRedirect(nginx, note);
  const rewriteTarget = nginx.read('rewrite-target');
  const isRedirected =
    nginx.read('ssl-redirect')?.toLowerCase() !== 'false' && all[redirectAnnotation] !== 'false';
  const settings: IngressSettings = {
    redirect: redirect === 'unknown' ? undefined : redirect,
    appRoot: readAppRoot(nginx, note),
    isRedirected,
    isForced: nginx.isTrue('force-ssl-redirect'),
    rewriteTarget,
    isExpression: nginx.isTrue('use-regex') || rewriteTarget !== undefined,
    rewriteHost: readHost(nginx, note),
    requestHeaders: readPrefix(nginx, note),
    cors: readCors(nginx, note),
    timeouts: readTimeouts(nginx, note),
    aliases: readAliases(nginx, note),
    isPassthrough: nginx.isTrue('ssl-passthrough'),
    protocol: nginx.read('backend-protocol')?.toUpperCase() ?? 'HTTP',
    isClosed: isClosed || redirect === 'unknown',
    canary: undefined,
  };
  noteLosses(nginx.unread(), note);
  return settings;
}

const plainSettings: IngressSettings = {
  ...{
    redirect: undefined,
    appRoot: undefined,
    isRedirected: true,
    isForced: false,
    rewriteTarget: undefined,
  },
  ...{ isExpression: false, rewriteHost: undefined, requestHeaders: undefined, cors: undefined },
  ...{ timeouts: undefined, aliases: [], isPassthrough: false, protocol: 'HTTP', isClosed: false },
  canary: undefined,
};

/** Those of other controllers and tools. */
function noteForeign(all: Readonly<Record<string, string>>, note: Note): void {
  const known = new Set([classAnnotation, redirectAnnotation]);
  const others = Object.keys(all)
    .filter((name) => !name.startsWith(prefix) && !known.has(name) && !bookkeeping.test(name))
    .sort();
  const issuers = others.filter((name) => name.startsWith('cert-manager.io/'));
  const rest = others.filter((name) => !issuers.includes(name));
  if (issuers.length > 0) {
    note(
      `${issuers.join(', ')} not imported: annotate the Gateway; cert-manager deletes the Certificates of an Ingress with it`,
    );
  }
  if (rest.length > 0) note(`${rest.join(', ')} not imported`);
}

function noteLosses(names: readonly string[], note: Note): void {
  const byReason = new Map<string, string[]>();
  for (const name of names) {
    const why = losses.find((loss) => loss.names.test(name))?.why ?? '';
    const list = byReason.get(why) ?? [];
    list.push(name);
    byReason.set(why, list);
  }
  for (const [why, list] of byReason) note(`${list.join(', ')} not imported: ${why}`);
}

/** Of a backend of a Route. */
const maxWeight = 1_000_000;

function readCanary(nginx: NginxAnnotations, note: Note): Canary {
  const header = nginx.read('canary-by-header');
  const text = nginx.read('canary-by-header-value');
  const pattern = nginx.read('canary-by-header-pattern');
  const total = wholeNumber(nginx.read('canary-weight-total')) ?? 100;
  const weightTotal = Math.min(total, maxWeight);
  const part = Math.min(total, wholeNumber(nginx.read('canary-weight')) ?? 0);
  const weight = total === 0 ? 0 : Math.ceil((part * weightTotal) / total);
  if (nginx.read('canary-by-cookie') !== undefined) {
    note('canary-by-cookie not imported: a Route knows no cookies');
  }
  const isUsed = header !== undefined && text === undefined && pattern !== undefined;
  // The pattern is searched for, and a match of Gateway API is one of the whole value.
  const expression = `.*(?:${pattern ?? ''}).*`;
  const problem = isUsed ? expressionProblem(expression) : undefined;
  if (problem !== undefined) note(`canary-by-header-pattern not imported: ${problem}`);
  const value =
    text === undefined
      ? isUsed && problem === undefined
        ? { text: expression, isExpression: true }
        : undefined
      : { text, isExpression: false };
  return { header: problem === undefined ? header : undefined, value, weight, weightTotal };
}

const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/** `unknown`: one that a Route does not make. */
function readRedirect(nginx: NginxAnnotations, note: Note): HTTPRouteFilter | 'unknown' | undefined {
  const [name, code] =
    nginx.has('temporal-redirect') && nginx.read('temporal-redirect') !== undefined
      ? (['temporal-redirect', 302] as const)
      : (['permanent-redirect', 301] as const);
  const address = nginx.read(name);
  if (address === undefined) return undefined;
  const given = wholeNumber(nginx.read(`${name}-code`)) ?? code;
  const statusCode = redirectStatuses.has(given) ? given : code;
  if (statusCode !== given) note(`${name}-code ${given} not imported: Gateway API has no such status`);
  const isSamePath = address.endsWith('$request_uri');
  const target = readAddress(isSamePath ? address.slice(0, -'$request_uri'.length) : address);
  if (target === undefined || (isSamePath && target.path !== '/')) {
    note(
      `${name} ${JSON.stringify(address)} not imported: it is no address of a scheme, a host and a path alone`,
    );
    return 'unknown';
  }
  const { scheme, hostname, port, path } = target;
  return {
    type: 'RequestRedirect',
    requestRedirect: {
      ...{ scheme, hostname },
      ...(port === undefined ? {} : { port }),
      ...(isSamePath ? {} : { path: { type: 'ReplaceFullPath', replaceFullPath: path } }),
      statusCode,
    },
  };
}

interface Address {
  readonly scheme: string;
  readonly hostname: string;
  readonly port: number | undefined;
  readonly path: string;
}

function readAddress(text: string): Address | undefined {
  if (text.includes('$') || !URL.canParse(text)) return undefined;
  const { protocol, hostname, port, pathname, search, hash, username, password } = new URL(text);
  const scheme = protocol.slice(0, -1);
  if (scheme !== 'http' && scheme !== 'https') return undefined;
  if (`${search}${hash}${username}${password}` !== '' || isDNS1123Subdomain(hostname).length > 0) {
    return undefined;
  }
  return { scheme, hostname, port: port === '' ? undefined : Number(port), path: pathname };
}

function readAppRoot(nginx: NginxAnnotations, note: Note): string | undefined {
  const path = nginx.read('app-root');
  if (path === undefined || /^\/[^\s$?#]{0,1023}$/.test(path)) return path;
  note(`app-root ${JSON.stringify(path)} not imported: it is no path alone`);
  return undefined;
}

function readHost(nginx: NginxAnnotations, note: Note): string | undefined {
  const host = nginx.read('upstream-vhost');
  if (host === undefined) return undefined;
  const hostname = host.toLowerCase();
  if (isDNS1123Subdomain(hostname).length === 0) return hostname;
  note(
    `upstream-vhost ${JSON.stringify(host)} not imported: a Route writes names without a port or variables`,
  );
  return undefined;
}

function readPrefix(nginx: NginxAnnotations, note: Note): HTTPRouteFilter | undefined {
  const value = nginx.read('x-forwarded-prefix');
  if (value === undefined) return undefined;
  if (/^[!-#%-~]{1,1024}$/.test(value)) {
    const set = [{ name: 'X-Forwarded-Prefix', value }];
    return { type: 'RequestHeaderModifier', requestHeaderModifier: { set } };
  }
  note(`x-forwarded-prefix ${JSON.stringify(value)} not imported: a Route sets headers without variables`);
  return undefined;
}

/** What nginx sends where the annotations say nothing. */
const corsDefaults = {
  methods: 'GET, PUT, POST, DELETE, PATCH, OPTIONS',
  headers:
    'DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization',
  maxAgeSeconds: 1_728_000,
} as const;

const corsMethods = new Set([
  ...['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', '*'],
]);
const headerName = /^[\w!#$%&'*+\-.^`|~]{1,256}$/;
const origin = /^(?:\*|https?:\/\/(?:\*|(?:\*\.)?[a-z\d-]+(?:\.[a-z\d-]+)*)(?::\d{1,5})?)$/i;

function readCors(nginx: NginxAnnotations, note: Note): HTTPRouteFilter | undefined {
  if (!nginx.isTrue('enable-cors')) return undefined;
  const listOf = (
    name: string,
    otherwise: string,
    limit: number,
    test: (item: string) => boolean,
  ): string[] => {
    const items = splitList(nginx.read(name) ?? otherwise);
    const all = items.includes('*') ? ['*'] : [...new Set(items)];
    const taken = all.filter(test).slice(0, limit);
    const left = all.filter((item) => !taken.includes(item));
    if (left.length > 0) note(`${name}: ${left.join(', ')} not imported: Gateway API takes no such value`);
    return taken;
  };
  const allowOrigins = listOf(
    'cors-allow-origin',
    '*',
    64,
    (item) => item.length <= 253 && origin.test(item),
  );
  const deep = allowOrigins.filter((item) => item.includes('//*.'));
  if (deep.length > 0) {
    note(`cors-allow-origin: ${deep.join(', ')}: the wildcard was for one label, and is for any depth now`);
  }
  const credentials = nginx.read('cors-allow-credentials')?.toLowerCase();
  // Browsers send no credentials where any origin is allowed; a gateway would name theirs.
  const isAny = allowOrigins.includes('*');
  if (isAny && credentials === 'true') {
    note('cors-allow-credentials not imported: with cors-allow-origin "*" browsers obeyed it nowhere');
  }
  const exposeHeaders = listOf('cors-expose-headers', '', 64, (item) => headerName.test(item));
  const cors: HTTPCORSFilter = {
    allowOrigins,
    ...(isAny || credentials === 'false' ? {} : { allowCredentials: true }),
    allowMethods: listOf('cors-allow-methods', corsDefaults.methods, 9, (item) => corsMethods.has(item)),
    allowHeaders: listOf('cors-allow-headers', corsDefaults.headers, 64, (item) => headerName.test(item)),
    ...(exposeHeaders.length === 0 ? {} : { exposeHeaders }),
    maxAge: Math.max(1, wholeNumber(nginx.read('cors-max-age')) ?? corsDefaults.maxAgeSeconds),
  };
  if (allowOrigins.length > 0) return { type: 'CORS', cors };
  note('enable-cors not imported: it allows no origin');
  return undefined;
}

/** The longer of both: a Route has one limit for a try with a backend. */
function readTimeouts(nginx: NginxAnnotations, note: Note): HTTPRouteRule['timeouts'] {
  const given = ['proxy-read-timeout', 'proxy-send-timeout'].flatMap((name) => {
    const value = nginx.read(name);
    if (value === undefined) return [];
    const seconds = wholeNumber(/^\d+s?$/.test(value) ? value.replace('s', '') : value);
    if (seconds !== undefined && seconds > 0) return [{ name, seconds }];
    note(`${name} ${JSON.stringify(value)} not imported: it is no number of seconds`);
    return [];
  });
  if (given.length === 0) return undefined;
  const seconds = maxOf(given.map((one) => one.seconds));
  const backendRequest = seconds > 99_999 ? `${Math.min(99_999, Math.ceil(seconds / 3600))}h` : `${seconds}s`;
  const names = given.map(({ name }) => name).join(', ');
  note(`${names} became timeouts.backendRequest ${backendRequest}, for a whole answer and not for silence`);
  return { backendRequest };
}

function readAliases(nginx: NginxAnnotations, note: Note): string[] {
  const all = splitList(nginx.read('server-alias') ?? '').flatMap((item) => item.toLowerCase().split(/\s+/));
  const names = [...new Set(all)];
  const taken = names
    .filter((name) => isDNS1123Subdomain(name.replace(/^\*\./, '')).length === 0)
    .slice(0, 15);
  const left = names.filter((name) => !taken.includes(name));
  if (left.length > 0) {
    note(`server-alias: ${left.join(', ')} not imported: a Route has 16 hostnames, and no expressions`);
  }
  return taken;
}

/** At most 9 digits. */
function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

import { addressBits, type IPFamily, parseAddress, parseCidr } from '../../objects/address.ts';

/** How TLS ends: `edge` here, `reencrypt` here and again at the backend, `passthrough` at the backend alone. */
export type Termination = 'edge' | 'reencrypt' | 'passthrough';

/** What a Route's annotations ask of its requests (`haproxy-config.template` of the router of OpenShift). */
export interface RouteSettings {
  /** Who may ask; undefined: everybody. */
  readonly allowed: readonly AddressBlock[] | undefined;
  /** Undefined: no limit. */
  readonly rates: ClientRates | undefined;
  /** Takes the place of the part of a path that matched the rule's. */
  readonly rewriteTarget: string | undefined;
  /** Milliseconds that a backend may be silent; undefined: as the router has it. */
  readonly timeoutMs: number | undefined;
  /** Milliseconds that a tunnel may be silent. */
  readonly tunnelTimeoutMs: number | undefined;
  /** The value of Strict-Transport-Security in answers over TLS. */
  readonly hsts: string | undefined;
}

/** Addresses that begin with the same bits. */
export interface AddressBlock {
  readonly family: IPFamily;
  readonly network: bigint;
  readonly prefixLength: number;
}

/** What one client address may take of a Route. */
export interface ClientRates {
  /** Connections with a request at a time. */
  readonly connections: number | undefined;
  /** New connections in 3 seconds. */
  readonly connectionRate: number | undefined;
  /** Requests in 10 seconds. */
  readonly requestRate: number | undefined;
}

const prefix = 'haproxy.router.openshift.io/';
const rateLimit = 'rate-limit-connections';

/** Annotations that have an effect; cookies are none, so that they are always disabled. */
const implemented = new Set([
  ...['ip_allowlist', 'ip_whitelist', 'rewrite-target', 'timeout', 'timeout-tunnel', 'hsts_header'],
  ...['disable_cookies', rateLimit],
  ...['concurrent-tcp', 'rate-tcp', 'rate-http'].map((one) => `${rateLimit}.${one}`),
]);

/** Those that OpenShift documents as limiting who or how much, and that are not there. docs/router.md has the same list. */
const unsupported = new Set(['pod-concurrent-connections']);

/** Names of a Route's annotations for OpenShift's router that have no effect here, sorted. */
export function ignoredRouteAnnotations(annotations: Readonly<Record<string, string>>): string[] {
  return Object.keys(annotations)
    .filter((name) => name.startsWith(prefix) && !implemented.has(name.slice(prefix.length)))
    .sort();
}

/** Why a Route is refused for what its annotations restrict: served all the same, it would be open. */
export function restrictionProblem(annotations: Readonly<Record<string, string>>): string | undefined {
  for (const name of ignoredRouteAnnotations(annotations)) {
    if (unsupported.has(name.slice(prefix.length))) return `this router does not know the limit of ${name}`;
  }
  const list = allowlistOf(annotations);
  const wrong = list?.find((text) => blockOf(text) === undefined);
  if (wrong !== undefined) {
    return `the allowlist has an entry that is no address or CIDR: ${JSON.stringify(wrong.slice(0, 64))}`;
  }
  if (!isTrue(annotations[`${prefix}${rateLimit}`])) return undefined;
  for (const limit of ['concurrent-tcp', 'rate-tcp', 'rate-http']) {
    const value = annotations[`${prefix}${rateLimit}.${limit}`];
    if (value !== undefined && wholeNumber(value) === undefined) {
      return `${rateLimit}.${limit} is no whole number: ${JSON.stringify(value.slice(0, 64))}`;
    }
  }
  return undefined;
}

/** The settings of a Route without a {@link restrictionProblem}. Values that cannot be are as none, as OpenShift has it. */
export function routeSettings(
  annotations: Readonly<Record<string, string>>,
  termination: Termination | undefined,
): RouteSettings {
  const valueOf = (name: string): string | undefined => annotations[prefix + name];
  const timeoutMs = durationMs(valueOf('timeout'));
  const hsts = valueOf('hsts_header');
  const isTerminated = termination === 'edge' || termination === 'reencrypt';
  return {
    allowed: allowlistOf(annotations)?.flatMap((text) => blockOf(text) ?? []),
    rates: isTrue(valueOf(rateLimit))
      ? {
          connections: wholeNumber(valueOf(`${rateLimit}.concurrent-tcp`)),
          connectionRate: wholeNumber(valueOf(`${rateLimit}.rate-tcp`)),
          requestRate: wholeNumber(valueOf(`${rateLimit}.rate-http`)),
        }
      : undefined,
    rewriteTarget: rewriteTarget(valueOf('rewrite-target')),
    timeoutMs,
    tunnelTimeoutMs:
      durationMs(valueOf('timeout-tunnel')) ?? (termination === 'passthrough' ? timeoutMs : undefined),
    hsts: isTerminated && hsts !== undefined && hstsPattern.test(hsts) ? hsts : undefined,
  };
}

/** Whether an address is in one of the blocks. */
export function isAllowed(address: string, blocks: readonly AddressBlock[]): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  return blocks.some(({ family, network, prefixLength }) => {
    if (family !== parsed.family) return false;
    const shift = BigInt(addressBits(family) - prefixLength);
    return parsed.value >> shift === network >> shift;
  });
}

/**
 * The path for a backend: the part that the rule's path matched is replaced; what is left keeps its slash.
 *
 * @param path with its query. @param matched the path of the rule.
 */
export function rewrittenPath(path: string, matched: string, target: string): string {
  const rest = path.slice(matched.length);
  if (target === '/') return rest.startsWith('/') ? rest : `/${rest}`;
  return target + rest;
}

/** A directive of RFC 6797, 6.1, as OpenShift takes it. */
const hstsPattern = /^max-age=(?:\d+|"\d+")(?:\s*;\s*(?:includeSubDomains|preload))*\s*;?$/i;

function isTrue(value: string | undefined): boolean {
  return value === 'true' || value === 'TRUE';
}

function wholeNumber(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}

/** Undefined: no list. The older name counts where the other is not there. */
function allowlistOf(annotations: Readonly<Record<string, string>>): string[] | undefined {
  const text = annotations[`${prefix}ip_allowlist`] ?? annotations[`${prefix}ip_whitelist`];
  const entries = text?.split(/\s+/).filter((entry) => entry !== '') ?? [];
  return entries.length === 0 ? undefined : entries;
}

/** Undefined for text that is none, or that not everybody reads alike (`010.0.0.1`). */
function blockOf(text: string): AddressBlock | undefined {
  const block = parseCidr(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
  return block === undefined || block.leadingZeros ? undefined : block;
}

/** A path, without what could end the request line. `%%` is a percent sign. */
function rewriteTarget(value: string | undefined): string | undefined {
  if (value === undefined || !/^\/[!-~]*$/.test(value)) return undefined;
  return value.replaceAll('%%', '%');
}

const unitsMs: Readonly<Record<string, number>> = {
  ...{ us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 },
};
/** What HAProxy's timers hold, and Node.js' too. */
const longestMs = 2 ** 31 - 1;

/** A time of HAProxy: a number of milliseconds, or with a unit. */
function durationMs(value: string | undefined): number | undefined {
  const [, number = '', unit = 'ms'] = /^([1-9]\d*)(us|ms|s|m|h|d)?$/.exec(value ?? '') ?? [];
  if (number === '') return undefined;
  return Math.min(longestMs, Math.max(1, Math.round(Number(number) * (unitsMs[unit] ?? 1))));
}

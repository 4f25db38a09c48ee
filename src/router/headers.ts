import { isIPv6 } from 'node:net';
import type { HeaderAction } from '../network/http/rules.ts';

/** The treatment of X-Forwarded-* and Forwarded headers that are already set: `forwardedHeaderPolicy` of OpenShift's IngressController. */
export type ForwardedPolicy = 'append' | 'replace' | 'if-none' | 'never';

/** The client's connection, for the headers to a backend. */
export interface ClientConnection {
  /** The client's address. */
  readonly address: string;
  readonly scheme: 'http' | 'https';
  /** The port that the client connected to, by its `Host`; else that of the scheme. */
  readonly port: number;
}

/** Headers of one connection (RFC 9110, 7.6.1), and `proxy`, which CGI programs take for a setting (httpoxy). */
const ofConnection = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'expect', 'proxy', 'http2-settings'],
]);

/**
 * Whether a client says with it what a proxy says of its client: `Forwarded`, `X-Real-IP` and everything that begins
 * with `X-Forwarded-`.
 *
 * @param name in lower case.
 */
function isForwarding(name: string): boolean {
  return name === 'forwarded' || name === 'x-real-ip' || name.startsWith('x-forwarded-');
}

/** CGI and its heirs read `X_Forwarded_For`, `X.Forwarded.For` and `X-Forwarded-For` as one variable (RFC 3875, 4.1.18). */
function asCgiReads(name: string): string {
  return name.replace(/[^a-z0-9]/g, '-');
}

/**
 * The headers for a backend: without those of the client's connection, with X-Forwarded-* and Forwarded, changed by
 * the rule.
 *
 * @param raw names and values in turn, as Node.js has them; names with a colon (HTTP/2) are left out.
 * @param host by which the rule was found.
 */
export function requestHeaders(
  raw: readonly string[],
  host: string,
  client: ClientConnection,
  policy: ForwardedPolicy,
  actions: readonly HeaderAction[],
): string[] {
  const dropped = namedByConnection(raw);
  const headers: string[] = ['host', host];
  const known = new Map<string, string>();
  let cookies = '';
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    const lower = name.toLowerCase();
    if (lower === 'host' || name.startsWith(':') || ofConnection.has(lower) || dropped.has(lower)) continue;
    if (isForwarding(lower)) {
      const before = known.get(lower);
      known.set(lower, before === undefined ? value : `${before}, ${value}`);
    } else if (isForwarding(asCgiReads(lower))) continue;
    // HTTP/2 splits cookies (RFC 9113, 8.2.3).
    else if (lower === 'cookie') cookies += cookies === '' ? value : `; ${value}`;
    else headers.push(name, value);
  }
  if (cookies !== '') headers.push('cookie', cookies);
  for (const [name, value] of forwarded(known, host, client, policy)) headers.push(name, value);
  return actions.length === 0 ? headers : changed(headers, actions);
}

/**
 * The headers for the client: without those of the backend's connection, changed by the rule.
 *
 * @param raw names and values in turn; pseudo headers of HTTP/2 are left out.
 * @param status of the answer: one without content has no length (RFC 9110, 8.6).
 */
export function responseHeaders(
  raw: readonly string[],
  status: number,
  actions: readonly HeaderAction[],
): Record<string, string | string[]> {
  const named = namedByConnection(raw);
  const kept = new Map<string, string[]>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    const value = raw[i + 1] ?? '';
    if (name.startsWith(':') || ofConnection.has(name) || named.has(name)) continue;
    if (name === 'content-length' && (status < 200 || status === 204 || status === 205)) continue;
    const values = kept.get(name);
    if (values === undefined) kept.set(name, [value]);
    else values.push(value);
  }
  for (const { name, value } of actions) {
    if (value === undefined) kept.delete(name);
    else kept.set(name, [value]);
  }
  return record(kept);
}

/** Trailers that may be merged into headers by who gets them: nothing of framing, routing or the connection (RFC 9110, 6.5.1). */
export function trailers(raw: readonly string[]): Record<string, string | string[]> {
  const kept = new Map<string, string[]>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (name.startsWith(':') || ofConnection.has(name) || notInTrailers.has(name)) continue;
    kept.set(name, [...(kept.get(name) ?? []), raw[i + 1] ?? '']);
  }
  return record(kept);
}

const notInTrailers = new Set([
  ...['content-length', 'host', 'content-encoding', 'content-type', 'content-range', 'set-cookie'],
  ...['authorization', 'cookie', 'cache-control', 'max-forwards', 'range', 'age', 'date', 'expires'],
  ...['location', 'retry-after', 'vary', 'www-authenticate'],
]);

function record(kept: ReadonlyMap<string, string[]>): Record<string, string | string[]> {
  const entries = new Map<string, string | string[]>(kept);
  for (const [name, [value = '', ...more]] of kept) if (more.length === 0) entries.set(name, value);
  return Object.fromEntries(entries);
}

function namedByConnection(raw: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]?.toLowerCase() !== 'connection') continue;
    for (const name of raw[i + 1]?.split(',') ?? []) names.add(name.trim().toLowerCase());
  }
  // A client could otherwise remove these headers by naming them in Connection.
  for (const name of ['host', 'content-length', 'cookie', 'authorization']) names.delete(name);
  return names;
}

function forwarded(
  known: ReadonlyMap<string, string>,
  host: string,
  { address, scheme, port }: ClientConnection,
  policy: ForwardedPolicy,
): Iterable<readonly [string, string]> {
  if (policy === 'never') return known;
  const node = isIPv6(address) ? `"[${address}]"` : address;
  const ours: [string, string][] = [
    ['x-forwarded-for', address],
    ['x-forwarded-host', host],
    ['x-forwarded-port', String(port)],
    ['x-forwarded-proto', scheme],
    ['x-real-ip', address],
    ['forwarded', `for=${node};host=${quoted(host)};proto=${scheme}`],
  ];
  if (policy === 'replace') return ours;
  const all = new Map(known);
  for (const [name, value] of ours) {
    const before = known.get(name);
    // X-Real-IP is one address, and the proxy in front, which is trusted, knows the first.
    const isKept = before !== undefined && (policy === 'if-none' || name === 'x-real-ip');
    if (!isKept) all.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return all;
}

/** A quoted-string where it is no token (RFC 7239, 4). */
function quoted(host: string): string {
  return /^[\w.-]+$/.test(host) ? host : `"${host.replace(/["\\]/g, '\\$&')}"`;
}

function changed(headers: readonly string[], actions: readonly HeaderAction[]): string[] {
  const names = new Set(actions.map(({ name }) => name));
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (!names.has(name.toLowerCase())) kept.push(name, headers[i + 1] ?? '');
  }
  for (const { name, value } of actions) if (value !== undefined) kept.push(name, value);
  return kept;
}

import type { IncomingHttpHeaders } from 'node:http';
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
const forwardedNames = new Set([
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto'],
]);

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
    if (forwardedNames.has(lower)) {
      const before = known.get(lower);
      known.set(lower, before === undefined ? value : `${before}, ${value}`);
      // HTTP/2 splits cookies (RFC 9113, 8.2.3).
    } else if (lower === 'cookie') cookies += cookies === '' ? value : `; ${value}`;
    else headers.push(name, value);
  }
  if (cookies !== '') headers.push('cookie', cookies);
  for (const [name, value] of forwarded(known, host, client, policy)) headers.push(name, value);
  return actions.length === 0 ? headers : changed(headers, actions);
}

/** The headers for the client: without those of the backend's connection, changed by the rule. */
export function responseHeaders(
  headers: IncomingHttpHeaders,
  actions: readonly HeaderAction[],
): Record<string, string | string[]> {
  const named = headers.connection?.toLowerCase().split(',') ?? [];
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || ofConnection.has(name)) continue;
    if (named.some((one) => one.trim() === name)) continue;
    kept[name] = value;
  }
  for (const { name, value } of actions) {
    if (value === undefined) Reflect.deleteProperty(kept, name);
    else kept[name] = value;
  }
  return kept;
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
  if (policy === 'never' || (policy === 'if-none' && known.size > 0)) return known;
  const node = isIPv6(address) ? `"[${address}]"` : address;
  const ours: [string, string][] = [
    ['x-forwarded-for', address],
    ['x-forwarded-host', host],
    ['x-forwarded-port', String(port)],
    ['x-forwarded-proto', scheme],
    ['forwarded', `for=${node};host=${quoted(host)};proto=${scheme}`],
  ];
  if (policy !== 'append') return ours;
  return ours.map(([name, value]): [string, string] => {
    const before = known.get(name);
    return [name, before === undefined ? value : `${before}, ${value}`];
  });
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

/**
 * Hostnames of Gateway API, in lower case: a name, `*.` and a name for all names below it at any depth, or "" for all.
 * (A wildcard of an Ingress or a Route of OpenShift covers one label.)
 */

/** Whether each host of the second is one of the first. */
export function coversHostname(wide: string, narrow: string): boolean {
  if (wide === '' || wide === narrow) return true;
  return wide.startsWith('*.') && narrow.length >= wide.length && narrow.endsWith(wide.slice(1));
}

/** The hosts that both have; undefined for none. */
export function commonHostname(a: string, b: string): string | undefined {
  if (coversHostname(a, b)) return b;
  return coversHostname(b, a) ? a : undefined;
}

/** The more specific first: names, then wildcards, the longer before the shorter, then "". */
export function compareHostnames(a: string, b: string): number {
  return rank(a) - rank(b) || b.length - a.length;
}

function rank(hostname: string): number {
  return hostname === '' ? 2 : hostname.startsWith('*.') ? 1 : 0;
}

/** The wildcards that cover a hostname and are not itself, from the longest on, then "". */
export function* widerHostnames(hostname: string): Generator<string, void, undefined> {
  let dot = hostname.indexOf('.', hostname.startsWith('*.') ? 2 : 0);
  for (; dot !== -1; dot = hostname.indexOf('.', dot + 1)) yield `*${hostname.slice(dot)}`;
  if (hostname !== '') yield '';
}

/** What may be for a host, the most specific first: itself, the wildcards over it, "" for all. */
export function* hostCandidates(host: string): Generator<string, void, undefined> {
  yield host;
  yield* widerHostnames(host);
}

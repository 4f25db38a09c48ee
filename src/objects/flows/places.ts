import { parseAddress } from '../address.ts';
import { parseReference, type ReferenceKind } from '../references.ts';

/** The words in which people ask for flows: from where to where they went, and who decided. */

/** One end of flows, as its user names it. */
export type FlowPlace =
  | {
      readonly kind: ReferenceKind;
      readonly namespace: string;
      readonly name: string;
      readonly port: number | undefined;
    }
  | { readonly kind: 'outside' | 'control-plane'; readonly port: number | undefined }
  | { readonly kind: 'address'; readonly address: string; readonly port: number | undefined }
  | { readonly kind: 'dns'; readonly name: string };

/**
 * Reads `cart` (a Pod), `pod/shop/cart`, `deploy/shop/cart`, `svc/shop/catalog:80`, `node/node-1`, `outside`,
 * `control-plane`, `dns/NAME` or an address, each but a name of DNS with or without a port.
 *
 * @param namespace of names without one.
 * @returns undefined for anything else.
 */
export function parsePlace(text: string, namespace: string): FlowPlace | undefined {
  if (text.startsWith('dns/')) {
    const name = text.slice(4).toLowerCase();
    return name === '' ? undefined : { kind: 'dns', name: name.endsWith('.') ? name.slice(0, -1) : name };
  }
  const bare = parseAddress(text)?.canonical;
  if (bare !== undefined) return { kind: 'address', address: bare, port: undefined };
  const colon = text.lastIndexOf(':');
  const port = colon === -1 ? undefined : Number(text.slice(colon + 1));
  if (port !== undefined && !(Number.isInteger(port) && port > 0 && port <= 65_535)) return undefined;
  const place = colon === -1 ? text : text.slice(0, colon);
  if (place === 'outside' || place === 'control-plane') return { kind: place, port };
  const inBrackets = place.startsWith('[') && place.endsWith(']');
  const address = parseAddress(inBrackets ? place.slice(1, -1) : place)?.canonical;
  if (address !== undefined) return { kind: 'address', address, port };
  const found = parseReference(place, namespace);
  return found && { kind: found.kind ?? 'Pod', namespace: found.namespace, name: found.name, port };
}

/** The kinds of objects that decide what becomes of a connection, by the words that kubectl knows them by. */
const deciderWords = {
  NetworkPolicy: ['networkpolicy', 'networkpolicies', 'netpol'],
  EgressFirewall: ['egressfirewall', 'egressfirewalls'],
  Service: ['service', 'services', 'svc'],
  Ingress: ['ingress', 'ingresses', 'ing'],
  Route: ['route', 'routes'],
  HTTPRoute: ['httproute', 'httproutes'],
  GRPCRoute: ['grpcroute', 'grpcroutes'],
} as const;

const deciderKinds: ReadonlyMap<string, string> = new Map(
  Object.entries(deciderWords).flatMap(([kind, words]) => words.map((word) => [word, kind] as const)),
);

/** What a sentence about an object that decides no flow says. */
export const deciderAdvice = `give KIND/NAMESPACE/NAME, with one of ${Object.keys(deciderWords).join(', ')} as kind`;

/**
 * Reads `netpol/shop/deny-in`, `networkpolicy/deny-in`, `svc/shop/catalog`, `ingress/shop/web`; a kind may have its group.
 *
 * @param namespace of names without one.
 * @returns the object as flows name it, `NetworkPolicy shop/deny-in`; undefined for anything else, and for kinds of objects
 *   that decide about no flow.
 */
export function parseDecider(text: string, namespace: string): string | undefined {
  const [word = '', ...rest] = text.split('/');
  const kind = deciderKinds.get(word.toLowerCase().split('.')[0] ?? '');
  const [first = '', second] = rest;
  const [of, name] = second === undefined ? [namespace, first] : [first, second];
  const isOne = kind !== undefined && rest.length <= 2 && of !== '' && name !== '';
  return isOne ? `${kind} ${of}/${name}` : undefined;
}

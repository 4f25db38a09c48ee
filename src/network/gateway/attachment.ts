import { joinKey, type KubeObject, type ObjectKey } from '../../objects/meta.ts';
import type { CommonRouteSpec, ListenerSet, ParentReference } from '../../objects/types/gateway.ts';
import type { Problem } from './plan.ts';
import { commonHostname } from './hostnames.ts';
import type { Listener } from './listeners.ts';
import { gatewayGroup, type RouteKind } from './plan.ts';

/** What attaches: a Route of one kind. */
export interface Attaching {
  readonly kind: RouteKind;
  readonly namespace: string;
  /** Lower case; none for all. */
  readonly hostnames: readonly string[];
}

/**
 * The listeners to which a parentRef of a Route attaches it, or why there is none. A listener that is not accepted
 * counts as any other.
 *
 * @param listeners of the parent that the reference names.
 */
export function attach(
  route: Attaching,
  { sectionName = '', port }: Pick<ParentReference, 'sectionName' | 'port'>,
  listeners: readonly Listener[],
): readonly Listener[] | Problem {
  const named = listeners.filter(
    ({ spec }) =>
      (sectionName === '' || spec.name === sectionName) && (port === undefined || spec.port === port),
  );
  if (named.length === 0) {
    const wanted = [
      ...(sectionName === '' ? [] : [`with the name ${sectionName}`]),
      ...(port === undefined ? [] : [`on port ${port}`]),
    ];
    return { reason: 'NoMatchingParent', message: `There is no listener ${wanted.join(' ')}`.trimEnd() };
  }
  const ofKind = named.filter(({ kinds }) => kinds.includes(route.kind));
  if (ofKind.length === 0) return notAllowed(`takes a ${route.kind}`);
  const allowing = ofKind.filter((listener) => listener.allows(route.namespace));
  if (allowing.length === 0) return notAllowed(`allows Routes of namespace ${route.namespace}`);
  const matching = allowing.filter(({ hostname }) => hasCommonHostname(hostname, route.hostnames));
  if (matching.length > 0) return matching;
  const message = `No listener has one of the hostnames ${route.hostnames.slice(0, 5).join(', ')}`;
  return { reason: 'NoMatchingListenerHostname', message };
}

function notAllowed(what: string): Problem {
  return { reason: 'NotAllowedByListeners', message: `No listener that the reference names ${what}` };
}

function hasCommonHostname(hostname: string, hostnames: readonly string[]): boolean {
  if (hostname === '' || hostnames.length === 0) return true;
  return hostnames.some((own) => commonHostname(hostname, own) !== undefined);
}

/** What a Route names as its parents, each once: `Gateway ns/name` and `ListenerSet ns/name`. */
export function parentKeys({ metadata, spec }: KubeObject & { readonly spec: CommonRouteSpec }): string[] {
  const all = (spec.parentRefs ?? []).flatMap(
    ({ group = gatewayGroup, kind = 'Gateway', namespace, name }) =>
      group === gatewayGroup && (kind === 'Gateway' || kind === 'ListenerSet')
        ? `${kind} ${joinKey(namespace ?? metadata.namespace ?? '', name)}`
        : [],
  );
  return [...new Set(all)];
}

/** The Gateway to which a ListenerSet adds listeners. */
export function gatewayOfSet({ metadata, spec: { parentRef } }: ListenerSet): ObjectKey {
  return joinKey(parentRef.namespace ?? metadata.namespace ?? '', parentRef.name);
}

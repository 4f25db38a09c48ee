import { joinKey, type KubeObject, type ObjectKey } from '../../objects/meta.ts';
import type {
  CommonRouteSpec,
  ListenerSet,
  ParentReference,
  BackendRef,
  BackendObjectReference,
} from '../../objects/types/gateway.ts';
import {
  type Problem,
  gatewayGroup,
  type RouteKind,
  isTrue,
  trueUnless,
  type AnyRoute,
  type GatewayBackend,
  type GatewayMatch,
  type PlannedRouteParent,
  type StreamRule,
} from './plan.ts';
import { commonHostname, compareHostnames } from './hostnames.ts';
import type { Listener } from './listeners.ts';
import { compareText } from '../../objects/formats/go-text.ts';
import { firstFew } from '../../objects/lists.ts';
import type { RuleSource, BackendTls, HttpRule } from '../http/rules.ts';
import { compileRules, type RuleProblem, ruleProblems } from './http-rules.ts';
import type { Policies } from './policies.ts';
import type { References } from './references.ts';
import type { Service } from '../../objects/types/core.generated.ts';

/** What attaches: a Route of one kind. */
interface Attaching {
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

/** What the Routes of a Gateway add to its listeners, and what is said to them. */

/** A Gateway or ListenerSet that Routes may name. */
export interface RouteParent {
  /** Its own: those of a Gateway's ListenerSets are not the Gateway's. */
  readonly listeners: readonly Listener[];
  /** Why no Route attaches to any of them. */
  readonly refused: Problem | undefined;
}

/** What Routes add to a listener. */
export interface Attached {
  /** The number of Routes that are accepted there. */
  routes: number;
  /** By their hostnames. */
  readonly matches: Map<string, GatewayMatch[]>;
  readonly streams: StreamRule[];
}

/** The name of a parent in {@link RoutePlanner}'s map. */
export function parentId(kind: string, namespace: string, name: string): string {
  return `${kind} ${joinKey(namespace, name)}`;
}

/** Attaches Routes one by one. */
export class RoutePlanner {
  readonly #parents: ReadonlyMap<string, RouteParent>;
  readonly #references: References;
  readonly #policies: Policies;
  readonly #attached = new Map<Listener, Attached>();

  /** @param parents by {@link parentId}. */
  constructor(parents: ReadonlyMap<string, RouteParent>, references: References, policies: Policies) {
    this.#parents = parents;
    this.#references = references;
    this.#policies = policies;
  }

  /** What all Routes until now have added to a listener. */
  attached(listener: Listener): Readonly<Attached> {
    return this.#attached.get(listener) ?? { routes: 0, matches: new Map(), streams: [] };
  }

  /** Attaches a Route. @returns the status for each of its references to these parents. */
  add(route: AnyRoute): readonly PlannedRouteParent[] {
    const { metadata, spec } = route.object;
    const { namespace = '', name = '', generation = 0 } = metadata;
    const hostnames = hostnamesOf(route);
    const compiled = this.#compile(route, hostnames);
    const reached = new Set<Listener>();
    const planned = (spec.parentRefs ?? []).flatMap((parentRef): PlannedRouteParent[] => {
      const parent = this.#parentOf(parentRef, namespace);
      if (parent === undefined) return [];
      const problem = parent.refused ?? compiled.rejected;
      const found =
        problem ?? attach({ kind: route.kind, namespace, hostnames }, parentRef, parent.listeners);
      const rejected = 'reason' in found ? found : undefined;
      if (!('reason' in found)) for (const listener of found) reached.add(listener);
      return [
        {
          ...{ kind: route.kind, key: joinKey(namespace, name), generation, parentRef },
          conditions: [
            trueUnless('Accepted', rejected, 'The Route is attached'),
            trueUnless('ResolvedRefs', compiled.unresolved, 'All references are resolved'),
            ...(rejected === undefined && compiled.partial !== undefined
              ? [isTrue('PartiallyInvalid', compiled.partial.message, compiled.partial.reason)]
              : []),
          ],
        },
      ];
    });
    for (const listener of reached) compiled.addTo(listener, this.#attachedTo(listener));
    return planned;
  }

  #parentOf(
    { group = gatewayGroup, kind = 'Gateway', namespace, name }: ParentReference,
    own: string,
  ): RouteParent | undefined {
    return group === gatewayGroup ? this.#parents.get(parentId(kind, namespace ?? own, name)) : undefined;
  }

  #attachedTo(listener: Listener): Attached {
    let attached = this.#attached.get(listener);
    if (attached === undefined) {
      attached = { routes: 0, matches: new Map(), streams: [] };
      this.#attached.set(listener, attached);
    }
    attached.routes++;
    return attached;
  }

  #compile(route: AnyRoute, hostnames: readonly string[]): CompiledRoute {
    const source = sourceOf(route);
    const newBackends = (): Backends => new Backends(source, this.#references, this.#policies);
    const use = ({ services }: Backends): void => {
      for (const service of services) this.#policies.use(service);
    };
    if (route.kind === 'HTTPRoute' || route.kind === 'GRPCRoute') {
      const backends = newBackends();
      const problems = ruleProblems(route);
      const matches = compileRules(route, (ref) => backends.resolve(ref, 'http'), problems);
      const addTo = (listener: Listener, attached: Attached): void => {
        use(backends);
        for (const match of matches) {
          if (commonHostname(listener.hostname, match.hostname) === undefined) continue;
          const known = attached.matches.get(match.hostname);
          if (known === undefined) attached.matches.set(match.hostname, [match]);
          else known.push(match);
        }
      };
      const isPartial = problems.size < (route.object.spec.rules?.length ?? 1);
      return {
        rejected: isPartial ? undefined : problemOf([...problems.values()]),
        partial: isPartial ? partialProblem(problems) : undefined,
        unresolved: problemOf(backends.problems),
        addTo,
      };
    }
    const refs = route.object.spec.rules[0]?.backendRefs ?? [];
    const plain = newBackends();
    const resolved = refs.map((ref) => backendOf(ref, plain, 'none'));
    let secured: readonly GatewayBackend[] | undefined;
    const addTo = (listener: Listener, attached: Attached): void => {
      let backends: readonly GatewayBackend[] = resolved;
      if (route.kind === 'TLSRoute' && listener.tls?.mode === 'Terminate') {
        if (secured === undefined) {
          const own = newBackends();
          secured = refs.map((ref) => backendOf(ref, own, 'tls'));
          use(own);
        }
        backends = secured;
      }
      for (const hostname of commonHostnames(listener.hostname, hostnames)) {
        attached.streams.push({ source, hostname, backends });
      }
    };
    return { rejected: undefined, partial: undefined, unresolved: problemOf(plain.problems), addTo };
  }
}

/** A Route without its parents. */
interface CompiledRoute {
  readonly rejected: Problem | undefined;
  /** Of some of its rules. */
  readonly partial: Problem | undefined;
  readonly unresolved: Problem | undefined;
  readonly addTo: (listener: Listener, attached: Attached) => void;
}

function backendOf(ref: BackendRef, backends: Backends, end: 'tls' | 'none'): GatewayBackend {
  return { weight: ref.weight ?? 1, rule: backends.resolve(ref, end), requestHeaders: undefined };
}

/** The reason of the first, and all messages. */
function problemOf(problems: readonly Problem[]): Problem | undefined {
  const [first] = problems;
  if (first === undefined) return undefined;
  const messages = new Set(problems.map(({ message }) => message));
  return { reason: first.reason, message: firstFew([...messages], '; ') };
}

/** Begins as the API wants it of who does not keep an older state of the Route. */
function partialProblem(problems: ReadonlyMap<number, RuleProblem>): Problem | undefined {
  const problem = problemOf([...problems.values()]);
  if (problem === undefined) return undefined;
  return { reason: problem.reason, message: `Dropped Rule, requests for it get 500: ${problem.message}` };
}

function sourceOf({ kind, object }: AnyRoute): RuleSource {
  const { namespace = '', name = '', uid = '', creationTimestamp: created = '' } = object.metadata;
  return { kind, namespace, name, uid, created };
}

/** The hostnames of a Route in lower case; none: all. */
function hostnamesOf(route: AnyRoute): readonly string[] {
  if (route.kind === 'HTTPRoute' || route.kind === 'GRPCRoute' || route.kind === 'TLSRoute') {
    return (route.object.spec.hostnames ?? []).map((hostname) => hostname.toLowerCase());
  }
  return [];
}

/** What a Route's hostnames have in common with a listener's; "" for those of TCP and UDP. */
function commonHostnames(hostname: string, hostnames: readonly string[]): readonly string[] {
  if (hostnames.length === 0) return [hostname];
  return [...new Set(hostnames.flatMap((own) => commonHostname(hostname, own) ?? []))];
}

/** The older Route first, then by `namespace/name`. */
function compareSources(a: RuleSource, b: RuleSource): number {
  return (
    compareText(a.created, b.created) || compareText(a.namespace, b.namespace) || compareText(a.name, b.name)
  );
}

/** The order in which rules of TLSRoutes are tried. Those of TCPRoutes and UDPRoutes have one hostname: by age. */
export function sortStreams(streams: readonly StreamRule[]): readonly StreamRule[] {
  return streams.toSorted(
    (a, b) => compareHostnames(a.hostname, b.hostname) || compareSources(a.source, b.source),
  );
}

/** The backends of one Route. Collects what is wrong with them. */
export class Backends {
  /** Of references that lead to nothing. */
  readonly problems: Problem[] = [];
  /** The Services to which the Route connects by their BackendTLSPolicies, if they have some. */
  readonly services = new Set<ObjectKey>();
  readonly #source: RuleSource;
  readonly #references: References;
  readonly #policies: Policies;

  constructor(source: RuleSource, references: References, policies: Policies) {
    this.#source = source;
    this.#references = references;
    this.#policies = policies;
  }

  /**
   * A rule with the one Service of a reference; undefined where requests for it fail.
   *
   * @param end whether the connection of the client ends at the router: only then it may put TLS of its own on those to
   *   the backend.
   */
  resolve(reference: BackendObjectReference, end: 'http' | 'tls' | 'none'): HttpRule | undefined {
    const found = this.#resolve(reference, end);
    if (!('reason' in found)) return found.rule;
    this.problems.push(found);
    return undefined;
  }

  #resolve(
    reference: BackendObjectReference,
    end: 'http' | 'tls' | 'none',
  ): { readonly rule: HttpRule | undefined } | Problem {
    const { kind, namespace } = this.#source;
    const key = this.#references.serviceKey({ kind, namespace }, reference, { kind: 'InvalidKind' });
    if (typeof key !== 'string') return key;
    const service = this.#references.service(key);
    if (service === undefined) {
      return { reason: 'BackendNotFound', message: `Service ${key} does not exist` };
    }
    if (service.spec.type === 'ExternalName') {
      // The author of a Service could name what only the router reaches.
      return { reason: 'InvalidKind', message: `Service ${key} is of type ExternalName` };
    }
    const transport = kind === 'UDPRoute' ? 'UDP' : 'TCP';
    const port = portOf(service, reference.port, transport);
    if (port === undefined) {
      const wanted = `${transport} port ${reference.port ?? '(none is named)'}`;
      return { reason: 'BackendNotFound', message: `Service ${key} has no ${wanted}` };
    }
    let backendTls: BackendTls | undefined;
    if (end !== 'none') {
      const tls = this.#policies.tlsTo(key, service, port.name ?? '');
      this.services.add(key);
      if (tls === 'broken') return { rule: undefined };
      backendTls = tls;
    }
    if (end === 'http' && !isSpoken(port.appProtocol, backendTls)) {
      const message = `Service ${key} speaks ${port.appProtocol ?? ''} at port ${port.port}, which is not supported`;
      return { reason: 'UnsupportedProtocol', message };
    }
    return { rule: this.#ruleOf(service, port.port, backendTls) };
  }

  #ruleOf({ metadata }: Service, port: number, backendTls: BackendTls | undefined): HttpRule {
    const { name = '', namespace = '' } = metadata;
    return {
      source: this.#source,
      ...{ host: '', path: '', match: 'Prefix' },
      backends: [{ namespace, service: name, port, weight: 1 }],
      ...{ termination: undefined, secure: true, insecure: 'Allow', redirectStatus: 302 },
      ...{ requestHeaders: [], responseHeaders: [], destinationCA: undefined, settings: undefined },
      backendTls,
    };
  }
}

type ServicePort = NonNullable<Service['spec']['ports']>[number];

function portOf({ spec }: Service, port: number | undefined, transport: string): ServicePort | undefined {
  return spec.ports?.find((one) => one.port === port && (one.protocol ?? 'TCP') === transport);
}

/** Of Kubernetes' own names of protocols, the router speaks these; other names are the user's, for HTTP. */
function isSpoken(appProtocol: string | undefined, tls: BackendTls | undefined): boolean {
  if (appProtocol?.startsWith('kubernetes.io/') !== true) return true;
  if (appProtocol === 'kubernetes.io/wss') return tls !== undefined;
  return appProtocol === 'kubernetes.io/h2c' || appProtocol === 'kubernetes.io/ws';
}

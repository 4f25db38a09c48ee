import { compareText } from '../../../objects/formats/go-text.ts';
import { pushAll } from '../../../objects/lists.ts';
import { compareAge, keyOf } from '../../../objects/meta.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import type {
  Gateway,
  HTTPRoute,
  HTTPRouteFilter,
  HTTPRouteMatch,
  HTTPRouteRule,
  ListenerSet,
  ParentReference,
  ReferenceGrant,
  TLSRoute,
} from '../../../objects/types/gateway.ts';
import type { HTTPIngressPath, Ingress, IngressClass } from '../../../objects/types/networking.generated.ts';
import { classAnnotation, ingressController } from '../../http/ingress.ts';
import { plainHost } from '../../http/rules.ts';
import { gatewayGroup } from '../plan.ts';
import { type Note, readAnnotations } from './annotations.ts';
import { chunks, ImportedListeners, nameOfHost, UniqueNames } from './listeners.ts';
import { ImportedRules, type ReadIngress } from './rules.ts';

/** Objects of Gateway API that do what the Ingresses of a cluster do. Pure. */

/** What is read of a cluster. */
export interface IngressCluster {
  readonly ingresses: readonly Ingress[];
  readonly classes: readonly IngressClass[];
  readonly services: readonly Service[];
}

export type ImportedObject = Gateway | ListenerSet | ReferenceGrant | HTTPRoute | TLSRoute;

export interface ImportedGateways {
  /** Gateways, ListenerSets, ReferenceGrants, then Routes; each kind by namespace and name. */
  readonly objects: readonly ImportedObject[];
  /** For the user, about what was left out or is different: sentences. */
  readonly notes: readonly string[];
}

/** Of an HTTPRoute. */
const maxRules = 16;
/** Of a rule: an HTTPRoute has 128. */
const maxMatches = 8;

/** As ingress-nginx and our router do. */
const redirectToHttps: HTTPRouteFilter = {
  type: 'RequestRedirect',
  requestRedirect: { scheme: 'https', statusCode: 308 },
};

const kinds = ['Gateway', 'ListenerSet', 'ReferenceGrant', 'HTTPRoute', 'TLSRoute'];

/**
 * A Gateway for each class of Ingresses, and Routes for each of their hosts.
 *
 * @param gatewayClassName of all Gateways.
 * @param namespace of the Gateways; undefined: that of their Ingresses, `default` where these are in several.
 */
export function importIngresses(
  { ingresses, classes, services }: IngressCluster,
  gatewayClassName: string,
  namespace: string | undefined,
): ImportedGateways {
  const notes = new Set<string>();
  const byClass = new Map<string, Ingress[]>();
  for (const ingress of [...ingresses].sort(compareAge)) {
    const name = classOf(ingress);
    const list = byClass.get(name) ?? [];
    list.push(ingress);
    byClass.set(name, list);
  }
  const controllers = new Map(classes.map(({ metadata, spec }) => [metadata.name, spec.controller]));
  const servicesByKey = new Map(services.map((service) => [keyOf(service), service]));
  const gatewayNames = new UniqueNames();
  const routeNames = new UniqueNames();
  const sorted = [...byClass].sort(([a], [b]) => compareText(a, b));
  const objects = sorted.flatMap(([name, list]) => {
    const isNamed = list.some(({ spec }) => (spec.ingressClassName ?? '') !== '');
    if (isNamed && !controllers.has(name)) {
      notes.add(
        `IngressClass ${name}: it is not there, so that its Ingresses may have been served by nobody`,
      );
    }
    const spaces = new Set(list.map(({ metadata }) => metadata.namespace ?? ''));
    const home = namespace ?? (spaces.size === 1 ? [...spaces].join('') : 'default');
    const gateway = gatewayNames.of('', name === '' ? 'ingress' : name);
    const isOurs = controllers.get(name) === ingressController;
    return importClass(list, {
      isOurs,
      rules: new ImportedRules(servicesByKey, isOurs),
      listeners: new ImportedListeners(gateway, home, gatewayClassName),
      names: routeNames,
      notes,
    });
  });
  const rankOf = ({ kind = '' }: ImportedObject): number => kinds.indexOf(kind);
  return {
    objects: objects.sort((a, b) => rankOf(a) - rankOf(b) || compareText(keyOf(a), keyOf(b))),
    notes: [...notes].sort((a, b) => compareText(subjectOf(a), subjectOf(b))),
  };
}

/** Whom a note is about. */
function subjectOf(note: string): string {
  return note.slice(0, note.indexOf(': '));
}

function classOf({ metadata, spec }: Ingress): string {
  const { ingressClassName = '' } = spec;
  return ingressClassName === '' ? (metadata.annotations?.[classAnnotation] ?? '') : ingressClassName;
}

interface ClassParts {
  /** Whether our router serves the class. */
  readonly isOurs: boolean;
  readonly rules: ImportedRules;
  readonly listeners: ImportedListeners;
  readonly names: UniqueNames;
  readonly notes: Set<string>;
}

/** @param ingresses of one class, the oldest first. */
function importClass(ingresses: readonly Ingress[], parts: ClassParts): ImportedObject[] {
  const { rules, listeners } = parts;
  const all = ingresses.map((ingress) => readIngress(ingress, parts));
  const mains = all.filter(({ settings }) => settings.canary === undefined);
  for (const one of all) if (one.settings.canary !== undefined) rules.addCanary(one, one.settings.canary);
  const known = new Set(mains.flatMap(({ hosts }) => [...hosts.keys()]));
  const aliasesOf = new Map(mains.map((one) => [one, freeAliases(one, known)]));
  const routes = mains.flatMap((one) => {
    const aliases = aliasesOf.get(one) ?? [];
    return [...one.hosts.keys()].map((host, i) => {
      const hostnames = host === '' ? [] : [host, ...(i === 0 ? aliases : [])];
      return { one, host, hostnames, rules: rules.rules(one, host) };
    });
  });
  rules.noteUnused();
  // Behind all paths of all Ingresses: a default backend takes what they leave.
  for (const route of routes) pushAll(route.rules, rules.defaultRules(route.one, route.host));
  for (const { one, hostnames } of routes) {
    if (one.settings.isPassthrough) for (const host of hostnames) listeners.addPassthrough(host);
  }
  for (const one of mains) {
    listeners.addCertificates(one.object, [...one.hosts.keys()], aliasesOf.get(one) ?? [], one.note);
  }
  listeners.place();
  const imported = routes
    .filter((route) => route.rules.length > 0)
    .flatMap((route) => routesOf(route, parts));
  return [...listeners.objects(), ...imported];
}

function readIngress(object: Ingress, { isOurs, notes }: ClassParts): ReadIngress {
  const { metadata, spec } = object;
  const key = keyOf(object);
  const note: Note = (sentence) => notes.add(`${key}: ${sentence}`);
  const { namespace = '', name = '', annotations = {} } = metadata;
  if (isOurs && Object.keys(annotations).some((one) => one.startsWith('nginx.ingress.'))) {
    note('annotations of ingress-nginx had no effect with this class so far; they are imported all the same');
  }
  const hosts = new Map<string, HTTPIngressPath[]>();
  for (const { host = '', http } of spec.rules ?? []) {
    const plain = plainHost(host);
    const paths = hosts.get(plain) ?? [];
    pushAll(paths, http?.paths ?? []);
    hosts.set(plain, paths);
    if (plain.startsWith('*'))
      note(`${plain} is for one label in an Ingress, and for any depth in Gateway API`);
  }
  // A default backend is also for hosts that no Ingress has.
  if (spec.defaultBackend !== undefined && !hosts.has('')) hosts.set('', []);
  const settings = readAnnotations(annotations, note);
  const isEmpty = spec.defaultBackend === undefined && ![...hosts.values()].some((paths) => paths.length > 0);
  if (isEmpty) note('no Route: it has neither paths nor a default backend');
  else if (settings.isClosed) {
    note('its backends have weight 0: requests get 500 until you have decided who may make them');
  }
  return { key, namespace, name, object, settings, note, hosts };
}

function freeAliases({ settings, note }: ReadIngress, known: ReadonlySet<string>): string[] {
  const taken = settings.aliases.filter((alias) => known.has(alias));
  if (taken.length > 0) note(`server-alias: ${taken.join(', ')} not imported: there are rules for that host`);
  return settings.aliases.filter((alias) => !known.has(alias));
}

interface ImportedRoute {
  readonly one: ReadIngress;
  readonly host: string;
  /** The host and its aliases; none for all hosts. */
  readonly hostnames: readonly string[];
  readonly rules: readonly HTTPRouteRule[];
}

/** The Routes of an Ingress for a host. */
function routesOf(route: ImportedRoute, { isOurs, listeners, names }: ClassParts): (HTTPRoute | TLSRoute)[] {
  const { one, host, hostnames, rules } = route;
  const { settings, namespace, note, object } = one;
  const name = names.of(namespace, host === '' ? one.name : `${one.name}-${nameOfHost(host)}`);
  const plain = [listeners.plainParent(namespace)];
  const secure = listeners.secureParents(hostnames.length === 0 ? [''] : hostnames, namespace);
  const isPassthrough = settings.isPassthrough && host !== '';
  const hasTls = secure.length > 0 && (!isOurs || isPassthrough || listeners.isOfIngress(object, host));
  const httpRoutes = (parents: ParentReference[], all: readonly HTTPRouteRule[], from: string): HTTPRoute[] =>
    chunks(all, maxRules).map((some, i) => ({
      apiVersion: `${gatewayGroup}/v1`,
      kind: 'HTTPRoute',
      metadata: { namespace, name: i === 0 ? from : names.of(namespace, `${from}-${i + 1}`) },
      spec: {
        parentRefs: parents,
        ...(hostnames.length === 0 ? {} : { hostnames: [...hostnames] }),
        rules: some,
      },
    }));
  if (settings.isForced && secure.length === 0) {
    note(
      'force-ssl-redirect not imported where no listener has a certificate: where TLS ends before the Gateway, send clients to https there',
    );
  }
  const isRedirected =
    hasTls && settings.redirect === undefined && (settings.isRedirected || settings.isForced);
  const redirect = isRedirected
    ? httpRoutes(plain, redirectRules(rules), names.of(namespace, `${name}-to-https`))
    : [];
  if (!isPassthrough) {
    return [...httpRoutes(isRedirected ? secure : [...plain, ...secure], rules, name), ...redirect];
  }
  return [
    ...passthroughRoute(route, secure, name),
    ...(isRedirected ? redirect : httpRoutes(plain, rules, name)),
  ];
}

/** To https, for all paths that are served there. */
function redirectRules(rules: readonly HTTPRouteRule[]): HTTPRouteRule[] {
  const byPath = new Map<string, HTTPRouteMatch>();
  for (const { path } of rules.flatMap(({ matches = [] }) => matches)) {
    if (path !== undefined) byPath.set(JSON.stringify(path), { path });
  }
  return chunks([...byPath.values()], maxMatches).map((matches) => ({ matches, filters: [redirectToHttps] }));
}

/** TLS has no paths: all of it goes where `/` does. */
function passthroughRoute(
  { one, host, hostnames, rules }: ImportedRoute,
  parentRefs: ParentReference[],
  name: string,
): TLSRoute[] {
  const isRoot = ({ matches = [] }: HTTPRouteRule): boolean =>
    matches.some(({ path }) => path?.value === '/');
  const { backendRefs = [] } = rules.find(isRoot) ?? rules[0] ?? {};
  if (backendRefs.length === 0) {
    one.note(`ssl-passthrough for ${host} not imported: it has no backend`);
    return [];
  }
  if (rules.length > 1) one.note(`all TLS of ${host} goes where / does: it has no paths`);
  return [
    {
      apiVersion: `${gatewayGroup}/v1`,
      kind: 'TLSRoute',
      metadata: { namespace: one.namespace, name },
      spec: { parentRefs, hostnames: [...hostnames], rules: [{ backendRefs }] },
    },
  ];
}

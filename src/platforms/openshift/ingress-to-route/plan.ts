import type { Secret, Service } from '../../../objects/types/core.generated.ts';
import type {
  Ingress,
  HTTPIngressPath,
  IngressClass,
  IngressLoadBalancerIngress,
  IngressServiceBackend,
} from '../../../objects/types/networking.generated.ts';
import type { TLSConfig, Route, RouteSpec } from '../../../objects/types/route.generated.ts';
import { compareText } from '../../../objects/formats/go-text.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { classAnnotation, ingressToRouteController } from '../../../network/http/ingress.ts';

/** Looks up a Secret of the Ingress' namespace by its name. */
export type NamedSecrets = (name: string) => Pick<Secret, 'type' | 'data'> | undefined;

const terminationAnnotation = 'route.openshift.io/termination';
const destinationAnnotation = 'route.openshift.io/destination-ca-certificate-secret';
const terminations = ['edge', 'passthrough', 'reencrypt'];

/**
 * How the TLS of a rule's Routes ends; undefined: there is none; a text: why they cannot be made. There is TLS where
 * `spec.tls` has the host, with its Secret, or has an empty entry, or where the annotation says how it ends.
 */
function tlsOfRule(
  { metadata, spec }: Pick<Ingress, 'metadata' | 'spec'>,
  host: string,
  secrets: NamedSecrets,
): TLSConfig | string | undefined {
  const entries = spec.tls ?? [];
  const entry = entries.find(({ hosts }) => hosts?.includes(host));
  const certificate = entry === undefined ? undefined : certificateOf(secrets(entry.secretName ?? ''));
  if (entry !== undefined && certificate === undefined) {
    return `the Secret ${JSON.stringify(entry.secretName ?? '')} with the certificate of ${host} is missing, or of another type`;
  }
  const annotated = metadata.annotations?.[terminationAnnotation] ?? '';
  const isAnnotated = terminations.includes(annotated);
  const hasEmpty = entries.some(({ hosts = [], secretName = '' }) => hosts.length === 0 && secretName === '');
  if (!isAnnotated && certificate === undefined && !hasEmpty) return undefined;
  const termination = isAnnotated ? annotated : 'edge';
  const authority = authorityOf(secrets(metadata.annotations?.[destinationAnnotation] ?? ''));
  return {
    termination,
    insecureEdgeTerminationPolicy: 'Redirect',
    ...(termination === 'passthrough' ? {} : certificate),
    ...(termination === 'reencrypt' && authority !== undefined
      ? { destinationCACertificate: authority }
      : {}),
  };
}

function certificateOf(secret: ReturnType<NamedSecrets>): Pick<TLSConfig, 'certificate' | 'key'> | undefined {
  const { 'tls.crt': certificate, 'tls.key': key } = secret?.data ?? {};
  if (secret?.type !== 'kubernetes.io/tls' || certificate === undefined || key === undefined)
    return undefined;
  return { certificate: decoded(certificate), key: decoded(key) };
}

/** The authorities of the Pods' certificates. */
function authorityOf(secret: ReturnType<NamedSecrets>): string | undefined {
  const certificate = secret?.data?.['tls.crt'];
  const isOfType = secret?.type === 'kubernetes.io/tls' || secret?.type === 'Opaque';
  return isOfType && certificate !== undefined ? decoded(certificate) : undefined;
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}

/** Whether labels of Routes follow those of their Ingress. */
export const labelsAnnotation = 'route.openshift.io/reconcile-labels';
const apiVersion = 'networking.k8s.io/v1';

/** The objects that an Ingress refers to. */
export interface ReferredObjects {
  readonly secrets: NamedSecrets;
  readonly service: (name: string) => Pick<Service, 'spec'> | undefined;
}

/** The writes that make the Routes of an Ingress equal to the plan. */
export interface RoutePlan {
  /** With a `generateName`. */
  readonly creates: readonly Omit<Route, 'status'>[];
  /** Whole objects, with the resourceVersion of the present ones. */
  readonly updates: readonly Route[];
  readonly deletes: readonly Route[];
  /** Why rules have no Route, each with its place. */
  readonly incomplete: readonly string[];
  /** Of which Routes nothing but the target port is another one now, each with its place. */
  readonly otherPorts: readonly string[];
  /** The value of the annotation about labels, if it is no boolean; absent: it is valid, empty, or missing. */
  readonly invalidReconcileLabels?: string;
  /** The Ingress' status then. */
  readonly loadBalancer: readonly IngressLoadBalancerIngress[];
}

/**
 * Whether Routes are made of an Ingress. Unlike with other controllers, the annotation goes before the field; an Ingress
 * without a class is taken.
 */
export function isManaged(
  { metadata, spec }: Pick<Ingress, 'metadata' | 'spec'>,
  classOf: (name: string) => IngressClass | undefined,
): boolean {
  const name = metadata.annotations?.[classAnnotation] ?? spec.ingressClassName;
  return name === undefined || classOf(name)?.spec.controller === ingressToRouteController;
}

/** The Ingress that controls a Route; undefined for a Route without one. */
export function ingressOf({ metadata }: Pick<Route, 'metadata'>): string | undefined {
  return metadata.ownerReferences?.find(
    (owner) =>
      owner.kind === 'Ingress' && owner.controller === true && /\/v1(beta1)?$/.test(owner.apiVersion),
  )?.name;
}

/**
 * One Route for each path with a host and a Service (route-controller-manager `route/ingress`). What users changed of a
 * Route's weight, insecure policy, authorities and header actions stays; Routes that no path leads to go.
 *
 * @param owned the Routes that the Ingress controls.
 */
export function planRoutes(ingress: Ingress, owned: readonly Route[], objects: ReferredObjects): RoutePlan {
  const left = new Set(owned);
  const creates: Omit<Route, 'status'>[] = [];
  const updates: Route[] = [];
  const kept: Route[] = [];
  const incomplete: string[] = [];
  const otherPorts: string[] = [];
  const labelsFollow = booleanOf(ingress.metadata.annotations?.[labelsAnnotation] ?? '');
  for (const { place, host, path, problem } of pathsOf(ingress)) {
    if (problem !== undefined || path === undefined) {
      incomplete.push(`${problem ?? ''} (${place})`);
      continue;
    }
    const wanted = specOf(ingress, host, path, objects);
    if (typeof wanted === 'string') {
      incomplete.push(`${wanted} (${place})`);
      continue;
    }
    const present = [...left].find(
      ({ spec }) => spec.host === wanted.host && (spec.path ?? '') === (wanted.path ?? ''),
    );
    if (present === undefined) {
      creates.push({ ...kind, metadata: newMetadata(ingress), spec: wanted });
      continue;
    }
    left.delete(present);
    const next = changed(present, wanted, ingress, labelsFollow === true);
    if (jsonEqual(next, present)) kept.push(present);
    else updates.push(next);
    if (isOtherPort(present, next)) otherPorts.push(`the Service ${wanted.to.name} (${place})`);
  }
  const deletes = [...left];
  return {
    creates,
    updates,
    deletes,
    incomplete,
    otherPorts,
    ...(labelsFollow === undefined && {
      invalidReconcileLabels: ingress.metadata.annotations?.[labelsAnnotation] ?? '',
    }),
    loadBalancer: loadBalancerOf(ingress, deletes, [...kept, ...updates]),
  };
}

const kind = { apiVersion: 'route.openshift.io/v1', kind: 'Route' };

interface PlacedPath {
  /** For messages. */
  readonly place: string;
  readonly host: string;
  readonly path: (HTTPIngressPath & { backend: { service: IngressServiceBackend } }) | undefined;
  readonly problem: string | undefined;
}

/** Every path, or why a rule or path can have no Route. */
function* pathsOf({ spec }: Ingress): Generator<PlacedPath> {
  for (const [i, { host = '', http }] of (spec.rules ?? []).entries()) {
    const at = (place: string, problem: string): PlacedPath => ({ place, host, path: undefined, problem });
    if (http === undefined) yield at(`rule ${i}`, 'no http');
    else if (host === '') yield at(`rule ${i}`, 'no host');
    else {
      for (const [j, path] of (http.paths ?? []).entries()) {
        const place = `rule ${i}, path ${j}`;
        const { service } = path.backend;
        if (service === undefined) yield at(place, 'the backend is no Service');
        else if (path.pathType === 'Exact') yield at(place, 'Routes have no exact paths');
        else yield { place, host, path: { ...path, backend: { service } }, problem: undefined };
      }
    }
  }
}

/** The spec of a path's Route, or why there is none. */
function specOf(
  ingress: Ingress,
  host: string,
  {
    path = '',
    backend: { service: backend },
  }: HTTPIngressPath & { backend: { service: IngressServiceBackend } },
  { service: serviceOf, secrets }: ReferredObjects,
): RouteSpec | string {
  const service = serviceOf(backend.name);
  if (service === undefined) return `the Service ${backend.name} is not there`;
  const { name = '', number = 0 } = backend.port ?? {};
  const port = (service.spec.ports ?? []).find((one) =>
    name === '' ? one.port === number : one.name === name,
  );
  if (port === undefined) return `the Service ${backend.name} has no port ${name === '' ? number : name}`;
  const tls = tlsOfRule(ingress, host, secrets);
  if (typeof tls === 'string') return tls;
  const isWildcard = host.startsWith('*.');
  return {
    host: isWildcard ? `wildcard${host.slice(1)}` : host,
    ...(path === '' ? {} : { path }),
    to: { kind: 'Service', name: backend.name, weight: 100 },
    // Without a name there is one port, and a Route without a port means all.
    ...((port.name ?? '') === '' ? {} : { port: { targetPort: port.name ?? '' } }),
    ...(tls === undefined ? {} : { tls }),
    wildcardPolicy: isWildcard ? 'Subdomain' : 'None',
  };
}

function newMetadata({ metadata }: Ingress): Route['metadata'] {
  const { name = '', namespace = '', uid = '', labels, annotations } = metadata;
  return {
    generateName: `${name}-`,
    namespace,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ownerReferences: [{ apiVersion, kind: 'Ingress', name, uid, controller: true }],
  };
}

/** As Go's strconv.ParseBool, in any case of letters; empty is false; undefined: it is none. */
function booleanOf(text: string): boolean | undefined {
  if (/^(1|t|true)$/i.test(text)) return true;
  return /^(0|f|false|)$/i.test(text) ? false : undefined;
}

/** OpenShift looks at the port where backend and metadata have not changed. */
function isOtherPort(present: Route, next: Route): boolean {
  return (
    present.spec.to.name === next.spec.to.name &&
    jsonEqual(present.metadata, next.metadata) &&
    !jsonEqual(present.spec.port ?? {}, next.spec.port ?? {})
  );
}

/** The Route with what it should have; the same in content where it has that. */
function changed(present: Route, wanted: RouteSpec, ingress: Ingress, labelsFollow: boolean): Route {
  const { annotations, labels, ownerReferences } = newMetadata(ingress);
  const metadata: Route['metadata'] = { ...present.metadata, ...(ownerReferences && { ownerReferences }) };
  assignOrDelete(metadata, 'annotations', annotations);
  if (labelsFollow) assignOrDelete(metadata, 'labels', labels);
  const spec: RouteSpec = { ...wanted, to: { ...wanted.to, weight: present.spec.to.weight ?? 100 } };
  if (present.spec.httpHeaders !== undefined) spec.httpHeaders = present.spec.httpHeaders;
  const { tls } = present.spec;
  if (spec.tls !== undefined && tls !== undefined) {
    const { caCertificate, destinationCACertificate, insecureEdgeTerminationPolicy } = tls;
    spec.tls = { ...spec.tls };
    assignOrDelete(spec.tls, 'caCertificate', caCertificate);
    assignOrDelete(spec.tls, 'insecureEdgeTerminationPolicy', insecureEdgeTerminationPolicy);
    const isKept = spec.tls.termination === 'reencrypt' && spec.tls.destinationCACertificate === undefined;
    if (isKept) assignOrDelete(spec.tls, 'destinationCACertificate', destinationCACertificate);
  }
  return { ...present, metadata, spec };
}

function assignOrDelete<T extends object, K extends keyof T>(
  object: T,
  member: K,
  value: T[K] | undefined,
): void {
  if (value === undefined) Reflect.deleteProperty(object, member);
  else object[member] = value;
}

/** Host names of routers come with admitted Routes and go with deleted ones; what others wrote stays. */
function loadBalancerOf(
  { status }: Ingress,
  deleted: readonly Route[],
  present: readonly Route[],
): IngressLoadBalancerIngress[] {
  const before = status.loadBalancer?.ingress ?? [];
  const names = new Set(present.flatMap(canonicalNames));
  const gone = new Set(deleted.flatMap(canonicalNames));
  const stays = before.filter(
    ({ ip = '', hostname = '' }) => ip !== '' || names.has(hostname) || !gone.has(hostname),
  );
  const known = new Set(stays.map(({ hostname }) => hostname));
  const added = [...names].filter((name) => !known.has(name)).sort(compareText);
  return [...stays, ...added.map((hostname) => ({ hostname }))];
}

/** Those of the routers that admitted a Route. */
function canonicalNames({ status }: Route): string[] {
  return (status.ingress ?? []).flatMap(({ conditions = [], routerCanonicalHostname: name = '' }) => {
    const admitted = conditions.find(({ type }) => type === 'Admitted');
    return admitted?.status === 'True' && name !== '' ? [name] : [];
  });
}

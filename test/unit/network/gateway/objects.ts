import { joinKey, keyOf, type ObjectKey, splitKey } from '../../../../src/objects/meta.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import type {
  BackendRef,
  BackendTLSPolicy,
  Gateway,
  GatewayListener,
  GatewaySpec,
  GRPCRoute,
  HTTPRoute,
  HTTPRouteRule,
  ListenerSet,
  ParentReference,
  ReferenceGrant,
  TLSRoute,
} from '../../../../src/objects/types/gateway.ts';
import { planGateway } from '../../../../src/network/gateway/planner.ts';
import type {
  AnyRoute,
  GatewayObjects,
  GatewayPlan,
  GatewayState,
  PlannedCondition,
} from '../../../../src/network/gateway/plan.ts';
import type { KeyPair } from '../../../../src/network/http/rules.ts';

/** Whole seconds, as `creationTimestamp` has them. */
function created(age: number): string {
  return new Date(Date.UTC(2026, 0, 1) + age * 1000).toISOString().replace('.000Z', 'Z');
}

function metadata(key: ObjectKey, age = 0): Gateway['metadata'] & { namespace: string; name: string } {
  return { ...splitKey(key), uid: `uid-${key}`, creationTimestamp: created(age), generation: 1 };
}

/** `http 80`, `https 443 *.a.test`, `tls/Passthrough 443 a.test`; HTTPS and TLS with the Secret `cert`. */
export function listener(text: string, more: Partial<GatewayListener> = {}): GatewayListener {
  const [protocol = '', port = '', hostname = ''] = text.split(' ');
  const [name = '', mode = 'Terminate'] = protocol.split('/');
  const tls =
    name === 'https' || name === 'tls'
      ? { tls: { mode, ...(mode === 'Terminate' ? { certificateRefs: [{ name: 'cert' }] } : {}) } }
      : {};
  return {
    ...{ name, port: Number(port), protocol: name.toUpperCase() },
    ...(hostname === '' ? {} : { hostname }),
    ...tls,
    ...more,
  };
}

export function gateway(
  listeners: readonly (GatewayListener | string)[],
  spec: Partial<GatewaySpec> = {},
): Gateway {
  return {
    metadata: metadata('shop/web'),
    spec: { gatewayClassName: 'servicenet', listeners: named(listeners), ...spec },
  };
}

export function listenerSet(
  key: ObjectKey,
  listeners: readonly (GatewayListener | string)[],
  age = 0,
): ListenerSet {
  return {
    metadata: metadata(key, age),
    spec: { parentRef: { name: 'web', namespace: 'shop' }, listeners: named(listeners) },
  };
}

/** Equal names get numbers. */
function named(listeners: readonly (GatewayListener | string)[]): GatewayListener[] {
  const seen = new Map<string, number>();
  return listeners.map((one) => {
    const spec = typeof one === 'string' ? listener(one) : one;
    const count = (seen.get(spec.name) ?? 0) + 1;
    seen.set(spec.name, count);
    return count === 1 ? spec : { ...spec, name: `${spec.name}-${count}` };
  });
}

/** A reference to the Gateway `shop/web`, with what else is given. */
export function toGateway(more: Partial<ParentReference> = {}): ParentReference {
  return { name: 'web', namespace: 'shop', ...more };
}

interface RouteOptions {
  readonly parents?: readonly ParentReference[];
  readonly hostnames?: readonly string[];
  readonly rules?: readonly HTTPRouteRule[];
  readonly backends?: readonly BackendRef[];
  readonly age?: number;
}

type OfKind<K> = Extract<AnyRoute, { kind: K }>['object'];

/** With one rule to the Service `web` at port 80 unless others are given. */
export function httpRoute(
  key: ObjectKey,
  { parents, hostnames, rules, backends, age }: RouteOptions = {},
): Extract<AnyRoute, { kind: 'HTTPRoute' }> {
  const object: HTTPRoute = {
    metadata: metadata(key, age),
    spec: {
      parentRefs: [...(parents ?? [toGateway()])],
      ...(hostnames === undefined ? {} : { hostnames: [...hostnames] }),
      rules: [...(rules ?? [{ backendRefs: [...(backends ?? [{ name: 'web', port: 80 }])] }])],
    },
  };
  return { kind: 'HTTPRoute', object };
}

/** As {@link httpRoute}. */
export function grpcRoute(key: ObjectKey, options: RouteOptions = {}): AnyRoute {
  const { metadata: meta, spec } = httpRoute(key, options).object;
  const object: GRPCRoute = {
    metadata: meta,
    spec: { ...spec, rules: (spec.rules ?? []).map(({ backendRefs = [] }) => ({ backendRefs })) },
  };
  return { kind: 'GRPCRoute', object };
}

/** As {@link httpRoute}; a TLSRoute has the hostname `a.test` unless others are given. */
export function streamRoute(
  kind: 'TLSRoute' | 'TCPRoute' | 'UDPRoute',
  key: ObjectKey,
  { parents, hostnames = ['a.test'], backends, age }: RouteOptions = {},
): AnyRoute {
  const spec: OfKind<'TCPRoute' | 'UDPRoute'>['spec'] = {
    parentRefs: [...(parents ?? [toGateway()])],
    rules: [{ backendRefs: [...(backends ?? [{ name: 'web', port: kind === 'UDPRoute' ? 53 : 80 }])] }],
  };
  if (kind !== 'TLSRoute') return { kind, object: { metadata: metadata(key, age), spec } };
  const object: TLSRoute = { metadata: metadata(key, age), spec: { ...spec, hostnames: [...hostnames] } };
  return { kind, object };
}

/** Ports 80 (`http`), 81 (`other`), 82 (without a name), and 53 of UDP. */
export function service(key: ObjectKey, spec: Partial<Service['spec']> = {}): Service {
  const ports: Service['spec']['ports'] = [
    { name: 'http', port: 80, protocol: 'TCP' },
    { name: 'other', port: 81, protocol: 'TCP' },
    { port: 82, protocol: 'TCP' },
    { name: 'dns', port: 53, protocol: 'UDP' },
  ];
  return { metadata: metadata(key), spec: { type: 'ClusterIP', ports, ...spec }, status: {} };
}

/** `Gateway shop` → `Secret`, or `Secret cert`. */
export function grant(namespace: string, from: string, to: string): ReferenceGrant {
  const [fromKind = '', fromNamespace = ''] = from.split(' ');
  const [kind = '', name] = to.split(' ');
  return {
    metadata: metadata(joinKey(namespace, 'grant')),
    spec: {
      from: [{ group: 'gateway.networking.k8s.io', kind: fromKind, namespace: fromNamespace }],
      to: [{ group: '', kind, ...(name === undefined ? {} : { name }) }],
    },
  };
}

/** For all ports of the Service `web` of its namespace, with the ConfigMap `ca`, unless something else is given. */
export function policy(
  key: ObjectKey,
  {
    age,
    target = {},
    validation = {},
    options,
  }: {
    readonly age?: number;
    readonly target?: Partial<BackendTLSPolicy['spec']['targetRefs'][number]>;
    readonly validation?: Partial<BackendTLSPolicy['spec']['validation']>;
    readonly options?: Record<string, string>;
  } = {},
): BackendTLSPolicy {
  const authorities =
    validation.wellKnownCACertificates === undefined
      ? { caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'ca' }] }
      : {};
  return {
    metadata: metadata(key, age),
    spec: {
      targetRefs: [{ group: '', kind: 'Service', name: 'web', ...target }],
      validation: { hostname: 'backend.test', ...authorities, ...validation },
      ...(options === undefined ? {} : { options }),
    },
  };
}

/** A certificate that tells its Secret. */
export function pairOf(secret: ObjectKey): KeyPair {
  return { certificate: `certificate of ${secret}`, key: `key of ${secret}` };
}

/** The objects of a cluster. */
export interface Cluster {
  readonly sets?: readonly ListenerSet[];
  readonly routes?: readonly AnyRoute[];
  readonly grants?: readonly ReferenceGrant[];
  /** Labels of namespaces; others have none. */
  readonly namespaces?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Without them: `shop/web` alone. */
  readonly services?: readonly Service[];
  readonly policies?: readonly BackendTLSPolicy[];
  /** Secrets that exist beside `shop/cert`; the text is a problem. */
  readonly secrets?: Readonly<Record<ObjectKey, string | undefined>>;
  /** ConfigMaps that exist beside `shop/ca`; the text is a problem. */
  readonly configMaps?: Readonly<Record<ObjectKey, string | undefined>>;
}

export function objectsOf(cluster: Cluster): GatewayObjects {
  const services = new Map((cluster.services ?? [service('shop/web')]).map((one) => [keyOf(one), one]));
  const secrets: Cluster['secrets'] = { 'shop/cert': undefined, ...cluster.secrets };
  const configMaps: Cluster['configMaps'] = { 'shop/ca': undefined, ...cluster.configMaps };
  const namesParent = (route: AnyRoute, kind: string, key: ObjectKey): boolean =>
    (route.object.spec.parentRefs ?? []).some(
      (ref) =>
        (ref.kind ?? 'Gateway') === kind &&
        joinKey(ref.namespace ?? route.object.metadata.namespace ?? '', ref.name) === key,
    );
  return {
    gatewayClass: () => undefined,
    listenerSets: () => cluster.sets ?? [],
    routes: (kind, parent) => (cluster.routes ?? []).filter((route) => namesParent(route, kind, parent)),
    grants: (namespace) => (cluster.grants ?? []).filter((one) => one.metadata.namespace === namespace),
    namespaceLabels: (namespace) => cluster.namespaces?.[namespace] ?? {},
    service: (key) => services.get(key),
    authority(key) {
      if (!Object.hasOwn(configMaps, key)) return undefined;
      const problem = configMaps[key];
      return problem === undefined ? `authority of ${key}` : { problem };
    },
    certificate(key) {
      if (!Object.hasOwn(secrets, key)) return undefined;
      const problem = secrets[key];
      return problem === undefined ? pairOf(key) : { problem };
    },
    policies: (key) =>
      (cluster.policies ?? []).filter(({ metadata: { namespace = '' }, spec }) =>
        spec.targetRefs.some(({ name }) => joinKey(namespace, name) === key),
      ),
  };
}

/** A Gateway with an address. */
export const ready: GatewayState = {
  addresses: [{ type: 'IPAddress', value: '192.0.2.1' }],
  addressProblem: undefined,
};

export function plan(
  of: Gateway | readonly (GatewayListener | string)[],
  cluster: Cluster = {},
  state: GatewayState = ready,
): GatewayPlan {
  return planGateway('spec' in of ? of : gateway(of), objectsOf(cluster), state);
}

/** `Accepted` for one that is True with its type as the reason, `Accepted=Reason` for others that are True, `!Accepted=Reason`. */
export function words(conditions: readonly PlannedCondition[] | undefined): string {
  return (conditions ?? [])
    .map(({ type, status, reason }) => {
      if (status === 'True') return type === reason ? type : `${type}=${reason}`;
      return `${status === 'False' ? '!' : '?'}${type}=${reason}`;
    })
    .join(' ');
}

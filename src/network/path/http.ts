/** The way of a request to a host of an Ingress or Route: the router, its rule, and the backends behind it. */
import { keyOf, joinKey, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { Ingress, IngressClass } from '../../objects/types/networking.generated.ts';
import type { Route } from '../../objects/types/route.generated.ts';
import { backendEndpoints, type HttpEndpoint } from '../http/backends.ts';
import { isServedIngress } from '../http/ingress.ts';
import type { RouteRefusal } from '../http/route-claims.ts';
import { type HttpDecision, RoutingTable } from '../http/routing-table.ts';
import { type HttpRule, plainHost, wildcardOf } from '../http/rules.ts';
import type { ClusterView } from './cluster-view.ts';
import { type GatewayLists, planGatewayRequest } from './gateway.ts';
import { type HttpPlan, type HttpRequest, policyStage, type Stage } from './stages.ts';
import { type EndpointPath, type Trace, tracePath, type TraceSource } from './trace.ts';

/** The objects that a router serves. */
export interface HttpObjects {
  readonly ingresses: readonly Ingress[];
  readonly routes: readonly Route[];
  readonly classes: readonly IngressClass[];
  /** Absent: those of Gateway API are not looked at; `forbidden`: they may not be read. */
  readonly gateways?: GatewayLists | 'forbidden';
}

/** Reads `http://HOST[:PORT][/PATH]` and `https://…`; undefined for other texts. */
export function parseHttpRequest(text: string): HttpRequest | undefined {
  const [, scheme = '', host = '', port, path = '/'] =
    /^(https?):\/\/([^/:?#[\]@]+)(?::(\d{1,5}))?(\/[^?#]*)?(?:[?#].*)?$/.exec(text) ?? [];
  if (scheme !== 'http' && scheme !== 'https') return undefined;
  return { scheme, host, path, port: port === undefined ? (scheme === 'http' ? 80 : 443) : Number(port) };
}

const className = 'servicenet';

/** What a router of the class `servicenet` serves of these objects. */
export interface ServedHttp {
  readonly ingresses: readonly Ingress[];
  readonly table: RoutingTable;
}

/** Routes are as their routers have judged them; Ingresses of other classes are not served. */
export function servedHttp(objects: HttpObjects): ServedHttp {
  const classes = new Map(objects.classes.map((one) => [one.metadata.name, one]));
  const ingresses = objects.ingresses.filter((ingress) => {
    // Whether Ingresses without a class are served is a flag of the router: an address says that one has.
    const withoutClass = addressesOf(ingress).length > 0;
    return isServedIngress(ingress, { className, withoutClass }, (name) => classes.get(name));
  });
  const table = new RoutingTable({
    ...{ domain: '', allowedDomains: [], deniedDomains: [], wildcards: true, ownership: true },
  });
  for (const ingress of ingresses) table.setIngress(keyOf(ingress), ingress);
  for (const route of objects.routes) table.setRoute(keyOf(route), route, refusalOf(route));
  return { ingresses, table };
}

/** The rule of a request, and where the router is that serves it. */
export function planRequest(view: ClusterView, objects: HttpObjects, request: HttpRequest): HttpPlan {
  const { scheme, host, path } = request;
  const { ingresses: served, table } = servedHttp(objects);
  const passed = scheme === 'https' ? table.passthrough(host) : undefined;
  const decision: HttpDecision =
    passed === undefined ? table.resolve({ scheme, host, path }) : { kind: 'forward', rule: passed };
  const end = (stage: Stage): HttpPlan => ({ stages: [stage], router: undefined, backends: undefined });
  const asked = `${scheme}://${host}${path}`;
  if (decision.kind === 'refuse') {
    const { rule, status, reason } = decision;
    const { gateways } = objects;
    if (reason === 'NoHost' && gateways === 'forbidden') {
      const message = `${asked}: no Ingress and no Route has the host, and Gateways may not be read`;
      return end({ stage: 'router', verdict: 'unknown', message });
    }
    const ofGateway =
      reason === 'NoHost' && gateways !== undefined && gateways !== 'forbidden'
        ? planGatewayRequest(view, gateways, request)
        : undefined;
    if (ofGateway !== undefined) return ofGateway;
    const why = reason === 'NoHost' ? whyNoHost(objects, served, host) : reasons[reason];
    const object = rule === undefined ? {} : { object: objectOf(rule) };
    const message = `${asked}: the router answers ${status} ${reason}: ${why}`;
    return end({ stage: 'router', verdict: 'deny', ...object, message });
  }
  const { rule } = decision;
  if (scheme === 'https' && passed === undefined && !hasCertificate(host, served, objects.routes)) {
    const message = `${asked}: no Ingress and no Route names a certificate for the host, so that TLS comes about only with the router's --default-certificate, which objects do not tell`;
    return end({ stage: 'router', verdict: 'unknown', object: objectOf(rule), message });
  }
  const service = routerOf(view, served, objects.routes, rule);
  const object = objectOf(rule);
  if (service === undefined) {
    const message = `${asked} is of this rule, but which Service leads to its router is not known to the cluster`;
    return end({ stage: 'router', verdict: 'unknown', object, message });
  }
  const router = { service, port: request.port };
  const by = `the router behind Service ${keyOf(service)}`;
  if (decision.kind === 'redirect') {
    const message = `${asked}: ${by} redirects to https with status ${decision.status}`;
    return { stages: [{ stage: 'router', verdict: 'allow', object, message }], router, backends: undefined };
  }
  const led = backendsOf(view, rule, `${asked}: ${by}`);
  return { ...led, router: led.backends === undefined ? undefined : router };
}

const reasons = {
  NoPath: 'rules have the host, and none of them has the path',
  NotServedInsecurely: 'it is served by https alone',
  NotServedSecurely: 'it is served by http alone',
  PassthroughOnly: 'TLS of this host is passed through by its server name',
} as const;

function objectOf({ source: { kind, namespace, name } }: HttpRule): string {
  return `${kind} ${namespace}/${name}`;
}

function addressesOf({ status }: Ingress): readonly string[] {
  return (status.loadBalancer?.ingress ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]));
}

/** What its routers have written, where none of them serves it. */
function refusalOf({ status }: Route): RouteRefusal | undefined {
  const said = (status.ingress ?? []).flatMap(({ conditions = [] }) =>
    conditions.filter(({ type }) => type === 'Admitted'),
  );
  const [refused] = said;
  if (refused === undefined || said.some((one) => one.status === 'True')) return undefined;
  const { reason = '', message = '' } = refused;
  return { reason: 'RouteNotAdmitted', message: `${reason}: ${message}` };
}

function whyNoHost({ ingresses, routes }: HttpObjects, served: readonly Ingress[], host: string): string {
  const other = ingresses.find(
    (one) => !served.includes(one) && (one.spec.rules ?? []).some((rule) => rule.host === host),
  );
  if (other !== undefined) return `Ingress ${keyOf(other)} has it, and is not of the router's class`;
  const refused = routes.find((one) => one.spec.host === host && refusalOf(one) !== undefined);
  const why = refused && refusalOf(refused);
  if (refused === undefined || why === undefined) return 'no Ingress and no Route has the host';
  return `Route ${keyOf(refused)} has it, and is not admitted: ${why.message}`;
}

/**
 * Whether an object names a certificate that the router takes for a host. Secrets are not read: they are taken to be there.
 */
function hasCertificate(host: string, served: readonly Ingress[], routes: readonly Route[]): boolean {
  const name = plainHost(host);
  const names = new Set([name, wildcardOf(name) ?? name]);
  const covers = (hosts: readonly string[]): boolean => hosts.some((each) => names.has(plainHost(each)));
  const ofIngress = served.some(({ spec }) =>
    (spec.tls ?? []).some(({ secretName = '', hosts = [] }) => {
      const all = hosts.length === 0 ? (spec.rules ?? []).map((rule) => rule.host ?? '') : hosts;
      return secretName !== '' && covers(all);
    }),
  );
  return (
    ofIngress ||
    routes.some((route) => {
      const { certificate = '', externalCertificate } = route.spec.tls ?? {};
      const isNamed = certificate !== '' || externalCertificate !== undefined;
      return isNamed && refusalOf(route) === undefined && covers([route.spec.host ?? '']);
    })
  );
}

/** By the addresses of the Ingress, by the name that a Route's router has written, or by the name of its Service. */
function routerOf(
  view: ClusterView,
  served: readonly Ingress[],
  routes: readonly Route[],
  { source: { kind, namespace, name } }: HttpRule,
): Service | undefined {
  const key = joinKey(namespace, name);
  const ingresses = kind === 'Ingress' ? served.filter((one) => keyOf(one) === key) : [];
  const names = routes
    .filter((one) => kind === 'Route' && keyOf(one) === key)
    .flatMap(({ status }) => (status.ingress ?? []).map((one) => one.routerCanonicalHostname ?? ''));
  const candidates: (ObjectKey | undefined)[] = [
    ...ingresses.flatMap(addressesOf).map((address) => view.serviceAt(address)),
    ...names.map((text) => {
      const [, service = '', within = ''] = /^([^.]+)\.([^.]+)\.svc(?:\.|$)/.exec(text) ?? [];
      return service === '' ? undefined : joinKey(within, service);
    }),
    ...view.objects.services.flatMap((service) =>
      service.metadata.labels?.['app.kubernetes.io/name'] === 'servicenet-router' ? [keyOf(service)] : [],
    ),
  ];
  for (const candidate of candidates) {
    const service = candidate === undefined ? undefined : view.service(candidate);
    if (service !== undefined) return service;
  }
  return undefined;
}

/** @param asked the request and its router, to begin a message. */
function backendsOf(view: ClusterView, rule: HttpRule, asked: string): Pick<HttpPlan, 'stages' | 'backends'> {
  const { kind } = rule.source;
  const found = rule.backends
    .filter(({ weight }) => weight > 0)
    .map((backend) => {
      const key = joinKey(backend.namespace, backend.service);
      return { key, ...backendEndpoints(backend, kind, view.service(key), view.slicesOf(key)) };
    });
  const where = `host ${rule.host === '' ? '*' : rule.host}, path ${rule.path === '' ? '/' : rule.path}`;
  const backends = found.flatMap(({ endpoints }) => endpoints);
  const names = [...new Set(found.map(({ key }) => `Service ${key}`))].join(', ');
  const object = objectOf(rule);
  if (backends.length > 0) {
    const count = backends.length === 1 ? 'its endpoint' : `one of ${backends.length} endpoints`;
    const message = `${asked} leads by the rule for ${where} to ${names}, to ${count}`;
    return { stages: [{ stage: 'router', verdict: 'allow', object, message }], backends };
  }
  const [first] = found;
  const problem = first?.problem ?? 'NoWeight';
  const detail = problem === 'NoEndpoints' ? view.noEndpointDetail(first?.key) : '';
  const message = `${asked} answers 503 ${problem}: the rule for ${where} leads to ${names || 'no Service'}${detail}`;
  return { stages: [{ stage: 'router', verdict: 'deny', object, message }], backends: undefined };
}

/**
 * The trace to a router, and on to where it leads.
 *
 * @param plan to the router.
 * @param backends those of {@link planRequest}.
 */
export function withBackends(view: ClusterView, plan: Trace, backends: HttpPlan['backends']): Trace {
  if (backends === undefined || plan.endpoints.length === 0) return plan;
  const stage = backendStage(view, backends, plan.endpoints);
  const reachable =
    stage.verdict === 'deny'
      ? false
      : stage.verdict === 'allow'
        ? plan.reachable
        : plan.reachable && undefined;
  return { ...plan, reachable, stages: [...plan.stages, stage] };
}

/**
 * Whether the router reaches its backends: a connection of its own, from where the first one has led to.
 *
 * @param routers the endpoints of the trace to the router.
 */
function backendStage(
  view: ClusterView,
  backends: readonly HttpEndpoint[],
  routers: readonly EndpointPath[],
): Stage {
  const ways = routers.flatMap((router) => backends.map((backend) => behind(view, router, backend)));
  const stage = 'router';
  const objects = [...new Set(ways.flatMap(({ object }) => object ?? []))].join(', ');
  const object = objects === '' ? {} : { object: objects };
  if (ways.every(({ reachable }) => reachable === true))
    return { stage, verdict: 'allow', ...object, message: 'the router reaches what it leads to' };
  const denied = ways.find(({ reachable }) => reachable === false)?.why;
  if (denied !== undefined && ways.every(({ reachable }) => reachable === false)) {
    const message = `the router does not reach what it leads to: ${denied.stage}: ${denied.message}`;
    return { ...denied, stage, verdict: 'deny', message };
  }
  const message =
    'whether the router reaches all that it leads to depends on what objects do not tell, or differs';
  return { stage, verdict: 'unknown', ...object, message };
}

interface SecondWay {
  readonly object: string | undefined;
  readonly reachable: boolean | undefined;
  /** What denies it. */
  readonly why: Stage | undefined;
}

function behind(view: ClusterView, router: EndpointPath, { address, port }: HttpEndpoint): SecondWay {
  const pod = view.podAt(router.address);
  const node = view.nodeAt(router.address);
  const source: TraceSource | undefined =
    pod === undefined ? node && { kind: 'node', node } : { kind: 'pod', pod };
  if (source === undefined) {
    // A machine beside the nodes, such as the control plane of `up`.
    const stage = policyStage(
      view,
      {
        ...{ source: { kind: 'other' }, sourceAddress: router.address, protocol: 'TCP' },
        ...{ destination: view.sideAt(address), destinationAddress: address, port },
      },
      'ingress',
    );
    const isDenied = stage.verdict === 'deny';
    return { object: undefined, reachable: !isDenied, why: isDenied ? stage : undefined };
  }
  const { reachable, endpoints, stages } = tracePath(view, source, { address, port, protocol: 'TCP' });
  const all = [...stages, ...endpoints.flatMap((each) => each.stages)];
  return {
    ...{ object: endpoints[0]?.object, reachable },
    why: all.find(({ verdict }) => verdict === 'deny'),
  };
}

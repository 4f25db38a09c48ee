import { isAlreadyExists, isNotFound } from '../client/errors.ts';
import type { Draft, ResourceClient } from '../client/resource-client.ts';
import { type KubeObject, type ObjectKey, splitKey } from '../objects/meta.ts';
import { whenAborted, isAborted } from '../client/clock.ts';
import { InformerFactory } from '../client/informers/shared-informer.ts';
import {
  endpointSlices,
  gatewayClasses,
  gateways,
  services,
  ingressClasses,
  ingresses,
  routes,
} from '../client/resources.ts';
import { gatewayController } from '../network/gateway/plan.ts';
import type { Transport } from '../client/transport.ts';
import { DnsServer } from '../dns/dns-server.ts';
import { localHost } from '../host/local-host.ts';
import { dnsAddress, dnsServiceKey, dnsServiceObjects } from '../network/dns/dns-service.ts';
import type { RefusedRequest } from '../network/flows/tracker.ts';
import { resolvConf } from '../network/dns/resolv-conf.ts';
import { type ParsedCidr, type IPFamily, parseAddress } from '../objects/address.ts';
import type { Pod } from '../objects/types/core.generated.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';
import {
  ingressController,
  ingressToRouteController,
  routerServiceObjects,
} from '../network/http/ingress.ts';
import type { RouteClaimOptions } from '../network/http/route-claims.ts';
import { routeDomain } from '../objects/names.ts';

/**
 * Creates an object of the cluster's own, unless there is one of the name: that of an earlier run, or the user's. It is
 * looked for first: a create of what exists can be refused for another reason, such as its cluster IP.
 */
export async function createMissing<T extends KubeObject>(
  client: ResourceClient<T>,
  object: Draft<T>,
): Promise<void> {
  const { namespace = '', name = '' } = object.metadata;
  try {
    await client.get(namespace, name);
    return;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  try {
    await client.create(object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** Of the names of Services. */
export const clusterDomain = 'cluster.local';
const port = 53;

/** DNS of the cluster: a server on the control plane, behind the Service kube-dns at the tenth address of the range. */
export class ClusterDns implements Runnable {
  readonly #context: ControllerContext;
  readonly #transport: Transport;
  readonly #addresses: readonly string[];
  readonly #serviceRanges: readonly ParsedCidr[];
  /** Gets each answer while flows are watched. */
  onAnswer: ((answer: Buffer, client: string) => void) | undefined;

  /** @param addresses of the control plane. */
  constructor(
    context: ControllerContext,
    transport: Transport,
    addresses: readonly string[],
    serviceRanges: readonly ParsedCidr[],
  ) {
    this.#context = context;
    this.#transport = transport;
    this.#addresses = addresses;
    this.#serviceRanges = serviceRanges;
  }

  /** A Pod's `/etc/resolv.conf`. A node of this network has none: no name outside of the cluster can be asked for. */
  resolvConfOf(pod: Pod): string {
    const node = { nameservers: [], searches: [], options: [] };
    return resolvConf(pod, { servers: this.#serviceRanges.map(dnsAddress), domain: clusterDomain, node })
      .text;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, metrics } = this.#context;
    // The agents' informers leave headless Services out.
    const informers = new InformerFactory({ transport: this.#transport, clock, random, log });
    const server = new DnsServer({
      ...{ informers, host: localHost, clock, random, metrics },
      // No warning: names outside of the cluster have no upstream here.
      log: log.isLevelEnabled('error') ? log.child({}, { level: 'error' }) : log,
      zone: { domain: clusterDomain, ttl: 5, pods: 'insecure', service: dnsServiceKey },
      ...{ addresses: this.#addresses, port, upstreams: [] },
      onAnswer: (answer, client) => this.onAnswer?.(answer, client),
    });
    informers.start(signal);
    try {
      await server.start();
      await this.#createService();
    } catch (error) {
      log.error({ err: error }, 'no names are resolved in the cluster network');
    }
    await whenAborted(signal);
    await server.close();
    await informers.finished();
  }

  async #createService(): Promise<void> {
    const { service, slices } = dnsServiceObjects(this.#serviceRanges, this.#addresses, port);
    const { clients } = this.#context;
    await createMissing(clients.for(services), service);
    for (const slice of slices) await createMissing(clients.for(endpointSlices), slice);
  }
}

const className = 'servicenet';
const ingressClass = { name: className, controller: ingressController };
/** Its Ingresses become Routes. */
const routeClass = { name: 'openshift-default', controller: ingressToRouteController };
const isDefaultAnnotation = 'ingressclass.kubernetes.io/is-default-class';
/** As OpenShift's router has it, without wildcards. */
const routeClaims: RouteClaimOptions = {
  domain: routeDomain,
  allowedDomains: [],
  deniedDomains: [],
  wildcards: false,
  ownership: true,
};
/** Ports of the control plane, behind 80 and 443 of the Service. */
const ports = { http: 10_180, https: 10_543 };

/** Kinds that the server has beside Ingresses. */
interface RoutedKinds {
  readonly routes: boolean;
  readonly gateways: boolean;
}

/**
 * Ingresses, Gateways and, on OpenShift's platform, Routes of the cluster: a router on the control plane, behind a Service
 * of type LoadBalancer. It begins with the first of them: until then there is no Service and no IngressClass. The
 * GatewayClass is there from the start: clients ask for it by name.
 */
export class ClusterRouter implements Runnable {
  readonly #context: ControllerContext;
  readonly #transport: Transport;
  readonly #addresses: readonly string[];
  readonly #hasRoutes: boolean;
  readonly #hasGateways: boolean;
  /** Gets the requests that the router refuses while flows are watched. */
  onRefused: ((request: RefusedRequest) => void) | undefined;

  /** @param addresses of the control plane. */
  constructor(
    context: ControllerContext,
    transport: Transport,
    addresses: readonly string[],
    has: RoutedKinds,
  ) {
    this.#context = context;
    this.#transport = transport;
    this.#addresses = addresses;
    this.#hasRoutes = has.routes;
    this.#hasGateways = has.gateways;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, metrics } = this.#context;
    // Those of the agents leave headless Services out, and nothing here reads Ingresses.
    const informers = new InformerFactory({ transport: this.#transport, clock, random, log });
    const first = Promise.withResolvers<undefined>();
    informers.informer(ingresses).addHandler({ added: () => first.resolve(undefined) });
    if (this.#hasRoutes) informers.informer(routes).addHandler({ added: () => first.resolve(undefined) });
    if (this.#hasGateways) informers.informer(gateways).addHandler({ added: () => first.resolve(undefined) });
    const classes = this.#hasGateways ? this.#runClasses({ ...this.#context, informers }, signal) : undefined;
    informers.start(signal);
    await Promise.race([first.promise, whenAborted(signal)]);
    if (isAborted(signal)) {
      await Promise.all([classes, informers.finished()]);
      return;
    }
    const { Router } = await import('../router/router.ts');
    const { RouterStatus } = await import('../router/router-status.ts');
    const { GatewayWriter } = await import('../router/gateway/writer.ts');
    const router = new Router({
      ...{ informers, host: localHost, clock, random, log, metrics, addresses: this.#addresses },
      ...{ httpPort: ports.http, httpsPort: ports.https },
      onRefused: (request) => this.onRefused?.(request),
      routing: {
        // OpenShift makes Routes of Ingresses that name no class.
        selection: { className, withoutClass: !this.#hasRoutes },
        ...{ routes: this.#hasRoutes, gateways: this.#hasGateways, claims: routeClaims },
        defaultCertificate: undefined,
        ...{ forwardedPolicy: 'replace', accessLog: false, connectTimeoutMs: 5000, backendTimeoutMs: 60_000 },
        ...{ maxClientRequests: 1000, upgrades: ['websocket'] },
      },
    });
    const families: IPFamily[] = this.#addresses.flatMap((address) => parseAddress(address)?.family ?? []);
    const { service, slices, key } = routerServiceObjects(families, this.#addresses, ports);
    const status = new RouterStatus({ ...this.#context, informers }, router.view, router.table, {
      ...{ publishService: key, publishAddresses: [], podName: '' },
      // The Service's own name: it leads to the router from Pods.
      router: { name: className, canonicalHostname: this.#hasRoutes ? hostOf(key) : '' },
    });
    try {
      await this.#createClasses();
      await router.start();
      await createMissing(this.#context.clients.for(services), service);
      for (const slice of slices) await createMissing(this.#context.clients.for(endpointSlices), slice);
      const gatewayStatus =
        router.gateways === undefined
          ? undefined
          : new GatewayWriter({ ...this.#context, informers }, router.gateways, key);
      await Promise.all([status.run(signal), gatewayStatus?.run(signal)]);
    } catch (error) {
      log.error({ err: error }, 'no Ingress and no Route is served in the cluster network');
    }
    await whenAborted(signal);
    await router.close(0);
    await Promise.all([classes, informers.finished()]);
  }

  /** Makes our GatewayClass, and says of each whether it is served. */
  async #runClasses(context: ControllerContext, signal: AbortSignal): Promise<void> {
    const { gatewayClassLoop } = await import('../router/gateway/writer.ts');
    const loop = gatewayClassLoop(context);
    try {
      await createMissing(context.clients.for(gatewayClasses), {
        apiVersion: 'gateway.networking.k8s.io/v1',
        kind: 'GatewayClass',
        metadata: { name: className },
        spec: { controllerName: gatewayController },
      });
    } catch (error) {
      context.log.error({ err: error }, 'there is no GatewayClass');
    }
    await loop.run(signal);
  }

  /** The classes; the platform's own is the default one where there is no other. */
  async #createClasses(): Promise<void> {
    const client = this.#context.clients.for(ingressClasses);
    const { items } = await client.list();
    const isTaken = items.some(({ metadata }) => metadata.annotations?.[isDefaultAnnotation] === 'true');
    const own = this.#hasRoutes ? routeClass : ingressClass;
    for (const { name, controller } of this.#hasRoutes ? [routeClass, ingressClass] : [ingressClass]) {
      const isDefault = name === own.name && !isTaken;
      await createMissing(client, {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'IngressClass',
        metadata: { name, ...(isDefault ? { annotations: { [isDefaultAnnotation]: 'true' } } : {}) },
        spec: { controller },
      });
    }
  }
}

function hostOf(service: ObjectKey): string {
  const { namespace, name } = splitKey(service);
  return `${name}.${namespace}.svc.cluster.local`;
}

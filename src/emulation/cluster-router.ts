import { isAborted, whenAborted } from '../client/abort.ts';
import { InformerFactory } from '../client/informers/informer-factory.ts';
import { endpointSlices, ingressClasses, ingresses, routes, services } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { localHost } from '../host/local-host.ts';
import { ingressController, ingressToRouteController } from '../network/http/ingress-class.ts';
import type { RouteClaimOptions } from '../network/http/route-claims.ts';
import { routerServiceObjects } from '../network/http/router-service.ts';
import { type IPFamily, parseAddress } from '../objects/address.ts';
import { type ObjectKey, splitKey } from '../objects/key.ts';
import { routeDomain } from '../objects/route-domain.ts';
import { createMissing } from './create-missing.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';

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

/**
 * Ingresses and, on OpenShift's platform, Routes of the cluster: a router on the control plane, behind a Service of type
 * LoadBalancer. It begins with the first of them: until then there is no Service, no class and no cost.
 */
export class ClusterRouter implements Runnable {
  readonly #context: ControllerContext;
  readonly #transport: Transport;
  readonly #addresses: readonly string[];
  readonly #hasRoutes: boolean;

  /** @param addresses of the control plane. @param hasRoutes whether the server has Routes. */
  constructor(
    context: ControllerContext,
    transport: Transport,
    addresses: readonly string[],
    hasRoutes: boolean,
  ) {
    this.#context = context;
    this.#transport = transport;
    this.#addresses = addresses;
    this.#hasRoutes = hasRoutes;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, metrics } = this.#context;
    // Those of the agents leave headless Services out, and nothing here reads Ingresses.
    const informers = new InformerFactory({ transport: this.#transport, clock, random, log });
    const first = Promise.withResolvers<undefined>();
    informers.informer(ingresses).addHandler({ added: () => first.resolve(undefined) });
    if (this.#hasRoutes) informers.informer(routes).addHandler({ added: () => first.resolve(undefined) });
    informers.start(signal);
    await Promise.race([first.promise, whenAborted(signal)]);
    if (isAborted(signal)) {
      await informers.finished();
      return;
    }
    const { Router } = await import('../router/router.ts');
    const { RouterStatus } = await import('../router/router-status.ts');
    const router = new Router({
      ...{ informers, host: localHost, clock, random, log, metrics, addresses: this.#addresses },
      ...{ httpPort: ports.http, httpsPort: ports.https },
      routing: {
        // OpenShift makes Routes of Ingresses that name no class.
        selection: { className, withoutClass: !this.#hasRoutes },
        routes: this.#hasRoutes ? routeClaims : undefined,
        defaultCertificate: undefined,
        ...{ forwardedPolicy: 'replace', accessLog: false, connectTimeout: 5000, backendTimeout: 60_000 },
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
      await status.run(signal);
    } catch (error) {
      log.error({ err: error }, 'no Ingress and no Route is served in the cluster network');
    }
    await whenAborted(signal);
    await router.close(0);
    await informers.finished();
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

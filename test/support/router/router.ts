import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createPlainServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { pino, type Logger } from 'pino';
import { systemClock } from '../../../src/client/clock.ts';
import { InformerFactory } from '../../../src/client/informers/shared-informer.ts';
import { Clients } from '../../../src/client/resource-client.ts';
import type { Transport } from '../../../src/client/transport.ts';
import type { Host } from '../../../src/host/host.ts';
import { localHost } from '../../../src/host/local-host.ts';
import type { ObjectKey } from '../../../src/objects/meta.ts';
import { gatewayClassLoop, GatewayWriter } from '../../../src/router/gateway/writer.ts';
import { Router, type RouterPorts, type RoutingOptions } from '../../../src/router/router.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { call } from '../test-server.ts';

/** Endpoints have addresses of Pods; every one of them is this machine here. */
const loopbackHost: Host = {
  ...localHost,
  connect: (_address, port, options) => localHost.connect('127.0.0.1', port, options),
};

/** A router of this process that answers on 127.0.0.1. */
export interface RunningRouter {
  readonly ports: RouterPorts;
  readonly router: Router;
  readonly metrics: Metrics;
  stop(drainTimeout?: number): Promise<void>;
}

const routing: RoutingOptions = {
  selection: { className: 'servicenet', withoutClass: true },
  routes: true,
  gateways: false,
  claims: { domain: 'apps.test', allowedDomains: [], deniedDomains: [], wildcards: false, ownership: true },
  defaultCertificate: undefined,
  forwardedPolicy: 'replace',
  maxClientRequests: 1000,
  upgrades: ['websocket'],
  accessLog: true,
  connectTimeoutMs: 1000,
  backendTimeoutMs: 10_000,
};

/** Starts a router on the objects that `transport` leads to, on any free ports. */
export async function startRouter(
  transport: Transport,
  options: Partial<RoutingOptions> = {},
  log: Logger = pino({ enabled: false }),
): Promise<RunningRouter> {
  const clock = systemClock;
  const random = Math.random;
  const metrics = new Metrics();
  const informers = new InformerFactory({ transport, clock, random, log });
  const router = new Router({
    ...{ informers, host: loopbackHost, clock, random, log, metrics },
    ...{ routing: { ...routing, ...options }, addresses: ['127.0.0.1'], httpPort: 0, httpsPort: 0 },
  });
  const stopping = new AbortController();
  informers.start(stopping.signal);
  const ports = await router.start();
  if (ports === undefined) throw new Error('the router was closed');
  const stop = async (drainTimeout = 0): Promise<void> => {
    await router.close(drainTimeout);
    stopping.abort();
    await informers.finished();
  };
  return { ports, router, metrics, stop };
}

/**
 * Writes Services and statuses of the Gateways of a router, as its leader does.
 *
 * @returns what ends it.
 */
export function writeGateways(
  transport: Transport,
  { router, metrics }: RunningRouter,
  routerService: ObjectKey,
): () => Promise<void> {
  const { gateways } = router;
  if (gateways === undefined) throw new Error('the router serves no Gateways');
  const [clock, random, log] = [systemClock, Math.random, pino({ enabled: false })];
  const informers = new InformerFactory({ transport, clock, random, log });
  const context = {
    ...{ clients: new Clients(transport), informers, clock, random, log, metrics },
    events: { event: () => undefined },
    serves: () => true,
  };
  const stopping = new AbortController();
  const running = [new GatewayWriter(context, gateways, routerService), gatewayClassLoop(context)].map(
    (one) => one.run(stopping.signal),
  );
  informers.start(stopping.signal);
  return async () => {
    stopping.abort();
    await Promise.all(running);
    await informers.finished();
  };
}

/** A server on 127.0.0.1 that plays a Pod. */
export interface Backend {
  readonly port: number;
  readonly server: Server;
  /** The requests that came. */
  readonly requests: IncomingMessage[];
  close(): Promise<void>;
}

export async function startBackend(listener: RequestListener): Promise<Backend> {
  const requests: IncomingMessage[] = [];
  const server = createServer({ requestTimeout: 0 }, (request, response) => {
    requests.push(request);
    listener(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: portOf(server), server, requests, close: () => end(server) };
}

/** A server on 127.0.0.1 that speaks what a test wants. */
export async function startPlainBackend(
  talk: (socket: Socket) => void,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createPlainServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    talk(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  };
  return { port: portOf(server), close };
}

export function portOf(server: { address(): unknown }): number {
  const address = server.address();
  if (typeof address === 'object' && address !== null && 'port' in address) return Number(address.port);
  throw new Error('the server does not listen');
}

async function end(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** Creates or changes objects of the API. */
export class Objects {
  readonly #client: Transport;

  constructor(client: Transport) {
    this.#client = client;
  }

  async create(path: string, body: object): Promise<void> {
    const { status, body: answer } = await call(this.#client, 'POST', path, { body });
    if (status !== 201) throw new Error(JSON.stringify(answer));
  }

  /** Changes a part of an object. */
  async patch(path: string, body: object): Promise<void> {
    const contentType = 'application/merge-patch+json';
    const { status, body: answer } = await call(this.#client, 'PATCH', path, { body, contentType });
    if (status !== 200) throw new Error(JSON.stringify(answer));
  }

  async delete(path: string): Promise<void> {
    const { status, body } = await call(this.#client, 'DELETE', path);
    if (status !== 200) throw new Error(JSON.stringify(body));
  }

  /** An Ingress for all paths of a host, by HTTP and TLS, to port 80 of the Service of its name. */
  async tlsIngress(
    name: string,
    host: string,
    { certificate, key }: { readonly certificate: string; readonly key: string },
  ): Promise<void> {
    await this.create('/api/v1/namespaces/shop/secrets', {
      metadata: { name: 'tls' },
      type: 'kubernetes.io/tls',
      stringData: { 'tls.crt': certificate, 'tls.key': key },
    });
    const path = { path: '/', pathType: 'Prefix', backend: { service: { name, port: { number: 80 } } } };
    await this.create('/apis/networking.k8s.io/v1/namespaces/shop/ingresses', {
      metadata: { name, annotations: { 'servicenet.dev/ssl-redirect': 'false' } },
      spec: { tls: [{ hosts: [host], secretName: 'tls' }], rules: [{ host, http: { paths: [path] } }] },
    });
  }

  /** A Service with port 80, named http, whose endpoints are at these ports. */
  async service(
    name: string,
    ports: readonly number[],
    port: object = {},
    namespace = 'shop',
  ): Promise<void> {
    await this.create(`/api/v1/namespaces/${namespace}/services`, {
      metadata: { name },
      spec: { ports: [{ name: 'http', port: 80, ...port }] },
    });
    let number = 0;
    for (const one of ports) await this.slice(name, one, ++number, {}, namespace);
  }

  /** One endpoint of a Service. */
  async slice(
    name: string,
    port: number,
    number: number,
    conditions: object = {},
    namespace = 'shop',
  ): Promise<void> {
    await this.create(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
      metadata: { name: `${name}-${number}`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [`10.244.0.${number}`], conditions }],
      ports: [{ name: 'http', protocol: 'TCP', port }],
    });
  }

  /** An Ingress without a class, with one path on one host. */
  async ingress(name: string, host: string, service: string, more: object = {}, path = '/'): Promise<void> {
    const backend = { service: { name: service, port: { name: 'http' } } };
    await this.create('/apis/networking.k8s.io/v1/namespaces/shop/ingresses', {
      metadata: { name },
      spec: { rules: [{ host, http: { paths: [{ path, pathType: 'Prefix', backend }] } }], ...more },
    });
  }
}

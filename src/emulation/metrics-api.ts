import {
  endpoints,
  services,
  inGroup,
  configMaps,
  nodes as nodesResource,
  pods as podsResource,
} from '../client/resources.ts';
import { textAt } from '../objects/json.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';
import { createMissing } from './addons.ts';
import { type KubeObject, conditionOf, keyOf } from '../objects/meta.ts';
import { formatQuantity } from '../objects/formats/quantity.ts';
import { formatTime } from '../objects/formats/time.ts';
import type { Container, Node, Pod } from '../objects/types/core.generated.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { Logger } from 'pino';
import { whenAborted } from '../client/clock.ts';
import type { Informer } from '../client/informers/informer.ts';
import { httpsServer } from '../host/http-server.ts';
import { localHost } from '../host/local-host.ts';
import type { RequestTarget } from '../objects/formats/go-url.ts';
import type { PodResponses } from './pod-server.ts';
import { AnswerRates, systemUsage, type Usage, usageOf } from './kubelet-api/node-statistics.ts';
import { matchesFields, parseFieldSelector } from '../objects/selectors/field-selector.ts';
import { matchesLabels, parseLabelSelector } from '../objects/selectors/labels.ts';
import { StatusError, methodNotAllowed, notFound, plainError, resourceNotFound } from '../objects/status.ts';
import type { KeyPair } from '../network/http/rules.ts';

/** The objects that lead to the metrics API, by the names that metrics-server's manifests have. */

type Clients = ControllerContext['clients'];

const name = 'metrics-server';
const namespace = 'kube-system';

/** The address of the server on the control plane. */
const metricsPort = 10443;

const apiServices = inGroup('apiregistration.k8s.io')('APIService', 'apiservices', ['spec'], {
  namespaced: false,
});
const clusterRoles = inGroup('rbac.authorization.k8s.io')('ClusterRole', 'clusterroles', [], {
  namespaced: false,
});

/** PEM of the authority of the API server's front proxy, where extension API servers look for it. @throws {Error} */
async function readProxyAuthority(clients: Clients): Promise<string> {
  const map = await clients.for(configMaps).get(namespace, 'extension-apiserver-authentication');
  return textAt(map, 'data', 'requestheader-client-ca-file');
}

/** Creates what is missing: a metrics-server that the user has installed stays. */
async function createMetricsObjects(clients: Clients, addresses: readonly string[]): Promise<void> {
  const labels = { 'k8s-app': name };
  const ports = [{ name: 'https', protocol: 'TCP', port: 443, targetPort: metricsPort }];
  await createMissing(clients.for(services), {
    metadata: { name, namespace, labels },
    spec: { ports, ipFamilyPolicy: 'PreferDualStack' },
  });
  // Mirrored to EndpointSlices; the API server finds extension API servers by Endpoints.
  await createMissing(clients.for(endpoints), {
    metadata: { name, namespace, labels },
    subsets: [
      {
        addresses: addresses.map((ip) => ({ ip })),
        ports: [{ name: 'https', protocol: 'TCP', port: metricsPort }],
      },
    ],
  });
  const reader = 'rbac.authorization.k8s.io/aggregate-to-';
  await createMissing(clients.for(clusterRoles), {
    metadata: {
      name: 'system:aggregated-metrics-reader',
      labels: {
        ...labels,
        [`${reader}view`]: 'true',
        [`${reader}edit`]: 'true',
        [`${reader}admin`]: 'true',
      },
    },
    ...{ rules: [{ apiGroups: ['metrics.k8s.io'], resources: ['pods', 'nodes'], verbs: ['get', 'list'] }] },
  });
  await createMissing(clients.for(apiServices), {
    metadata: { name: 'v1beta1.metrics.k8s.io', labels },
    ...{
      spec: {
        service: { name, namespace },
        ...{ group: 'metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100 },
        // The name in the certificate is that of nodes, and the network is inside this machine.
        insecureSkipTLSVerify: true,
      },
    },
  });
}

/** metrics.k8s.io/v1beta1 PodMetrics, of simulated usage. */
export interface PodMetrics extends KubeObject {
  readonly timestamp: string;
  readonly window: string;
  readonly containers: readonly { readonly name: string; readonly usage: Readonly<Record<string, string>> }[];
}

/** metrics.k8s.io/v1beta1 NodeMetrics. */
export interface NodeMetrics extends KubeObject {
  readonly timestamp: string;
  readonly window: string;
  readonly usage: Readonly<Record<string, string>>;
}

const metricsVersion = 'metrics.k8s.io/v1beta1';
/** The time that a figure is about, as a metrics-server has it by default. */
const windowSeconds = 15;
const window = `${windowSeconds}s`;

/** Answers in a second of a container. */
type RateOf = (pod: Pod, container: Container) => number;

/** The usage of a Pod's containers. */
export function podMetrics(pod: Pod, now: number, rateOf: RateOf = () => 0): PodMetrics {
  const { name = '', namespace = '', labels = {} } = pod.metadata;
  return {
    apiVersion: metricsVersion,
    kind: 'PodMetrics',
    metadata: { name, namespace, creationTimestamp: formatTime(now), labels },
    timestamp: formatTime(now),
    window,
    containers: containersOf(pod).map((container) => ({
      name: container.name,
      usage: written(usageOf(pod, container, rateOf(pod, container))),
    })),
  };
}

/** The usage of a Node. @param pods those that run there. */
export function nodeMetrics(
  node: Node,
  pods: readonly Pod[],
  now: number,
  rateOf: RateOf = () => 0,
): NodeMetrics {
  const { name = '', labels = {} } = node.metadata;
  const all = pods.flatMap((pod) =>
    containersOf(pod).map((container) => usageOf(pod, container, rateOf(pod, container))),
  );
  const total = all.reduce(
    (sum, { cpu, memory }) => ({ cpu: sum.cpu + cpu, memory: sum.memory + memory }),
    systemUsage,
  );
  return {
    apiVersion: metricsVersion,
    kind: 'NodeMetrics',
    metadata: { name, creationTimestamp: formatTime(now), labels },
    timestamp: formatTime(now),
    window,
    usage: written(total),
  };
}

function containersOf({ spec }: Pod): readonly Container[] {
  return spec.containers ?? [];
}

/** CPU in billionths and memory in KiB, as kubelets count. */
function written({ cpu, memory }: Usage): Record<string, string> {
  const kibibytes = (memory / 1_000_000_000n / 1024n) * 1024n * 1_000_000_000n;
  return {
    cpu: formatQuantity({ nanos: cpu, format: 'DecimalSI' }),
    memory: formatQuantity({ nanos: kibibytes, format: 'BinarySI' }),
  };
}

const root = `/apis/${metricsVersion}`;
const group = 'metrics.k8s.io';

/** The resource at a path of the API. */
type Answer = { readonly body: unknown };

/**
 * The metrics API of the cluster (`metrics.k8s.io`, which `kubectl top` and autoscalers read): an extension API server on
 * the control plane behind the Service kube-system/metrics-server. Only the front proxy of the API server is served.
 */
export class MetricsApi implements Runnable {
  readonly #context: ControllerContext;
  readonly #addresses: readonly string[];
  readonly #tls: KeyPair;
  readonly #log: Logger;
  readonly #pods: Informer<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #rates: AnswerRates;

  /** @param addresses of the control plane. */
  constructor(context: ControllerContext, addresses: readonly string[], tls: KeyPair) {
    this.#context = context;
    this.#addresses = addresses;
    this.#tls = tls;
    this.#log = context.log;
    this.#pods = context.informers.informer(podsResource);
    this.#nodes = context.informers.informer(nodesResource);
    this.#rates = new AnswerRates(windowSeconds, () => context.clock.monotonic());
  }

  /** What built-in servers have answered. */
  answered(answers: PodResponses): void {
    this.#rates.count(answers);
  }

  async run(signal: AbortSignal): Promise<void> {
    const servers: Server[] = [];
    try {
      const ca = await readProxyAuthority(this.#context.clients);
      for (const address of this.#addresses) {
        const { certificate: cert, key } = this.#tls;
        const server = httpsServer(
          { cert, key, ca, requestCert: true, rejectUnauthorized: true },
          (request, response, target) => this.#serve(request, response, target),
        );
        await localHost.listen(server, address, metricsPort);
        servers.push(server);
      }
      await createMetricsObjects(this.#context.clients, this.#addresses);
    } catch (error) {
      this.#log.error({ err: error }, 'the metrics API is not served: kubectl top has no answer');
    }
    await whenAborted(signal);
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse, target: RequestTarget): void {
    let code = 200;
    let body: unknown;
    try {
      if (request.method !== 'GET') throw methodNotAllowed(['GET']);
      ({ body } = this.#answer(target));
    } catch (error) {
      const refusal = error instanceof StatusError ? error : plainError(String(error));
      if (!(error instanceof StatusError)) this.#log.error({ err: error }, 'the metrics API has failed');
      ({ code } = refusal);
      body = refusal.toStatus();
    }
    response.writeHead(code, { 'Content-Type': 'application/json' });
    response.end(`${JSON.stringify(body)}\n`);
  }

  /** @throws {StatusError} */
  #answer({ pathname, searchParams }: RequestTarget): Answer {
    if (pathname === `/apis/${group}` || pathname === '/apis') return { body: apiGroup(pathname) };
    if (pathname === root) return { body: resources };
    if (!pathname.startsWith(`${root}/`)) throw resourceNotFound();
    const parts = pathname.slice(root.length + 1).split('/');
    const now = this.#context.clock.now();
    const [first, namespace, plural, name] = parts;
    if (first === 'nodes' && parts.length <= 2) {
      return this.#nodeAnswer(namespace, searchParams, now);
    }
    if (first === 'pods' && parts.length === 1) return this.#podAnswer('', undefined, searchParams, now);
    if (first === 'namespaces' && plural === 'pods' && parts.length <= 4) {
      return this.#podAnswer(namespace ?? '', name, searchParams, now);
    }
    throw resourceNotFound();
  }

  #nodeAnswer(name: string | undefined, query: URLSearchParams, now: number): Answer {
    const byNode = Map.groupBy(this.#running(), ({ spec }) => spec.nodeName ?? '');
    const of = (node: Node) =>
      nodeMetrics(node, byNode.get(node.metadata.name ?? '') ?? [], now, this.#rateOf);
    const ready = [...this.#nodes.cache.values()].filter(
      ({ status }) => conditionOf(status.conditions, 'Ready')?.status === 'True',
    );
    if (name === undefined) {
      return { body: listOf('NodeMetricsList', select(ready, query).map(of)) };
    }
    const node = ready.find(({ metadata }) => metadata.name === name);
    if (node === undefined) throw notFound({ group, resource: 'nodes' }, name);
    return { body: of(node) };
  }

  #podAnswer(namespace: string, name: string | undefined, query: URLSearchParams, now: number): Answer {
    const pods = this.#running().filter(
      ({ metadata }) => namespace === '' || metadata.namespace === namespace,
    );
    if (name === undefined) {
      const chosen = select(pods, query).map((pod) => podMetrics(pod, now, this.#rateOf));
      return { body: listOf('PodMetricsList', chosen) };
    }
    const pod = pods.find(({ metadata }) => metadata.name === name);
    if (pod === undefined) throw notFound({ group, resource: 'pods' }, `${namespace}/${name}`);
    return { body: podMetrics(pod, now, this.#rateOf) };
  }

  readonly #rateOf: RateOf = (pod, { name }) => this.#rates.perSecond(keyOf(pod), name);

  #running(): Pod[] {
    return [...this.#pods.cache.values()].filter(({ status }) => status.phase === 'Running');
  }
}

/** @throws {StatusError} 400 */
function select<T extends KubeObject>(objects: readonly T[], query: URLSearchParams): T[] {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '');
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  return objects.filter(({ metadata }) => {
    const { name = '', namespace = '' } = metadata;
    const own = { 'metadata.name': name, 'metadata.namespace': namespace };
    return matchesLabels(labels, metadata.labels) && matchesFields(fields, own);
  });
}

function listOf(kind: string, items: readonly KubeObject[]): unknown {
  return { kind, apiVersion: metricsVersion, metadata: {}, items };
}

function apiGroup(path: string): unknown {
  const version = { groupVersion: metricsVersion, version: 'v1beta1' };
  const description = { name: group, versions: [version], preferredVersion: version };
  const head = { kind: 'APIGroup', apiVersion: 'v1' };
  return path === '/apis'
    ? { kind: 'APIGroupList', apiVersion: 'v1', groups: [description] }
    : { ...head, ...description };
}

const resources = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: metricsVersion,
  resources: [
    { name: 'nodes', singularName: '', namespaced: false, kind: 'NodeMetrics', verbs: ['get', 'list'] },
    { name: 'pods', singularName: '', namespaced: true, kind: 'PodMetrics', verbs: ['get', 'list'] },
  ],
};

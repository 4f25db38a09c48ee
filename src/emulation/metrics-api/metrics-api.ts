import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Logger } from 'pino';
import { whenAborted } from '../../client/abort.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { nodes as nodesResource, pods as podsResource } from '../../client/resources.ts';
import { localHost } from '../../host/local-host.ts';
import { matchesFields, parseFieldSelector } from '../../objects/field-selector.ts';
import { matchesLabels, parseLabelSelector } from '../../objects/labels/labels.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { conditionOf } from '../../objects/conditions.ts';
import { StatusError } from '../../objects/status.ts';
import { methodNotAllowed, notFound, plainError, resourceNotFound } from '../../objects/status-errors.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { createMetricsObjects, metricsPort, readProxyAuthority } from './objects.ts';
import { metricsVersion, nodeMetrics, podMetrics } from './usage.ts';
import type { KeyPair } from '../../router/certificates.ts';

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

  /** @param addresses of the control plane. */
  constructor(context: ControllerContext, addresses: readonly string[], tls: KeyPair) {
    this.#context = context;
    this.#addresses = addresses;
    this.#tls = tls;
    this.#log = context.log;
    this.#pods = context.informers.informer(podsResource);
    this.#nodes = context.informers.informer(nodesResource);
  }

  async run(signal: AbortSignal): Promise<void> {
    const servers: Server[] = [];
    try {
      const ca = await readProxyAuthority(this.#context.clients);
      for (const address of this.#addresses) {
        const { certificate: cert, key } = this.#tls;
        const server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true });
        server.on('request', (request, response) => this.#serve(request, response));
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

  #serve(request: IncomingMessage, response: ServerResponse): void {
    let code = 200;
    let body: unknown;
    try {
      if (request.method !== 'GET') throw methodNotAllowed(['GET']);
      ({ body } = this.#answer(new URL(request.url ?? '/', 'https://metrics.invalid')));
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
  #answer({ pathname, searchParams }: URL): Answer {
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
    const of = (node: Node) => nodeMetrics(node, byNode.get(node.metadata.name ?? '') ?? [], now);
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
      const chosen = select(pods, query).map((pod) => podMetrics(pod, now));
      return { body: listOf('PodMetricsList', chosen) };
    }
    const pod = pods.find(({ metadata }) => metadata.name === name);
    if (pod === undefined) throw notFound({ group, resource: 'pods' }, `${namespace}/${name}`);
    return { body: podMetrics(pod, now) };
  }

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

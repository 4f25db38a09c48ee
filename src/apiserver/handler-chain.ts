import type { IPFamily } from '../objects/address.ts';
import { isRecord } from '../objects/json.ts';
import type { FlowSchema, PolicyRulesWithSubjects, Subject } from '../objects/types/flowcontrol.generated.ts';
import { flowcontrolGroup } from '../registry/flowcontrol/prioritylevelconfiguration.ts';
import {
  type RequestInfo,
  type ApiRequest,
  type Handler,
  type UpgradeHandler,
  refusalError,
  type RefuseRequest,
  createRouter,
} from './http/exchange.ts';
import { listPrefix, objectKey, type Storage } from './storage/storage.ts';
import type { UserInfo } from '../registry/generic/strategy.ts';
import { methodNotAllowed } from '../objects/status.ts';
import type { Aggregator } from './aggregation/aggregator.ts';
import { type ExtensionNetwork, proxyRequest, proxyUpgrade } from './aggregation/extension-server.ts';
import { wantedUser, impersonated } from './authorization/impersonation.ts';
import { checkRequestTimeout, isLongRunning } from './http/limits.ts';
import type { ServiceAccountTokens } from './authentication/service-account-tokens.ts';
import { accessOf, type Authorizer, requireAccess } from './authorization/authorizer.ts';
import { discoveryHandler } from './discovery/handler.ts';
import {
  HealthCheckResults,
  type ServerCheck,
  healthHandler,
  healthPaths,
  metricsHandler,
  pathsHandler,
  openIdPaths,
  openIdProvider,
  versionHandler,
} from './discovery/routes.ts';
import type { ObjectCount, RequestMetrics } from './http/request-metrics.ts';
import { serveUpgrading } from './http/web-socket-reply.ts';
import type { DialPod } from './proxy/dial-pod.ts';
import { createEndpointResolver } from './proxy/endpoint-resolver.ts';
import { proxyHandler } from './proxy/handler.ts';
import { proxyUpgradeHandler } from './proxy/upgrade.ts';
import { restHandler } from './rest/dispatch.ts';
import type { ServerCore } from './rest/server-core.ts';
import type { ReviewSources } from './authorization/reviews.ts';
import { specialHandlers, servedForDiscovery } from './subresources/handlers.ts';
import { admitConnection } from './subresources/admit.ts';
import { type KubeletAccess, streamHandler, wantsContainer } from './subresources/pod-streams.ts';
import { definitionSchemas } from './discovery/openapi/components.ts';

/**
 * Finds the FlowSchema of requests, which their answers name (apiserver `server/filters/priority-and-fairness.go`).
 * It queues no requests: the server has limits of its own for those in flight.
 */
class FlowSchemas {
  readonly #storage: Storage;
  /** In the order in which they are asked; undefined after a change. */
  #schemas: readonly ClassifyingSchema[] | undefined;

  constructor(storage: Storage) {
    this.#storage = storage;
    for (const plural of ['flowschemas', 'prioritylevelconfigurations'])
      storage.watch(
        listPrefix(flowcontrolGroup, plural),
        storage.revision,
        () => (this.#schemas = undefined),
      );
  }

  /**
   * The headers that name the schema of a request and its priority level, by their UIDs; none before the mandatory
   * schemas exist.
   */
  headersOf(user: UserInfo, info: RequestInfo): readonly (readonly [name: string, value: string])[] {
    this.#schemas ??= this.#list();
    return this.#schemas.find(({ rules }) => rules.some((rule) => covers(rule, user, info)))?.headers ?? [];
  }

  #list(): readonly ClassifyingSchema[] {
    const { items } = this.#storage.list(listPrefix(flowcontrolGroup, 'flowschemas'));
    return items
      .map(({ object }) => object)
      .filter(isFlowSchema)
      .sort(byPrecedence)
      .flatMap(({ metadata, spec }) => {
        const key = objectKey(
          flowcontrolGroup,
          'prioritylevelconfigurations',
          '',
          spec.priorityLevelConfiguration.name,
        );
        const level = this.#storage.get(key)?.object.metadata.uid;
        // One whose level does not exist has no effect (its condition Dangling).
        if (level === undefined) return [];
        const headers = [
          ['X-Kubernetes-Pf-Flowschema-Uid', metadata.uid ?? ''],
          ['X-Kubernetes-Pf-Prioritylevel-Uid', level],
        ] as const;
        return [{ rules: spec.rules ?? [], headers }];
      });
  }
}

interface ClassifyingSchema {
  readonly rules: readonly PolicyRulesWithSubjects[];
  readonly headers: readonly (readonly [name: string, value: string])[];
}

function isFlowSchema(object: object): object is FlowSchema {
  return 'spec' in object && isRecord(object.spec) && isRecord(object.spec['priorityLevelConfiguration']);
}

/** Apimachinery `util/apihelpers` FlowSchemaSequence. */
function byPrecedence(a: FlowSchema, b: FlowSchema): number {
  const order = a.spec.matchingPrecedence - b.spec.matchingPrecedence;
  if (order !== 0) return order;
  return (a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1;
}

/** Apiserver `util/flowcontrol/rule.go`. */
function covers(rule: PolicyRulesWithSubjects, user: UserInfo, info: RequestInfo): boolean {
  if (rule.subjects?.some((subject) => isSubject(subject, user)) !== true) return false;
  if (!info.isResource) {
    return (rule.nonResourceRules ?? []).some(
      ({ verbs, nonResourceURLs }) =>
        has(verbs, info.verb) && nonResourceURLs?.some((url) => isPath(url, info.path)) === true,
    );
  }
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`;
  return (rule.resourceRules ?? []).some(
    ({ verbs, apiGroups, resources, clusterScope = false, namespaces }) =>
      has(verbs, info.verb) &&
      has(resources, resource) &&
      has(apiGroups, info.group) &&
      (info.namespace === '' ? clusterScope : has(namespaces, info.namespace)),
  );
}

function isSubject({ kind, user, group, serviceAccount }: Subject, { name, groups }: UserInfo): boolean {
  switch (kind) {
    case 'User':
      return user?.name === '*' || user?.name === name;
    case 'Group':
      return group?.name === '*' || groups.includes(group?.name ?? '');
    case 'ServiceAccount': {
      const prefix = `system:serviceaccount:${serviceAccount?.namespace ?? ''}:`;
      return serviceAccount?.name === '*'
        ? name.startsWith(prefix)
        : name === `${prefix}${serviceAccount?.name ?? ''}`;
    }
    default:
      return false;
  }
}

function has(list: readonly string[] | null, value: string): boolean {
  return list !== null && (list.includes('*') || list.includes(value));
}

function isPath(url: string, path: string): boolean {
  return url === '*' || url === path || (url.endsWith('*') && path.startsWith(url.slice(0, -1)));
}

/** Everything behind authentication. */
export interface HandlerChain {
  readonly handler: Handler;
  readonly upgrade: UpgradeHandler;
  /** Turns `/readyz` to ok. */
  ready(): void;
}

export interface HandlerChainOptions {
  readonly core: ServerCore;
  readonly authorizer: Authorizer;
  readonly reviews: ReviewSources;
  readonly serviceAccountTokens: ServiceAccountTokens;
  /** Of servicenet, for `/version`. */
  readonly version: string;
  /** `host:port` as clients reach the server. */
  address(): string;
  readonly metrics: RequestMetrics;
  /** Refuses requests, for tests. */
  readonly refuse: RefuseRequest | undefined;
  /** The way to Pods; undefined when there is none. */
  readonly dialPod: DialPod | undefined;
  /** The connection to kubelets; undefined if Pods are objects only. */
  readonly kubelets: KubeletAccess | undefined;
  readonly aggregator: Aggregator;
  /** The first family of the cluster's Services. */
  readonly primaryFamily: IPFamily;
  /** The way to extension API servers. */
  readonly extension: ExtensionNetwork;
}

/** Wires paths to handlers; every request is authorized first. */
export function createHandlerChain(options: HandlerChainOptions): HandlerChain {
  const { core, authorizer, reviews, serviceAccountTokens, dialPod, refuse, aggregator, extension } = options;
  let isReady = false;
  const flowSchemas = new FlowSchemas(core.storage);
  const resolver = createEndpointResolver({
    get: (group, plural, namespace, name) =>
      core.storage.get(objectKey(group, plural, namespace, name))?.object,
    list: (group, plural, namespace) =>
      core.storage.list(listPrefix(group, plural, namespace)).items.map((item) => item.object),
    primaryFamily: options.primaryFamily,
    random: () => core.random(),
  });
  const proxy = proxyHandler(resolver, dialPod, options.kubelets?.client);
  const rest = restHandler(
    core,
    specialHandlers({ reviews, serviceAccountTokens, proxy, kubelets: options.kubelets }),
  );
  const upgrade: UpgradeHandler = proxyUpgradeHandler(resolver, dialPod, options.kubelets?.client);
  const streams = streamHandler(core, options.kubelets);
  const served = servedForDiscovery(core);
  const remoteVersions = () => aggregator.groupVersions();
  const discovery = discoveryHandler(served, remoteVersions, () => options.address());
  const schemas = definitionSchemas(
    (name) =>
      core.storage.get(objectKey('apiextensions.k8s.io', 'customresourcedefinitions', '', name))?.object,
  );
  const api: Handler = async (request, reply) => {
    const { info } = request;
    const server = aggregator.serverOf(info.path);
    if (server !== undefined) {
      await proxyRequest(extension, server, request, reply);
      return;
    }
    const known = info.isResource && core.resources.hasGroupVersion(info.group, info.version);
    await (known ? rest(request, reply) : discovery(request, reply));
  };
  let ownOpenApi: Promise<Handler> | undefined;
  const openApi: Handler = async (request, reply) => {
    const server = aggregator.serverOf(request.info.path);
    if (server !== undefined) {
      await proxyRequest(extension, server, request, reply);
      return;
    }
    // Loaded by the first request: no start needs it.
    ownOpenApi ??= import('./discovery/openapi/handler.ts').then(({ openApiHandler }) =>
      openApiHandler(served, remoteVersions, schemas),
    );
    const serve = await ownOpenApi;
    await serve(request, reply);
  };
  const checks: readonly ServerCheck[] = [
    { name: 'ping', on: ['healthz', 'livez', 'readyz'], check: () => undefined },
    // The storage, under the name that probes and `?exclude=` use. Reads are served from memory.
    { name: 'etcd', on: ['healthz', 'livez', 'readyz'], check: () => core.storage.revision },
    {
      name: 'poststarthook/bootstrap-controller',
      on: ['healthz', 'livez', 'readyz'],
      check: () => {
        if (!isReady) throw new Error('not finished');
      },
    },
  ];
  const results = new HealthCheckResults();
  const health = healthHandler(checks, results);
  const metrics = metricsHandler(
    new Map([
      ['/metrics', () => options.metrics.text(objectCounts(core))],
      ['/metrics/slis', () => results.text()],
    ]),
  );
  const provider = openIdProvider({
    issuer: serviceAccountTokens.issuer,
    keys: serviceAccountTokens.keys,
    address: () => options.address(),
  });
  const route = createRouter(
    new Map<string, Handler>([
      ['api', api],
      ['apis', api],
      ['version', versionHandler({ version: options.version, platform: `${process.platform}/${goArch()}` })],
      ['healthz', health],
      ['livez', health],
      ['readyz', health],
      ['.well-known', provider],
      ['openid', provider],
      ['metrics', metrics],
      ['openapi', openApi],
      [
        '',
        pathsHandler(served, remoteVersions, [
          ...healthPaths(checks),
          ...Object.values(openIdPaths),
          '/metrics',
          '/metrics/slis',
          '/openapi/v2',
          '/openapi/v3',
          '/version',
        ]),
      ],
    ]),
  );
  const handler: Handler = async (request, reply) => {
    const refusal = refuse?.({ method: request.method, path: request.info.path });
    if (refusal !== undefined) throw refusalError(refusal);
    checkRequestTimeout(request.query, request.info);
    const acting = actingUser(authorizer, request);
    if (request.info.verb === 'watch' || !isLongRunning(request.info)) {
      for (const [name, value] of flowSchemas.headersOf(acting, request.info)) reply.addHeader(name, value);
    }
    await route(authorized(authorizer, request, acting), reply);
  };
  return {
    handler,
    upgrade: async (request, socket, head) => {
      const allowed = authorized(authorizer, request, actingUser(authorizer, request));
      const server = aggregator.serverOf(request.info.path);
      if (server !== undefined) {
        await proxyUpgrade(extension, server)(allowed, socket, head);
        return;
      }
      // Upgrades have no headers for warnings.
      await admitConnection(core, allowed, { warn: () => undefined });
      if (wantsContainer(request.info)) {
        await streams(allowed, socket, head);
      } else if (request.info.isResource && request.info.subresource === 'proxy') {
        await upgrade(allowed, socket, head);
      } else {
        // Node reads no body of a request that it hands over.
        if (request.method !== 'GET') throw methodNotAllowed();
        await serveUpgrading(handler, request, socket, head);
      }
    },
    ready: () => {
      isReady = true;
    },
  };
}

/** The number of stored objects of each resource; shared ones count once. */
function objectCounts(core: ServerCore): ObjectCount[] {
  return core.resources
    .all()
    .filter(({ definition }) => definition.storedAs === undefined)
    .map(({ definition: { group, plural } }) => ({
      resource: group === '' ? plural : `${plural}.${group}`,
      count: core.storage.count(listPrefix(group, plural)),
    }));
}

/** The architecture as Go names it. */
function goArch(): string {
  return process.arch === 'x64' ? 'amd64' : process.arch;
}

/** The user that a request acts as. @throws {StatusError} 400 or 403 */
function actingUser(authorizer: Authorizer, request: ApiRequest): UserInfo {
  const wanted = wantedUser(request.incoming.rawHeaders);
  if (wanted === undefined) return request.user;
  return impersonated(authorizer, request.user, accessOf(request.info), wanted);
}

/** The request of a user who may make it. @throws {StatusError} 403 */
function authorized(authorizer: Authorizer, request: ApiRequest, user: UserInfo): ApiRequest {
  requireAccess(authorizer, user, accessOf(request.info));
  return user === request.user ? request : asUser(request, user);
}

function asUser(request: ApiRequest, user: UserInfo): ApiRequest {
  return {
    method: request.method,
    url: request.url,
    info: request.info,
    query: request.query,
    headers: request.headers,
    user,
    body: async () => request.body(),
    get signal() {
      return request.signal;
    },
    incoming: request.incoming,
  };
}

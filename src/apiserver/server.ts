import { type KeyObject, randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { MessagePort } from 'node:worker_threads';
import type { Logger } from 'pino';
import { version } from '../telemetry/version.ts';
import type { ServiceCidr } from '../allocation/address-range.ts';
import { formatAddress } from '../objects/address.ts';
import { Aggregator } from './aggregation/aggregator.ts';
import { createFrontProxy } from './aggregation/front-proxy.ts';
import { createAuthenticator, type StaticToken, staticTokens } from './authentication/authenticator.ts';
import {
  type ServiceAccountTokens,
  serviceAccountTokens as createAccountTokens,
} from './authentication/service-account-tokens.ts';
import {
  accessForbidden,
  type Authorizer,
  alwaysAllow,
  isAllowedForSigner,
} from './authorization/authorizer.ts';
import { checkCreateOnUpdate, checkUnsafeDelete, EscalationCheck } from './admission/permission-checks.ts';
import { admissionChain } from './admission/chain.ts';
import { RbacAuthorizer, RoleAggregation } from './authorization/rbac.ts';
import type { ReviewAccess } from '../registry/route/custom-host.ts';
import { ApiServices } from './bootstrap/api-services.ts';
import {
  ensureAuthenticationConfigMap,
  ensureFlowControl,
  ensureSystemObjects,
  reconcileIntervalMs,
  type SystemObjects,
} from './bootstrap/system-objects.ts';
import { ensureRbacObjects, openshiftRoles } from './bootstrap/rbac-objects.ts';
import { expireEvents, runPeriodically, type Stop } from './periodic.ts';
import { CustomResourceDefinitions } from './custom-resources/definitions.ts';
import { RequestMetrics } from './http/request-metrics.ts';
import type { RefuseRequest } from './http/exchange.ts';
import { type HttpLimits, createHttpServer } from './http/server.ts';
import type { CertificateAuthority, CertificatePair } from '../tls/certificates.ts';
import type { DialPod } from './proxy/dial-pod.ts';
import { createHandlerChain, type HandlerChain } from './handler-chain.ts';
import { ensureGatewayApi } from './bootstrap/gateway-api.ts';
import { QuotaStatuses } from './admission/quota.ts';
import { Admission } from './rest/admission.ts';
import { OpenWatches } from './rest/watch/open-watches.ts';
import type { ServerCore } from './rest/server-core.ts';
import { registerBuiltIns, type ServiceRangeOptions, type Store } from './built-ins.ts';
import { createWebhookClient } from './admission/webhooks/client.ts';
import { AdmissionWebhooks } from './admission/webhooks/plugin.ts';
import { webhookNetwork } from './admission/webhooks/hooks.ts';
import { objectKey } from './storage/storage.ts';
import { hasSubresource } from './subresources/handlers.ts';

export type AuthorizationMode = 'AlwaysAllow' | 'RBAC';

export interface ApiServerOptions {
  /** Listens here; default 127.0.0.1. */
  readonly bindAddress: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** Primary first; the family of the first is the cluster's primary family. */
  readonly serviceCidrs: readonly [ServiceCidr, ...ServiceCidr[]];
  readonly nodePorts: { readonly first: number; readonly last: number };
  /** The platform whose kinds are built in; default `kubernetes`. */
  readonly platform?: 'kubernetes' | 'openshift';
  /** The channel of Gateway API whose definitions there are from the start; default `none`. */
  readonly gatewayApi?: 'standard' | 'none';
  /** What allocates addresses and node ports of Services; default `server`. */
  readonly allocation?: 'server' | 'controller';
  readonly tokens: readonly StaticToken[];
  readonly tls: { readonly certificate: string; readonly key: string; readonly clientCa: string };
  readonly authorizationMode: AuthorizationMode;
  /** Signs the tokens of service accounts: EC P-256, private. */
  readonly serviceAccountKey: KeyObject;
  /** The CA of the front proxy's client certificate, which extension API servers trust. */
  readonly frontProxyAuthority: CertificateAuthority;
  /** What Endpoints and the slice of `default/kubernetes` show. */
  readonly advertiseAddress: string;
  readonly log: Logger;
  readonly limits?: Partial<HttpLimits>;
  /** The way to Pods, for proxies and webhooks. Without it no Pod is reached: their addresses are simulated. */
  readonly dialPod?: DialPod;
  /** CIDRs that `dialPod` reaches besides those in the API: the LAN of the nodes. Default: none. */
  readonly lanCidrs?: readonly string[];
  /**
   * Runs the ServiceAccount plugin: Pods get an account, and a volume with its token. There must be the controllers that
   * make the account `default` and the ConfigMap `kube-root-ca.crt` of every namespace. Default: off.
   */
  readonly admitServiceAccounts?: boolean;
  /** The client certificate for kubelets. Without it and `dialPod`, Pods have no logs and streams. */
  readonly kubeletClient?: CertificatePair;
  /** Refuses requests, for tests of clients. */
  readonly refuse?: RefuseRequest;
  /** Closed with the server. */
  readonly store: Store;
}

/** A running API server. */
export interface ApiServer {
  readonly url: string;
  readonly port: number;
  /** Serves a connection that came by another way than the port. */
  accept(connection: Socket): void;
  /** The same without TLS, for connections of this process. */
  acceptPlain(connection: Socket): void;
  /** Serves the requests that another thread of this process sends as messages, until the port is closed. */
  acceptThread(port: MessagePort): void;
  /** Ends open watches, lets requests in flight finish, and closes; a second call closes at once. */
  close(): Promise<void>;
}

/**
 * Starts the embedded API server: the built-in resources, system objects, HTTPS. It is ready when the
 * promise resolves.
 *
 * @throws {Error} when it cannot listen.
 */
export async function createApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { log } = options;
  const { resources, storage } = options.store;
  const core: ServerCore = {
    storage,
    resources,
    admission: new Admission([]),
    log,
    watches: new OpenWatches(log),
    firstRevision: 0,
    random: () => Math.random(),
    now: () => Date.now(),
    newUid: () => randomUUID(),
  };
  const ranges: ServiceRangeOptions = {
    cidrs: options.serviceCidrs,
    nodePorts: options.nodePorts,
    ...(options.allocation === undefined ? {} : { allocation: options.allocation }),
  };
  const rbac = options.authorizationMode === 'RBAC' ? new RbacAuthorizer(storage) : undefined;
  const authorizer: Authorizer = rbac ?? alwaysAllow;
  const review: ReviewAccess = (user, { verb, ...resource }) =>
    authorizer.authorize(user, { verb, path: '', resource }).allowed;
  const isOpenshift = options.platform === 'openshift';
  registerBuiltIns(
    core,
    ranges,
    isOpenshift ? review : undefined,
    rbac === undefined ? undefined : new EscalationCheck(rbac),
    (user, signerName) => isAllowedForSigner(authorizer, user, 'sign', signerName),
    (user, { verb, ...resource }) => {
      const access = { verb, path: '', resource };
      const { allowed, reason } = authorizer.authorize(user, access);
      return allowed ? undefined : accessForbidden(user, access, reason).message;
    },
  );
  const primaryFamily = options.serviceCidrs[0].range.family;
  const network = webhookNetwork(core, options.dialPod, options.lanCidrs ?? [], primaryFamily);
  const definitions = new CustomResourceDefinitions(core, (webhook) => createWebhookClient(webhook, network));
  definitions.start();
  const aggregation = new RoleAggregation(core);
  const apiServices = new ApiServices(core);
  const frontProxy = createFrontProxy(options.frontProxyAuthority, new Date(core.now()));
  const extension = { network, frontProxy };
  const aggregator = new Aggregator(core, extension);
  const webhooks = new AdmissionWebhooks(core, network, authorizer);
  const quotas = new QuotaStatuses(core);
  core.admission = new Admission(
    admissionChain(core, {
      authorizer,
      webhooks,
      quotas,
      serviceAccounts: options.admitServiceAccounts === true,
    }),
  );
  if (rbac !== undefined) {
    core.checkCreateOnUpdate = (attributes) => checkCreateOnUpdate(rbac, attributes);
    core.checkUnsafeDelete = (attributes) => checkUnsafeDelete(rbac, attributes);
  }
  webhooks.start();
  quotas.start();
  const serviceAccountTokens = tokensOfAccounts(core, options.serviceAccountKey);
  const tokens = [staticTokens(options.tokens), serviceAccountTokens];
  let host = '';
  const metrics = new RequestMetrics(({ group, version, resource, subresource }) => {
    const definition = core.resources.find(group, version, resource)?.definition;
    return definition !== undefined && hasSubresource(definition, subresource);
  });
  const chain: HandlerChain = createHandlerChain({
    core,
    authorizer,
    reviews: {
      ...{ authorizer, tokens, audience: serviceAccountTokens.issuer },
      rulesOf: (user, namespace) => rbac?.rulesOf(user, namespace),
    },
    serviceAccountTokens,
    version: version(),
    address: () => host,
    metrics,
    dialPod: options.dialPod,
    kubelets:
      options.dialPod === undefined || options.kubeletClient === undefined
        ? undefined
        : { dialPod: options.dialPod, client: options.kubeletClient },
    refuse: options.refuse,
    aggregator,
    primaryFamily,
    extension,
  });
  const http = createHttpServer({
    tls: options.tls,
    authenticator: createAuthenticator({
      tokens,
      // With AlwaysAllow, only probes may be anonymous.
      anonymousPaths: options.authorizationMode === 'RBAC' ? 'all' : ['/healthz', '/livez', '/readyz'],
      now: () => core.now(),
    }),
    handler: chain.handler,
    upgrade: chain.upgrade,
    observe: metrics.observe,
    log,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
  const isNew = storage.revision === 1;
  const address = await http.listen(options.port, options.bindAddress);
  host = `${options.bindAddress.includes(':') ? `[${options.bindAddress}]` : options.bindAddress}:${address.port}`;
  const stops: Stop[] = [];
  const system: SystemObjects = {
    serviceCidrs: options.serviceCidrs.map((cidr) => cidr.range.text),
    kubernetesServiceIp: firstAddress(options.serviceCidrs[0]),
    advertiseAddress: options.advertiseAddress,
    port: address.port,
  };
  const ensureOwn = async (): Promise<void> => {
    await ensureSystemObjects(core, system);
    await ensureAuthenticationConfigMap(core, options.tls.clientCa, frontProxy);
    await ensureFlowControl(core);
  };
  try {
    await ensureOwn();
    if (rbac !== undefined) await ensureRbacObjects(core, isOpenshift ? openshiftRoles : []);
    if (options.gatewayApi === 'standard') await ensureGatewayApi(core);
    await apiServices.start();
    aggregator.start();
    aggregation.start();
    await aggregation.settled();
  } catch (error) {
    await http.close(0);
    throw error;
  }
  if (isNew) core.firstRevision = storage.revision;
  stops.push(runPeriodically(reconcileIntervalMs, 'system objects', log, ensureOwn));
  stops.push(runPeriodically(60_000, 'event expiry', log, () => expireEvents(core)));
  chain.ready();
  return {
    url: `https://${host}`,
    port: address.port,
    accept: (connection) => http.accept(connection),
    acceptPlain: (connection) => http.acceptPlain(connection),
    acceptThread: (port) => http.acceptThread(port),
    close: async () => {
      for (const stop of stops.splice(0)) stop();
      quotas.stop();
      aggregator.stop();
      await http.close();
      await webhooks.close();
      await definitions.close();
      await storage.close();
    },
  };
}

function firstAddress(cidr: ServiceCidr): string {
  return formatAddress(cidr.usable.family, cidr.usable.first);
}

/** Tokens of service accounts, invalid once the account or the object that they are bound to is deleted. */
function tokensOfAccounts(core: ServerCore, key: KeyObject): ServiceAccountTokens {
  const uidOf = (plural: string, namespace: string, name: string): string | undefined =>
    core.storage.get(objectKey('', plural, namespace, name))?.object.metadata.uid;
  return createAccountTokens({
    key,
    issuer: 'https://kubernetes.default.svc.cluster.local',
    now: () => core.now(),
    accountUid: (namespace, name) => uidOf('serviceaccounts', namespace, name),
    boundUid: (kind, namespace, name) =>
      uidOf(`${kind.toLowerCase()}s`, kind === 'Node' ? '' : namespace, name),
  });
}

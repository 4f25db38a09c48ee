import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { ServiceCidr } from '../allocation/address-range.ts';
import { formatAddress } from '../objects/address.ts';
import { createAuthenticator } from './authentication/authenticator.ts';
import { type StaticToken, staticTokens } from './authentication/static-tokens.ts';
import { type Authorizer, alwaysAllow } from './authorization/authorizer.ts';
import { RbacAuthorizer } from './authorization/rbac.ts';
import { expireEvents } from './bootstrap/event-expiry.ts';
import { CustomResourceDefinitions } from './custom-resources/definitions.ts';
import { ensureSystemObjects, reconcileEvery, type SystemObjects } from './bootstrap/system-objects.ts';
import type { HttpLimits } from './http/server.ts';
import { createHttpServer } from './http/server.ts';
import { every, type Stop } from './loops.ts';
import { createServing, type Serving } from './serving.ts';
import { Admission } from './rest/admission.ts';
import { ResourceTable } from './rest/resource-table.ts';
import type { ServerCore } from './rest/server-core.ts';
import { registerBuiltIns, type ServiceRanges } from './built-ins.ts';
import { encodeStored } from './stored-encoding.ts';
import { createMemoryStorage } from './storage/memory-storage.ts';
import type { Storage } from './storage/storage.ts';

export type AuthorizationMode = 'AlwaysAllow' | 'RBAC';

export interface ApiServerOptions {
  /** Listens here; default 127.0.0.1. */
  readonly bindAddress: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** Primary first; the family of the first is the cluster's primary family. */
  readonly serviceCidrs: readonly [ServiceCidr, ...ServiceCidr[]];
  readonly nodePorts: { readonly first: number; readonly last: number };
  readonly tokens: readonly StaticToken[];
  readonly tls: { readonly certificate: string; readonly key: string; readonly clientCa: string };
  readonly authorizationMode: AuthorizationMode;
  /** What Endpoints and the slice of `default/kubernetes` show. */
  readonly advertiseAddress: string;
  readonly log: Logger;
  readonly limits?: Partial<HttpLimits>;
  /** Default: in memory. */
  readonly storage?: Storage;
}

/** A running API server. */
export interface ApiServer {
  readonly url: string;
  readonly port: number;
  /** Ends open watches, lets requests in flight finish, and closes; a second call closes at once. */
  close(): Promise<void>;
}

/** Revisions that watches can resume from, and for how long, as etcd's compaction of five minutes. */
const retain = { revisions: 100_000, milliseconds: 5 * 60_000 };

/**
 * Starts the embedded API server: storage, the built-in resources, system objects, HTTPS. It is ready when the
 * promise resolves.
 *
 * @throws {Error} when it cannot listen.
 */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { log } = options;
  const resources = new ResourceTable();
  const storage =
    options.storage ??
    createMemoryStorage({
      encode: (object) => encodeStored(resources, object),
      retain,
      clock: () => Date.now(),
      onListenerError: (error) => log.error({ err: error }, 'a watcher failed, the others go on'),
    });
  const core: ServerCore = {
    storage,
    resources,
    admission: new Admission([]),
    log,
    random: () => Math.random(),
    now: () => Date.now(),
    newUid: () => randomUUID(),
  };
  const ranges: ServiceRanges = { cidrs: options.serviceCidrs, nodePorts: options.nodePorts };
  registerBuiltIns(core, ranges);
  new CustomResourceDefinitions(core).start();
  const rbac = options.authorizationMode === 'RBAC' ? new RbacAuthorizer(storage) : undefined;
  const authorizer: Authorizer = rbac ?? alwaysAllow;
  const tokens = [staticTokens(options.tokens)];
  const serving: Serving = createServing(core, authorizer, {
    authorizer,
    tokens,
    rulesOf: (user, namespace) => rbac?.rulesOf(user, namespace),
  });
  const http = createHttpServer({
    tls: options.tls,
    authenticator: createAuthenticator({
      tokens,
      anonymous: options.authorizationMode === 'RBAC',
    }),
    handler: serving.handler,
    upgrade: serving.upgrade,
    log,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
  const address = await http.listen(options.port, options.bindAddress);
  const stops: Stop[] = [];
  const system: SystemObjects = {
    serviceCidrs: options.serviceCidrs.map((cidr) => cidr.range.text),
    kubernetesServiceIp: firstAddress(options.serviceCidrs[0]),
    advertiseAddress: options.advertiseAddress,
    port: address.port,
  };
  try {
    await ensureSystemObjects(core, system);
  } catch (error) {
    await http.close(0);
    throw error;
  }
  stops.push(every(reconcileEvery, 'system objects', log, () => ensureSystemObjects(core, system)));
  stops.push(every(60_000, 'event expiry', log, () => expireEvents(core)));
  serving.ready();
  const host = options.bindAddress.includes(':') ? `[${options.bindAddress}]` : options.bindAddress;
  return {
    url: `https://${host}:${address.port}`,
    port: address.port,
    close: async () => {
      for (const stop of stops.splice(0)) stop();
      await http.close();
      await storage.close();
    },
  };
}

function firstAddress(cidr: ServiceCidr): string {
  return formatAddress(cidr.usable.family, cidr.usable.first);
}

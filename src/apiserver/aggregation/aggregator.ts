import type { APIService, APIServiceCondition } from '../../objects/types/apiregistration.generated.ts';
import { goQuote } from '../../objects/formats/go-text.ts';
import type { KubeObject, ObjectMeta } from '../../objects/meta.ts';
import { at, listAt, numberAt, textAt, jsonEqual } from '../../objects/json.ts';
import {
  type ExtensionServer,
  type CheckedServer,
  type ExtensionNetwork,
  extensionServer,
  discoverRemote,
} from './extension-server.ts';
import { localAvailability } from '../../registry/apiregistration/apiservice.ts';
import { aggregatorGroup, type RemoteGroupVersion } from '../discovery/documents.ts';
import { runPeriodically, type Stop } from '../periodic.ts';
import { type ServerCore, timestamp } from '../rest/server-core.ts';
import {
  listPrefix,
  objectKey,
  PreconditionError,
  type StoredObject,
  type Unsubscribe,
} from '../storage/storage.ts';
import { errorMessage } from '../../objects/status.ts';
import { serviceNameLabel } from '../../objects/endpoints.ts';

/** When an extension API server counts as available (kube-aggregator `status/remote/remote_available_controller.go`). */

/** A condition without the time of its last transition. */
export type Availability = Pick<APIServiceCondition, 'status' | 'reason' | 'message'>;

/** All checks, of the Service and of the server, have passed. */
const passed: Availability = { status: 'True', reason: 'Passed', message: 'all checks passed' };

/** The server did not answer a request for its discovery documents. */
function failedDiscovery(message: string): Availability {
  return { status: 'False', reason: 'FailedDiscoveryCheck', message };
}

/**
 * Why a Service does not lead to an extension API server; undefined if it does.
 *
 * @param service undefined if it does not exist.
 * @param slices the EndpointSlices of the Service.
 */
function serviceFault(
  { namespace, name, port }: ExtensionServer,
  service: KubeObject | undefined,
  slices: readonly KubeObject[],
): Availability | undefined {
  const where = `service/${name} in ${goQuote(namespace)}`;
  if (service === undefined) return fault('ServiceNotFound', `${where} is not present`);
  if (textAt(service, 'spec', 'type') !== 'ClusterIP') return undefined;
  const servicePort = listAt(service, 'spec', 'ports').find((each) => numberAt(each, 'port') === port);
  if (servicePort === undefined)
    return fault('ServicePortError', `${where} is not listening on port ${port}`);
  if (slices.length === 0) return fault('EndpointsNotFound', `cannot find endpointslices for ${where}`);
  const portName = textAt(servicePort, 'name');
  if (slices.some((slice) => hasReadyEndpoint(slice, portName))) return undefined;
  return fault(
    'MissingEndpoints',
    `endpointslices for ${where} have no addresses with port name ${goQuote(portName)}`,
  );
}

function hasReadyEndpoint(slice: KubeObject, portName: string): boolean {
  return (
    listAt(slice, 'ports').some((port) => textAt(port, 'name') === portName) &&
    listAt(slice, 'endpoints').some(
      (endpoint) => listAt(endpoint, 'addresses').length > 0 && at(endpoint, 'conditions', 'ready') !== false,
    )
  );
}

function fault(reason: string, message: string): Availability {
  return { status: 'False', reason, message };
}

/** True for an APIService whose requests are proxied (`IsAPIServiceConditionTrue`). */
function isAvailable({ status }: APIService): boolean {
  return availableCondition(status.conditions)?.status === 'True';
}

/**
 * The conditions with a new one of the type `Available`; the same list where nothing changes. The transition time
 * changes with the status only (`SetAPIServiceCondition`).
 *
 * @param now RFC 3339.
 */
function withAvailability(
  conditions: readonly APIServiceCondition[],
  availability: Availability,
  now: string,
): readonly APIServiceCondition[] {
  const before = availableCondition(conditions);
  if (
    before?.status === availability.status &&
    before.reason === availability.reason &&
    before.message === availability.message
  ) {
    return conditions;
  }
  const lastTransitionTime =
    before?.status === availability.status ? (before.lastTransitionTime ?? now) : now;
  const { status, reason, message } = availability;
  const after: APIServiceCondition = {
    type: 'Available',
    status,
    lastTransitionTime,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
  return before === undefined
    ? [...conditions, after]
    : conditions.map((condition) => (condition === before ? after : condition));
}

function availableCondition(
  conditions: readonly APIServiceCondition[] = [],
): APIServiceCondition | undefined {
  return conditions.find(({ type }) => type === 'Available');
}

const plural = 'apiservices';
/** The interval at which every extension API server is checked, changed or not. */
const checkIntervalMs = 30_000;
/** The delay after a failed check, doubled with each further failure up to {@link checkIntervalMs}. */
const firstRetryMs = 250;

/** An APIService that names a Service. */
interface Remote extends RemoteGroupVersion {
  readonly server: ExtensionServer;
  readonly isAvailable: boolean;
}

/**
 * Follows APIServices that name a Service (kube-aggregator): which group versions extension API servers serve, whether
 * they are available, and their discovery documents. Writes the condition `Available`.
 */
export class Aggregator {
  readonly #core: ServerCore;
  readonly #extension: ExtensionNetwork;
  /** By `<group>/<version>`. */
  readonly #remotes = new Map<string, Remote>();
  #groupVersions: readonly RemoteGroupVersion[] = [];
  /** Names of APIServices whose check runs; `true` where another one follows. */
  readonly #checks = new Map<string, boolean>();
  readonly #retries = new Map<string, { timer: NodeJS.Timeout; delayMs: number }>();
  readonly #stopping = new AbortController();
  readonly #unsubscribe: Unsubscribe[] = [];
  #stopChecks: Stop = () => undefined;

  constructor(core: ServerCore, extension: ExtensionNetwork) {
    this.#core = core;
    this.#extension = extension;
  }

  /** The group versions of extension API servers; the same list while nothing changes. */
  groupVersions(): readonly RemoteGroupVersion[] {
    return this.#groupVersions;
  }

  /**
   * The extension API server of a path below `/apis/<group>/<version>` or `/openapi/v3/apis/<group>/<version>`;
   * undefined for a path of this server.
   */
  serverOf(path: string): CheckedServer | undefined {
    if (this.#remotes.size === 0) return undefined;
    const [, group = '', version = ''] = /^(?:\/openapi\/v3)?\/apis\/([^/]+)\/([^/]+)/.exec(path) ?? [];
    const remote = this.#remotes.get(`${group}/${version}`);
    return remote === undefined ? undefined : { ...remote.server, isAvailable: remote.isAvailable };
  }

  /** Follows APIServices and what they depend on from here on, and checks all of them. */
  start(): void {
    const { storage, log } = this.#core;
    const prefix = listPrefix(aggregatorGroup, plural);
    const { items, revision } = storage.list(prefix);
    for (const { object } of items) if (isApiService(object)) this.#changed(object);
    this.#unsubscribe.push(
      storage.watch(prefix, revision, ({ type, current: { object } }) => {
        if (!isApiService(object)) return;
        if (type === 'DELETED') this.#removed(object);
        else this.#changed(object);
      }),
      storage.watch(listPrefix('', 'services'), revision, ({ current }) => {
        this.#checkBackedBy(current, ({ name }) => name);
      }),
      storage.watch(listPrefix('discovery.k8s.io', 'endpointslices'), revision, ({ current }) => {
        this.#checkBackedBy(current, ({ labels }) => labels?.[serviceNameLabel]);
      }),
    );
    this.#stopChecks = runPeriodically(checkIntervalMs, 'extension API servers', log, async () => {
      for (const remote of this.#remotes.values()) this.#check(nameOf(remote));
      await Promise.resolve();
    });
  }

  /** Ends all checks. */
  stop(): void {
    this.#stopChecks();
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    for (const { timer } of this.#retries.values()) clearTimeout(timer);
    this.#retries.clear();
    this.#stopping.abort(new Error('the server is stopping'));
  }

  #changed(service: APIService): void {
    const name = service.metadata.name ?? '';
    const { group = '', version = '', groupPriorityMinimum } = service.spec;
    const key = `${group}/${version}`;
    const server = extensionServer(service.spec);
    if (server === undefined) {
      if (this.#remotes.delete(key)) this.#publish();
      // The strategy sets the condition of a new one; one that named a Service before may need another.
      if (!isAvailable(service)) this.#check(name);
      return;
    }
    const before = this.#remotes.get(key);
    const isSame = jsonEqual(before?.server, server);
    const available = isAvailable(service);
    this.#remotes.set(key, {
      group,
      version,
      groupPriorityMinimum,
      server,
      isAvailable: available,
      isFresh: available && (before?.isFresh ?? false),
      resources: before?.resources ?? [],
      openApi: before?.openApi,
      openApiV2: before?.openApiV2,
    });
    this.#publish();
    if (!isSame) this.#check(name);
  }

  #removed({ spec: { group = '', version = '' } }: APIService): void {
    if (this.#remotes.delete(`${group}/${version}`)) this.#publish();
  }

  #publish(): void {
    this.#groupVersions = [...this.#remotes.values()];
  }

  /** Checks the APIServices whose Service a written object is, or belongs to. */
  #checkBackedBy(written: StoredObject, serviceOf: (metadata: ObjectMeta) => string | undefined): void {
    // Most clusters have none, and many writes of Services: stored objects are parsed when they are read.
    if (this.#remotes.size === 0) return;
    const { metadata } = written.object;
    for (const remote of this.#remotes.values()) {
      const { namespace, name } = remote.server;
      if (namespace === metadata.namespace && name === serviceOf(metadata)) this.#check(nameOf(remote));
    }
  }

  /** Checks an APIService now, or again after the check that runs. */
  #check(name: string): void {
    if (this.#stopping.signal.aborted) return;
    if (this.#checks.has(name)) {
      this.#checks.set(name, true);
      return;
    }
    this.#checks.set(name, false);
    this.#runCheck(name)
      .catch((error: unknown) => {
        if (this.#stopping.signal.aborted) return;
        if (error instanceof PreconditionError) this.#checks.set(name, true);
        else this.#core.log.error({ apiService: name, err: error }, 'cannot check an APIService');
      })
      .finally(() => {
        const isDue = this.#checks.get(name) === true;
        this.#checks.delete(name);
        if (isDue) this.#check(name);
      });
  }

  async #runCheck(name: string): Promise<void> {
    const { storage } = this.#core;
    const key = objectKey(aggregatorGroup, plural, '', name);
    const object = storage.get(key)?.object;
    if (object === undefined || !isApiService(object)) return;
    const availability = await this.#availability(object);
    const stored = storage.getForUpdate(key);
    if (stored === undefined || !isApiService(stored.object)) return;
    const { conditions = [] } = stored.object.status;
    const next = withAvailability(conditions, availability, timestamp(this.#core.now()));
    if (availability.reason === 'FailedDiscoveryCheck') this.#retryLater(name);
    else this.#cancelRetry(name);
    if (next === conditions) return;
    const service: APIService = {
      ...stored.object,
      metadata: { ...stored.object.metadata },
      status: { ...stored.object.status, conditions: [...next] },
    };
    await storage.commit([{ key, expect: stored.revision, object: service }]);
  }

  #retryLater(name: string): void {
    const delayMs = Math.min((this.#retries.get(name)?.delayMs ?? firstRetryMs / 2) * 2, checkIntervalMs);
    clearTimeout(this.#retries.get(name)?.timer);
    this.#retries.set(name, { timer: setTimeout(() => this.#check(name), delayMs).unref(), delayMs });
  }

  #cancelRetry(name: string): void {
    clearTimeout(this.#retries.get(name)?.timer);
    this.#retries.delete(name);
  }

  async #availability({ spec }: APIService): Promise<Availability> {
    const server = extensionServer(spec);
    if (server === undefined) return localAvailability;
    const { storage } = this.#core;
    const { namespace, name } = server;
    const slices = storage
      .list(listPrefix('discovery.k8s.io', 'endpointslices', namespace))
      .items.map(({ object }) => object)
      .filter(({ metadata }) => metadata.labels?.[serviceNameLabel] === name);
    const service = storage.get(objectKey('', 'services', namespace, name))?.object;
    const { group = '', version = '' } = spec;
    const fault = serviceFault(server, service, slices) ?? (await this.#discover(server, group, version));
    return fault ?? passed;
  }

  /** Reads the discovery documents. @returns why the server is not available. */
  async #discover(
    server: ExtensionServer,
    group: string,
    version: string,
  ): Promise<Availability | undefined> {
    try {
      const key = `${group}/${version}`;
      const known = this.#remotes.get(key);
      const { signal } = this.#stopping;
      this.#discovered(
        key,
        server,
        await discoverRemote(this.#extension, server, group, version, known, signal),
      );
      return undefined;
    } catch (error) {
      return failedDiscovery(errorMessage(error));
    }
  }

  #discovered(
    key: string,
    server: ExtensionServer,
    found: Pick<RemoteGroupVersion, 'resources' | 'openApi' | 'openApiV2'>,
  ): void {
    const remote = this.#remotes.get(key);
    if (remote === undefined || !jsonEqual(remote.server, server)) return;
    const next: Remote = { ...remote, ...found, isFresh: true };
    if (jsonEqual(next, remote)) return;
    this.#remotes.set(key, next);
    this.#publish();
  }
}

function nameOf({ group, version }: RemoteGroupVersion): string {
  return `${version}.${group}`;
}

function isApiService(object: KubeObject): object is APIService {
  return object.kind === 'APIService';
}

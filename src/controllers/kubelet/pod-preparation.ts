import { claimOf, foreignClaim, type VolumeClaim } from '../../objects/pods.ts';
import {
  networkAttachmentDefinitions,
  secrets,
  persistentVolumeClaims,
  persistentVolumes,
  clusterTrustBundles,
  configMaps,
  serviceAccounts,
} from '../../client/resources.ts';
import { asksForNetworks } from '../../network/attachments/attachments.ts';
import { isAttached } from '../../network/attachments/network-status.ts';
import { pushAll } from '../../objects/lists.ts';
import type { ClusterTrustBundle } from '../../objects/types/certificates.generated.ts';
import type {
  Pod,
  ConfigMap,
  Container,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
  Service,
} from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { isWorkOfOurs } from '../../runtime/other-implementations.ts';
import { isNotFound } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { isRecord } from '../../objects/json.ts';
import type { KubeObject, ObjectKey } from '../../objects/meta.ts';
import { parseTime } from '../../objects/formats/time.ts';
import { type WantedVolume, type ContainerRuntime, SandboxError } from './container-runtime.ts';
import { planEnvironment, type ReferencedObjects } from './plan-environment.ts';
import {
  MountError,
  planVolumes,
  referencesOf,
  setUpError,
  tokenKey,
  tokensOf,
  trustBundlesOf,
} from './volumes/plan.ts';
import { errorMessage } from '../../objects/status.ts';
import { hostAddresses } from './plan.ts';
import { evictionMessage, limitsStorage } from './volumes/plan-eviction.ts';
import { PodCertificates } from './volumes/pod-certificates.ts';
import type { PodState } from './pod-state.ts';
import { keepUntilRemoved } from './volumes/folders.ts';
import { areBound } from '../persistent-volumes/plan.ts';

/** Milliseconds for which an answer holds that networks are attached here. */
const answerLastsMs = 15_000;

/**
 * Pods whose containers wait: those with further networks, until their `network-status` has them. Multus attaches
 * them while the sandbox is made. Without our own attachments controller nothing waits.
 */
export class AwaitedNetworks {
  readonly #context: Pick<ControllerContext, 'clients' | 'clock'>;
  #knownUntilMs = 0;

  constructor(context: Pick<ControllerContext, 'clients' | 'clock'>) {
    this.#context = context;
  }

  /** @throws what a request throws. */
  async areAwaited(pod: Pod, signal: AbortSignal): Promise<boolean> {
    if (!asksForNetworks(pod) || isAttached(pod) || hasStarted(pod)) return false;
    const { clock } = this.#context;
    if (clock.monotonic() < this.#knownUntilMs) return true;
    if (!(await isWorkOfOurs(this.#context, networkAttachmentDefinitions, 'network attachments', signal))) {
      return false;
    }
    this.#knownUntilMs = clock.monotonic() + answerLastsMs;
    return true;
  }
}

/** Before networks were attached here. */
function hasStarted({ status }: Pod): boolean {
  const { initContainerStatuses = [], containerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses].some(
    ({ state }) => state?.running !== undefined || state?.terminated !== undefined,
  );
}

/** A token with the times when it is replaced and when it expires (milliseconds since 1970). */
interface Token {
  readonly token: string;
  readonly renewAtMs: number;
  readonly endMs: number;
}

/** A token is replaced after this share of its time, and after so many milliseconds at the latest (pkg/kubelet/token). */
const renewShare = 0.8;
const maxUseMs = 24 * 3_600_000;

/** The environment and the volumes of containers, read from the API when they are needed. */
export class PodFiles {
  readonly #configMaps: ResourceClient<ConfigMap>;
  readonly #secrets: ResourceClient<Secret>;
  readonly #trustBundles: ResourceClient<ClusterTrustBundle>;
  readonly #claims: ResourceClient<PersistentVolumeClaim>;
  readonly #volumes: ResourceClient<PersistentVolume>;
  readonly #accounts: ResourceClient<KubeObject>;
  readonly #certificates: PodCertificates;
  readonly #services: () => Iterable<Service>;
  readonly #now: () => number;
  /** By uid of the Pod, then by {@link tokenKey}. */
  readonly #tokens = new Map<string, Map<string, Token>>();

  constructor(context: ControllerContext, services: () => Iterable<Service>) {
    const { clients, clock } = context;
    this.#certificates = new PodCertificates(context);
    this.#configMaps = clients.for(configMaps);
    this.#secrets = clients.for(secrets);
    this.#trustBundles = clients.for(clusterTrustBundles);
    this.#claims = clients.for(persistentVolumeClaims);
    this.#volumes = clients.for(persistentVolumes);
    this.#accounts = clients.for(serviceAccounts);
    this.#services = services;
    this.#now = () => clock.now();
  }

  /**
   * All volumes of a Pod.
   *
   * @throws {MountError} in the kubelet's words.
   */
  async volumes(pod: Pod, node: Node, signal: AbortSignal): Promise<readonly WantedVolume[]> {
    if ((pod.spec.volumes ?? []).length === 0) return [];
    const { containers: _, initContainers: __, ephemeralContainers: ___, ...spec } = pod.spec;
    const objects = await this.#objects({ ...pod, spec }, signal);
    const certificates = await this.#certificates.of(pod, node, signal);
    return planVolumes({ pod, node, objects, tokens: await this.#tokensOf(pod, signal), certificates });
  }

  /** The environment of a container. @throws {ContainerConfigError} in the kubelet's words. */
  async environment(
    pod: Pod,
    container: Container,
    node: Node,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const objects = await this.#objects({ ...pod, spec: { containers: [container] } }, signal);
    return planEnvironment({ pod, container, node, services: this.#services(), objects });
  }

  forget(pod: Pod): void {
    this.#tokens.delete(pod.metadata.uid ?? '');
    this.#certificates.forget(pod);
  }

  async #objects(pod: Pod, signal: AbortSignal): Promise<ReferencedObjects> {
    const { namespace = '' } = pod.metadata;
    const names = referencesOf(pod);
    const [maps, ofSecrets] = await Promise.all([
      readAll(this.#configMaps, namespace, names.configMaps, signal),
      readAll(this.#secrets, namespace, names.secrets, signal),
    ]);
    const named = (pod.spec.volumes ?? []).flatMap((volume) => claimOf(pod, volume) ?? []);
    const claims = await readAll(this.#claims, namespace, new Set(named.map(({ name }) => name)), signal);
    const bound = [...claims.values()].flatMap(({ spec }) => spec.volumeName ?? []);
    const volumes = await readAll(this.#volumes, '', new Set(bound), signal);
    const volumeOf = ({ name, isEphemeral }: VolumeClaim): PersistentVolume | undefined => {
      const claim = claims.get(name);
      if (isEphemeral && claim !== undefined && foreignClaim(pod, claim) !== undefined) return undefined;
      const volume = volumes.get(claim?.spec.volumeName ?? '');
      return claim !== undefined && volume !== undefined && areBound(claim, volume) ? volume : undefined;
    };
    for (const volume of named.map(volumeOf)) {
      if (volume !== undefined) await keepUntilRemoved(this.#volumes, volume, signal);
    }
    const bundles = trustBundlesOf(pod);
    const namedBundles = await readAll(this.#trustBundles, '', bundles.names, signal);
    const bySigner = await this.#bundlesBySigner(bundles.signers, signal);
    return {
      trustBundle: (name) => namedBundles.get(name),
      trustBundlesOf: (signerName) => bySigner.get(signerName) ?? [],
      configMap: (name) => maps.get(name),
      secret: (name) => ofSecrets.get(name),
      volumeOf: (claim) => volumeOf(claim)?.spec,
    };
  }

  async #bundlesBySigner(
    signers: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly ClusterTrustBundle[]>> {
    const found = new Map<string, ClusterTrustBundle[]>();
    for (const signer of signers) {
      const all: ClusterTrustBundle[] = [];
      found.set(signer, all);
      const fieldSelector = `spec.signerName=${signer}`;
      for await (const { items } of this.#trustBundles.pages({ fieldSelector, signal })) pushAll(all, items);
    }
    return found;
  }

  /** Tokens are renewed before they expire; if that fails, the present one is used until then. */
  async #tokensOf(pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const held = this.#tokens.get(uid) ?? new Map<string, Token>();
    this.#tokens.set(uid, held);
    for (const { volume, wanted } of tokensOf(pod)) {
      const key = tokenKey(wanted);
      const known = held.get(key);
      if (known !== undefined && known.renewAtMs > this.#now()) continue;
      const { audience = '', expirationSeconds = 3600 } = wanted;
      const spec = {
        audiences: audience === '' ? null : [audience],
        expirationSeconds,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      };
      const account = pod.spec.serviceAccountName ?? 'default';
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
      let answer: unknown;
      try {
        answer = await this.#accounts.post(namespace, account, 'token', body, { signal });
      } catch (error) {
        if (known !== undefined && known.endMs > this.#now()) continue;
        const why = errorMessage(error);
        throw setUpError(volume, `failed to fetch token: ${why}`);
      }
      held.set(key, tokenOf(answer, this.#now()));
    }
    return new Map([...held].map(([key, { token }]) => [key, token]));
  }
}

function tokenOf(answer: unknown, now: number): Token {
  const status = isRecord(answer) ? answer['status'] : undefined;
  const { token, expirationTimestamp } = isRecord(status) ? status : {};
  if (typeof token !== 'string') throw new MountError('failed to fetch token: the answer has none');
  const endMs = parseTime(typeof expirationTimestamp === 'string' ? expirationTimestamp : '') ?? now;
  return { token, renewAtMs: now + Math.min((endMs - now) * renewShare, maxUseMs), endMs };
}

async function readAll<T extends KubeObject>(
  client: ResourceClient<T>,
  namespace: string,
  names: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, T>> {
  const found = new Map<string, T>();
  for (const name of names) {
    try {
      found.set(name, await client.get(namespace, name, { signal }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  return found;
}

/** Milliseconds after which a sandbox that could not be made is tried again. */
export const sandboxRetryMs = 1000;
/** Milliseconds after which a failed mount is tried again: doubled up to the maximum (`goroutinemap/exponentialbackoff`). */
const mountRetryMs = { first: 500, max: 122_000 };
/** Milliseconds between two updates of volumes' files (`--sync-frequency`). */
const refreshMs = 60_000;
/** Milliseconds between two checks of volumes' sizes (`--housekeeping-interval`). */
const usageCheckMs = 10_000;
/** Milliseconds that an evicted Pod has (`immediateEvictionGracePeriodSeconds`). */
const evictionGraceMs = 1000;

/** A Pod that is reconciled. */
export interface PodWork {
  readonly key: ObjectKey;
  readonly pod: Pod;
  readonly node: Node;
  readonly state: PodState;
  readonly signal: AbortSignal;
}

/**
 * Prepares a Pod besides its containers: volumes, the sandbox and further networks. The files of volumes follow
 * their objects, and a Pod that stores more than its limits is evicted.
 */
export class PodPreparation {
  readonly #context: ControllerContext;
  readonly #runtime: ContainerRuntime;
  readonly #files: PodFiles | undefined;
  readonly #networks: AwaitedNetworks | undefined;

  /**
   * @param files undefined: volumes are only objects.
   * @param networks undefined: no further networks are awaited.
   */
  constructor(
    context: ControllerContext,
    runtime: ContainerRuntime,
    files: PodFiles | undefined,
    networks: AwaitedNetworks | undefined,
  ) {
    this.#context = context;
    this.#runtime = runtime;
    this.#files = files;
    this.#networks = networks;
  }

  /** Volumes, then the sandbox. */
  async prepare(work: PodWork, addresses: readonly string[]): Promise<'done' | 'blocked' | 'later'> {
    const { pod, node, state } = work;
    const { clock, events } = this.#context;
    if (state.mounts.untilMs > clock.now()) return 'blocked';
    try {
      await this.#mount(work, addresses);
      const ofHost = pod.spec.hostNetwork === true;
      await this.#runtime.ensureSandbox({ pod, node, addresses: ofHost ? hostAddresses(node) : addresses });
      state.isPrepared = true;
      return 'done';
    } catch (error) {
      if (error instanceof SandboxError) {
        events.event(pod, 'Warning', 'FailedCreatePodSandBox', error.message);
        return 'later';
      }
      if (!(error instanceof MountError)) throw error;
      events.event(pod, 'Warning', error.reason, error.message);
      const waitMs = Math.min(mountRetryMs.first * 2 ** state.mounts.failures, mountRetryMs.max);
      state.mounts = { failures: state.mounts.failures + 1, untilMs: clock.now() + waitMs };
      return 'blocked';
    }
  }

  /** Further networks, once the Pod's annotation has them. @returns when to try again. */
  async attachNetworks({ pod, state, signal }: PodWork): Promise<number | undefined> {
    const { clock, events } = this.#context;
    if (!state.isPrepared || state.hasNetworks) return undefined;
    // The annotation comes with an update of the Pod.
    if ((await this.#networks?.areAwaited(pod, signal)) === true) return undefined;
    try {
      const missing = await this.#runtime.attachNetworks(pod);
      for (const why of missing) events.event(pod, 'Warning', 'UnsupportedPlugin', why);
      state.hasNetworks = true;
      return undefined;
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      events.event(pod, 'Warning', 'FailedCreatePodSandBox', error.message);
      return clock.now() + sandboxRetryMs;
    }
  }

  /** @throws {MountError} */
  async #mount({ pod, node, state, signal }: PodWork, addresses: readonly string[]): Promise<void> {
    if (this.#files === undefined) return;
    const [podIP = ''] = addresses;
    const addressed = { ...pod, status: { ...pod.status, podIP, podIPs: addresses.map((ip) => ({ ip })) } };
    const volumes = await this.#files.volumes(addressed, node, signal);
    for (const volume of volumes) {
      try {
        await this.#runtime.writeVolume(pod, volume);
      } catch (error) {
        // Such as a full disk.
        const why = errorMessage(error);
        throw setUpError(volume.name, why);
      }
    }
    const changes = (pod.spec.volumes ?? []).some(
      (volume) =>
        volume.emptyDir === undefined && volume.hostPath === undefined && claimOf(pod, volume) === undefined,
    );
    state.refreshAtMs = changes ? this.#context.clock.now() + refreshMs : Infinity;
  }

  /** Updates files by their objects, and evicts a Pod over its limits of storage. @returns when to check again. */
  async keepFiles(work: PodWork): Promise<number | undefined> {
    const { pod, state } = work;
    const { clock, events } = this.#context;
    if (!state.isPrepared || this.#files === undefined) return undefined;
    if (state.refreshAtMs <= clock.now()) {
      try {
        await this.#mount(
          work,
          (pod.status.podIPs ?? []).map(({ ip }) => ip),
        );
      } catch (error) {
        if (!(error instanceof MountError)) throw error;
        // Mounted files stay.
        state.refreshAtMs = clock.now() + refreshMs;
        events.event(pod, 'Warning', error.reason, error.message);
      }
    }
    if (!limitsStorage(pod.spec)) return Number.isFinite(state.refreshAtMs) ? state.refreshAtMs : undefined;
    const message = evictionMessage(pod.spec, await this.#runtime.usageOf(pod));
    if (message !== undefined) {
      state.ending = { sinceMs: clock.now(), graceMs: evictionGraceMs, reason: 'Evicted', message };
      events.event(pod, 'Warning', 'Evicted', message);
      return undefined;
    }
    return Math.min(state.refreshAtMs, clock.now() + usageCheckMs);
  }
}

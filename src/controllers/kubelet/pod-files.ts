import { isNotFound } from '../../client/errors.ts';
import { secrets, configMaps, serviceAccounts } from '../../client/resources.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { isRecord } from '../../objects/json.ts';
import type {
  ConfigMap,
  Container,
  Node,
  Pod,
  Secret,
  Service,
  Volume,
} from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { parseTime } from '../../objects/time.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { WantedVolume } from './container-runtime.ts';
import { planEnvironment, type ReferencedObjects } from './plan-environment.ts';
import { MountError, planVolumes, referencesOf, setUpError, tokenKey, tokensOf } from './plan-volumes.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** A token with the times when it is replaced and when it expires (milliseconds since 1970). */
interface Token {
  readonly token: string;
  readonly renewAt: number;
  readonly end: number;
}

/** A token is replaced after this share of its time, and after so many milliseconds at the latest (pkg/kubelet/token). */
const renewShare = 0.8;
const maxUse = 24 * 3_600_000;

/** The environment and the volumes of containers, read from the API when they are needed. */
export class PodFiles {
  readonly #configMaps: ResourceClient<ConfigMap>;
  readonly #secrets: ResourceClient<Secret>;
  readonly #accounts: ResourceClient<KubeObject>;
  readonly #services: () => Iterable<Service>;
  readonly #now: () => number;
  /** By uid of the Pod, then by {@link tokenKey}. */
  readonly #tokens = new Map<string, Map<string, Token>>();

  constructor({ clients, clock }: ControllerContext, services: () => Iterable<Service>) {
    this.#configMaps = clients.for(configMaps);
    this.#secrets = clients.for(secrets);
    this.#accounts = clients.for(serviceAccounts);
    this.#services = services;
    this.#now = () => clock.now();
  }

  /**
   * All volumes of a Pod.
   *
   * @param hasPrograms without, nothing reads the tokens: such volumes are left out.
   * @throws {MountError} in the kubelet's words.
   */
  async volumes(
    pod: Pod,
    node: Node,
    hasPrograms: boolean,
    signal: AbortSignal,
  ): Promise<readonly WantedVolume[]> {
    const { volumes = [] } = pod.spec;
    const wanted = hasPrograms ? volumes : volumes.filter((volume) => !hasToken(volume));
    if (wanted.length === 0) return [];
    const reduced = { ...pod, spec: { ...pod.spec, volumes: wanted } };
    const { containers: _, initContainers: __, ephemeralContainers: ___, ...spec } = reduced.spec;
    const objects = await this.#objects({ ...pod, spec }, signal);
    return planVolumes({ pod: reduced, node, objects, tokens: await this.#tokensOf(reduced, signal) });
  }

  /** The environment of a container. @throws {ConfigError} in the kubelet's words. */
  async environment(
    pod: Pod,
    container: Container,
    node: Node,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const objects = await this.#objects({ ...pod, spec: { containers: [container] } }, signal);
    return planEnvironment({ pod, container, node, services: this.#services(), objects });
  }

  forget({ metadata }: Pod): void {
    this.#tokens.delete(metadata.uid ?? '');
  }

  async #objects(pod: Pod, signal: AbortSignal): Promise<ReferencedObjects> {
    const { namespace = '' } = pod.metadata;
    const names = referencesOf(pod);
    const [maps, ofSecrets] = await Promise.all([
      readAll(this.#configMaps, namespace, names.configMaps, signal),
      readAll(this.#secrets, namespace, names.secrets, signal),
    ]);
    return { configMap: (name) => maps.get(name), secret: (name) => ofSecrets.get(name) };
  }

  /** Tokens are renewed before they expire; if that fails, the present one is used until then. */
  async #tokensOf(pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const held = this.#tokens.get(uid) ?? new Map<string, Token>();
    this.#tokens.set(uid, held);
    for (const { volume, wanted } of tokensOf(pod)) {
      const key = tokenKey(wanted);
      const known = held.get(key);
      if (known !== undefined && known.renewAt > this.#now()) continue;
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
        if (known !== undefined && known.end > this.#now()) continue;
        const why = errorMessage(error);
        throw setUpError(volume, `failed to fetch token: ${why}`);
      }
      held.set(key, tokenOf(answer, this.#now()));
    }
    return new Map([...held].map(([key, { token }]) => [key, token]));
  }
}

function hasToken({ projected }: Volume): boolean {
  return (projected?.sources ?? []).some(({ serviceAccountToken }) => serviceAccountToken !== undefined);
}

function tokenOf(answer: unknown, now: number): Token {
  const status = isRecord(answer) ? answer['status'] : undefined;
  const { token, expirationTimestamp } = isRecord(status) ? status : {};
  if (typeof token !== 'string') throw new MountError('failed to fetch token: the answer has none');
  const end = parseTime(typeof expirationTimestamp === 'string' ? expirationTimestamp : '') ?? now;
  return { token, renewAt: now + Math.min((end - now) * renewShare, maxUse), end };
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

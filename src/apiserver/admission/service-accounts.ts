import { setTimeout as delay } from 'node:timers/promises';
import type { Container, Pod, ServiceAccount, Volume } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { forbidden } from '../../objects/status-errors.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import { generateName } from '../rest/object-name.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { objectKey } from '../storage/storage.ts';
import { isPod } from '../subresources/pod-binding.ts';

const usual = 'default';
const volumePrefix = 'kube-api-access-';
const tokenFolder = '/var/run/secrets/kubernetes.io/serviceaccount';
const mirror = 'kubernetes.io/config.mirror';

/** How often, and at which interval in milliseconds, the account `default` of a new namespace is awaited. */
const tries = 10;
const between = 100;

/**
 * The ServiceAccount plugin (plugin/pkg/admission/serviceaccount): Pods get the account `default`, its pull secrets, and
 * a volume with a token for the API server, its authority and the namespace.
 */
export class ServiceAccountAdmission implements AdmissionPlugin {
  readonly #core: ServerCore;

  constructor(core: ServerCore) {
    this.#core = core;
  }

  handles({ operation, resource: { definition }, subresource }: AdmissionAttributes): boolean {
    return (
      operation === 'CREATE' && definition.group === '' && definition.plural === 'pods' && subresource === ''
    );
  }

  /** @throws {StatusError} 403 where there is no such account. */
  async mutate({ object, namespace }: AdmissionAttributes): Promise<KubeObject | undefined> {
    if (object === undefined || !isPod(object) || isMirror(object)) return object;
    const { spec } = object;
    const name = (spec.serviceAccountName ?? '') === '' ? usual : (spec.serviceAccountName ?? usual);
    const account = await this.#account(object, namespace, name);
    spec.serviceAccountName = name;
    spec.serviceAccount = name;
    const mounts = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
    if (mounts) mountToken(object, () => generateName(volumePrefix, () => this.#core.random()));
    if ((spec.imagePullSecrets ?? []).length === 0 && (account.imagePullSecrets ?? []).length > 0) {
      spec.imagePullSecrets = structuredClone(account.imagePullSecrets ?? []);
    }
    return object;
  }

  /** @throws {StatusError} 403 for a Pod whose account is gone, and for mirror Pods with one. */
  validate({ object, namespace, name, resource }: AdmissionAttributes): Promise<void> {
    return new Promise((resolve) => {
      if (object !== undefined && isPod(object)) {
        const { serviceAccountName = '' } = object.spec;
        if (isMirror(object) && serviceAccountName !== '') {
          throw forbidden(resource.groupResource, name, 'a mirror pod may not reference service accounts');
        }
        if (!isMirror(object)) this.#find(object, namespace, serviceAccountName);
      }
      resolve();
    });
  }

  /** The account of a new namespace is made after it. @throws {StatusError} 403 */
  async #account(pod: Pod, namespace: string, name: string): Promise<ServiceAccount> {
    for (let i = 1; i < tries && name === usual; i++) {
      const found = this.#read(namespace, name);
      if (found !== undefined) return found;
      await delay(between + this.#core.random() * between);
    }
    return this.#find(pod, namespace, name);
  }

  #read(namespace: string, name: string): ServiceAccount | undefined {
    const found: KubeObject | undefined = this.#core.storage.get(
      objectKey('', 'serviceaccounts', namespace, name),
    )?.object;
    return found;
  }

  #find(pod: Pod, namespace: string, name: string): ServiceAccount {
    const found = this.#read(namespace, name);
    if (found !== undefined) return found;
    const shown = pod.metadata.name ?? pod.metadata.generateName ?? '';
    const why = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`;
    throw forbidden({ group: '', resource: 'pods' }, shown, why);
  }
}

function isMirror({ metadata }: Pod): boolean {
  return metadata.annotations?.[mirror] !== undefined;
}

function mountToken({ spec }: Pod, newName: () => string): void {
  const present = spec.volumes?.find(({ name }) => name.startsWith(volumePrefix))?.name;
  const name = present ?? newName();
  let isNeeded = false;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    isNeeded = mountIn(container, name) || isNeeded;
  }
  if (present === undefined && isNeeded) spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)];
}

/** @returns false where the container mounts something else there. */
function mountIn(container: Container, name: string): boolean {
  const { volumeMounts = [] } = container;
  if (volumeMounts.some(({ mountPath }) => mountPath === tokenFolder)) return false;
  container.volumeMounts = [...volumeMounts, { name, readOnly: true, mountPath: tokenFolder }];
  return true;
}

/** Seconds; 3607 rather than an hour, which marks these tokens (`WarnOnlyBoundTokenExpirationPeriod`). */
const lifetime = 3607;

function tokenVolume(name: string): Volume {
  const namespace = { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } };
  const authority = { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] };
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: lifetime, path: 'token' } },
        { configMap: authority },
        { downwardAPI: { items: [namespace] } },
      ],
      defaultMode: 0o644,
    },
  };
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Container, Pod, ServiceAccount, Volume } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { forbidden } from '../../objects/status.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import { generateName } from '../rest/system-fields.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { objectKey } from '../storage/storage.ts';
import { isPod } from '../subresources/pod-binding.ts';

const defaultAccount = 'default';
const volumePrefix = 'kube-api-access-';
const tokenDirectory = '/var/run/secrets/kubernetes.io/serviceaccount';
const mirrorAnnotation = 'kubernetes.io/config.mirrorAnnotation';

/** Reads of the account `default`, which the service account controller creates after its namespace. */
const attempts = 10;
/** Between two reads; up to twice as much, at random. */
const retryMilliseconds = 100;

/**
 * The ServiceAccount plugin (`plugin/pkg/admission/serviceaccount`): Pods get the account `default` unless they name
 * another, its pull secrets, and a volume with a token for the API server, the server's CA and the namespace.
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

  /** @throws {StatusError} 403 where the account does not exist. */
  async mutate({ object, namespace }: AdmissionAttributes): Promise<KubeObject | undefined> {
    if (object === undefined || !isPod(object) || isMirror(object)) return object;
    const { spec } = object;
    const name = spec.serviceAccountName || defaultAccount;
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

  /** @throws {StatusError} 403 for a Pod whose account is gone, and for mirrorAnnotation Pods with one. */
  validate({ object, namespace, name, resource }: AdmissionAttributes): Promise<void> {
    return new Promise((resolve) => {
      if (object !== undefined && isPod(object)) {
        const { serviceAccountName = '' } = object.spec;
        if (isMirror(object) && serviceAccountName !== '') {
          throw forbidden(
            resource.groupResource,
            name,
            'a mirrorAnnotation pod may not reference service accounts',
          );
        }
        if (!isMirror(object)) this.#find(object, namespace, serviceAccountName);
      }
      resolve();
    });
  }

  /** Waits for the account `default`, which may be on its way. @throws {StatusError} 403 */
  async #account(pod: Pod, namespace: string, name: string): Promise<ServiceAccount> {
    for (let i = 1; i < attempts && name === defaultAccount; i++) {
      const found = this.#read(namespace, name);
      if (found !== undefined) return found;
      await delay(retryMilliseconds * (1 + this.#core.random()));
    }
    return this.#find(pod, namespace, name);
  }

  #read(namespace: string, name: string): ServiceAccount | undefined {
    return this.#core.storage.get(objectKey('', 'serviceaccounts', namespace, name))?.object;
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
  return metadata.annotations?.[mirrorAnnotation] !== undefined;
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

/** @returns false where the container has a mount at the path already. */
function mountIn(container: Container, name: string): boolean {
  const { volumeMounts = [] } = container;
  if (volumeMounts.some(({ mountPath }) => mountPath === tokenDirectory)) return false;
  container.volumeMounts = [...volumeMounts, { name, readOnly: true, mountPath: tokenDirectory }];
  return true;
}

/** Not 3600, which marks these tokens (`WarnOnlyBoundTokenExpirationPeriod`). */
const expirationSeconds = 3607;

function tokenVolume(name: string): Volume {
  const namespace = { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } };
  const authority = { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] };
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds, path: 'token' } },
        { configMap: authority },
        { downwardAPI: { items: [namespace] } },
      ],
      defaultMode: 0o644,
    },
  };
}

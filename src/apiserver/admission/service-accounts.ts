import { setTimeout as delay } from 'node:timers/promises';
import type { Container, Pod, ServiceAccount, Volume } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { StatusError } from '../../objects/status.ts';
import {
  type AdmissionAttributes,
  type AdmissionPlugin,
  type MaybePromise,
  refusal,
} from '../rest/admission.ts';
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
const retryMs = 100;

/**
 * The ServiceAccount plugin (`plugin/pkg/admission/serviceaccount`): Pods get the account `default` unless they name
 * another, its pull secrets, and a volume with a token for the API server, the server's CA and the namespace.
 */
export class ServiceAccountAdmission implements AdmissionPlugin {
  readonly name = 'ServiceAccount';
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
  mutate(attributes: AdmissionAttributes): MaybePromise<KubeObject | undefined> {
    const { object, namespace } = attributes;
    if (object === undefined || !isPod(object) || isMirror(object)) return undefined;
    const name = object.spec.serviceAccountName || defaultAccount;
    const account = this.#read(namespace, name);
    if (account !== undefined) return this.#use(object, name, account);
    if (name !== defaultAccount) throw notFound(attributes, name);
    return this.#awaitDefault(attributes).then((made) => this.#use(object, name, made));
  }

  #use(pod: Pod, name: string, account: ServiceAccount): Pod {
    const { spec } = pod;
    spec.serviceAccountName = name;
    spec.serviceAccount = name;
    const mounts = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
    if (mounts) mountToken(pod, () => generateName(volumePrefix, () => this.#core.random()));
    if ((spec.imagePullSecrets ?? []).length === 0 && (account.imagePullSecrets ?? []).length > 0) {
      spec.imagePullSecrets = structuredClone(account.imagePullSecrets ?? []);
    }
    return pod;
  }

  /** @throws {StatusError} 403 for a Pod whose account is gone, and for mirrorAnnotation Pods with one. */
  validate(attributes: AdmissionAttributes): void {
    const { object, namespace } = attributes;
    if (object === undefined || !isPod(object)) return;
    const { serviceAccountName = '' } = object.spec;
    if (isMirror(object)) {
      if (serviceAccountName === '') return;
      throw refusal(attributes, 'a mirrorAnnotation pod may not reference service accounts');
    }
    if (this.#read(namespace, serviceAccountName) === undefined)
      throw notFound(attributes, serviceAccountName);
  }

  /** The account `default`, which may be on its way. @throws {StatusError} 403 */
  async #awaitDefault(attributes: AdmissionAttributes): Promise<ServiceAccount> {
    for (let i = 1; i < attempts; i++) {
      await delay(retryMs * (1 + this.#core.random()));
      const found = this.#read(attributes.namespace, defaultAccount);
      if (found !== undefined) return found;
    }
    throw notFound(attributes, defaultAccount);
  }

  #read(namespace: string, name: string): ServiceAccount | undefined {
    return this.#core.storage.get(objectKey('', 'serviceaccounts', namespace, name))?.object;
  }
}

function notFound(attributes: AdmissionAttributes, name: string): StatusError {
  const { namespace } = attributes;
  const why = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`;
  return refusal(attributes, why);
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

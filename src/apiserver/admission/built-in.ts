import type { LimitRange } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { isRecord, recordAt, at, jsonEqual, textAt } from '../../objects/json.ts';
import { forbidden } from '../../objects/status.ts';
import { applyDefaultLimits, brokenClaimLimits, brokenPodLimits } from '../../registry/core/limitrange.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import { listPrefix, type Storage } from '../storage/storage.ts';
import { isPod } from '../subresources/pod-binding.ts';
import { defaultPriorityClass } from '../../registry/core/pod/admission.ts';
import { schedulingGroup, systemPriorityClasses } from '../../registry/scheduling/priorityclass.ts';
import { type ServerCore, strategyContext } from '../rest/server-core.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { requestedOrganizations } from '../pki/signing-request.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/**
 * The LimitRanger plugin: containers get the default requests and limits of the LimitRanges of their namespace; Pods
 * and PersistentVolumeClaims that break a limit are refused.
 */
export class LimitRangeAdmission implements AdmissionPlugin {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Updates of Pods are skipped, since the resources of a Pod do not change; claims may grow. */
  handles({ operation, resource: { definition }, subresource, namespace }: AdmissionAttributes): boolean {
    if (definition.group !== '' || subresource !== '') return false;
    const { plural } = definition;
    const concerned =
      (plural === 'pods' && operation === 'CREATE') ||
      (plural === 'persistentvolumeclaims' && (operation === 'CREATE' || operation === 'UPDATE'));
    return concerned && this.#storage.count(listPrefix('', 'limitranges', namespace)) > 0;
  }

  mutate({ object, namespace }: AdmissionAttributes): Promise<KubeObject | undefined> {
    if (object !== undefined && isPod(object)) {
      for (const range of this.#ranges(namespace)) applyDefaultLimits(range, object);
    }
    return Promise.resolve(object);
  }

  /** @throws {StatusError} 403 that names all broken limits of the first LimitRange that has any. */
  validate({ object, resource, name, namespace }: AdmissionAttributes): Promise<void> {
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return Promise.resolve();
    for (const range of this.#ranges(namespace)) {
      const broken = isPod(object)
        ? brokenPodLimits(range, object)
        : brokenClaimLimits(range, requestsOf(object));
      if (broken.length === 0) continue;
      const text = broken.length === 1 ? (broken[0] ?? '') : `[${[...new Set(broken)].join(', ')}]`;
      throw forbidden(resource.groupResource, name, text);
    }
    return Promise.resolve();
  }

  #ranges(namespace: string): LimitRange[] {
    const { items } = this.#storage.list(listPrefix('', 'limitranges', namespace));
    return items.map(({ object }) => object).filter(isLimitRange);
  }
}

function requestsOf(claim: KubeObject): Record<string, string> {
  const requests = recordAt(claim, 'spec', 'resources', 'requests');
  return Object.fromEntries(
    Object.entries(requests).flatMap(([name, quantity]) =>
      typeof quantity === 'string' ? [[name, quantity]] : [],
    ),
  );
}

function isLimitRange(object: KubeObject): object is LimitRange {
  return object.kind === 'LimitRange' && 'spec' in object && isRecord(object.spec);
}

/**
 * At most one PriorityClass is the default (admission Priority), and the system's classes cannot be deleted
 * (`pkg/registry/scheduling/priorityclass/storage`).
 */
export class PriorityClassAdmission implements AdmissionPlugin {
  readonly #core: ServerCore;

  constructor(core: ServerCore) {
    this.#core = core;
  }

  handles({ resource: { definition }, operation, object }: AdmissionAttributes): boolean {
    if (definition.group !== schedulingGroup || definition.plural !== 'priorityclasses') return false;
    return operation === 'DELETE' || at(object, 'globalDefault') === true;
  }

  /** @throws {StatusError} 403 */
  validate(attributes: AdmissionAttributes): Promise<void> {
    return new Promise((resolve) => {
      if (attributes.operation === 'DELETE') refuseSystemClass(attributes);
      else this.#refuseSecondDefault(attributes);
      resolve();
    });
  }

  #refuseSecondDefault({ operation, object, resource, name }: AdmissionAttributes): void {
    if (at(object, 'globalDefault') !== true) return;
    const present = defaultPriorityClass(strategyContext(this.#core, false).cluster)?.metadata.name;
    if (present === undefined || (operation === 'UPDATE' && present === name)) return;
    const why = `PriorityClass ${present} is already marked as default. Only one default can exist`;
    throw forbidden(resource.groupResource, name, why);
  }
}

function refuseSystemClass({ resource, name }: AdmissionAttributes): void {
  if (!systemPriorityClasses.some(({ metadata }) => metadata.name === name)) return;
  const why = 'this is a system priority class and cannot be deleted';
  throw forbidden(resource.groupResource, name, why);
}

const group = 'certificates.k8s.io';
const clientSigner = 'kubernetes.io/kube-apiserver-client';
const superusers = 'system:masters';

/**
 * Permissions to approve and sign requests for a signer (admission CertificateApproval, CertificateSigning), and no
 * certificates for system:masters (CertificateSubjectRestriction).
 */
export class CertificateAdmission implements AdmissionPlugin {
  readonly #authorizer: Authorizer;

  constructor(authorizer: Authorizer) {
    this.#authorizer = authorizer;
  }

  handles({ resource: { definition }, operation }: AdmissionAttributes): boolean {
    return definition.group === group && (operation === 'CREATE' || operation === 'UPDATE');
  }

  /** @throws {StatusError} 403 */
  validate(attributes: AdmissionAttributes): Promise<void> {
    return new Promise((resolve) => {
      const { operation, subresource, object, oldObject } = attributes;
      if (operation === 'CREATE') refuseSuperusers(attributes);
      else if (subresource === 'approval') this.#require('approve', attributes);
      else if (subresource === 'status' && changes(object, oldObject)) this.#require('sign', attributes);
      resolve();
    });
  }

  #require(verb: 'approve' | 'sign', { user, oldObject, resource, name }: AdmissionAttributes): void {
    const signer = textAt(oldObject, 'spec', 'signerName');
    const [domain = ''] = signer.split('/');
    if (this.#may(user, verb, signer) || this.#may(user, verb, `${domain}/*`)) return;
    const why = `user not permitted to ${verb} requests with signerName ${JSON.stringify(signer)}`;
    throw forbidden(resource.groupResource, name, why);
  }

  #may(user: UserInfo, verb: string, name: string): boolean {
    const resource = { group, resource: 'signers', subresource: '', namespace: '', name };
    return this.#authorizer.authorize(user, { verb, path: '', resource }).allowed;
  }
}

function changes(object: unknown, old: unknown): boolean {
  return ['certificate', 'conditions'].some(
    (member) => !jsonEqual(at(object, 'status', member), at(old, 'status', member)),
  );
}

function refuseSuperusers({ object, resource, name }: AdmissionAttributes): void {
  if (textAt(object, 'spec', 'signerName') !== clientSigner) return;
  const request = Buffer.from(textAt(object, 'spec', 'request'), 'base64');
  if (!requestedOrganizations(request).includes(superusers)) return;
  const why = `use of ${clientSigner} signer with ${superusers} group is not allowed`;
  throw forbidden(resource.groupResource, name, why);
}

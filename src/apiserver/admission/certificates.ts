import { jsonEqual } from '../../objects/json.ts';
import { at, textAt } from '../../objects/read.ts';
import { forbidden } from '../../objects/status-errors.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { requestedOrganizations } from '../pki/signing-request.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

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

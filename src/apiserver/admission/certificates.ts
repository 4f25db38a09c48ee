import { at, jsonEqual, listAt, textAt } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { forbidden, plainError } from '../../objects/status.ts';
import {
  type Authorizer,
  certificatesGroup as group,
  isAllowedForSigner,
} from '../authorization/authorizer.ts';
import { requestedOrganizations } from '../pki/signing-request.ts';
import { type AdmissionAttributes, type AdmissionPlugin, refusal } from '../rest/admission.ts';
import { objectKey, type Storage } from '../storage/storage.ts';
import { changesOnlyGCFields } from './permission-checks.ts';

/** The plugins for kinds of certificates.k8s.io, in the order of the chain. */

const signingRequests = 'certificatesigningrequests';
const clientSigner = 'kubernetes.io/kube-apiserver-client';
const superusers = 'system:masters';

function concerns(
  { operation, resource: { definition }, subresource }: AdmissionAttributes,
  wanted: AdmissionAttributes['operation'],
  plural: string,
  part = '',
): boolean {
  return (
    definition.group === group && definition.plural === plural && operation === wanted && subresource === part
  );
}

const nodePrefix = 'system:node:';
const nodesGroup = 'system:nodes';
const mirrorAnnotation = 'kubernetes.io/config.mirror';

/**
 * A node asks for certificates of the Pods that run on it only: that part of NodeRestriction
 * (`plugin/pkg/admission/noderestriction`) which concerns PodCertificateRequests.
 */
export function nodeRestriction(storage: Storage, authorizer: Authorizer): AdmissionPlugin {
  const stored = (plural: string, namespace: string, name: string): KubeObject | undefined =>
    storage.getForUpdate(objectKey('', plural, namespace, name))?.object;
  return {
    name: 'NodeRestriction',
    handles: ({ resource: { definition }, user, operation }) =>
      definition.plural === 'podcertificaterequests' &&
      definition.group === group &&
      operation !== 'CONNECT' &&
      user.name.startsWith(nodePrefix) &&
      user.groups.includes(nodesGroup),
    mutate(attributes) {
      const { operation, subresource, namespace, object, user } = attributes;
      if (operation !== 'CREATE') throw refusal(attributes, `unexpected operation ${operation}`);
      if (subresource !== '') throw refusal(attributes, `unexpected subresource ${subresource}`);
      const of = (member: string): string => textAt(object, 'spec', member);
      const [nodeName, podName, accountName] = [of('nodeName'), of('podName'), of('serviceAccountName')];
      const asking = user.name.slice(nodePrefix.length);
      const quoted = JSON.stringify;
      if (nodeName !== asking) {
        const what = `PodCertificateRequest.Spec.NodeName=${quoted(nodeName)}`;
        throw refusal(attributes, `${what}, which is not the requesting node ${quoted(asking)}`);
      }
      const named = (kind: string, plural: string, within: string, name: string): KubeObject => {
        const found = stored(plural, within, name);
        if (found !== undefined) return found;
        const shown = quoted(within === '' ? name : `${within}/${name}`);
        const resource = kind === 'service account' ? 'serviceaccount' : kind;
        const what = `while retrieving ${kind} ${shown} named in the PodCertificateRequest`;
        throw plainError(`${what}: ${resource} ${quoted(name)} not found`);
      };
      const pod = `PodCertificateRequest for pod ${quoted(`${namespace}/${podName}`)}`;
      const node = named('node', 'nodes', '', nodeName);
      // The caches of kube-apiserver may be behind: what another try may find is not forbidden.
      if (node.metadata.uid !== of('nodeUID')) {
        const stale = `${pod} names node UID ${quoted(of('nodeUID'))}, inconsistent with the running node`;
        throw plainError(`${stale} (${quoted(node.metadata.uid ?? '')})`);
      }
      const running = named('pod', 'pods', namespace, podName);
      if (running.metadata.uid !== of('podUID')) {
        const stale = `${pod} contains pod UID (${quoted(of('podUID'))}) which differs from running pod`;
        throw plainError(`${stale} ${quoted(running.metadata.uid ?? '')}`);
      }
      const shown = `pod ${quoted(`${namespace}/${podName}`)}`;
      if (textAt(running, 'spec', 'nodeName') !== nodeName) {
        const what = `${shown} is not running on node ${quoted(nodeName)}`;
        throw refusal(attributes, `${what} named in the PodCertificateRequest`);
      }
      if (running.metadata.annotations?.[mirrorAnnotation] !== undefined) {
        throw refusal(attributes, `${shown} is a mirror pod`);
      }
      const ownAccount = textAt(running, 'spec', 'serviceAccountName');
      if (accountName !== ownAccount) {
        const what = `${pod} contains serviceAccountName (${quoted(accountName)})`;
        throw refusal(attributes, `${what} that differs from running pod (${quoted(ownAccount)})`);
      }
      const account = named('service account', 'serviceaccounts', namespace, accountName);
      if (account.metadata.uid !== of('serviceAccountUID')) {
        const what = `${pod} names service account UID ${quoted(of('serviceAccountUID'))}`;
        const actual = quoted(account.metadata.uid ?? '');
        throw plainError(`${what}, which differs from the running service account (${actual})`);
      }
      requireReason(running, attributes);
      return undefined;
    },
  };

  /** The Pod mounts a certificate of the signer, or the node may ask for those of the service account. */
  function requireReason(pod: KubeObject, attributes: AdmissionAttributes): void {
    const { object, namespace, user } = attributes;
    const signerName = textAt(object, 'spec', 'signerName');
    const mounts = listAt(pod, 'spec', 'volumes').some((volume) =>
      listAt(volume, 'projected', 'sources').some(
        (source) => textAt(source, 'podCertificate', 'signerName') === signerName,
      ),
    );
    if (mounts) return;
    const verb = 'request-serviceaccounts-podcertificate-signer';
    const name = textAt(object, 'spec', 'serviceAccountName');
    const resource = { group, resource: signerName.replaceAll('/', ':'), subresource: '', namespace, name };
    if (authorizer.authorize(user, { verb, path: '', resource }).allowed) return;
    const shown = JSON.stringify(`${namespace}/${pod.metadata.name ?? ''}`);
    const why = `does not mount a podCertificate projected volume for signer ${JSON.stringify(signerName)}`;
    throw refusal(attributes, `pod ${shown} ${why}`);
  }
}

/** Approving a request needs the permission for its signer. */
export function certificateApproval(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: 'CertificateApproval',
    handles: (attributes) => concerns(attributes, 'UPDATE', signingRequests, 'approval'),
    validate(attributes) {
      requireSigner(authorizer, 'approve', attributes);
    },
  };
}

/** Writing the certificate or a condition needs the permission for the request's signer. */
export function certificateSigning(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: 'CertificateSigning',
    handles: (attributes) => concerns(attributes, 'UPDATE', signingRequests, 'status'),
    validate(attributes) {
      const { object, oldObject } = attributes;
      const changes = ['certificate', 'conditions'].some(
        (member) => !jsonEqual(at(object, 'status', member), at(oldObject, 'status', member)),
      );
      if (changes) requireSigner(authorizer, 'sign', attributes);
    },
  };
}

function requireSigner(
  authorizer: Authorizer,
  verb: 'approve' | 'sign',
  { user, oldObject, resource, name }: AdmissionAttributes,
): void {
  const signer = textAt(oldObject, 'spec', 'signerName');
  if (isAllowedForSigner(authorizer, user, verb, signer)) return;
  const why = `user not permitted to ${verb} requests with signerName ${JSON.stringify(signer)}`;
  throw forbidden(resource.groupResource, name, why);
}

/** Writing the bundle of a signer needs its permission (`plugin/pkg/admission/certificates/ctbattest`). */
export function clusterTrustBundleAttest(authorizer: Authorizer): AdmissionPlugin {
  return {
    name: 'ClusterTrustBundleAttest',
    handles: (attributes) =>
      concerns(attributes, 'CREATE', 'clustertrustbundles') ||
      concerns(attributes, 'UPDATE', 'clustertrustbundles'),
    validate(attributes) {
      const { object, oldObject, user } = attributes;
      const signer = textAt(object, 'spec', 'signerName');
      if (object === undefined || signer === '' || changesOnlyGCFields(object, oldObject)) return;
      if (isAllowedForSigner(authorizer, user, 'attest', signer)) return;
      throw refusal(attributes, `user not permitted to attest for signerName ${JSON.stringify(signer)}`);
    },
  };
}

/** Nobody gets a client certificate for system:masters. */
export const certificateSubjectRestriction: AdmissionPlugin = {
  name: 'CertificateSubjectRestriction',
  handles: (attributes) => concerns(attributes, 'CREATE', signingRequests),
  validate(attributes) {
    const { object } = attributes;
    if (textAt(object, 'spec', 'signerName') !== clientSigner) return;
    const request = Buffer.from(textAt(object, 'spec', 'request'), 'base64');
    if (!requestedOrganizations(request).includes(superusers)) return;
    throw refusal(attributes, `use of ${clientSigner} signer with ${superusers} group is not allowed`);
  },
};

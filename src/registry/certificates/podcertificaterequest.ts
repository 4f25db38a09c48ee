import { jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import { isDNS1123Subdomain, nameIsDNSSubdomain } from '../../objects/names.ts';
import type {
  PodCertificateRequest,
  PodCertificateRequestSpec,
  PodCertificateRequestStatus,
} from '../../objects/types/certificates.generated.ts';
import { genericStrategy, resetMetaForStatus } from '../generic/generic.ts';
import { validateObjectMetaUpdate } from '../generic/metadata.ts';
import type { Strategy, UserInfo } from '../generic/strategy.ts';
import { validateConditions } from '../validation/conditions.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  invalidOmitted,
  notSupported,
  required,
  tooLong,
} from '../validation/field-errors.ts';
import type { CertificateFacts, CertificateReader, RequestFacts } from './certificate-reader.ts';
import { isKubernetesSigner, validateSignerName, validateUserAnnotations } from './signer-name.ts';

type Request = PodCertificateRequest;
type Status = PodCertificateRequestStatus;

/** Whether a user may sign for a signer. */
export type MaySign = (user: UserInfo, signerName: string) => boolean;

/** In bytes. */
const maxUid = 128;
const maxStubRequest = 10 * 1024;
const maxCertificateChain = 100 * 1024;
const minSeconds = 3600;
const maxSeconds = 91 * 24 * 3600;
const maxKubernetesSeconds = 24 * 3600;

const hourMs = 3_600_000;
const minuteMs = 60_000;
/** How far the beginning of a certificate may be from now. */
const maxSkewMs = 5 * minuteMs;
/** Of the times to refresh a certificate, from its beginning and its end. */
const refreshMarginMs = 10 * minuteMs;

/** The conditions that end a request; it has one of them. */
const outcomes = ['Issued', 'Denied', 'Failed'];

const stubPath = 'spec.stubPKCS10Request';
const chainPath = 'status.certificateChain';
const notBeforePath = 'status.notBefore';
const notAfterPath = 'status.notAfter';
const refreshPath = 'status.beginRefreshAt';

/**
 * The rules of PodCertificateRequests (`apis/certificates/validation`, `pkg/registry/certificates/podcertificaterequest`).
 *
 * @param maySign undefined: anybody may.
 */
export function podCertificateRequestStrategy(
  reader: CertificateReader,
  maySign: MaySign | undefined,
): Strategy<Request> {
  const rules = genericStrategy<Request>({
    namespaced: true,
    nameRule: nameIsDNSSubdomain,
    allowUnconditionalUpdate: false,
    hasStatus: true,
    statusResets: [['metadata']],
    prepareStatus: resetMetaForStatus,
    setDefaults(request: Partial<Pick<Request, 'spec' | 'status'>>) {
      request.status ??= {};
      request.spec = { maxExpirationSeconds: maxKubernetesSeconds, ...(request.spec ?? emptySpec) };
    },
    validateCreate: ({ spec }) => [...validateSpec(spec), ...validateStubRequest(spec, reader)],
    validateUpdate: ({ spec }, old) =>
      jsonEqual(shownSpec(spec), shownSpec(old.spec))
        ? []
        : [invalid('spec', shownSpec(spec), 'field is immutable')],
    fields: ({ spec }: Partial<Pick<Request, 'spec'>>) => ({
      'spec.signerName': spec?.signerName ?? '',
      'spec.podName': spec?.podName ?? '',
      'spec.nodeName': spec?.nodeName ?? '',
    }),
  });
  if (rules.status === undefined) return rules;
  return {
    ...rules,
    status: {
      ...rules.status,
      validateUpdate(request, old, { now, user }) {
        const errors = validateStatus(request, old, Date.parse(now), reader);
        if (errors.length > 0 || user === undefined || isSameStatus(request.status, old.status))
          return errors;
        const { signerName } = old.spec;
        if (maySign?.(user, signerName) !== false) return [];
        const [name, signer] = [JSON.stringify(user.name), JSON.stringify(signerName)];
        const detail = `User ${name} is not permitted to "sign" for signer ${signer}`;
        return [forbiddenField('spec.signerName', detail)];
      },
    },
  };
}

const emptySpec: PodCertificateRequestSpec = {
  signerName: '',
  podName: '',
  podUID: '',
  serviceAccountName: '',
  serviceAccountUID: '',
  nodeName: '',
  nodeUID: '',
  stubPKCS10Request: '',
};

/** The spec as errors show it: Go's internal type has no names of JSON. */
function shownSpec(spec: PodCertificateRequestSpec): object {
  return {
    SignerName: spec.signerName,
    PodName: spec.podName,
    PodUID: spec.podUID,
    ServiceAccountName: spec.serviceAccountName,
    ServiceAccountUID: spec.serviceAccountUID,
    NodeName: spec.nodeName,
    NodeUID: spec.nodeUID,
    MaxExpirationSeconds: spec.maxExpirationSeconds ?? null,
    PKIXPublicKey: null,
    ProofOfPossession: null,
    StubPKCS10Request: spec.stubPKCS10Request === '' ? null : spec.stubPKCS10Request,
    UnverifiedUserAnnotations: spec.unverifiedUserAnnotations ?? null,
  };
}

/** The longest life of a certificate of a Pod, in seconds: those of Kubernetes' own signers are shorter. */
export function maxCertificateSeconds(signerName: string): number {
  return isKubernetesSigner(signerName) ? maxKubernetesSeconds : maxSeconds;
}

function validateSpec(spec: PodCertificateRequestSpec): FieldError[] {
  const { signerName, maxExpirationSeconds: seconds, unverifiedUserAnnotations: annotations } = spec;
  const errors = validateSignerName(signerName, 'spec.signerName');
  if (annotations !== undefined) {
    pushAll(errors, validateUserAnnotations(annotations, 'spec.unverifiedUserAnnotations'));
  }
  for (const [name, uid] of [
    ['podName', 'podUID'],
    ['serviceAccountName', 'serviceAccountUID'],
    ['nodeName', 'nodeUID'],
  ] as const) {
    for (const fault of isDNS1123Subdomain(spec[name])) {
      errors.push(invalid(`spec.${name}`, spec[name], fault));
    }
    if (spec[uid] === '') errors.push(invalid(`spec.${uid}`, '', 'must not be empty'));
    if (Buffer.byteLength(spec[uid]) > maxUid) errors.push(tooLong(`spec.${uid}`, maxUid));
  }
  const most = maxCertificateSeconds(signerName);
  if (seconds !== undefined && (seconds < minSeconds || seconds > most)) {
    const detail = `must be in the range [${minSeconds}, ${most}]`;
    errors.push(invalid('spec.maxExpirationSeconds', seconds, detail));
  }
  return errors;
}

function validateStubRequest(spec: PodCertificateRequestSpec, reader: CertificateReader): FieldError[] {
  const der = Buffer.from(spec.stubPKCS10Request, 'base64');
  if (der.length === 0) {
    const detail = 'exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set';
    return [invalidOmitted('spec', detail)];
  }
  if (der.length > maxStubRequest) return [tooLong(stubPath, maxStubRequest)];
  const request = reader.request(der);
  if (request === undefined) return [invalidOmitted(stubPath, 'must be a valid PKCS#10 CSR')];
  const fault = keyFault(request);
  if (fault !== undefined) return [fault];
  return request.isSigned ? [] : [invalidOmitted(stubPath, 'invalid signature')];
}

function keyFault({ key }: RequestFacts): FieldError | undefined {
  switch (key.type) {
    case 'ed25519':
      return undefined;
    case 'ec':
      if (key.curve !== 'P-224') return undefined;
      return invalid(
        stubPath,
        `curve ${key.curve}`,
        'elliptic public keys must use curve P256, P384, or P521',
      );
    case 'rsa':
      // Go counts whole octets of the modulus.
      if ([3072, 4096].includes(Math.ceil(key.bits / 8) * 8)) return undefined;
      return invalid(
        stubPath,
        `${Math.ceil(key.bits / 8) * 8}-bit modulus`,
        'RSA keys must have modulus size 3072 or 4096',
      );
    case 'other':
      return invalidOmitted(stubPath, 'unknown public key type; supported types are Ed25519, ECDSA, and RSA');
  }
}

function hasOutcome({ conditions = [] }: Status, types: readonly string[]): boolean {
  return conditions.some(({ type, status }) => types.includes(type) && status === 'True');
}

function isSameStatus(status: Status, old: Status): boolean {
  return jsonEqual(
    { ...status, conditions: status.conditions ?? [] },
    { ...old, conditions: old.conditions ?? [] },
  );
}

function validateStatus(
  request: Request,
  old: Request,
  nowMs: number,
  reader: CertificateReader,
): FieldError[] {
  const metadata = validateObjectMetaUpdate(request.metadata, old.metadata);
  if (metadata.length > 0) return metadata;
  const { status } = request;
  const { conditions = [] } = status;
  const errors = [...validateOutcomes(status), ...validateConditions(conditions, 'status.conditions')];
  if (errors.length > 0) return errors;
  if (hasOutcome(old.status, outcomes)) {
    const detail = 'immutable after PodCertificateRequest is issued, denied, or failed';
    return isSameStatus(status, old.status) ? [] : [invalidOmitted('status', detail)];
  }
  if (hasOutcome(status, ['Denied', 'Failed'])) {
    const detail =
      'non-condition status fields must be empty when denying or failing the PodCertificateRequest';
    return isSameStatus(status, { conditions }) ? [] : [invalidOmitted('status', detail)];
  }
  if (hasOutcome(status, ['Issued'])) return validateIssued(request, old, nowMs, reader);
  const detail = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"';
  return isSameStatus(status, old.status) ? [] : [invalidOmitted('status', detail)];
}

function validateOutcomes({ conditions = [] }: Status): FieldError[] {
  let known = 0;
  return conditions.flatMap(({ type, status }, i) => {
    const at = `status.conditions.[${i}]`;
    if (!outcomes.includes(type)) return [notSupported(`${at}.type`, type, outcomes)];
    known++;
    const detail = 'There may be at most one condition with type "Issued", "Denied", or "Failed"';
    return [
      ...(known > 1 ? [invalid(`${at}.type`, type, detail)] : []),
      ...(status === 'True' ? [] : [notSupported(`${at}.status`, status, ['True'])]),
    ];
  });
}

function validateIssued(
  request: Request,
  old: Request,
  nowMs: number,
  reader: CertificateReader,
): FieldError[] {
  const { certificateChain: chain = '' } = request.status;
  if (Buffer.byteLength(chain) > maxCertificateChain) return [tooLong(chainPath, maxCertificateChain)];
  const refused = (detail: string): FieldError[] => [invalid(chainPath, chain, detail)];
  const [leafBlock, ...rest] = reader.blocks(chain);
  if (leafBlock === undefined) {
    return refused('issued certificate chain must contain at least one certificate');
  }
  if (leafBlock.type !== 'CERTIFICATE') {
    return refused('issued certificate chain must consist entirely of CERTIFICATE PEM blocks');
  }
  const leaf = reader.certificate(leafBlock);
  if (leaf === undefined) return refused('leaf certificate does not parse as valid X.509');
  const names = nameErrors(leaf);
  const wanted = reader.request(Buffer.from(old.spec.stubPKCS10Request, 'base64'));
  if (wanted === undefined) return [...names, invalidOmitted(stubPath, 'must be a valid PKCS#10 CSR')];
  if (wanted.publicKey !== leaf.publicKey) {
    return [...names, ...refused('leaf certificate was not issued to the requested public key')];
  }
  const times = [...names, ...missingTimes(request.status)];
  if (times.length > 0) return times;
  const fault = timeFault(request, leaf, nowMs);
  if (fault !== undefined) return [fault];
  for (const block of rest) {
    if (block.type !== 'CERTIFICATE') {
      // Kubernetes' own spelling.
      return refused('issued certificate chain must consist entirely of CERTFICATE PEM blocks');
    }
    if (reader.certificate(block) === undefined) {
      return refused('intermediate certificate does not parse as valid X.509');
    }
  }
  return [];
}

/** The forms of `net/mail` ParseAddress that are in use: a mailbox without a comment. */
const mailbox = /^[^\s@<>()[\]\\,;:"]+@[^\s@<>()[\]\\,;:".]+(?:\.[^\s@<>()[\]\\,;:".]+)*$/;

function nameErrors({ dnsNames, emailAddresses }: CertificateFacts): FieldError[] {
  const of = (name: string, fault: string): FieldError =>
    invalid(chainPath, name, `leaf certificate${fault}`);
  return [
    ...dnsNames.flatMap((name) => [
      ...(name === '' ? [of(name, ' should not contain empty DNSName')] : []),
      ...(name.includes('..') ? [of(name, "'s DNSName should not contain '..'")] : []),
      ...(name.startsWith('.') || name.endsWith('.')
        ? [of(name, "'s DNSName should not start or end with '.'")]
        : []),
    ]),
    ...emailAddresses.flatMap((address) =>
      mailbox.test(address) ? [] : [of(address, ' should not contain invalid EmailAddress')],
    ),
  ];
}

function missingTimes({ notBefore, notAfter, beginRefreshAt }: Status): FieldError[] {
  const detail = 'must be present and consistent with the issued certificate';
  return [
    ...(notBefore === undefined ? [required(notBeforePath, detail)] : []),
    ...(notAfter === undefined ? [required(notAfterPath, detail)] : []),
    ...(beginRefreshAt === undefined
      ? [required(refreshPath, 'must be present and in the range [notbefore+10min, notafter-10min]')]
      : []),
  ];
}

function timeFault({ spec, status }: Request, leaf: CertificateFacts, nowMs: number): FieldError | undefined {
  const { notBefore = '', notAfter = '', beginRefreshAt = '' } = status;
  const [beginMs, endMs, refreshMs] = [notBefore, notAfter, beginRefreshAt].map(Date.parse);
  if (beginMs === undefined || endMs === undefined || refreshMs === undefined) return undefined;
  if (beginMs !== leaf.notBeforeMs) {
    return invalid(
      notBeforePath,
      notBefore,
      'must be set to the NotBefore time encoded in the leaf certificate',
    );
  }
  if (Math.abs(beginMs - nowMs) >= maxSkewMs) {
    const detail = "must be set to within 5 minutes of kube-apiserver's current time";
    return invalid(notBeforePath, notBefore, detail);
  }
  if (endMs !== leaf.notAfterMs) {
    return invalid(
      notAfterPath,
      notAfter,
      'must be set to the NotAfter time encoded in the leaf certificate',
    );
  }
  const lifetimeMs = leaf.notAfterMs - leaf.notBeforeMs;
  // Go prints a duration in nanoseconds.
  const lifetime = lifetimeMs * 1e6;
  if (lifetimeMs < hourMs) return invalid(chainPath, lifetime, 'leaf certificate lifetime must be >= 1 hour');
  const { maxExpirationSeconds = maxKubernetesSeconds } = spec;
  if (lifetimeMs > maxExpirationSeconds * 1000) {
    const detail = `leaf certificate lifetime must be <= spec.maxExpirationSeconds (${maxExpirationSeconds})`;
    return invalid(chainPath, lifetime, detail);
  }
  if (refreshMs < beginMs + refreshMarginMs) {
    return invalid(refreshPath, beginRefreshAt, 'must be at least 10 minutes after status.notBefore');
  }
  if (refreshMs > endMs - refreshMarginMs) {
    return invalid(refreshPath, beginRefreshAt, 'must be at least 10 minutes before status.notAfter');
  }
  return undefined;
}

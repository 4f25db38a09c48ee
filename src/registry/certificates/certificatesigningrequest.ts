import type {
  CertificateSigningRequest,
  CertificateSigningRequestCondition,
} from '../../objects/types/certificates.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import {
  declarative,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import { pushAll } from '../../objects/lists.ts';
import { genericStrategy, restoreSpec, addEmptyParts } from '../generic/generic.ts';
import { validateObjectMetaUpdate } from '../generic/metadata.ts';
import type { Strategy, SubresourceStrategy } from '../generic/strategy.ts';
import type { CertificateReader } from './certificate-reader.ts';
import { validateSignerName } from './signer-name.ts';

/** The conditions of a request: which endpoints may set them, and their rules (`apis/certificates/validation`). */

const path = 'status.conditions';
const decisions = ['Approved', 'Denied'];
const onlyTrue = [...decisions, 'Failed'];
const statuses = ['False', 'True', 'Unknown'];

function conditionsOf({ status }: CertificateSigningRequest): CertificateSigningRequestCondition[] {
  return status.conditions ?? [];
}

function ofType(
  conditions: readonly CertificateSigningRequestCondition[],
  type: string,
): CertificateSigningRequestCondition[] {
  return conditions.filter((condition) => condition.type === type);
}

function hasDuplicates(conditions: readonly CertificateSigningRequestCondition[]): boolean {
  return new Set(conditions.map(({ type }) => type)).size < conditions.length;
}

/** Errors of the stored object are not reported again. */
function validateConditions(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest | undefined,
): FieldError[] {
  const before = old === undefined ? [] : conditionsOf(old);
  const wasUndecided = !decisions.every((type) => ofType(before, type).length > 0);
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  conditionsOf(request).forEach(({ type, status }, i) => {
    const at = `${path}[${i}]`;
    if (type === '' && ofType(before, '').length === 0) errors.push(required(`${at}.type`));
    const allowed = onlyTrue.includes(type) ? ['True'] : statuses;
    if (status === '') errors.push(required(`${at}.status`));
    else if (!allowed.includes(status)) errors.push(notSupported(`${at}.status`, status, allowed));
    if (seen.has(type) && !hasDuplicates(before)) errors.push(duplicate(`${at}.type`, type));
    seen.add(type);
  });
  if (wasUndecided && decisions.every((type) => seen.has(type))) {
    const members = decisions.map((type) => `conditions[{"type": "${type}"}]`);
    const detail = `must specify at most one of: ${members.map((member) => `\`${member}\``).join(', ')}`;
    errors.push(declarative(invalid(path, `{${members.join(', ')}}`, detail)));
  }
  return errors;
}

/** @param mayDecide the write is one of `/approval`. */
function validateConditionChanges(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
  mayDecide: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  const pair = (type: string) =>
    [ofType(conditionsOf(request), type), ofType(conditionsOf(old), type)] as const;
  for (const type of onlyTrue) {
    const [now, before] = pair(type);
    if (now.length < before.length) {
      errors.push(forbiddenField(path, `updates may not remove a condition of type ${JSON.stringify(type)}`));
    }
  }
  if (mayDecide) return errors;
  for (const type of decisions) {
    const [now, before] = pair(type);
    const quoted = JSON.stringify(type);
    if (now.length > before.length) {
      errors.push(forbiddenField(path, `updates may not add a condition of type ${quoted}`));
    } else if (now.length === before.length && !jsonEqual(now, before)) {
      errors.push(forbiddenField(path, `updates may not modify a condition of type ${quoted}`));
    }
  }
  return errors;
}

/** Adds missing times to conditions; a condition that existed keeps its transition time. */
function fillConditionTimes(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
  now: string,
): void {
  for (const condition of conditionsOf(request)) {
    condition.lastUpdateTime ??= now;
    const same = ofType(conditionsOf(old), condition.type).find(
      ({ status, lastTransitionTime }) => status === condition.status && lastTransitionTime !== undefined,
    );
    condition.lastTransitionTime ??= same?.lastTransitionTime ?? now;
  }
}

/** `/status` does not change decisions; where their number changes, the rules report it. */
function keepDecisions(request: CertificateSigningRequest, old: CertificateSigningRequest): void {
  const conditions = conditionsOf(request);
  for (const type of decisions) {
    const before = ofType(conditionsOf(old), type);
    const places = conditions.flatMap((condition, i) => (condition.type === type ? [i] : []));
    if (places.length !== before.length) continue;
    places.forEach((place, i) => {
      const kept = before[i];
      if (kept !== undefined) conditions[place] = kept;
    });
  }
}

type Csr = CertificateSigningRequest;

const minSeconds = 600;
const legacySigner = 'kubernetes.io/legacy-unknown';

/** Every usage of keys, in the order in which errors name them (`certificates/v1` KeyUsage). */
const keyUsages = [
  ...['any', 'cert sign', 'client auth', 'code signing', 'content commitment', 'crl sign'],
  ...['data encipherment', 'decipher only', 'digital signature', 'email protection', 'encipher only'],
  ...['ipsec end system', 'ipsec tunnel', 'ipsec user', 'key agreement', 'key encipherment'],
  ...['microsoft sgc', 'netscape sgc', 'ocsp signing', 's/mime', 'server auth', 'signing', 'timestamping'],
];

/** The fields that a write may change besides the metadata. */
type Part = 'nothing' | 'approval' | 'status';

/** The rules of CertificateSigningRequests (`pkg/registry/certificates/certificates/strategy.go`). */
export function certificateSigningRequestStrategy(reader: CertificateReader): Strategy<Csr> {
  const rules = genericStrategy<Csr>({
    namespaced: false,
    nameRule: () => [],
    allowUnconditionalUpdate: true,
    hasStatus: true,
    setDefaults: addEmptyParts,
    prepareForCreate(request, { user }) {
      const { name = '', uid = '', groups = [], extra = {} } = user ?? {};
      const { username: _name, uid: _uid, groups: _groups, extra: _extra, ...spec } = request.spec;
      request.spec = {
        ...spec,
        ...(name === '' ? {} : { username: name }),
        ...(uid === '' ? {} : { uid }),
        ...(groups.length === 0 ? {} : { groups: [...groups] }),
        ...(Object.keys(extra).length === 0 ? {} : { extra: copied(extra) }),
      };
    },
    prepareForUpdate: restoreSpec,
    fields: ({ spec }: Partial<Pick<Csr, 'spec'>>) => ({ 'spec.signerName': spec?.signerName ?? '' }),
  });
  const validate = (request: Csr, old: Csr | undefined): FieldError[] => [
    ...validateSpec(request, old, reader),
    ...validateConditions(request, old),
    ...validateCertificate(request, old, reader),
  ];
  const validateUpdate = (request: Csr, old: Csr, part: Part): FieldError[] => [
    ...validate(request, old),
    ...validateConditionChanges(request, old, part === 'approval'),
    ...validateCertificateChange(request, old, part === 'status'),
    ...validateObjectMetaUpdate(request.metadata, old.metadata),
  ];
  const approval: SubresourceStrategy<Csr> = {
    resetFields: [['spec'], ['status', 'certificate']],
    prepareForUpdate(request, old, { now }) {
      fillConditionTimes(request, old, now);
      restoreSpec(request, old);
      const { conditions = [] } = request.status;
      request.status = { ...old.status, conditions };
    },
    validateUpdate: (request, old) => validateUpdate(request, old, 'approval'),
  };
  return {
    ...rules,
    resetFields: [['spec'], ['status']],
    validateCreate: (request, context) => [
      ...rules.validateCreate(request, context),
      ...validate(request, undefined),
    ],
    validateUpdate: (request, old) => validateUpdate(request, old, 'nothing'),
    status: {
      resetFields: [['spec'], ['status', 'conditions']],
      prepareForUpdate(request, old, { now }) {
        restoreSpec(request, old);
        keepDecisions(request, old);
        fillConditionTimes(request, old, now);
      },
      validateUpdate: (request, old) => validateUpdate(request, old, 'status'),
    },
    subresources: new Map([['approval', approval]]),
  };
}

function copied(extra: Readonly<Record<string, readonly string[]>>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]));
}

function validateSpec({ spec }: Csr, old: Csr | undefined, reader: CertificateReader): FieldError[] {
  const { request, usages = [], signerName, expirationSeconds } = spec;
  const errors: FieldError[] = [];
  const fault = reader.requestFault(Buffer.from(request, 'base64'));
  if (fault !== undefined) errors.push(invalid('spec.request', request, fault));
  if (usages.length === 0) errors.push(required('spec.usages'));
  const before = old?.spec.usages ?? [];
  if (before.every((usage) => keyUsages.includes(usage))) {
    usages.forEach((usage, i) => {
      if (!keyUsages.includes(usage)) errors.push(notSupported(`spec.usages[${i}]`, usage, keyUsages));
    });
  }
  if (new Set(before).size === before.length) {
    usages.forEach((usage, i) => {
      if (usages.indexOf(usage) < i) errors.push(duplicate(`spec.usages[${i}]`, usage));
    });
  }
  if (signerName === legacySigner && old?.spec.signerName !== legacySigner) {
    const detail = 'the legacy signerName is not allowed via this API version';
    errors.push(invalid('spec.signerName', signerName, detail));
  } else pushAll(errors, validateSignerName(signerName, 'spec.signerName'));
  if (expirationSeconds !== undefined && expirationSeconds < minSeconds) {
    const detail = 'may not specify a duration less than 600 seconds (10 minutes)';
    errors.push(invalid('spec.expirationSeconds', expirationSeconds, detail));
  }
  return errors;
}

/** A certificate that is unchanged, or was invalid before, is not checked. */
function validateCertificate({ status }: Csr, old: Csr | undefined, reader: CertificateReader): FieldError[] {
  const { certificate = '' } = status;
  const before = old?.status.certificate ?? '';
  const faultOf = (text: string): string | undefined =>
    text === '' ? undefined : reader.certificateFault(Buffer.from(text, 'base64'));
  if (old !== undefined && (certificate === before || faultOf(before) !== undefined)) return [];
  const fault = faultOf(certificate);
  return fault === undefined ? [] : [invalid('status.certificate', '<certificate data>', fault)];
}

function validateCertificateChange({ status }: Csr, old: Csr, maySign: boolean): FieldError[] {
  const before = old.status.certificate ?? '';
  if ((status.certificate ?? '') === before) return [];
  const path = 'status.certificate';
  if (!maySign) return [forbiddenField(path, 'updates may not set certificate content')];
  return before === '' ? [] : [forbiddenField(path, 'updates may not modify existing certificate content')];
}

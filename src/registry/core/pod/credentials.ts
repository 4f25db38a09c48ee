import type { VolumeProjection } from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { maxCertificateSeconds } from '../../certificates/podcertificaterequest.ts';
import {
  bundleNameRule,
  validateSignerName,
  validateUserAnnotations,
} from '../../certificates/signer-name.ts';
import { type FieldError, invalid, notSupported, required } from '../../validation/field-errors.ts';
import { validateLabelSelector } from '../../validation/label-selector.ts';
import { validateFilePath } from './field-checks.ts';

/** Projected volumes of trust bundles and of Pods' certificates (`validateProjectionSources`). */

/** Trust bundles: one by its name, or those of a signer. */
export function validateBundle(
  bundle: NonNullable<VolumeProjection['clusterTrustBundle']>,
  path: string,
): FieldError[] {
  const { name, signerName, labelSelector, path: place } = bundle;
  const errors: FieldError[] = [];
  if (name !== undefined && signerName !== undefined) {
    errors.push(invalid(path, shownBundle(bundle), 'only one of name and signerName may be used'));
  } else if (name !== undefined) {
    if (name === '') errors.push(required(`${path}.name`, 'must be a valid object name'));
    const end = name.lastIndexOf(':');
    const signer = end === -1 ? '' : name.slice(0, end).replaceAll(':', '/');
    for (const fault of bundleNameRule(signer)(name, false)) {
      errors.push(invalid(`${path}.name`, name, `not a valid clustertrustbundlename: ${fault}`));
    }
    if (labelSelector !== undefined) {
      const detail = 'labelSelector must be unset if name is specified';
      errors.push(invalid(`${path}.labelSelector`, labelSelector, detail));
    }
  } else if (signerName !== undefined) {
    if (signerName === '') errors.push(required(`${path}.signerName`, 'must be a valid signer name'));
    pushAll(errors, validateSignerName(signerName, `${path}.signerName`));
    if (labelSelector !== undefined) {
      pushAll(errors, validateLabelSelector(labelSelector, `${path}.labelSelector`));
    }
  } else errors.push(required(path, 'either name or signerName must be specified'));
  if (place === '') errors.push(required(`${path}.path`));
  return [...errors, ...validateFilePath(place, `${path}.path`)];
}

/** As Go prints the internal type. */
function shownBundle(bundle: NonNullable<VolumeProjection['clusterTrustBundle']>): object {
  return {
    Name: bundle.name ?? null,
    SignerName: bundle.signerName ?? null,
    LabelSelector: bundle.labelSelector ?? null,
    Optional: bundle.optional ?? null,
    Path: bundle.path,
    User: bundle.user ?? null,
  };
}

const keyTypes = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];
const minCertificateSeconds = 3600;
/** The members that name files. */
export const certificatePaths = ['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const;

/** A key of the Pod with a certificate that a signer is asked for. */
export function validateCertificate(
  certificate: NonNullable<VolumeProjection['podCertificate']>,
  path: string,
): FieldError[] {
  const { signerName = '', userAnnotations, keyType = '', maxExpirationSeconds: seconds } = certificate;
  const errors = validateSignerName(signerName, `${path}.signerName`);
  if (userAnnotations !== undefined) {
    pushAll(errors, validateUserAnnotations(userAnnotations, `${path}.userAnnotations`));
  }
  if (!keyTypes.includes(keyType)) errors.push(notSupported(`${path}.keyType`, keyType, keyTypes));
  if (seconds !== undefined) {
    const most = maxCertificateSeconds(signerName);
    const refuse = (relation: string) => {
      const detail = `if provided, maxExpirationSeconds must be ${relation}`;
      errors.push(invalid(`${path}.maxExpirationSeconds`, seconds, detail));
    };
    if (seconds < minCertificateSeconds) refuse(`>= ${minCertificateSeconds}`);
    if (seconds > most) refuse(`<= ${most}`);
  }
  const places = certificatePaths.filter((member) => (certificate[member] ?? '') !== '');
  for (const member of places) {
    pushAll(errors, validateFilePath(certificate[member] ?? '', `${path}.${member}`));
  }
  if (places.length === 0) {
    const detail = 'specify at least one of credentialBundlePath, keyPath, and certificateChainPath';
    errors.push(required(path, detail));
  }
  return errors;
}

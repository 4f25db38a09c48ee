import type {
  CustomResourceConversion,
  WebhookConversion,
} from '../../../objects/types/apiextensions.generated.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../validation/field-errors.ts';
import { isDNS1035Label } from '../../../objects/names.ts';
import { validateClientConfig } from '../../validation/network.ts';

const path = 'spec.conversion';
const noWebhook: WebhookConversion = { conversionReviewVersions: null };
/** The known ConversionReview versions; a webhook must name one. */
const reviewVersions = ['v1', 'v1beta1'];

/**
 * The rules of `spec.conversion` (apiextensions `validateCustomResourceConversion`; its paths are those of the internal
 * type).
 *
 * @param preservesUnknown `spec.preserveUnknownFields`: undeclared fields cannot be converted.
 * @param mayHaveWrongBundle see {@link mayKeepWrongBundle}.
 */
export function validateConversion(
  conversion: CustomResourceConversion | undefined,
  preservesUnknown: boolean,
  mayHaveWrongBundle: boolean,
): FieldError[] {
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  const preserved =
    preservesUnknown && strategy !== 'None'
      ? [invalid(`${path}.strategy`, strategy, 'must be None if spec.preserveUnknownFields is true')]
      : [];
  return [
    ...preserved,
    ...(strategy === 'Webhook'
      ? validateWebhook(webhook ?? noWebhook, mayHaveWrongBundle)
      : validateNoWebhook(strategy, webhook ?? noWebhook)),
  ];
}

/**
 * A definition that is not established yet may have a `caBundle` without certificates, which is set later; one that had
 * it may keep it (apiextensions `allowInvalidCABundle`).
 *
 * @param established whether the definition was established before.
 */
export function mayKeepWrongBundle(
  before: CustomResourceConversion | undefined,
  established: boolean,
): boolean {
  return !established || hasWrongBundle(before);
}

/** True for a webhook with an invalid CA bundle. */
export function hasWrongBundle(conversion: CustomResourceConversion | undefined): boolean {
  return caBundleFault(conversion?.webhook?.clientConfig?.caBundle ?? '') !== undefined;
}

function validateWebhook(
  { clientConfig, conversionReviewVersions }: WebhookConversion,
  mayHaveWrongBundle: boolean,
): FieldError[] {
  const at = `${path}.webhookClientConfig`;
  const { caBundle = '' } = clientConfig ?? {};
  const fault = mayHaveWrongBundle ? undefined : caBundleFault(caBundle);
  return [
    ...(clientConfig === undefined
      ? [required(at, 'required when strategy is set to Webhook')]
      : validateClientConfig(clientConfig, at)),
    ...(fault === undefined ? [] : [invalid(`${at}.caBundle`, caBundle, fault)]),
    // An empty list arrives as null, as Go stores it.
    ...validateReviewVersions(conversionReviewVersions ?? []),
  ];
}

function validateNoWebhook(
  strategy: string,
  { clientConfig, conversionReviewVersions }: WebhookConversion,
): FieldError[] {
  const errors: FieldError[] = [];
  if (strategy === '') errors.push(required(`${path}.strategy`));
  else if (strategy !== 'None') {
    errors.push(notSupported(`${path}.strategy`, strategy, ['None', 'Webhook']));
  }
  const detail = 'should not be set when strategy is not set to Webhook';
  if (clientConfig !== undefined) errors.push(forbiddenField(`${path}.webhookClientConfig`, detail));
  if ((conversionReviewVersions ?? []).length > 0)
    errors.push(forbiddenField(`${path}.conversionReviewVersions`, detail));
  return errors;
}

function validateReviewVersions(versions: readonly string[]): FieldError[] {
  const at = `${path}.conversionReviewVersions`;
  if (versions.length === 0) return [required(at)];
  const errors = versions.flatMap((version, i) =>
    versions.indexOf(version) < i
      ? [invalid(`${at}[${i}]`, version, 'duplicate version')]
      : isDNS1035Label(version).map((message) => invalid(`${at}[${i}]`, version, message)),
  );
  if (!versions.some((version) => reviewVersions.includes(version))) {
    errors.push(invalid(at, versions, `must include at least one of ${reviewVersions.join(', ')}`));
  }
  return errors;
}

const block = /-----BEGIN ([^-\n]+)-----([^-]*)-----END \1-----/g;

/**
 * Why a `caBundle` has no certificate to trust (client-go `transport.TLSConfigFor`, which needs one readable
 * certificate); undefined for a valid or empty one. Only the outer structure of a certificate is checked.
 *
 * @param caBundle base64 of PEM.
 */
function caBundleFault(caBundle: string): string | undefined {
  const pem = Buffer.from(caBundle, 'base64').toString('latin1');
  if (pem === '') return undefined;
  const blocks = [...pem.matchAll(block)].map(([, type = '', content = '']) => ({ type, content }));
  const certificates = blocks.filter(({ type, content }) => type === 'CERTIFICATE' && !content.includes(':'));
  if (certificates.some(({ content }) => isSequence(Buffer.from(content, 'base64')))) return undefined;
  const why =
    certificates.length > 0
      ? 'failed to parse certificate: x509: malformed certificate'
      : blocks.length > 0
        ? 'no valid certificate authority data seen'
        : 'unable to parse bytes as PEM block';
  return `unable to load root certificates: ${why}`;
}

/** One DER sequence, with nothing after it. */
function isSequence(der: Buffer): boolean {
  if (der[0] !== 0x30) return false;
  const first = der[1] ?? 0;
  if (first < 0x80) return der.length === 2 + first;
  const bytes = first & 0x7f;
  if (bytes < 1 || bytes > 4 || der.length < 2 + bytes) return false;
  return der.length === 2 + bytes + der.readUIntBE(2, bytes);
}

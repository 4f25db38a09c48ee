import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, invalid, required, tooLong } from '../../validation/field-errors.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../../../objects/names.ts';

const maxDomain = 253;
const maxLabel = 63;
const maxSignerName = maxDomain + (maxDomain + maxLabel + 1) + 1;

/** A domain and a path, such as `example.com/my-signer` (`apis/core/validation` ValidateSignerName). */
export function validateSignerName(signerName: string, path: string): FieldError[] {
  if (signerName === '') return [required(path)];
  const [domain = '', rest, ...more] = signerName.split('/');
  if (rest === undefined || more.length > 0) {
    const detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    return [invalid(path, signerName, detail)];
  }
  const errors: FieldError[] = [];
  if (Buffer.byteLength(domain) > maxDomain) errors.push(tooLong(path, maxDomain));
  const labels = domain.split('.');
  pushAll(errors, labelErrors(labels, domain, isDNS1123Label, path));
  if (labels.length < 2) {
    const detail = 'should be a domain with at least two segments separated by dots';
    errors.push(invalid(path, domain, detail));
  }
  pushAll(errors, labelErrors(rest.split('.'), rest, isDNS1123Subdomain, path));
  if (Buffer.byteLength(signerName) > maxSignerName) errors.push(tooLong(path, maxSignerName));
  return errors;
}

/** The faults of the first label that has any. */
function labelErrors(
  labels: readonly string[],
  shown: string,
  rule: (text: string) => string[],
  path: string,
): FieldError[] {
  const wrong = labels.find((label) => rule(label).length > 0);
  if (wrong === undefined) return [];
  return rule(wrong).map((fault) =>
    invalid(path, shown, `validating label ${JSON.stringify(wrong)}: ${fault}`),
  );
}

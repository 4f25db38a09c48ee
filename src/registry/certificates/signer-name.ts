import { pushAll } from '../../objects/lists.ts';
import {
  isDNS1123Label,
  isDNS1123Subdomain,
  isQualifiedName,
  nameIsDNSSubdomain,
  type NameRule,
} from '../../objects/names.ts';
import { type FieldError, invalid, required, tooLong } from '../validation/field-errors.ts';
import { validateAnnotations } from '../generic/metadata.ts';

/** Names of signers, and what requests tell them (`apis/core/validation/names.go`). */

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

/** Signers of the Kubernetes project: below `kubernetes.io`. */
export function isKubernetesSigner(signerName: string): boolean {
  const [domain = ''] = signerName.split('/');
  return domain === 'kubernetes.io' || domain.endsWith('.kubernetes.io');
}

/** What a Pod tells a signer: keys have domains, sizes are those of annotations (ValidateUserAnnotations). */
export function validateUserAnnotations(
  annotations: Readonly<Record<string, string>>,
  path: string,
): FieldError[] {
  const errors = Object.keys(annotations).flatMap((key) => domainPrefixedKeyErrors(path, key.toLowerCase()));
  // Keys in any case are judged above.
  return [
    ...errors,
    ...validateAnnotations(annotations, path).filter(({ reason }) => reason === 'FieldValueTooLong'),
  ];
}

function domainPrefixedKeyErrors(path: string, key: string): FieldError[] {
  if (key === '') return [required(path)];
  const errors = isQualifiedName(key).map((fault) => invalid(path, key, fault));
  if (errors.length > 0 || key.includes('/')) return errors;
  return [invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')];
}

/** A bundle of a signer has the signer's name in front (`apis/core/validation` ValidateClusterTrustBundleName). */
export function bundleNameRule(signerName: string): NameRule {
  return (name, prefix) => {
    if (signerName === '') {
      if (name.includes(':')) return ['ClusterTrustBundle without signer name must not have ":" in its name'];
      return nameIsDNSSubdomain(name, prefix);
    }
    const wanted = `${signerName.replaceAll('/', ':')}:`;
    if (!name.startsWith(wanted)) {
      return [`ClusterTrustBundle for signerName ${signerName} must be named with prefix ${wanted}`];
    }
    return nameIsDNSSubdomain(name.slice(wanted.length), prefix);
  };
}

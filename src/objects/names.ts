/**
 * The forms of names and keys (apimachinery `util/validation`, `api/validate/content`, `api/validation/generic.go`).
 * Each check returns kube-apiserver's error texts; an empty list means that the text is well-formed. Every expression
 * here matches in linear time.
 */

/** Checks one name; `prefix` is true for a generateName, whose last dash is not the end of the name. */
export type NameRule = (name: string, prefix: boolean) => string[];

const labelForm = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomainForm = `${labelForm}(\\.${labelForm})*`;
const underscoredLabel = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const underscoredForm = `${underscoredLabel}(\\.${underscoredLabel})*`;
const dns1035Form = '[a-z]([-a-z0-9]*[a-z0-9])?';
const keyForm = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';

const label = new RegExp(`^${labelForm}$`);
const subdomain = new RegExp(`^${subdomainForm}$`);
const dns1035 = new RegExp(`^${dns1035Form}$`);
const underscored = new RegExp(`^${underscoredForm}$`);
const wildcard = new RegExp(`^\\*\\.${subdomainForm}$`);
const key = new RegExp(`^${keyForm}$`);
const portCharacters = /^[-a-z0-9]+$/;
const letter = /[a-z]/;
const configMapKeyCharacters = /^[-._a-zA-Z0-9]+$/;

const labelMessage = formMessage(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  labelForm,
  'my-name',
  '123-abc',
);
const subdomainMessage = formMessage(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  subdomainForm,
  'example.com',
);
const underscoredMessage = formMessage(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  underscoredForm,
  'example.com',
);
const dns1035Message = formMessage(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  dns1035Form,
  'my-name',
  'abc-123',
);
const wildcardMessage = formMessage(
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  `\\*\\.${subdomainForm}`,
  '*.example.com',
);
const keyMessage = formMessage(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  keyForm,
  'MyName',
  'my.name',
  '123-abc',
);
const labelValueMessage = formMessage(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  `(${keyForm})?`,
  'MyValue',
  'my_value',
  '12345',
);
const configMapKeyMessage = formMessage(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  '[-._a-zA-Z0-9]+',
  'key.name',
  'KEY_NAME',
  'key-name',
);

const maxLabel = 63;
const maxSubdomain = 253;
const maxPortName = 15;

/** RFC 1123 label: at most 63 lower-case letters, digits and inner dashes. */
export function isDNS1123Label(text: string): string[] {
  const errors = longer(text, maxLabel) ? [tooManyCharacters(maxLabel)] : [];
  if (!label.test(text)) errors.push(subdomain.test(text) ? 'must not contain dots' : labelMessage);
  return errors;
}

/** RFC 1123 subdomain: labels joined by dots, at most 253 bytes. */
export function isDNS1123Subdomain(text: string): string[] {
  const errors = longer(text, maxSubdomain) ? [tooManyCharacters(maxSubdomain)] : [];
  if (!subdomain.test(text)) errors.push(subdomainMessage);
  return errors;
}

/** Like {@link isDNS1123Subdomain}, but labels may have underscores anywhere: search domains. */
export function isDNS1123SubdomainWithUnderscore(text: string): string[] {
  const errors = longer(text, maxSubdomain) ? [tooManyCharacters(maxSubdomain)] : [];
  if (!underscored.test(text)) errors.push(underscoredMessage);
  return errors;
}

/** RFC 1035 label: like {@link isDNS1123Label}, but starting with a letter. */
export function isDNS1035Label(text: string): string[] {
  const errors = longer(text, maxLabel) ? [tooManyCharacters(maxLabel)] : [];
  if (!dns1035.test(text)) errors.push(dns1035Message);
  return errors;
}

/** `*.` and a subdomain, as an Ingress host may be. */
export function isWildcardDNS1123Subdomain(text: string): string[] {
  const errors = longer(text, maxSubdomain) ? [tooManyCharacters(maxSubdomain)] : [];
  if (!wildcard.test(text)) errors.push(wildcardMessage);
  return errors;
}

/** Qualified name, the form of label keys: an optional DNS subdomain and "/", then at most 63 bytes of name. */
export function isQualifiedName(text: string): string[] {
  const slash = text.indexOf('/');
  if (slash === -1) return namePart(text, []);
  if (text.includes('/', slash + 1)) {
    return [
      `a valid label key ${keyMessage} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const prefix = text.slice(0, slash);
  const errors =
    prefix === ''
      ? ['prefix part must be non-empty']
      : isDNS1123Subdomain(prefix).map((message) => `prefix part ${message}`);
  return namePart(text.slice(slash + 1), errors);
}

function namePart(name: string, errors: string[]): string[] {
  if (name === '') errors.push('name part must be non-empty');
  else if (longer(name, maxLabel)) errors.push(`name part must be no more than ${maxLabel} bytes`);
  if (!key.test(name)) errors.push(`name part ${keyMessage}`);
  return errors;
}

/** Label value: empty, or at most 63 bytes in the form of a name part. */
export function isValidLabelValue(text: string): string[] {
  if (text === '') return [];
  const errors = longer(text, maxLabel) ? [`must be no more than ${maxLabel} bytes`] : [];
  if (!key.test(text)) errors.push(labelValueMessage);
  return errors;
}

/** IANA service name, as `targetPort` may be: at most 15 lower-case letters, digits and single inner dashes. */
export function isValidPortName(text: string): string[] {
  const errors = longer(text, maxPortName) ? [tooManyCharacters(maxPortName)] : [];
  if (!portCharacters.test(text)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!letter.test(text)) errors.push('must contain at least one letter (a-z)');
  if (text.includes('--')) errors.push('must not contain consecutive hyphens');
  if (text.startsWith('-') || text.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

/** Key of a ConfigMap's or Secret's data: a file name without directories. */
export function isConfigMapKey(text: string): string[] {
  const errors = longer(text, maxSubdomain) ? [tooManyCharacters(maxSubdomain)] : [];
  if (!configMapKeyCharacters.test(text)) errors.push(configMapKeyMessage);
  if (text === '.') errors.push(`must not be '.'`);
  else if (text === '..') errors.push(`must not be '..'`);
  else if (text.startsWith('..')) errors.push(`must not start with '..'`);
  return errors;
}

/** A name that is a DNS subdomain: most kinds. */
export const nameIsDNSSubdomain: NameRule = (name, prefix) =>
  isDNS1123Subdomain(prefix ? maskTrailingDash(name) : name);

/** A name that is an RFC 1123 label: Namespaces, and Services since RelaxedServiceNameValidation. */
export const nameIsDNSLabel: NameRule = (name, prefix) =>
  isDNS1123Label(prefix ? maskTrailingDash(name) : name);

export const nameIsDNS1035Label: NameRule = (name, prefix) =>
  isDNS1035Label(prefix ? maskTrailingDash(name) : name);

/** A name that can be a segment of a path: the last check of every kind (`api/validation/path`). */
export const nameIsPathSegment: NameRule = (name, prefix) => {
  if (!prefix && (name === '.' || name === '..')) return [`may not be '${name}'`];
  const errors: string[] = [];
  if (name.includes('/')) errors.push("may not contain '/'");
  if (name.includes('%')) errors.push("may not contain '%'");
  return errors;
};

/** Replaces the dash at the end of a prefix, so that the rules of whole names apply to it, as in kube-apiserver. */
function maskTrailingDash(name: string): string {
  return name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name;
}

/** True when the UTF-8 form has more than `max` bytes. */
function longer(text: string, max: number): boolean {
  if (text.length > max) return true;
  return text.length * 3 > max && Buffer.byteLength(text) > max;
}

function tooManyCharacters(max: number): string {
  return `must be no more than ${max} characters`;
}

function formMessage(what: string, form: string, ...examples: string[]): string {
  const quoted = examples.map((example) => `'${example}', `).join(' or ');
  return `${what} (e.g. ${quoted}regex used for validation is '${form}')`;
}

/**
 * The domain of hosts that Routes are given, where no other is configured (openshift-apiserver
 * `route/apiserver/simplerouteallocation`).
 */
export const routeDomain = 'router.default.svc.cluster.local';

/**
 * The syntax of label keys and values (apimachinery `util/validation/validation.go`: IsQualifiedName,
 * IsValidLabelValue). Both answer the broken rules as texts, in kube-apiserver's words and order; none means valid.
 */
const nameText =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
  "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const valueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start " +
  "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for " +
  "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const maxNameBytes = 63;
const maxPrefixBytes = 253;

// Both expressions fail in linear time: one greedy class, then one character to give back.
const namePattern = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const dnsLabelPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

/** Rules that a qualified name (label key, annotation key, finalizer) breaks: `[prefix/]name`. */
export function qualifiedNameErrors(text: string): string[] {
  const slash = text.indexOf('/');
  if (slash !== -1 && text.includes('/', slash + 1)) {
    return [
      `a valid label key ${nameText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const errors: string[] = [];
  const name = text.slice(slash + 1);
  if (slash !== -1) {
    const prefix = text.slice(0, slash);
    if (prefix === '') errors.push('prefix part must be non-empty');
    else {
      if (Buffer.byteLength(prefix) > maxPrefixBytes) {
        errors.push(`prefix part must be no more than ${maxPrefixBytes} bytes`);
      }
      if (!prefix.split('.').every((label) => dnsLabelPattern.test(label))) {
        errors.push(`prefix part ${subdomainText}`);
      }
    }
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (Buffer.byteLength(name) > maxNameBytes) {
    errors.push(`name part must be no more than ${maxNameBytes} bytes`);
  }
  if (!namePattern.test(name)) errors.push(`name part ${nameText}`);
  return errors;
}

/** Rules that a label value breaks. */
export function labelValueErrors(text: string): string[] {
  const errors: string[] = [];
  if (Buffer.byteLength(text) > maxNameBytes) errors.push(`must be no more than ${maxNameBytes} bytes`);
  if (text !== '' && !namePattern.test(text)) errors.push(valueText);
  return errors;
}

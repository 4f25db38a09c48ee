import { type FieldError, invalid, required } from './field-errors.ts';
import { isDNS1123Subdomain } from '../../objects/names.ts';

const path = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;
const pathForm = path.source.slice(1, -1);

/** The errors of a domain and a path, such as `example.com/controller` (util/validation IsDomainPrefixedPath). */
export function domainPrefixedPathErrors(at: string, text: string): FieldError[] {
  if (text === '') return [required(at)];
  const slash = text.indexOf('/');
  const domain = text.slice(0, slash);
  const rest = text.slice(slash + 1);
  if (slash < 1 || rest === '') {
    return [invalid(at, text, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  const errors = isDNS1123Subdomain(domain).map((message) => invalid(at, domain, message));
  if (!path.test(rest)) {
    errors.push(invalid(at, rest, `Invalid path (regex used for validation is '${pathForm}')`));
  }
  return errors;
}

/** The rules of a Route's spec but TLS (library-go `route/validation` validateRoute). */
import { pushAll } from '../../../objects/lists.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../../../objects/names.ts';
import type { Route, RouteSpec, RouteTargetReference } from '../../../objects/types/route.generated.ts';
import { type FieldError, invalid, notSupported, required } from '../../validation/field-errors.ts';
import { validateHeaderActions } from './header-actions.ts';

/** Allows labels of a host longer than 63 characters, which routers other than OpenShift's may serve. */
const allowAnyHostAnnotation = 'route.openshift.io/allow-non-dns-compliant-host';

const policies = ['None', 'Subdomain'];
const maxSubdomain = 253;
const maxAlternateBackends = 3;
const maxWeight = 256;

/** True for a host of DNS labels, and for none. */
export function conformsToDNS(host: string): boolean {
  return host === '' || host.split('.').every((label) => isDNS1123Label(label).length === 0);
}

/** Asked on a create, and of a path that changes: older Routes may have such paths. */
export function validatePathCharacters({ path = '' }: RouteSpec): FieldError[] {
  return /[# ]/.test(path) ? [invalid('spec.path', path, 'cannot contain # or spaces')] : [];
}

/** @param checksLabels whether labels of the host are checked too; not for a host that was stored without. */
export function validateRouteSpec({ metadata, spec }: Route, checksLabels: boolean): FieldError[] {
  const { path = '', tls } = spec;
  const isPassthrough = tls?.termination === 'passthrough';
  const errors: FieldError[] = [];
  pushAll(
    errors,
    validateHost(spec, checksLabels && metadata.annotations?.[allowAnyHostAnnotation] !== 'true'),
  );
  pushAll(errors, validateSubdomain(spec.subdomain ?? ''));
  pushAll(errors, validateWildcardPolicy(spec));
  pushAll(errors, validateHeaderActions(spec));
  if (path !== '' && !path.startsWith('/')) errors.push(invalid('spec.path', path, 'path must begin with /'));
  if (path !== '' && isPassthrough) {
    errors.push(invalid('spec.path', path, 'passthrough termination does not support paths'));
  }
  pushAll(errors, validateTarget(spec.to, 'spec.to'));
  const { alternateBackends = [] } = spec;
  if (alternateBackends.length > maxAlternateBackends) {
    errors.push(required('spec.alternateBackends', 'cannot specify more than 3 alternate backends'));
  }
  alternateBackends.forEach((target, i) =>
    pushAll(errors, validateTarget(target, `spec.alternateBackends[${i}]`)),
  );
  const targetPort = spec.port?.targetPort;
  if (targetPort === 0 || targetPort === '') errors.push(required('spec.port.targetPort'));
  return errors;
}

function validateHost({ host = '' }: RouteSpec, checksLabels: boolean): FieldError[] {
  if (host === '') return [];
  const errors: FieldError[] = [];
  if (isDNS1123Subdomain(host).length > 0) {
    errors.push(invalid('spec.host', host, 'host must conform to DNS 952 subdomain conventions'));
  }
  if (!checksLabels) return errors;
  for (const label of host.split('.')) {
    for (const message of isDNS1123Label(label)) errors.push(invalid('spec.host', host, message));
  }
  return errors;
}

function validateSubdomain(subdomain: string): FieldError[] {
  if (subdomain === '') return [];
  const errors: FieldError[] = [];
  if (Buffer.byteLength(subdomain) > maxSubdomain) {
    errors.push(invalid('spec.subdomain', subdomain, 'must be no more than 253 characters'));
  }
  for (const label of subdomain.split('.')) {
    const faults = isDNS1123Label(label);
    if (faults.length > 0) errors.push(invalid('spec.subdomain', label, faults.join(', ')));
  }
  return errors;
}

function validateWildcardPolicy({ host = '', wildcardPolicy = '' }: RouteSpec): FieldError[] {
  const field = 'spec.wildcardPolicy';
  if (wildcardPolicy === '') return [];
  if (!policies.includes(wildcardPolicy)) return [notSupported(field, wildcardPolicy, policies)];
  if (wildcardPolicy !== 'Subdomain' || host !== '') return [];
  return [invalid(field, wildcardPolicy, 'host name not specified for wildcard policy')];
}

function validateTarget({ kind, name, weight }: RouteTargetReference, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.name`));
  if (kind !== 'Service') errors.push(invalid(`${path}.kind`, kind, 'must reference a Service'));
  if (typeof weight === 'number' && (weight < 0 || weight > maxWeight)) {
    errors.push(invalid(`${path}.weight`, weight, 'weight must be an integer between 0 and 256'));
  }
  return errors;
}

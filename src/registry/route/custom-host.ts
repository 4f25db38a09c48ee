/** Hosts and certificates of Routes that not every user may choose, and the host of a Route without one. */
import { routeDomain } from '../../objects/names.ts';
import type { Route, TLSConfig } from '../../objects/types/route.generated.ts';
import type { UserInfo, StrategyContext } from '../generic/strategy.ts';
import { type FieldError, forbiddenField, invalid } from '../validation/field-errors.ts';

/** One thing that a user may do or not, in a namespace. */
export interface RouteAccess {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

/** Whether a user may do something: what OpenShift asks by a SubjectAccessReview. */
export type ReviewAccess = (user: UserInfo, access: RouteAccess) => boolean;

const generatedAnnotation = 'openshift.io/host.generated';
const hostMessage = 'you do not have permission to set the host field of the route';
const subdomainMessage = 'you do not have permission to set the subdomain field of the route';
const certificateMessage = 'you do not have permission to set certificate fields on the route';
const certificateFields = ['caCertificate', 'certificate', 'destinationCACertificate', 'key'] as const;

/** What the user of a request may do with the subresource `custom-host` of the Routes of a namespace. */
export function mayChooseHost(
  review: ReviewAccess,
  { metadata }: Route,
  { user }: StrategyContext,
  verb: 'create' | 'update',
): boolean {
  if (user === undefined) return true;
  const { namespace = '' } = metadata;
  const access = { group: 'route.openshift.io', resource: 'routes', subresource: 'custom-host' };
  return review(user, { verb, ...access, namespace, name: '' });
}

/**
 * Refuses a host or certificates of a user who may not choose them, and gives a Route without any host one of its own
 * (library-go `route/hostassignment` AllocateHost). The rules of hosts are checked behind it, so that a name that is
 * too long for a host is refused.
 */
export function assignHost(route: Route, review: ReviewAccess, context: StrategyContext): FieldError[] {
  const { metadata, spec } = route;
  const isHostSet = (spec.host ?? '') !== '';
  if ((isHostSet || hasCertificate(spec.tls)) && !mayChooseHost(review, route, context, 'create')) {
    return [
      isHostSet ? forbiddenField('spec.host', hostMessage) : forbiddenField('spec.tls', certificateMessage),
    ];
  }
  if (isHostSet || (spec.subdomain ?? '') !== '' || spec.wildcardPolicy === 'Subdomain') return [];
  const { name = '', namespace = '' } = metadata;
  spec.host = `${name.replaceAll('.', '-')}-${namespace}.${routeDomain}`;
  metadata.annotations = { ...metadata.annotations, [generatedAnnotation]: 'true' };
  return [];
}

/**
 * Refuses another host, another subdomain, or other certificates, of a user who may not choose them
 * (`ValidateHostUpdate`). All users may remove certificates; users that may create them may change them.
 */
export function validateHostUpdate(
  route: Route,
  old: Route,
  review: ReviewAccess,
  context: StrategyContext,
): FieldError[] {
  const { host = '', subdomain = '', tls } = route.spec;
  const isHostChanged = host !== (old.spec.host ?? '');
  const isSubdomainChanged = subdomain !== (old.spec.subdomain ?? '');
  if (!isHostChanged && !isSubdomainChanged && !isCertificateChanged(tls, old.spec.tls)) return [];
  if (mayChooseHost(review, route, context, 'update')) return [];
  if (isHostChanged) return [invalid('spec.host', host, hostMessage)];
  if (isSubdomainChanged) return [invalid('spec.subdomain', subdomain, subdomainMessage)];
  if (mayChooseHost(review, route, context, 'create')) return [];
  if (tls === undefined || old.spec.tls === undefined) return [invalid('spec.tls', tls, certificateMessage)];
  const before = old.spec.tls;
  const errors = certificateFields
    .filter((field) => (tls[field] ?? '') !== (before[field] ?? ''))
    .map((field) => invalid(`spec.tls.${field}`, tls[field] ?? '', certificateMessage));
  const external = externalName(tls);
  const hasBoth = tls.externalCertificate !== undefined && before.externalCertificate !== undefined;
  if (!hasBoth || external === externalName(before)) return errors;
  return [...errors, invalid('spec.tls.externalCertificate', external, certificateMessage)];
}

/** The Secret that a Route takes its certificate from; "" for none. */
export function externalName(tls: TLSConfig | undefined): string {
  return tls?.externalCertificate?.name ?? '';
}

function hasCertificate(tls: TLSConfig | undefined): boolean {
  if (tls === undefined) return false;
  return externalName(tls) !== '' || certificateFields.some((field) => (tls[field] ?? '') !== '');
}

/** The content of a Secret may have changed: a Route that names one always counts as changed. */
function isCertificateChanged(tls: TLSConfig | undefined, old: TLSConfig | undefined): boolean {
  if (tls === undefined || !hasCertificate(tls)) return false;
  if (old === undefined || tls.externalCertificate !== undefined || old.externalCertificate !== undefined)
    return true;
  return certificateFields.some((field) => (tls[field] ?? '') !== (old[field] ?? ''));
}

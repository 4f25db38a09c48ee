/** The rules of a Route's TLS (library-go `route/validation` validateTLS). */
import { pushAll } from '../../../objects/lists.ts';
import { textAt } from '../../../objects/read.ts';
import type { Route, TLSConfig } from '../../../objects/types/route.generated.ts';
import type { StrategyContext } from '../../generic/strategy.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notFoundField,
  notSupported,
} from '../../validation/field-errors.ts';
import { externalName, mayChooseHost, type ReviewAccess } from './custom-host.ts';

/** The router must be able to read the Secrets of Routes; the owner of a Secret grants that right. */
const routerAccount = {
  name: 'system:serviceaccount:openshift-ingress:router',
  uid: '',
  groups: [],
  extra: {},
};
const terminations = ['edge', 'passthrough', 'reencrypt'];
const field = 'spec.tls';
const noCertificates = 'passthrough termination does not support certificates';
/** In the place of keys and certificates, which answers and logs must not show. */
const redacted = {
  certificate: 'redacted certificate data',
  key: 'redacted key data',
  caCertificate: 'redacted ca certificate data',
  destinationCACertificate: 'redacted destination ca certificate data',
} as const;

export function validateTLS(route: Route, review: ReviewAccess, context: StrategyContext): FieldError[] {
  const { tls } = route.spec;
  if (tls === undefined) return [];
  const errors: FieldError[] = [];
  const { termination } = tls;
  const refuse = (part: keyof typeof redacted, message: string): void => {
    if ((tls[part] ?? '') !== '') errors.push(invalid(`${field}.${part}`, redacted[part], message));
  };
  if (!terminations.includes(termination)) {
    errors.push(notSupported(`${field}.termination`, termination, terminations));
  } else if (termination === 'passthrough') {
    refuse('certificate', noCertificates);
    refuse('key', noCertificates);
    const external = externalName(tls);
    if (external !== '') errors.push(invalid(`${field}.externalCertificate`, external, noCertificates));
    refuse('caCertificate', noCertificates);
    refuse('destinationCACertificate', noCertificates);
  } else {
    if (termination === 'edge') {
      refuse('destinationCACertificate', 'edge termination does not support destination certificates');
    }
    pushAll(errors, validateExternalCertificate(route, review, context));
  }
  pushAll(errors, validateInsecurePolicy(tls));
  return errors;
}

/** The Secret is there, of its type, and may be read by the router; and the user may choose certificates. */
function validateExternalCertificate(
  route: Route,
  review: ReviewAccess,
  context: StrategyContext,
): FieldError[] {
  const path = `${field}.externalCertificate`;
  const { namespace = '' } = route.metadata;
  const name = externalName(route.spec.tls);
  if (name === '') return [];
  if ((route.spec.tls?.certificate ?? '') !== '') {
    return [invalid(path, name, 'cannot specify both tls.certificate and tls.externalCertificate')];
  }
  const errors: FieldError[] = [];
  for (const verb of ['create', 'update'] as const) {
    if (mayChooseHost(review, route, context, verb)) continue;
    errors.push(forbiddenField(path, `user does not have ${verb} permission on custom-host`));
  }
  for (const verb of ['get', 'watch', 'list']) {
    const access = { verb, group: '', resource: 'secrets', subresource: '', namespace, name };
    if (review(routerAccount, access)) continue;
    const message = `router serviceaccount does not have permission to ${verb} this secret`;
    errors.push(forbiddenField(path, message));
  }
  const secret = context.cluster.get('', 'secrets', namespace, name);
  if (secret === undefined) return [...errors, notFoundField(path, `secrets "${name}" not found`)];
  if (textAt(secret, 'type') !== 'kubernetes.io/tls') {
    errors.push(invalid(path, name, "secret of type 'kubernetes/tls' required"));
  }
  return errors;
}

function validateInsecurePolicy({
  termination,
  insecureEdgeTerminationPolicy: policy = '',
}: TLSConfig): FieldError[] {
  if (policy === '' || !terminations.includes(termination)) return [];
  const allowed = termination === 'passthrough' ? ['None', 'Redirect'] : ['None', 'Allow', 'Redirect'];
  if (allowed.includes(policy)) return [];
  const values = `acceptable values are ${allowed.join(', ')}, or empty`;
  const message = `invalid value for InsecureEdgeTerminationPolicy option, ${values}`;
  return [invalid(`${field}.insecureEdgeTerminationPolicy`, policy, message)];
}

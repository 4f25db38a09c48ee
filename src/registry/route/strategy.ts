import { pushAll } from '../../objects/lists.ts';
import { textAt } from '../../objects/json.ts';
import type {
  Route,
  TLSConfig,
  RouteHTTPHeader,
  RouteSpec,
  RouteTargetReference,
} from '../../objects/types/route.generated.ts';
import type { StrategyContext, Strategy } from '../generic/strategy.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notFoundField,
  notSupported,
  duplicate,
  required,
} from '../validation/field-errors.ts';
import {
  externalName,
  mayChooseHost,
  type ReviewAccess,
  assignHost,
  validateHostUpdate,
} from './custom-host.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../../objects/names.ts';
import { genericStrategy, isSpecChanged } from '../generic/generic.ts';
import {
  validateImmutableField,
  validateObjectMeta,
  validateObjectMetaUpdate,
  namespacedSubdomain,
} from '../generic/metadata.ts';

/**
 * - The rules of a Route's TLS (library-go `route/validation` validateTLS).
 * - The rules of a Route's header actions (library-go `route/validation` validateHeaders).
 * - The rules of a Route's spec but TLS (library-go `route/validation` validateRoute).
 */

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

function validateTLS(route: Route, review: ReviewAccess, context: StrategyContext): FieldError[] {
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

const maxActions = 20;
const maxName = 255;
const maxValue = 16_384;
const kept = ['strict-transport-security', 'proxy', 'cookie', 'set-cookie'];
const namePattern = /^[-!#$%&'*+.0-9A-Z^_`a-z|~]+$/;
const nameMessage = 'name must be a valid HTTP header name as defined in RFC 2616 section 4.2';

/** The two lists, whose values may name parts of the message by different words. */
const lists = [
  { list: 'response', fetcher: 'res' },
  { list: 'request', fetcher: 'req' },
] as const;

/** HAProxy's format of values: text, `%%`, and samples such as `%[req.hdr(Host),lower]`. */
const valuePatterns = {
  req: valuePattern('req'),
  res: valuePattern('res'),
};

function valuePattern(fetcher: string): RegExp {
  const flags = String.raw`(?:\{[-+]?[QXE](?:,[-+]?[QXE])*\})?`;
  const sample = String.raw`\[(?:${fetcher}\.hdr\([0-9A-Za-z-]+\)|ssl_c_der)(?:,(?:lower|base64))*\]`;
  return new RegExp(String.raw`^(?:%(?:%|${flags}${sample})|[^%\p{Cc}]|[\u0080-\u009f])+$`, 'u');
}

function valueMessage(fetcher: string): string {
  return `Either header value provided is not in correct format or the converter specified is not allowed. The dynamic header value  may use HAProxy's %[] syntax and otherwise must be a valid HTTP header value as defined in https://datatracker.ietf.org/doc/html/rfc7230#section-3.2 Sample fetchers allowed are ${fetcher}.hdr, ssl_c_der. Converters allowed are lower, base64.`;
}

function validateHeaderActions({ httpHeaders, tls }: RouteSpec): FieldError[] {
  const { actions = {} } = httpHeaders ?? {};
  const errors: FieldError[] = [];
  const hasActions = lists.some(({ list }) => (actions[list] ?? []).length > 0);
  if (hasActions && tls?.termination === 'passthrough') {
    const message = 'only edge and re-encrypt routes are supported for providing customized headers.';
    errors.push(invalid('spec.tls.termination', tls.termination, message));
  }
  for (const { list, fetcher } of lists) {
    const headers = actions[list] ?? [];
    const path = `spec.httpHeaders.actions.${list}`;
    if (headers.length > maxActions) {
      errors.push(invalid(path, headers, `${list} headers list can't exceed ${maxActions} items`));
      continue;
    }
    const seen = new Set<string>();
    headers.forEach((header, i) => {
      if (seen.has(header.name)) errors.push(duplicate(`${path}[${i}].name`, header.name));
      seen.add(header.name);
      pushAll(errors, validateHeader(header, `${path}[${i}]`, fetcher));
    });
  }
  return errors;
}

function validateHeader(
  { name, action }: RouteHTTPHeader,
  path: string,
  fetcher: 'req' | 'res',
): FieldError[] {
  const errors: FieldError[] = [];
  const nameError = headerNameError(name, `${path}.name`);
  if (nameError !== undefined) errors.push(nameError);
  const { type, set } = action;
  if (type !== 'Set' && type !== 'Delete') {
    errors.push(invalid(`${path}.action.type`, type, 'type must be "Set" or "Delete"'));
  }
  if ((type === 'Set') !== (set !== undefined)) {
    const message = 'set is required when type is Set, and forbidden otherwise';
    errors.push(required(`${path}.action.set`, message));
  }
  if (set === undefined) return errors;
  const at = `${path}.action.set.value`;
  if (set.value === '') errors.push(required(at));
  else if (Buffer.byteLength(set.value) > maxValue) {
    errors.push(invalid(at, set.value, `value exceeds the maximum length, which is ${maxValue}`));
  } else if (!valuePatterns[fetcher].test(set.value)) {
    errors.push(invalid(at, set.value, valueMessage(fetcher)));
  }
  return errors;
}

function headerNameError(name: string, path: string): FieldError | undefined {
  if (name === '') return required(path);
  if (Buffer.byteLength(name) > maxName) {
    return invalid(path, name, `name exceeds the maximum length, which is ${maxName}`);
  }
  if (kept.includes(name.toLowerCase())) {
    const message = `the following headers may not be modified using this API: ${kept.join(', ')}`;
    return forbiddenField(path, message);
  }
  return namePattern.test(name) ? undefined : invalid(path, name, nameMessage);
}

/** Allows labels of a host longer than 63 characters, which routers other than OpenShift's may serve. */
const allowAnyHostAnnotation = 'route.openshift.io/allow-non-dns-compliant-host';

const policies = ['None', 'Subdomain'];
const maxSubdomain = 253;
const maxAlternateBackends = 3;
const maxWeight = 256;

/** True for a host of DNS labels, and for none. */
function conformsToDNS(host: string): boolean {
  return host === '' || host.split('.').every((label) => isDNS1123Label(label).length === 0);
}

/** Asked on a create, and of a path that changes: older Routes may have such paths. */
function validatePathCharacters({ path = '' }: RouteSpec): FieldError[] {
  return /[# ]/.test(path) ? [invalid('spec.path', path, 'cannot contain # or spaces')] : [];
}

/** @param checksLabels whether labels of the host are checked too; not for a host that was stored without. */
function validateRouteSpec({ metadata, spec }: Route, checksLabels: boolean): FieldError[] {
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

const service = 'Service';

/**
 * The rules of Routes, as OpenShift's API server has them (openshift-apiserver `route/apiserver/registry/route`,
 * library-go `route/validation`).
 *
 * @param review for hosts and certificates, and what the account of OpenShift's router may read.
 */
export function routeStrategy(review: ReviewAccess): Strategy<Route> {
  return genericStrategy<Route>({
    ...namespacedSubdomain,
    metadataRules: 'none',
    repeatsErrors: true,
    hasStatus: true,
    allowUnconditionalUpdate: false,
    generationChanges: isSpecChanged,
    setDefaults: setRouteDefaults,
    prepareForUpdate({ spec }, old) {
      // An apply without a host does not remove the generated one.
      if ((spec.host ?? '') === '' && old.spec.host !== undefined) spec.host = old.spec.host;
    },
    validateCreate(route, context) {
      const errors = assignHost(route, review, context);
      pushAll(errors, validatePathCharacters(route.spec));
      pushAll(errors, validateObjectMeta(route.metadata, namespacedSubdomain));
      pushAll(errors, validateRouteSpec(route, true));
      pushAll(errors, validateTLS(route, review, context));
      return errors;
    },
    validateUpdate(route, old, context) {
      const { spec } = route;
      const errors = validateHostUpdate(route, old, review, context);
      pushAll(errors, validateObjectMetaUpdate(route.metadata, old.metadata));
      pushAll(
        errors,
        validateImmutableField(spec.wildcardPolicy, old.spec.wildcardPolicy, 'spec.wildcardPolicy'),
      );
      pushAll(errors, validateObjectMeta(route.metadata, namespacedSubdomain));
      const isHostChecked = spec.host !== old.spec.host && conformsToDNS(old.spec.host ?? '');
      pushAll(errors, validateRouteSpec(route, isHostChecked));
      pushAll(errors, validateTLS(route, review, context));
      if ((spec.path ?? '') !== (old.spec.path ?? '')) pushAll(errors, validatePathCharacters(spec));
      return errors;
    },
    validateStatus: (route, old) => validateObjectMetaUpdate(route.metadata, old.metadata),
    warningsOnCreate: warnings,
    warningsOnUpdate: warnings,
    fields: ({ spec }: Partial<Pick<Route, 'spec'>>) => ({
      'spec.host': spec?.host ?? '',
      'spec.path': spec?.path ?? '',
      'spec.to.name': spec?.to.name ?? '',
    }),
  });
}

/** library-go `route/defaulting`. */
function setRouteDefaults(route: Partial<Pick<Route, 'spec' | 'status'>>): void {
  const spec: Partial<Route['spec']> = (route.spec ??= { to: { kind: '', name: '' } });
  route.status ??= {};
  if ((spec.wildcardPolicy ?? '') === '') spec.wildcardPolicy = 'None';
  spec.to ??= { kind: '', name: '' };
  setTargetDefaults(spec.to);
  spec.alternateBackends?.forEach(setTargetDefaults);
  const { tls } = spec;
  if (tls !== undefined) {
    if (['Edge', 'Reencrypt', 'Passthrough'].includes(tls.termination))
      tls.termination = tls.termination.toLowerCase();
    if (tls.termination === '' && (tls.destinationCACertificate ?? '') === '') tls.termination = 'edge';
  }
  for (const ingress of route.status.ingress ?? []) {
    if ((ingress.wildcardPolicy ?? '') === '') ingress.wildcardPolicy = 'None';
  }
}

function setTargetDefaults(target: RouteTargetReference): void {
  if (target.kind === '') target.kind = service;
  target.weight ??= 100;
}

function warnings({ spec }: Route): string[] {
  const hasBoth = (spec.host ?? '') !== '' && (spec.subdomain ?? '') !== '';
  return hasBoth ? ['spec.host is set; spec.subdomain may be ignored'] : [];
}

import type {
  HTTPIngressPath,
  Ingress,
  IngressBackend,
  IngressRule,
  IngressSpec,
} from '../../objects/types/networking.generated.ts';
import { parseAddress } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import { type FieldError, invalid, notSupported, required } from '../validation/field-errors.ts';
import {
  isDNS1123Subdomain,
  isValidPortName,
  isWildcardDNS1123Subdomain,
  nameIsDNSLabel,
  nameIsPathSegment,
} from '../../objects/names.ts';
import { isValidPortNumber, validateLegacyAddress } from '../validation/network.ts';
import { compareText } from '../../objects/formats/go-text.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateObjectMeta, namespacedSubdomain } from '../generic/metadata.ts';
import type { ClusterReader } from '../generic/strategy.ts';

const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix'];
const badSequences = ['//', '/./', '/../', '%2f', '%2F'];
const badSuffixes = ['/..', '/.'];

/**
 * The rules of an Ingress's spec (`apis/networking/validation` ValidateIngressSpec). `old`: stored values that may
 * stay.
 */
function validateIngressSpec(spec: IngressSpec, old?: IngressSpec): FieldError[] {
  const { rules = [], defaultBackend, tls = [], ingressClassName } = spec;
  const errors: FieldError[] = [];
  if (rules.length === 0 && defaultBackend === undefined) {
    errors.push(invalid('spec', spec.rules, 'either `defaultBackend` or `rules` must be specified'));
  }
  if (defaultBackend !== undefined) pushAll(errors, validateBackend(defaultBackend, 'spec.defaultBackend'));
  const anyWildcard = (old?.rules ?? []).some(hasBadWildcard);
  rules.forEach((rule, i) => pushAll(errors, validateRule(rule, `spec.rules[${i}]`, anyWildcard)));
  const anySecret = (old?.tls ?? []).some(({ secretName = '' }) => secretFaults(secretName).length > 0);
  tls.forEach(({ hosts = [], secretName = '' }, i) => {
    hosts.forEach((host, j) => pushHostErrors(errors, `spec.tls[${i}].hosts[${j}]`, host));
    if (anySecret) return;
    for (const message of secretFaults(secretName)) {
      errors.push(invalid(`spec.tls[${i}].secretName`, secretName, message));
    }
  });
  if (ingressClassName !== undefined) {
    for (const message of isDNS1123Subdomain(ingressClassName)) {
      errors.push(invalid('spec.ingressClassName', ingressClassName, message));
    }
  }
  return errors;
}

/** The rules of `/status` (`ValidateIngressLoadBalancerStatus`). */
function validateIngressStatus({ status }: Ingress, old: Ingress): FieldError[] {
  const known = (old.status.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip);
  return (status.loadBalancer?.ingress ?? []).flatMap(({ ip = '', hostname = '' }, i) => {
    const path = `status.loadBalancer.ingress[${i}]`;
    const errors = ip === '' ? [] : validateLegacyAddress(ip, `${path}.ip`, known);
    if (hostname === '') return errors;
    for (const message of isDNS1123Subdomain(hostname)) {
      errors.push(invalid(`${path}.hostname`, hostname, message));
    }
    pushAddressError(errors, `${path}.hostname`, hostname);
    return errors;
  });
}

function validateRule(rule: IngressRule, path: string, wildcardsExempt: boolean): FieldError[] {
  const { host = '', http } = rule;
  const errors: FieldError[] = [];
  if (host !== '') {
    pushAddressError(errors, `${path}.host`, host);
    pushHostErrors(errors, `${path}.host`, host);
  }
  if (http === undefined || (host.includes('*') && wildcardsExempt)) return errors;
  return [...errors, ...validatePaths(http.paths ?? [], `${path}.http.paths`)];
}

function hasBadWildcard({ host = '', http }: IngressRule): boolean {
  return host.includes('*') && http !== undefined && validatePaths(http.paths ?? [], '').length > 0;
}

function validatePaths(paths: readonly HTTPIngressPath[], path: string): FieldError[] {
  if (paths.length === 0) return [required(path)];
  return paths.flatMap((item, i) => validatePath(item, `${path}[${i}]`));
}

function validatePath({ path = '', pathType, backend }: HTTPIngressPath, at: string): FieldError[] {
  if (!pathType) return [required(`${at}.pathType`, 'pathType must be specified')];
  const errors: FieldError[] = [];
  const wrong = (detail: string) => errors.push(invalid(`${at}.path`, path, detail));
  const strict = pathType === 'Exact' || pathType === 'Prefix';
  if (!strict && pathType !== 'ImplementationSpecific') {
    errors.push(notSupported(`${at}.pathType`, pathType, pathTypes));
  } else if (!path.startsWith('/') && (strict || path !== '')) {
    wrong('must be an absolute path');
  }
  if (strict) {
    for (const part of badSequences) if (path.includes(part)) wrong(`must not contain '${part}'`);
    for (const part of badSuffixes) if (path.endsWith(part)) wrong(`cannot end with '${part}'`);
  }
  pushAll(errors, validateBackend(backend, `${at}.backend`));
  return errors;
}

/** A service with one port, or a resource, but not both. */
function validateBackend({ service, resource }: IngressBackend, path: string): FieldError[] {
  if (resource !== undefined) {
    return service === undefined
      ? validateResource(resource, `${path}.resource`)
      : [invalid(path, '', 'cannot set both resource and service backends')];
  }
  if (service === undefined) return [invalid(path, '', 'resource or service backend is required')];
  const { name, port = {} } = service;
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.service.name`));
  else {
    for (const message of nameIsDNSLabel(name, false)) {
      errors.push(invalid(`${path}.service.name`, name, message));
    }
  }
  const { name: portName = '', number = 0 } = port;
  const portPath = `${path}.service.port`;
  if (portName !== '' && number !== 0) {
    errors.push(invalid(path, '', 'cannot set both port name & port number'));
  } else if (portName !== '') {
    for (const message of isValidPortName(portName))
      errors.push(invalid(`${portPath}.name`, portName, message));
  } else if (number !== 0) {
    for (const message of isValidPortNumber(number))
      errors.push(invalid(`${portPath}.number`, number, message));
  } else {
    errors.push(required(path, 'port name or number is required'));
  }
  return errors;
}

function validateResource(
  { apiGroup, kind, name }: NonNullable<IngressBackend['resource']>,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  // Always printed, null when it is absent.
  if (typeof apiGroup === 'string') {
    for (const message of isDNS1123Subdomain(apiGroup))
      errors.push(invalid(`${path}.apiGroup`, apiGroup, message));
  }
  for (const [member, value] of Object.entries({ kind, name })) {
    if (value === '')
      errors.push(required(`${path}.${member}`, member === 'kind' ? '' : `${member} is required`));
    for (const message of nameIsPathSegment(value, false))
      errors.push(invalid(`${path}.${member}`, value, message));
  }
  return errors;
}

function pushHostErrors(errors: FieldError[], path: string, host: string): void {
  const faults = host.includes('*') ? isWildcardDNS1123Subdomain(host) : isDNS1123Subdomain(host);
  for (const message of faults) errors.push(invalid(path, host, message));
}

function pushAddressError(errors: FieldError[], path: string, host: string): void {
  if (parseAddress(host) === undefined) return;
  errors.push(invalid(path, host, 'must be a DNS name, not an IP address'));
}

function secretFaults(name: string): string[] {
  return name === '' ? [] : isDNS1123Subdomain(name);
}

/** The annotation that names the class, the predecessor of `spec.ingressClassName`. */
const ingressClassAnnotation = 'kubernetes.io/ingress.class';

const isDefaultAnnotation = 'ingressclass.kubernetes.io/is-default-class';

/** Admission DefaultIngressClass: a new Ingress that names no class gets the default class. */
export function setDefaultClass(ingress: Pick<Ingress, 'metadata' | 'spec'>, cluster: ClusterReader): void {
  const { spec } = ingress;
  if (spec.ingressClassName !== undefined || namedClass(ingress) !== undefined) return;
  const name = defaultClass(cluster);
  if (name !== undefined) spec.ingressClassName = name;
}

/** The rules of Ingresses (`pkg/registry/networking/ingress/strategy.go`). */
export const ingressStrategy = genericStrategy<Ingress>({
  ...namespacedSubdomain,
  hasStatus: true,
  generationChanges: (ingress, old) => !jsonEqual(withRules(ingress.spec), withRules(old.spec)),
  setDefaults(ingress: Partial<Pick<Ingress, 'spec' | 'status'>>) {
    ingress.spec ??= {};
    ingress.status ??= {};
  },
  validateCreate({ metadata, spec }) {
    const errors = validateIngressSpec(spec);
    const named = namedClass({ metadata });
    const { ingressClassName } = spec;
    if (named !== undefined && ingressClassName !== undefined && named !== ingressClassName) {
      const detail = 'must match `ingressClassName` when both are specified';
      errors.push(invalid(`annotations.${ingressClassAnnotation}`, named, detail));
    }
    return errors;
  },
  validateUpdate: ({ metadata, spec }, old) => [
    ...validateObjectMeta(metadata, namespacedSubdomain),
    ...validateIngressSpec(spec, old.spec),
  ],
  validateStatus: validateIngressStatus,
  warningsOnCreate({ metadata, spec }) {
    if (namedClass({ metadata }) === undefined || spec.ingressClassName !== undefined) return [];
    return [
      `annotation "${ingressClassAnnotation}" is deprecated, please use 'spec.ingressClassName' instead`,
    ];
  },
});

/** An empty list of rules, which errors print unlike an absent one, is dropped. */
function withRules({ rules = [], ...rest }: IngressSpec): IngressSpec {
  return { ...rest, rules };
}

function namedClass({ metadata: { annotations = {} } }: KubeObject): string | undefined {
  return Object.hasOwn(annotations, ingressClassAnnotation) ? annotations[ingressClassAnnotation] : undefined;
}

/** The newest of the default classes, the first by name among equals. */
function defaultClass(cluster: ClusterReader): string | undefined {
  return cluster
    .list('networking.k8s.io', 'ingressclasses')
    .filter(({ metadata }) => metadata.annotations?.[isDefaultAnnotation] === 'true')
    .map(({ metadata: { name = '', creationTimestamp = '' } }) => ({ name, creationTimestamp }))
    .sort((a, b) => compareText(b.creationTimestamp, a.creationTimestamp) || compareText(a.name, b.name))[0]
    ?.name;
}

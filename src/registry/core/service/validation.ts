import { pushAll } from '../../../objects/lists.ts';
import type {
  Service,
  ServicePort,
  ServiceSpec,
  LoadBalancerIngress,
} from '../../../objects/types/core.generated.ts';
import {
  warningsForAddress,
  warningsForCidr,
  isValidPortNumber,
  validatePortNumberOrName,
  validateEndpointAddress,
  validateLegacyAddress,
} from '../../validation/network.ts';
import { headlessIP, hasHeadlessIPs, needsHealthCheck } from './type-rules.ts';
import {
  duplicate,
  forbiddenField,
  invalid,
  notSupported,
  required,
  type FieldError,
} from '../../validation/field-errors.ts';
import {
  isDNS1123Label,
  isQualifiedName,
  isDNS1123Subdomain,
  nameIsDNSLabel,
} from '../../../objects/names.ts';
import {
  validateLoadBalancerClass,
  validateSourceRanges,
  validateSessionAffinity,
  validateAllocateNodePorts,
  validateExternalPolicy,
  validateInternalTraffic,
} from './traffic-rules.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../generic/metadata.ts';
import { validateLabels } from '../../validation/label-selector.ts';
import { validateClusterIPFields } from './families.ts';
import { parseAddress } from '../../../objects/address.ts';

/** Annotations of Services (`core/v1/annotation_key_constants.go`). */
const topologyMode = 'service.kubernetes.io/topology-mode';
const deprecatedTopologyHints = 'service.kubernetes.io/topology-aware-hints';

/** Warnings of a create or an update of the main resource (`pkg/api/service/warnings.go`), in order. */
export function warningsForService(service: Service): string[] {
  const warnings: string[] = [];
  const { spec, metadata } = service;
  const { clusterIP = '', externalIPs = [], loadBalancerIP = '' } = spec;
  if (metadata.annotations !== undefined && Object.hasOwn(metadata.annotations, deprecatedTopologyHints)) {
    warnings.push(`annotation ${deprecatedTopologyHints} is deprecated, please use ${topologyMode} instead`);
  }
  if (clusterIP !== '' && clusterIP !== headlessIP) {
    spec.clusterIPs?.forEach((ip, i) => pushAll(warnings, warningsForAddress(ip, `spec.clusterIPs[${i}]`)));
  }
  const headless = spec.type === 'ClusterIP' && clusterIP === headlessIP;
  if (headless) {
    if (loadBalancerIP !== '') warnings.push('spec.loadBalancerIP is ignored for headless services');
    if (externalIPs.length > 0) warnings.push('spec.externalIPs is ignored for headless services');
    if (spec.sessionAffinity !== 'None') {
      warnings.push('spec.SessionAffinity is ignored for headless services');
    }
  }
  externalIPs.forEach((ip, i) => pushAll(warnings, warningsForAddress(ip, `spec.externalIPs[${i}]`)));
  const external = spec.type === 'ExternalName';
  if (externalIPs.length > 0 && !headless && !external) {
    warnings.push('spec.externalIPs is deprecated and may no longer be implemented in some clusters');
  }
  if (loadBalancerIP !== '') pushAll(warnings, warningsForAddress(loadBalancerIP, 'spec.loadBalancerIP'));
  spec.loadBalancerSourceRanges?.forEach((cidr, i) =>
    pushAll(warnings, warningsForCidr(cidr, `spec.loadBalancerSourceRanges[${i}]`)),
  );
  if (external && externalIPs.length > 0) {
    warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"');
  }
  if (!external && (spec.externalName ?? '') !== '') {
    warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  }
  if (spec.trafficDistribution === 'PreferClose') {
    warnings.push('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"');
  }
  return warnings;
}

/** Warnings of a write to `/status`. */
export function warningsForServiceStatus(service: Service): string[] {
  const warnings: string[] = [];
  service.status.loadBalancer?.ingress?.forEach(({ ip = '' }, i) => {
    if (ip !== '') pushAll(warnings, warningsForAddress(ip, `status.loadBalancer.ingress[${i}]`));
  });
  return warnings;
}

const protocols = ['SCTP', 'TCP', 'UDP'];

/** The rules of each port, and the uniqueness of names (`apis/core/validation` validateServicePort). */
function validatePorts(ports: readonly ServicePort[]): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  ports.forEach((port, i) => {
    const path = `spec.ports[${i}]`;
    const { name = '', protocol = '' } = port;
    if (name !== '') {
      for (const message of isDNS1123Label(name)) errors.push(invalid(`${path}.name`, name, message));
      if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
      names.add(name);
    } else if (ports.length > 1) {
      errors.push(required(`${path}.name`));
    }
    for (const message of isValidPortNumber(port.port)) {
      errors.push(invalid(`${path}.port`, port.port, message));
    }
    if (protocol === '') errors.push(required(`${path}.protocol`));
    else if (!protocols.includes(protocol)) {
      errors.push(notSupported(`${path}.protocol`, protocol, protocols));
    }
    pushAll(errors, validatePortNumberOrName(port.targetPort ?? 0, `${path}.targetPort`));
    if (port.appProtocol !== undefined) {
      for (const message of isQualifiedName(port.appProtocol)) {
        errors.push(invalid(`${path}.appProtocol`, port.appProtocol, message));
      }
    }
  });
  return errors;
}

/** The rules of ports for the type, and their uniqueness by (protocol, number). */
function validatePortUse({ type, ports = [] }: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const withNodePort = ports.some(({ nodePort = 0 }) => nodePort !== 0);
  if (type === 'ClusterIP' && withNodePort) {
    ports.forEach(({ nodePort = 0 }, i) => {
      if (nodePort === 0) return;
      errors.push(forbiddenField(`spec.ports[${i}].nodePort`, "may not be used when `type` is 'ClusterIP'"));
    });
  }
  if (ports.length < 2) return errors;
  if (withNodePort) pushNodePortRepeats(errors, ports);
  const seen = new Set<string>();
  ports.forEach(({ protocol = '', port }, i) => {
    const key = `${protocol}/${port}`;
    if (seen.has(key)) errors.push(duplicate(`spec.ports[${i}]`, portKey(protocol, port)));
    seen.add(key);
  });
  return errors;
}

function pushNodePortRepeats(errors: FieldError[], ports: readonly ServicePort[]): void {
  const seen = new Set<string>();
  ports.forEach(({ protocol = '', nodePort = 0 }, i) => {
    if (nodePort === 0) return;
    const key = `${protocol}/${nodePort}`;
    if (seen.has(key)) errors.push(duplicate(`spec.ports[${i}].nodePort`, nodePort));
    seen.add(key);
  });
}

/** The Go struct that kube-apiserver prints for a repeated port: only protocol and number are set. */
function portKey(protocol: string, port: number): object {
  return { Name: '', Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 };
}

const unchangeable = 'may not change once set';
const policyPath = 'spec.ipFamilyPolicy';

/** Immutable fields of a Service (`apis/core/validation` ValidateServiceUpdate). */
function validateTransition(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.type !== 'ExternalName' && old.type !== 'ExternalName') {
    const wasHeadless = hasHeadlessIPs(old);
    const headless = hasHeadlessIPs(spec);
    if (!wasHeadless || !headless) pushAddressErrors(errors, spec, old);
    if (!wasHeadless && !headless) pushFamilyErrors(errors, spec, old);
  }
  pushAll(errors, validateLoadBalancerClass(spec, old));
  if (needsHealthCheck(spec) && needsHealthCheck(old)) {
    if ((spec.healthCheckNodePort ?? 0) !== (old.healthCheckNodePort ?? 0)) {
      errors.push(forbiddenField('spec.healthCheckNodePort', 'field is immutable'));
    }
  }
  return errors;
}

/**
 * Addresses are immutable; a second one may be added, or released with SingleStack
 * (validateUpgradeDowngradeClusterIPs).
 */
function pushAddressErrors(errors: FieldError[], spec: ServiceSpec, old: ServiceSpec): void {
  const { clusterIPs = [] } = spec;
  const { clusterIPs: before = [] } = old;
  if (clusterIPs.length === before.length) {
    before.forEach((address, i) => {
      if (address !== clusterIPs[i]) errors.push(invalid(`spec.clusterIPs[${i}]`, clusterIPs, unchangeable));
    });
    return;
  }
  if (clusterIPs.length === 0) {
    errors.push(invalid('spec.clusterIPs[0]', null, 'primary clusterIP can not be unset'));
  } else if (before.length > 0 && clusterIPs[0] !== before[0]) {
    errors.push(invalid('spec.clusterIPs[0]', clusterIPs, unchangeable));
  }
  if (before.length > 1 && clusterIPs.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    const detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
    errors.push(invalid(policyPath, spec.ipFamilyPolicy, detail));
  }
}

/**
 * Families are immutable, too (validateUpgradeDowngradeIPFamilies). As in kube-apiserver, the index is always 0, and
 * the printed value is the list of addresses when the number of families changed.
 */
function pushFamilyErrors(errors: FieldError[], spec: ServiceSpec, old: ServiceSpec): void {
  const { ipFamilies = [], clusterIPs = [] } = spec;
  const { ipFamilies: before = [] } = old;
  const path = 'spec.ipFamilies[0]';
  if (ipFamilies.length === before.length) {
    before.forEach((family, i) => {
      if (family !== ipFamilies[i]) errors.push(invalid(path, ipFamilies, unchangeable));
    });
    return;
  }
  if (before.length > ipFamilies.length && clusterIPs.length === 0) {
    errors.push(invalid(path, spec.ipFamilies, 'primary ipFamily can not be unset'));
  }
  if (ipFamilies.length > 0 && before.length > 0 && ipFamilies[0] !== before[0]) {
    errors.push(invalid(path, clusterIPs, unchangeable));
  }
  if (before.length > 1 && ipFamilies.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    const detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
    errors.push(invalid(policyPath, spec.ipFamilyPolicy, detail));
  }
}

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const metaRules = { namespaced: true, nameRule: nameIsDNSLabel };

/** All errors of a new Service (`apis/core/validation` ValidateServiceCreate), in kube-apiserver's order. */
export function validateService(service: Service): FieldError[] {
  return [...validateObjectMeta(service.metadata, metaRules), ...validateSpec(service)];
}

/** All errors of a changed Service (ValidateServiceUpdate): those of the change come first. */
export function validateServiceUpdate(service: Service, old: Service): FieldError[] {
  return [
    ...validateObjectMetaUpdate(service.metadata, old.metadata),
    ...validateTransition(service.spec, old.spec),
    ...validateSpec(service, old),
  ];
}

/** With `old`, stored values are accepted. */
function validateSpec(service: Service, old?: Service): FieldError[] {
  const { spec } = service;
  const { ports = [], selector, type = '' } = spec;
  const errors = validateTopologyAnnotations(service);
  if (ports.length === 0 && !hasHeadlessIPs(spec) && type !== 'ExternalName')
    errors.push(required('spec.ports'));
  pushTypeErrors(errors, service);
  pushAll(errors, validatePorts(ports));
  if (selector !== undefined) pushAll(errors, validateLabels(selector, 'spec.selector'));
  pushAll(errors, validateSessionAffinity(spec), validateClusterIPFields(spec, old?.spec));
  spec.externalIPs?.forEach((address, i) => {
    const path = `spec.externalIPs[${i}]`;
    const faults = validateLegacyAddress(address, path, old?.spec.externalIPs);
    pushAll(errors, faults.length > 0 ? faults : validateEndpointAddress(address, path));
  });
  if (type === '') errors.push(required('spec.type'));
  else if (!types.includes(type)) errors.push(notSupported('spec.type', type, types));
  pushAll(
    errors,
    validatePortUse(spec),
    validateSourceRanges(service, old),
    validateAllocateNodePorts(spec),
    validateLoadBalancerClass(spec),
    validateExternalPolicy(spec),
    validateInternalTraffic(spec),
  );
  return errors;
}

function validateTopologyAnnotations({ metadata: { annotations } }: Service): FieldError[] {
  if (annotations === undefined) return [];
  if (!Object.hasOwn(annotations, topologyMode) || !Object.hasOwn(annotations, deprecatedTopologyHints)) {
    return [];
  }
  const mode = annotations[topologyMode];
  if (mode === annotations[deprecatedTopologyHints]) return [];
  const detail = `must match annotations[${deprecatedTopologyHints}] when both are specified`;
  return [invalid(`metadata.annotations[${topologyMode}]`, mode, detail)];
}

function pushTypeErrors(errors: FieldError[], { spec }: Service): void {
  const { type } = spec;
  if ((type === 'LoadBalancer' || type === 'NodePort') && hasHeadlessIPs(spec)) {
    const detail = `may not be set to 'None' for ${type} services`;
    errors.push(invalid('spec.clusterIPs[0]', spec.clusterIPs?.[0], detail));
  }
  if (type !== 'ExternalName') return;
  const detail = 'may not be set for ExternalName services';
  if ((spec.clusterIPs?.length ?? 0) > 0) errors.push(forbiddenField('spec.clusterIPs', detail));
  if ((spec.ipFamilies?.length ?? 0) > 0) errors.push(forbiddenField('spec.ipFamilies', detail));
  if (spec.ipFamilyPolicy !== undefined) errors.push(forbiddenField('spec.ipFamilyPolicy', detail));
  const { externalName = '' } = spec;
  const name = externalName.endsWith('.') ? externalName.slice(0, -1) : externalName;
  if (name === '') errors.push(required('spec.externalName'));
  for (const message of name === '' ? [] : isDNS1123Subdomain(name)) {
    errors.push(invalid('spec.externalName', name, message));
  }
}

const modes = ['Proxy', 'VIP'];

/** All errors of a write to `/status` (`apis/core/validation` ValidateServiceStatusUpdate). */
export function validateServiceStatusUpdate(service: Service, old: Service): FieldError[] {
  const errors = validateObjectMetaUpdate(service.metadata, old.metadata);
  const path = 'status.loadBalancer.ingress';
  const ingress = service.status.loadBalancer?.ingress ?? [];
  if (ingress.length > 0 && service.spec.type !== 'LoadBalancer') {
    errors.push(forbiddenField(path, "may only be used when `spec.type` is 'LoadBalancer'"));
    return errors;
  }
  const exempt = (old.status.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip);
  ingress.forEach((entry, i) => pushIngressErrors(errors, entry, `${path}[${i}]`, exempt));
  return errors;
}

function pushIngressErrors(
  errors: FieldError[],
  { ip = '', ipMode, hostname = '' }: LoadBalancerIngress,
  path: string,
  exempt: readonly string[],
): void {
  if (ip !== '') pushAll(errors, validateLegacyAddress(ip, `${path}.ip`, exempt));
  if (ipMode === undefined) {
    if (ip !== '') errors.push(required(`${path}.ipMode`, 'must be specified when `ip` is set'));
  } else if (ip === '') {
    errors.push(forbiddenField(`${path}.ipMode`, 'may not be specified when `ip` is not set'));
  } else if (!modes.includes(ipMode)) {
    errors.push(notSupported(`${path}.ipMode`, ipMode, modes));
  }
  if (hostname === '') return;
  for (const message of isDNS1123Subdomain(hostname)) {
    errors.push(invalid(`${path}.hostname`, hostname, message));
  }
  if (parseAddress(hostname) !== undefined) {
    errors.push(invalid(`${path}.hostname`, hostname, 'must be a DNS name, not an IP address'));
  }
}

import { pushAll } from '../../../objects/lists.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import {
  forbiddenField,
  invalid,
  notSupported,
  required,
  type FieldError,
} from '../../validation/field-errors.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../generic/metadata.ts';
import { validateLabels } from '../../validation/label-selector.ts';
import { isDNS1123Subdomain, nameIsDNSLabel } from '../../../objects/names.ts';
import { validateEndpointAddress, validateLegacyAddress } from '../../validation/network.ts';
import { validateSourceRanges } from './source-ranges.ts';
import { deprecatedTopologyHints, topologyMode } from './warnings.ts';
import { validateClusterIPFields } from './cluster-ip-fields.ts';
import { validatePorts, validatePortUse } from './port-rules.ts';
import {
  validateSessionAffinity,
  validateAllocateNodePorts,
  validateExternalPolicy,
  validateInternalTraffic,
  validateLoadBalancerClass,
} from './traffic-rules.ts';
import { hasHeadlessIPs } from './type-rules.ts';
import { validateTransition } from './update-rules.ts';

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

import { pushAll } from '../../../objects/lists.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import { warningsForAddress, warningsForCidr } from '../../validation/network.ts';
import { headlessIP } from './type-rules.ts';

/** Annotations of Services (`core/v1/annotation_key_constants.go`). */
export const topologyMode = 'service.kubernetes.io/topology-mode';
export const deprecatedTopologyHints = 'service.kubernetes.io/topology-aware-hints';

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

import type {
  Container,
  Pod,
  PodSpec,
  PodStatus,
  ResourceRequirements,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, forbiddenField, invalid } from '../../validation/field-errors.ts';
import { validateImmutableField } from '../../generic/metadata.ts';
import { isQualifiedName } from '../../../objects/names.ts';
import { validateAddressPair, validateLegacyAddress, warningsForAddress } from '../../validation/network.ts';
import { validateAnnotationChange, pushSubdomainErrors, restarts } from './field-checks.ts';
import { hasPodResources } from './pod-resources.ts';
import { parseQuantity } from '../../../objects/quantity.ts';

const systemConditions = new Set(['PodScheduled', 'Ready', 'Initialized']);
const notNegative = 'must be a non-negative integer';

/** The rules of a write of `/status` (`ValidatePodStatusUpdate`). */
export function validatePodStatus(pod: Pod, old: Pod): FieldError[] {
  const { status, spec } = pod;
  const errors = [...validateAnnotationChange(pod, old), ...validateConditions(status.conditions ?? [])];
  if ((spec.nodeName ?? '') !== (old.spec.nodeName ?? '')) {
    errors.push(forbiddenField('status.nodeName', 'may not be changed directly'));
  }
  pushAll(errors, validateNominatedNode(status.nominatedNodeName ?? '', old));
  const { qosClass = '', observedGeneration = 0 } = status;
  if (observedGeneration < 0) {
    errors.push(invalid('status.observedGeneration', observedGeneration, notNegative));
  }
  pushAll(errors, validateImmutableField(qosClass, old.status.qosClass ?? '', 'status.qosClass'));
  pushAll(errors, validateTransitions(status, old));
  pushAll(errors, validateAddresses(status.podIPs ?? [], old.status.podIPs ?? [], 'status.podIPs'));
  const [firstHost] = status.hostIPs ?? [];
  if (firstHost !== undefined && firstHost.ip !== (status.hostIP ?? '')) {
    errors.push(invalid('status.hostIPs[0].ip', firstHost.ip, 'must be equal to `hostIP`'));
  }
  pushAll(errors, validateAddresses(status.hostIPs ?? [], old.status.hostIPs ?? [], 'status.hostIPs'));
  return errors;
}

function validateConditions(conditions: NonNullable<PodStatus['conditions']>): FieldError[] {
  const errors: FieldError[] = [];
  conditions.forEach(({ type, observedGeneration = 0 }, i) => {
    const at = `status.conditions[${i}]`;
    if (observedGeneration < 0) {
      errors.push(invalid(`${at}.observedGeneration`, observedGeneration, notNegative));
    }
    if (systemConditions.has(type)) return;
    for (const message of isQualifiedName(type)) errors.push(invalid(`${at}.Type`, type, message));
  });
  return errors;
}

/** `nominatedNodeName` is only for Pods without a node. */
function validateNominatedNode(nominated: string, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  if (nominated === '' || nominated === old.status.nominatedNodeName) return errors;
  pushSubdomainErrors(errors, 'status.nominatedNodeName', nominated);
  if ((old.spec.nodeName ?? '') !== '') {
    const detail = 'may not be set on pods that are already bound to a node';
    errors.push(forbiddenField('status.nominatedNodeName', detail));
  }
  return errors;
}

/** A container that has ended runs again only if its restart policy allows it. */
function validateTransitions(status: PodStatus, { spec, status: before }: Pod): FieldError[] {
  return (['containers', 'initContainers'] as const).flatMap((list) => {
    const member = list === 'containers' ? 'containerStatuses' : 'initContainerStatuses';
    const revived = (before[member] ?? []).map(({ name, state }) => {
      const now = status[member]?.find((item) => item.name === name);
      if (state?.terminated === undefined || now === undefined || now.state?.terminated !== undefined)
        return false;
      return !mayRestart(spec[list] ?? [], name, spec, state.terminated.exitCode);
    });
    return revived.flatMap((refused, i) =>
      refused
        ? [forbiddenField(`status.${member}[${i}].state`, 'may not be transitioned to non-terminated state')]
        : [],
    );
  });
}

function mayRestart(
  containers: readonly Container[],
  name: string,
  spec: PodSpec,
  exitCode: number,
): boolean {
  const container = containers.find((item) => item.name === name);
  return container !== undefined && restarts(container, spec, exitCode);
}

/** At most one address of each family, in any spelling without leading zeros; stored ones may stay. */
function validateAddresses(
  list: readonly { ip: string }[],
  old: readonly { ip: string }[],
  path: string,
): FieldError[] {
  const known = old.map(({ ip }) => ip);
  const texts = list.map(({ ip }) => ip);
  // As Go prints the internal type.
  const shown = texts.map((ip) => ({ IP: ip }));
  return [
    ...texts.flatMap((ip, i) => validateLegacyAddress(ip, `${path}[${i}]`, known)),
    ...validateAddressPair(texts, path, shown),
  ];
}

/** Observed generations that the client leaves out are kept, by type of condition. */
export function keepObservedGenerations(status: PodStatus, old: PodStatus): void {
  if (old.observedGeneration !== undefined) status.observedGeneration ??= old.observedGeneration;
  const known = [...(old.conditions ?? [])];
  for (const condition of status.conditions ?? []) {
    const at = known.findIndex(({ type }) => type === condition.type);
    const [before] = at === -1 ? [] : known.splice(at, 1);
    if (before?.observedGeneration !== undefined) condition.observedGeneration ??= before.observedGeneration;
  }
}

/** Warnings of a write of `/status`: addresses in unusual spellings. */
export function statusWarnings({ status: { podIPs = [], hostIPs = [] } }: Pod): string[] {
  return [
    ...podIPs.flatMap(({ ip }, i) => warningsForAddress(ip, `status.podIPs[${i}].ip`)),
    ...hostIPs.flatMap(({ ip }, i) => warningsForAddress(ip, `status.hostIPs[${i}].ip`)),
  ];
}

/** The resources that decide. */
const counted = ['cpu', 'memory'];

/** The QoS class (`ComputePodQOS`): by the Pod's own resources if it has them, else by its containers. */
export function qosClass(spec: PodSpec): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const parts =
    spec.resources === undefined || !hasPodResources(spec)
      ? [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ resources = {} }) => resources)
      : [spec.resources];
  const amounts = parts.flatMap(({ limits, requests }) =>
    counted.flatMap((resource) => [amount(limits, resource), amount(requests, resource)]),
  );
  if (amounts.every((nanos) => nanos <= 0n)) return 'BestEffort';
  return parts.every(isGuaranteed) ? 'Guaranteed' : 'Burstable';
}

/** True for limits of both resources, and requests that equal them. */
function isGuaranteed({ limits, requests }: ResourceRequirements): boolean {
  return counted.every((resource) => {
    const limit = amount(limits, resource);
    return limit > 0n && amount(requests, resource) === limit;
  });
}

function amount(list: Record<string, string> | undefined, resource: string): bigint {
  const text = list !== undefined && Object.hasOwn(list, resource) ? list[resource] : undefined;
  return text === undefined ? 0n : parseQuantity(text).nanos;
}

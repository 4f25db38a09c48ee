import type { Taint, Node, NodeConfigSource } from '../../objects/types/core.generated.ts';
import {
  type FieldError,
  invalid,
  notSupported,
  required,
  duplicate,
  forbiddenField,
} from '../validation/field-errors.ts';
import {
  isQualifiedName,
  isValidLabelValue,
  nameIsDNSSubdomain,
  isConfigMapKey,
  nameIsDNSLabel,
} from '../../objects/names.ts';
import { pushAll } from '../../objects/lists.ts';
import { genericStrategy, readJsonObject } from '../generic/generic.ts';
import { validateCidrPair, validateLegacyCidr, warningsForCidr } from '../validation/network.ts';
import { validateResourceQuantity } from '../validation/names.ts';
import { listAt, recordAt } from '../../objects/json.ts';

export const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** The rules of taints (`validateNodeTaints`); kube-apiserver reports them below `metadata`. */
function validateTaints(taints: readonly Taint[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  taints.forEach((taint, i) => {
    const { key, value = '', effect } = taint;
    const at = `${path}[${i}]`;
    for (const message of isQualifiedName(key)) errors.push(invalid(`${at}.key`, key, message));
    const faults = isValidLabelValue(value);
    if (faults.length > 0) errors.push(invalid(`${at}.value`, value, faults.join(';')));
    if (effect === '') errors.push(required(`${at}.effect`));
    else if (!taintEffects.includes(effect)) errors.push(notSupported(`${at}.effect`, effect, taintEffects));
    const identity = `${effect}:${key}`;
    if (seen.has(identity)) errors.push(repeated(taint, at));
    seen.add(identity);
  });
  return errors;
}

/** Shows the taint as Go prints the internal type. */
function repeated({ key, value = '', effect, timeAdded }: Taint, field: string): FieldError {
  const shown = JSON.stringify({ Key: key, Value: value, Effect: effect, TimeAdded: timeAdded ?? null });
  const detail = 'taints must be unique by key and effect pair';
  return { field, reason: 'FieldValueDuplicate', body: `Duplicate value: ${shown}: ${detail}` };
}

const notReady: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
const taintsPath = 'metadata.taints';

/** Admission TaintNodesByCondition: a new Node takes no Pods until a controller finds it ready. */
export function addNotReadyTaint({ spec }: Pick<Node, 'spec'>): void {
  const taints = (spec.taints ??= []);
  if (taints.some(({ key, effect }) => key === notReady.key && effect === notReady.effect)) return;
  taints.push({ ...notReady });
}

/** The rules of Nodes (`pkg/registry/core/node/strategy.go`, `ValidateNode`). */
export const nodeStrategy = genericStrategy<Node>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  keepsStatusOnCreate: true,
  repeatsCreate: 'before',
  // InPlacePodVerticalScalingSchedulerPreemption
  disabled: [[['spec', 'podPreemptionPolicy']]],
  setDefaults(node) {
    const { spec, status } = present(node);
    alignPodCIDRs(spec);
    if (status.allocatable === undefined && status.capacity !== undefined) {
      status.allocatable = { ...status.capacity };
    }
  },
  validateCreate: ({ metadata, spec, status }) => [
    ...validateNodeAnnotations(metadata.annotations),
    ...validateTaints(spec.taints ?? [], taintsPath),
    ...validateResources(status),
    ...validatePodCIDRs(spec.podCIDRs ?? []),
  ],
  validateUpdate,
  warningsOnCreate: nodeWarnings,
  warningsOnUpdate: nodeWarnings,
  validateStatus: validateUpdate,
  fields: (node) => ({ 'spec.unschedulable': String(present(node).spec.unschedulable ?? false) }),
});

/** Warnings of deprecated fields, and of CIDRs in unusual spellings. */
function nodeWarnings({ spec: { configSource, externalID = '', podCIDRs = [] } }: Node): string[] {
  return [
    ...(configSource === undefined ? [] : ['spec.configSource: the feature is removed']),
    ...(externalID === '' ? [] : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
    ...podCIDRs.flatMap((cidr, i) => warningsForCidr(cidr, `spec.podCIDRs[${i}]`)),
  ];
}

/** Adds empty parts that decoding leaves out. */
function present(node: Partial<Pick<Node, 'spec' | 'status'>>): Pick<Node, 'spec' | 'status'> {
  node.spec ??= {};
  node.status ??= {};
  return { spec: node.spec, status: node.status };
}

/** The singular field is the first CIDR, and has precedence where they differ (`core/v1/conversion.go`). */
function alignPodCIDRs(spec: Node['spec']): void {
  const { podCIDR = '', podCIDRs = [] } = spec;
  const [first] = podCIDRs;
  if (podCIDR !== '' && podCIDR !== first) spec.podCIDRs = [podCIDR];
  else if (first !== undefined) spec.podCIDR = first;
}

function validateResources(status: Node['status']): FieldError[] {
  return (['capacity', 'allocatable'] as const).flatMap((member) =>
    Object.entries(status[member] ?? {}).flatMap(([resource, value]) =>
      validateResourceQuantity(resource, value, `status.${member}.${resource}`),
    ),
  );
}

function validatePodCIDRs(cidrs: readonly string[]): FieldError[] {
  const path = 'spec.podCIDRs';
  return [
    ...cidrs.flatMap((cidr, i) => validateLegacyCidr(cidr, `${path}[${i}]`)),
    ...validateCidrPair(cidrs, path),
  ];
}

/** For the main resource and `/status` (`ValidateNodeUpdate`). */
function validateUpdate({ metadata, spec, status }: Node, old: Node): FieldError[] {
  const errors = [...validateNodeAnnotations(metadata.annotations), ...validateResources(status)];
  const addresses = (status.addresses ?? []).map(({ type, address }) => ({ Type: type, Address: address }));
  const texts = addresses.map((address) => JSON.stringify(address));
  addresses.forEach((address, i) => {
    if (texts.indexOf(texts[i] ?? '') < i) errors.push(duplicate(`status.addresses[${i}]`, address));
  });
  const cidrs = spec.podCIDRs ?? [];
  const before = old.spec.podCIDRs ?? [];
  const changes = before.length === cidrs.length ? before.filter((cidr, i) => cidr !== cidrs[i]) : ['all'];
  if (before.length > 0) {
    const detail = 'node updates may not change podCIDR except from "" to valid';
    pushAll(
      errors,
      changes.map(() => forbiddenField('spec.podCIDRs', detail)),
    );
  }
  const provider = old.spec.providerID ?? '';
  if (provider !== '' && provider !== (spec.providerID ?? '')) {
    const detail = 'node updates may not change providerID except from "" to valid';
    errors.push(forbiddenField('spec.providerID', detail));
  }
  if (spec.configSource !== undefined) pushAll(errors, validateConfigSource(spec.configSource));
  pushAll(errors, validateTaints(spec.taints ?? [], taintsPath));
  if ((spec.externalID ?? '') !== (old.spec.externalID ?? '')) {
    errors.push(forbiddenField('spec.externalID', 'may not be updated'));
  }
  return errors;
}

/** The annotation of Pods that the node avoids, as JSON; it has no effect. */
const preferAvoidPods = 'scheduler.alpha.kubernetes.io/preferAvoidPods';

/** Annotations of a Node with a format (`ValidateNodeSpecificAnnotations`). */
function validateNodeAnnotations(annotations: Record<string, string> = {}): FieldError[] {
  const text = Object.hasOwn(annotations, preferAvoidPods) ? (annotations[preferAvoidPods] ?? '') : '';
  if (text === '') return [];
  const { object, fault } = readJsonObject(text);
  if (fault !== '') return [invalid('metadata.annotations.AvoidPods', preferAvoidPods, fault)];
  return listAt(object, 'preferAvoidPods').flatMap((entry, i) => {
    const path = `metadata.annotations.${preferAvoidPods}[${i}].PodSignature`;
    const owner = recordAt(entry, 'podSignature')['podController'];
    if (owner === undefined || owner === null) return [required(path)];
    if (recordAt(owner)['controller'] === true) return [];
    return [invalid(`${path}.PodController.Controller`, false, 'must point to a controller')];
  });
}

/** The rules of the source; the feature was removed, its rules remain (`validateNodeConfigSourceSpec`). */
function validateConfigSource({ configMap }: NodeConfigSource): FieldError[] {
  const path = 'spec.configSource';
  // As kube-apiserver prints its own type.
  if (configMap === undefined) {
    return [invalid(path, { ConfigMap: null }, 'exactly one reference subfield must be non-nil')];
  }
  const { namespace, name, uid = '', resourceVersion = '', kubeletConfigKey } = configMap;
  const errors: FieldError[] = [];
  const refuse = (member: string) =>
    errors.push(forbiddenField(`${path}.configMap.${member}`, `${member} must not be set in spec`));
  if (uid !== '') refuse('uid');
  if (resourceVersion !== '') refuse('resourceVersion');
  const check = (member: string, value: string, rule: (value: string) => string[]) => {
    const at = `${path}.configMap.${member}`;
    if (value === '') errors.push(required(at));
    else
      pushAll(
        errors,
        rule(value).map((message) => invalid(at, value, message)),
      );
  };
  check('namespace', namespace, (value) => nameIsDNSLabel(value, false));
  check('name', name, (value) => nameIsDNSSubdomain(value, false));
  check('kubeletConfigKey', kubeletConfigKey, isConfigMapKey);
  return errors;
}

import type { Pod, PodSpec, PodDNSConfig, PodTemplateSpec } from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notFoundField,
  notSupported,
  required,
  tooLong,
} from '../../validation/field-errors.ts';
import {
  validateContainer,
  validateContainers,
  validateInitContainers,
  validateResources,
} from './containers.ts';
import { pushAll } from '../../../objects/lists.ts';
import { validateAnnotations, validateObjectMeta } from '../../generic/metadata.ts';
import { validateLabels } from '../../validation/label-selector.ts';
import {
  isDNS1123SubdomainWithUnderscore,
  isQualifiedName,
  nameIsDNSSubdomain,
} from '../../../objects/names.ts';
import { validateLegacyAddress } from '../../validation/network.ts';
import { validateAffinity, validateTolerations, validateTopologySpread } from './scheduling.ts';
import {
  pushChoiceErrors,
  pushLabelErrors,
  pushSubdomainErrors,
  validatePodAnnotations,
} from './field-checks.ts';
import { validatePodResources } from './pod-resources.ts';
import { validateLinux, validatePodSecurity, validateWindows } from './security-context.ts';
import { validateVolumes } from './volumes.ts';

/** The fields that such a container may not have, in Go's order. */
const refusedMembers = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
] as const;
const refusal = 'cannot be set for an Ephemeral Container';

/** Ephemeral containers for debugging (`validateEphemeralContainers`). */
function validateEphemeralContainers(spec: PodSpec, path: string, old: PodSpec | undefined): FieldError[] {
  const others = new Set(
    [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ name }) => name),
  );
  const names = new Set(others);
  return (spec.ephemeralContainers ?? []).flatMap((container, i) => {
    const at = `${path}[${i}]`;
    const { name, image = '', targetContainerName: target = '' } = container;
    const errors = validateContainer(container, spec, at, old);
    if (image.trim() !== image) {
      errors.push(invalid(`${at}.image`, image, 'must not have leading or trailing whitespace'));
    }
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    if (target !== '' && !others.has(target)) errors.push(notFoundField(`${at}.targetContainerName`, target));
    for (const member of refusedMembers) {
      const value = container[member];
      if (value === undefined || jsonEqual(value, {}) || jsonEqual(value, [])) continue;
      errors.push(forbiddenField(`${at}.${member}`, refusal));
    }
    (container.volumeMounts ?? []).forEach((mount, j) => {
      for (const member of ['subPath', 'subPathExpr'] as const) {
        if ((mount[member] ?? '') !== '') {
          errors.push(forbiddenField(`${at}.volumeMounts[${j}].${member}`, refusal));
        }
      }
    });
    return errors;
  });
}

/** Existing ephemeral containers are immutable (`ValidatePodEphemeralContainersUpdate`). */
export function validateEphemeralChange({ spec }: Pod, old: Pod): FieldError[] {
  const path = 'spec.ephemeralContainers';
  return (old.spec.ephemeralContainers ?? []).flatMap((before) => {
    const now = (spec.ephemeralContainers ?? []).find(({ name }) => name === before.name);
    if (now !== undefined && jsonEqual(now, before)) return [];
    // kube-apiserver appends a Go dump of the change.
    const change = now === undefined ? 'removed' : 'changed';
    const detail = `existing ephemeral containers ${JSON.stringify(before.name)} may not be ${change}\n`;
    return [forbiddenField(path, detail)];
  });
}

const restartPolicies = ['Always', 'OnFailure', 'Never'];
const dnsPolicies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const preemptionPolicies = ['PreemptLowerPriority', 'Never'];
const maxNameservers = 3;
const maxSearches = 32;
const maxSearchCharacters = 2048;
const maxHostname = 64;
const maxInt32 = 2 ** 31 - 1;
const systems = ['linux', 'windows'];

/**
 * The rules of a PodSpec, in kube-apiserver's order (`ValidatePodSpec`).
 *
 * @param isPod true for a Pod itself, false for the template of a workload.
 * @param old the stored spec, where an update may keep what a create may not have.
 */
export function validatePodSpec(
  spec: PodSpec,
  path: string,
  { isPod, old }: { readonly isPod: boolean; readonly old: PodSpec | undefined },
): FieldError[] {
  const errors = [
    ...validateVolumes(spec.volumes ?? [], `${path}.volumes`, old?.volumes),
    ...validateContainers(spec, `${path}.containers`, old),
    ...validateInitContainers(spec, `${path}.initContainers`, old),
    ...validateEphemeralContainers(spec, `${path}.ephemeralContainers`, old),
  ];
  pushAll(errors, validatePodResources(spec, path));
  if (spec.hostNetwork === true) pushAll(errors, validateHostNetwork(spec, path, isPod));
  pushChoiceErrors(errors, `${path}.restartPolicy`, spec.restartPolicy, restartPolicies);
  pushChoiceErrors(errors, `${path}.dnsPolicy`, spec.dnsPolicy, dnsPolicies);
  pushAll(
    errors,
    validateLabels(spec.nodeSelector, `${path}.nodeSelector`),
    validatePodSecurity(spec, `${path}.securityContext`),
    validateSharedProcesses(spec, path),
    validateAffinity(spec.affinity, `${path}.affinity`),
    validateDnsConfig(spec.dnsConfig, spec.dnsPolicy, `${path}.dnsConfig`),
    validateGates(spec, path),
    validateTopologySpread(spec.topologySpreadConstraints ?? [], `${path}.topologySpreadConstraints`),
    validateHostUsers(spec, path),
    validateHostnameOverride(spec, `${path}.hostnameOverride`),
  );
  pushNames(errors, spec, path);
  if (spec.overhead !== undefined) {
    pushAll(errors, validateResources({ limits: spec.overhead }, `${path}.overhead`));
  }
  if (spec.os !== undefined) pushAll(errors, validateOS(spec, spec.os, path));
  return errors;
}

function validateGates({ readinessGates = [], schedulingGates = [] }: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  readinessGates.forEach(({ conditionType }, i) => {
    const at = `${path}.readinessGates[${i}].conditionType`;
    for (const message of isQualifiedName(conditionType)) errors.push(invalid(at, conditionType, message));
  });
  const gates = new Set<string>();
  schedulingGates.forEach(({ name }, i) => {
    const at = `${path}.schedulingGates[${i}]`;
    for (const message of isQualifiedName(name)) errors.push(invalid(at, name, message));
    if (gates.has(name)) errors.push(duplicate(at, name));
    gates.add(name);
  });
  return errors;
}

function validateSharedProcesses({ shareProcessNamespace, hostPID }: PodSpec, path: string): FieldError[] {
  if (shareProcessNamespace !== true || hostPID !== true) return [];
  const detail = 'ShareProcessNamespace and HostPID cannot both be enabled';
  return [invalid(`${path}.shareProcessNamespace`, true, detail)];
}

/** `hostUsers: false` excludes other host namespaces. */
function validateHostUsers(
  { hostUsers, hostNetwork, hostPID, hostIPC }: PodSpec,
  path: string,
): FieldError[] {
  if (hostUsers !== false) return [];
  return Object.entries({ hostNetwork, HostPID: hostPID, HostIPC: hostIPC }).flatMap(([member, shared]) =>
    shared === true ? [forbiddenField(`${path}.${member}`, 'when `hostUsers` is false')] : [],
  );
}

function validateHostnameOverride(
  { hostnameOverride: name, setHostnameAsFQDN, hostNetwork }: PodSpec,
  path: string,
): FieldError[] {
  if (name === undefined) return [];
  const errors: FieldError[] = [];
  const refuse = (when: string) =>
    errors.push(forbiddenField(path, `may not be specified when ${when} is true`));
  if (setHostnameAsFQDN === true) refuse('setHostnameAsFQDN');
  if (hostNetwork === true) refuse('hostNetwork');
  if (Buffer.byteLength(name) > maxHostname) errors.push(tooLong(path, maxHostname));
  pushSubdomainErrors(errors, path, name);
  return errors;
}

function validateOS(spec: PodSpec, { name }: NonNullable<PodSpec['os']>, path: string): FieldError[] {
  if (name === '') return [required(`${path}.os.name`)];
  if (!systems.includes(name)) return [notSupported(`${path}.os`, name, systems)];
  return name === 'linux' ? validateLinux(spec, path) : validateWindows(spec, path);
}

/** The rules of a Pod template (`ValidatePodTemplateSpec`). @param old the stored one, for an update. */
export function validatePodTemplate(
  template: PodTemplateSpec,
  path: string,
  old?: PodTemplateSpec,
): FieldError[] {
  const { metadata = {}, spec = {} } = template;
  const errors = validateLabels(metadata.labels, `${path}.labels`);
  if (metadata.annotations !== undefined) {
    pushAll(errors, validateAnnotations(metadata.annotations, `${path}.annotations`));
  }
  pushAll(errors, validatePodSpec(spec, `${path}.spec`, { isPod: false, old: old?.spec }));
  if ((spec.ephemeralContainers ?? []).length > 0) {
    const detail = 'ephemeral containers not allowed in pod template';
    errors.push(forbiddenField(`${path}.spec.ephemeralContainers`, detail));
  }
  return errors;
}

/** The names after the containers, strings of several kinds. */
function pushNames(errors: FieldError[], spec: PodSpec, path: string): void {
  const subdomain = (member: string, value = '') => {
    if (value !== '') pushSubdomainErrors(errors, `${path}.${member}`, value);
  };
  const label = (member: string, value = '') => {
    if (value !== '') pushLabelErrors(errors, `${path}.${member}`, value);
  };
  subdomain('serviceAccountName', spec.serviceAccountName);
  subdomain('nodeName', spec.nodeName);
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > maxInt32)) {
    const detail = `must be between 1 and ${maxInt32}, inclusive`;
    errors.push(invalid(`${path}.activeDeadlineSeconds`, deadline, detail));
  }
  label('hostname', spec.hostname);
  label('subdomain', spec.subdomain);
  pushAll(errors, validateTolerations(spec.tolerations ?? [], `${path}.tolerations`));
  (spec.hostAliases ?? []).forEach(({ ip, hostnames = [] }, i) => {
    const at = `${path}.hostAliases[${i}]`;
    pushAll(errors, validateLegacyAddress(ip, `${at}.ip`));
    hostnames.forEach((hostname, j) => pushSubdomainErrors(errors, `${at}.hostnames[${j}]`, hostname));
  });
  subdomain('priorityClassName', spec.priorityClassName);
  if (spec.runtimeClassName !== undefined) {
    pushSubdomainErrors(errors, `${path}.runtimeClassName`, spec.runtimeClassName);
  }
  if (spec.preemptionPolicy !== undefined) {
    pushChoiceErrors(errors, `${path}.preemptionPolicy`, spec.preemptionPolicy, preemptionPolicies);
  }
}

/** In a template the host port may be 0: it is set when the Pod is created. */
function validateHostNetwork({ containers = [] }: PodSpec, path: string, isPod: boolean): FieldError[] {
  return containers.flatMap(({ ports = [] }, i) =>
    ports.flatMap(({ hostPort = 0, containerPort }, j) => {
      if (hostPort === containerPort || (hostPort === 0 && !isPod)) return [];
      const detail = 'must match `containerPort` when `hostNetwork` is true';
      return [invalid(`${path}.containers[${i}].ports[${j}].hostPort`, hostPort, detail)];
    }),
  );
}

function validateDnsConfig(
  config: PodDNSConfig | undefined,
  policy: string | undefined,
  path: string,
): FieldError[] {
  if (policy === 'None') {
    if (config === undefined) return [required(path, 'must provide `dnsConfig` when `dnsPolicy` is None')];
    if ((config.nameservers ?? []).length === 0) {
      const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None';
      return [required(`${path}.nameservers`, detail)];
    }
  }
  const { nameservers = [], searches = [], options = [] } = config ?? {};
  const errors: FieldError[] = [];
  if (nameservers.length > maxNameservers) {
    const detail = `must not have more than ${maxNameservers} nameservers`;
    errors.push(invalid(`${path}.nameservers`, nameservers, detail));
  }
  nameservers.forEach((server, i) => {
    pushAll(errors, validateLegacyAddress(server, `${path}.nameservers[${i}]`));
  });
  if (searches.length > maxSearches) {
    errors.push(invalid(`${path}.searches`, searches, `must not have more than ${maxSearches} search paths`));
  }
  if (searches.join(' ').length > maxSearchCharacters) {
    const detail = `must not have more than ${maxSearchCharacters} characters (including spaces) in the search list`;
    errors.push(invalid(`${path}.searches`, searches, detail));
  }
  searches.forEach((search, i) => {
    if (search === '.') return;
    const name = search.endsWith('.') ? search.slice(0, -1) : search;
    for (const message of isDNS1123SubdomainWithUnderscore(name)) {
      errors.push(invalid(`${path}.searches[${i}]`, name, message));
    }
  });
  options.forEach(({ name = '' }, i) => {
    if (name === '') errors.push(required(`${path}.options[${i}]`, 'must not be empty'));
  });
  return errors;
}

/** The rules of a whole Pod (`validatePodMetadataAndSpec`). @param old what an update may keep. */
export function validateMetadataAndSpec({ metadata, spec }: Pod, old: PodSpec): FieldError[] {
  return [
    ...validateObjectMeta(metadata, { namespaced: true, nameRule: nameIsDNSSubdomain }),
    ...validatePodAnnotations(metadata.annotations, spec, 'metadata.annotations'),
    ...validatePodSpec(spec, 'spec', { isPod: true, old }),
    ...validatePodOnly(spec),
  ];
}

/**
 * The rules of Pods but not of templates, which have always been accepted without them (`validatePodMetadataAndSpec`).
 */
export function validatePodOnly(spec: Pod['spec']): FieldError[] {
  const errors: FieldError[] = [];
  if ((spec.serviceAccountName ?? '') === '') {
    (spec.volumes ?? []).forEach(({ projected }, i) =>
      (projected?.sources ?? []).forEach(({ serviceAccountToken }, j) => {
        if (serviceAccountToken === undefined) return;
        const at = `spec.volumes[${i}].projected.sources[${j}].serviceAccountToken`;
        errors.push(forbiddenField(at, 'must not be specified when serviceAccountName is not set'));
      }),
    );
  }
  for (const list of ['containers', 'initContainers'] as const) {
    (spec[list] ?? []).forEach(({ image = '' }, i) => {
      if (image.trim() === image) return;
      const detail = 'must not have leading or trailing whitespace';
      errors.push(invalid(`spec.${list}[${i}].image`, image, detail));
    });
  }
  return errors;
}

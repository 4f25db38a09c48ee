import type {
  AppArmorProfile,
  Container,
  PodSpec,
  SeccompProfile,
  SecurityContext,
} from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../../validation/field-errors.ts';

import { validateDescendingPath } from './field-checks.ts';

const maxId = 2 ** 31 - 1;
const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined'];
const procMounts = ['Default', 'Unmasked'];
const fsGroupChangePolicies = ['Always', 'OnRootMismatch'];
const supplementalGroupsPolicies = ['Merge', 'Strict'];
const seLinuxChangePolicies = ['MountOption', 'Recursive'];
const maxSysctl = 253;
const sysctlForm = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const sysctlSegment = /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/;
const maxLocalhostProfile = 4095;

/**
 * Users, groups, sysctls and profiles of a Pod (`validatePodSpecSecurityContext`; Windows options are not validated).
 */
export function validatePodSecurity(spec: PodSpec, path: string): FieldError[] {
  const { securityContext: context = {} } = spec;
  const errors = [
    ...validateId(context.fsGroup, `${path}.fsGroup`),
    ...validateId(context.runAsUser, `${path}.runAsUser`),
    ...validateId(context.runAsGroup, `${path}.runAsGroup`),
    ...(context.supplementalGroups ?? []).flatMap((group, i) =>
      validateId(group, `${path}.supplementalGroups[${i}]`),
    ),
  ];
  pushAll(errors, validateSysctls(spec, `${path}.sysctls`));
  const choice = (member: string, value: string | undefined, choices: readonly string[]) => {
    if (value !== undefined && !choices.includes(value)) {
      errors.push(notSupported(`${path}.${member}`, value, choices));
    }
  };
  choice('fsGroupChangePolicy', context.fsGroupChangePolicy, fsGroupChangePolicies);
  pushAll(errors, validateSeccomp(context.seccompProfile, `${path}.seccompProfile`));
  pushAll(errors, validateAppArmor(context.appArmorProfile, `${path}.appArmorProfile`));
  choice('supplementalGroupsPolicy', context.supplementalGroupsPolicy, supplementalGroupsPolicies);
  choice('seLinuxChangePolicy', context.seLinuxChangePolicy, seLinuxChangePolicies);
  return errors;
}

/** The same of one container (`ValidateSecurityContext`). @param old the stored spec, for an update. */
export function validateContainerSecurity(
  context: SecurityContext | undefined,
  path: string,
  { hostUsers, old }: { readonly hostUsers: boolean; readonly old: PodSpec | undefined },
): FieldError[] {
  if (context === undefined) return [];
  const { runAsUser, runAsGroup, procMount, privileged, allowPrivilegeEscalation, capabilities } = context;
  const errors = [
    ...validateId(runAsUser, `${path}.runAsUser`),
    ...validateId(runAsGroup, `${path}.runAsGroup`),
  ];
  if (procMount !== undefined && !procMounts.includes(procMount)) {
    errors.push(notSupported(`${path}.procMount`, procMount, procMounts));
  }
  if (procMount === 'Unmasked' && hostUsers) {
    errors.push(invalid(`${path}.procMount`, procMount, '`hostUsers` must be false to use `Unmasked`'));
  }
  pushAll(errors, validateSeccomp(context.seccompProfile, `${path}.seccompProfile`));
  if (allowPrivilegeEscalation === false) {
    const rule = 'cannot set `allowPrivilegeEscalation` to false and';
    if (privileged === true) errors.push(invalid(path, shown(context), `${rule} \`privileged\` to true`));
    for (const capability of capabilities?.add ?? []) {
      if (capability !== 'CAP_SYS_ADMIN' || mayAdminister(old)) continue;
      errors.push(invalid(path, shown(context), `${rule} \`capabilities.Add\` CAP_SYS_ADMIN`));
    }
  }
  return [...errors, ...validateAppArmor(context.appArmorProfile, `${path}.appArmorProfile`)];
}

/** True when the stored spec has such a container: an update keeps it. */
function mayAdminister(old: PodSpec | undefined): boolean {
  if (old === undefined) return false;
  return containersOf(old).some(
    ([{ securityContext }]) =>
      securityContext?.allowPrivilegeEscalation !== true &&
      securityContext?.capabilities?.add?.includes('CAP_SYS_ADMIN') === true,
  );
}

/** All containers, each with its path in the spec. */
function containersOf(spec: PodSpec): (readonly [Pick<Container, 'securityContext'>, string])[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, i) => [container, `${list}[${i}]`] as const),
  );
}

/** A Pod whose `spec.os` is Linux has no options of Windows. */
export function validateLinux(spec: PodSpec, path: string): FieldError[] {
  const refused = 'windows options cannot be set for a linux pod';
  const places = [[spec, ''] as const, ...containersOf(spec).map(([each, at]) => [each, `.${at}`] as const)];
  return places.flatMap(([{ securityContext }, at]) =>
    securityContext?.windowsOptions === undefined
      ? []
      : [forbiddenField(`${path}${at}.securityContext.windowsOptions`, refused)],
  );
}

const linuxOfPods = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'sysctls',
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
  'supplementalGroupsPolicy',
  'seLinuxChangePolicy',
] as const;
const linuxOfContainers = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
] as const;

/** A Pod whose `spec.os` is Windows has none of Linux. */
export function validateWindows(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const refuse = (at: string) =>
    errors.push(forbiddenField(`${path}.${at}`, 'cannot be set for a windows pod'));
  for (const member of linuxOfPods) {
    const value = spec.securityContext?.[member];
    if (value !== undefined && !(member === 'sysctls' && jsonEqual(value, []))) {
      refuse(`securityContext.${member}`);
    }
  }
  if (spec.hostUsers !== undefined) refuse('hostUsers');
  if (spec.hostPID === true) refuse('hostPID');
  if (spec.hostIPC === true) refuse('hostIPC');
  if (spec.shareProcessNamespace !== undefined) refuse('shareProcessNamespace');
  for (const [{ securityContext }, at] of containersOf(spec)) {
    for (const member of linuxOfContainers) {
      if (securityContext?.[member] !== undefined) refuse(`${at}.securityContext.${member}`);
    }
  }
  return errors;
}

function validateId(id: number | undefined, path: string): FieldError[] {
  if (id === undefined || (id >= 0 && id <= maxId)) return [];
  return [invalid(path, id, `must be between 0 and ${maxId}, inclusive`)];
}

function validateSysctls({ securityContext, hostNetwork, hostIPC }: PodSpec, path: string): FieldError[] {
  const seen = new Set<string>();
  return (securityContext?.sysctls ?? []).flatMap(({ name = '' }, i) => {
    const at = `${path}[${i}].name`;
    const errors: FieldError[] = [];
    if (name === '') errors.push(required(at));
    else if (name.length > maxSysctl || !name.split(/[./]/).every((part) => sysctlSegment.test(part))) {
      const detail = `must have at most ${maxSysctl} characters and match regex ^${sysctlForm}$`;
      errors.push(invalid(at, name, detail));
    } else if (seen.has(name)) errors.push(duplicate(at, name));
    seen.add(name);
    const namespace = namespaceOf(name);
    if (namespace === 'net' && hostNetwork === true) {
      errors.push(invalid(at, name, "may not be specified when 'hostNetwork' is true"));
    } else if (namespace === 'ipc' && hostIPC === true) {
      errors.push(invalid(at, name, "may not be specified when 'hostIPC' is true"));
    }
    return errors;
  });
}

/** The kernel namespace of a sysctl (`component-helpers/node/util/sysctl`). */
function namespaceOf(name: string): 'net' | 'ipc' | undefined {
  const dotted = name.replaceAll('/', '.');
  if (dotted.startsWith('net.')) return 'net';
  const isIpc =
    dotted === 'kernel.sem' ||
    ['kernel.shm', 'kernel.msg', 'fs.mqueue.'].some((start) => dotted.startsWith(start));
  return isIpc ? 'ipc' : undefined;
}

function validateSeccomp(profile: SeccompProfile | undefined, path: string): FieldError[] {
  if (profile === undefined) return [];
  const { type, localhostProfile } = profile;
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${path}.type`, 'type is required when seccompProfile is set'));
  else if (!profileTypes.includes(type)) errors.push(notSupported(`${path}.type`, type, profileTypes));
  const at = `${path}.localhostProfile`;
  if (type === 'Localhost') {
    if (localhostProfile === undefined) {
      errors.push(required(at, 'must be set when seccomp type is Localhost'));
    } else pushAll(errors, validateDescendingPath(localhostProfile, at));
  } else if (localhostProfile !== undefined) {
    const value = { Type: type, LocalhostProfile: localhostProfile };
    errors.push(invalid(at, value, 'can only be set when seccomp type is Localhost'));
  }
  return errors;
}

function validateAppArmor(profile: AppArmorProfile | undefined, path: string): FieldError[] {
  if (profile === undefined) return [];
  const { type, localhostProfile } = profile;
  const at = `${path}.localhostProfile`;
  if (type === '') return [required(`${path}.type`, 'type is required when appArmorProfile is set')];
  if (!profileTypes.includes(type)) return [notSupported(`${path}.type`, type, profileTypes)];
  if (type !== 'Localhost') {
    if (localhostProfile === undefined) return [];
    return [invalid(at, localhostProfile, 'can only be set when AppArmor type is Localhost')];
  }
  const missing = required(at, 'must be set when AppArmor type is Localhost');
  if (localhostProfile === undefined) return [missing];
  const errors: FieldError[] = [];
  if (localhostProfile.trim() !== localhostProfile) {
    errors.push(invalid(at, localhostProfile, 'must not be padded with whitespace'));
  } else if (localhostProfile === '') errors.push(missing);
  if (Buffer.byteLength(localhostProfile) > maxLocalhostProfile)
    errors.push(tooLong(at, maxLocalhostProfile));
  return errors;
}

/** As Go prints the internal type. */
function shown({ capabilities, ...context }: SecurityContext): object {
  return {
    Capabilities:
      capabilities === undefined ? null : { Add: capabilities.add ?? null, Drop: capabilities.drop ?? null },
    Privileged: context.privileged ?? null,
    SELinuxOptions: null,
    WindowsOptions: null,
    RunAsUser: context.runAsUser ?? null,
    RunAsGroup: context.runAsGroup ?? null,
    RunAsNonRoot: context.runAsNonRoot ?? null,
    ReadOnlyRootFilesystem: context.readOnlyRootFilesystem ?? null,
    AllowPrivilegeEscalation: context.allowPrivilegeEscalation ?? null,
    ProcMount: context.procMount ?? null,
    SeccompProfile: null,
    AppArmorProfile: null,
  };
}

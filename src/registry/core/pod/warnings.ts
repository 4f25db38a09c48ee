import { pushAll } from '../../../objects/lists.ts';
import type { ObjectMeta } from '../../../objects/meta.ts';
import type {
  Affinity,
  Container,
  ContainerPort,
  NodeSelectorTerm,
  PodSpec,
  PodTemplateSpec,
  Volume,
} from '../../../objects/types/core.generated.ts';
import { parseQuantity } from '../../../objects/formats/quantity.ts';
import { isDNS1123Label } from '../../../objects/names.ts';
import { warningsForAddress } from '../../validation/network.ts';

const matchesNothing = 'a null labelSelector results in matching no pod';

/** Deprecated labels of nodes, with their replacements (`pkg/api/node/util.go`). */
const deprecatedNodeLabels: ReadonlyMap<string, string> = new Map([
  ['beta.kubernetes.io/arch', 'deprecated since v1.14; use "kubernetes.io/arch" instead'],
  ['beta.kubernetes.io/os', 'deprecated since v1.14; use "kubernetes.io/os" instead'],
  [
    'failure-domain.beta.kubernetes.io/region',
    'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  ],
  [
    'failure-domain.beta.kubernetes.io/zone',
    'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  ],
  [
    'beta.kubernetes.io/instance-type',
    'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  ],
]);

const deprecatedAnnotations: ReadonlyMap<string, string> = new Map([
  [
    'scheduler.alpha.kubernetes.io/critical-pod',
    'non-functional in v1.16+; use the "priorityClassName" field instead',
  ],
  ['security.alpha.kubernetes.io/sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
  [
    'security.alpha.kubernetes.io/unsafe-sysctls',
    'non-functional in v1.11+; use the "sysctls" field instead',
  ],
]);

const deprecatedVolumes: ReadonlyMap<string, string> = new Map([
  ['photonPersistentDisk', 'v1.11, non-functional in v1.16+'],
  ['gitRepo', 'v1.11'],
  ['scaleIO', 'v1.16, non-functional in v1.22+'],
  ['flocker', 'v1.22, non-functional in v1.25+'],
  ['storageos', 'v1.22, non-functional in v1.25+'],
  ['quobyte', 'v1.22, non-functional in v1.25+'],
  ['glusterfs', 'v1.25, non-functional in v1.26+'],
  ['cephfs', 'v1.28, non-functional in v1.31+'],
  ['rbd', 'v1.28, non-functional in v1.31+'],
]);

/**
 * Warnings about a Pod or the template of a workload (`pkg/api/pod/warnings.go`, without those about profiles and claim
 * templates), in kube-apiserver's order.
 *
 * @param base path of the template; "" for a Pod.
 */
export function podWarnings(
  { metadata = {}, spec = {} }: { metadata?: ObjectMeta; spec?: PodSpec },
  base: string,
): string[] {
  const top = base === '' ? '' : `${base}.`;
  const path = `${top}spec`;
  const hostAliases = spec.hostAliases ?? [];
  const containers = placedContainers(spec, path);
  const warnings = [
    ...selectorWarnings(spec, path),
    ...annotationWarnings(metadata.annotations, `${top}metadata.annotations`),
    ...volumeWarnings(spec.volumes ?? [], `${path}.volumes`),
    ...repeated(hostAliases, 'ip').map(
      ({ i, value }) => `${path}.hostAliases[${i}].ip: duplicate ip ${value}`,
    ),
    ...secretWarnings(spec.imagePullSecrets ?? [], `${path}.imagePullSecrets`),
    ...fractionWarnings({ '': spec.overhead ?? {} }, `${path}.overhead`),
    ...containers.flatMap(({ container, at }) => [
      ...fractionWarnings(
        { limits: container.resources?.limits ?? {}, requests: container.resources?.requests ?? {} },
        `${at}.resources`,
      ),
      ...environmentWarnings(container, `${at}.env`),
    ]),
    ...portWarnings(containers),
  ];
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    const text = 'must be >= 0; negative values are invalid and will be treated as 1';
    warnings.push(`${path}.terminationGracePeriodSeconds: ${text}`);
  }
  pushAll(warnings, affinityWarnings(spec.affinity, `${path}.affinity`));
  (spec.dnsConfig?.nameservers ?? []).forEach((server, i) =>
    pushAll(warnings, warningsForAddress(server, `${path}.dnsConfig.nameservers[${i}]`)),
  );
  hostAliases.forEach(({ ip }, i) =>
    pushAll(warnings, warningsForAddress(ip, `${path}.hostAliases[${i}].ip`)),
  );
  return warnings;
}

/** The warnings of a workload's template, below `spec.template`. */
export function templateWarnings(template: PodTemplateSpec | undefined): string[] {
  return template === undefined ? [] : podWarnings(template, 'spec.template');
}

/** A Pod's name is its host name. */
export function hostnameWarnings(name: string): string[] {
  return nameWarnings(name, "in the Pod's hostname");
}

/** The name of a workload is the prefix of its Pods' names. */
function workloadNameWarnings({ metadata: { name = '' } }: { metadata: ObjectMeta }): string[] {
  return nameWarnings(name, 'in Pod names and hostnames');
}

function nameWarnings(name: string, use: string): string[] {
  const faults = isDNS1123Label(name);
  if (faults.length === 0) return [];
  const why = `which can result in surprising behavior; a DNS label is recommended: [${faults.join(' ')}]`;
  return [`metadata.name: this is used ${use}, ${why}`];
}

function selectorWarnings(
  { nodeSelector = {}, affinity, topologySpreadConstraints = [] }: PodSpec,
  path: string,
): string[] {
  const warnings: string[] = [];
  for (const key of Object.keys(nodeSelector)) {
    const successor = deprecatedNodeLabels.get(key);
    if (successor !== undefined) warnings.push(`${path}.nodeSelector[${key}]: ${successor}`);
  }
  const {
    requiredDuringSchedulingIgnoredDuringExecution: terms,
    preferredDuringSchedulingIgnoredDuringExecution: wishes = [],
  } = affinity?.nodeAffinity ?? {};
  const at = `${path}.affinity.nodeAffinity`;
  (terms?.nodeSelectorTerms ?? []).forEach((term, i) => {
    const place = `${at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[${i}]`;
    pushAll(warnings, termWarnings(term, place));
  });
  wishes.forEach(({ preference }, i) => {
    const place = `${at}.preferredDuringSchedulingIgnoredDuringExecution[${i}].preference`;
    pushAll(warnings, termWarnings(preference, place));
  });
  topologySpreadConstraints.forEach(({ topologyKey, labelSelector }, i) => {
    const place = `${path}.topologySpreadConstraints[${i}]`;
    const successor = deprecatedNodeLabels.get(topologyKey);
    if (successor !== undefined) warnings.push(`${place}.topologyKey: ${topologyKey} is ${successor}`);
    if (labelSelector === undefined) warnings.push(`${place}.labelSelector: ${matchesNothing}`);
  });
  return warnings;
}

function termWarnings({ matchExpressions = [] }: NodeSelectorTerm, path: string): string[] {
  return matchExpressions.flatMap(({ key }, i) => {
    const successor = deprecatedNodeLabels.get(key);
    return successor === undefined ? [] : [`${path}.matchExpressions[${i}].key: ${key} is ${successor}`];
  });
}

function annotationWarnings(annotations: Readonly<Record<string, string>> = {}, path: string): string[] {
  return [...deprecatedAnnotations].flatMap(([key, text]) =>
    Object.hasOwn(annotations, key) ? [`${path}[${key}]: ${text}`] : [],
  );
}

function volumeWarnings(volumes: readonly Volume[], path: string): string[] {
  return volumes.flatMap((volume, i) =>
    [...deprecatedVolumes].flatMap(([source, text]) =>
      Object.hasOwn(volume, source)
        ? [`${path}[${i}].${source === 'storageos' ? 'storageOS' : source}: deprecated in ${text}`]
        : [],
    ),
  );
}

function secretWarnings(secrets: readonly { name?: string }[], path: string): string[] {
  return [
    ...repeated(secrets, 'name').map(({ i, value }) => `${path}[${i}].name: duplicate name ${value}`),
    ...secrets.flatMap(({ name = '' }, i) =>
      name === '' ? [`${path}[${i}].name: invalid empty name ""`] : [],
    ),
  ];
}

/** Fractions of bytes, in lists by the member that holds them. */
function fractionWarnings(lists: Readonly<Record<string, Record<string, string>>>, path: string): string[] {
  return ['memory', 'ephemeral-storage'].flatMap((resource) =>
    Object.entries(lists).flatMap(([member, list]) => {
      const value = Object.hasOwn(list, resource) ? list[resource] : undefined;
      if (value === undefined || parseQuantity(value).nanos % 1_000_000_000n === 0n) return [];
      const at = `${path}${member === '' ? '' : `.${member}`}[${resource}]`;
      return [`${at}: fractional byte value ${JSON.stringify(value)} is invalid, must be an integer`];
    }),
  );
}

/** Affinity terms without a selector. */
function affinityWarnings({ podAffinity, podAntiAffinity }: Affinity = {}, path: string): string[] {
  return Object.entries({ podAffinity, podAntiAffinity }).flatMap(([member, pods]) => [
    ...(pods?.requiredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(({ labelSelector }, i) => {
      const at = `${path}.${member}.requiredDuringSchedulingIgnoredDuringExecution[${i}]`;
      return labelSelector === undefined ? [`${at}.labelSelector: ${matchesNothing}`] : [];
    }),
    ...(pods?.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(({ podAffinityTerm }, i) => {
      const at = `${path}.${member}.preferredDuringSchedulingIgnoredDuringExecution[${i}].podAffinityTerm`;
      return podAffinityTerm.labelSelector === undefined ? [`${at}.labelSelector: ${matchesNothing}`] : [];
    }),
  ]);
}

interface PlacedContainer {
  readonly container: Container;
  readonly at: string;
}

/** Init containers come first. */
function placedContainers(spec: PodSpec, path: string): PlacedContainer[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, i) => ({ container, at: `${path}.${list}[${i}]` })),
  );
}

/** A variable that is set twice, without using its first value. */
function environmentWarnings({ env = [] }: Container, path: string): string[] {
  const seen = new Set<string>();
  return env.flatMap(({ name = '', value = '', valueFrom }, i) => {
    if (!seen.has(name)) {
      seen.add(name);
      return [];
    }
    const reference = `$(${name})`;
    if (valueFrom === undefined && value !== reference && value.includes(reference)) return [];
    return [
      `${path}[${i}]: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`,
    ];
  });
}

function portWarnings(containers: readonly PlacedContainer[]): string[] {
  const known = new Map<string, { readonly port: ContainerPort; readonly at: string }[]>();
  return containers.flatMap(({ container, at: containerPath }) =>
    (container.ports ?? []).flatMap((port, i) => {
      const at = `${containerPath}.ports[${i}]`;
      const key = `${port.containerPort}/${port.protocol ?? ''}`;
      const others = known.get(key) ?? [];
      const warnings = others.flatMap((other) => {
        const clash = clashOf(port, other.port);
        return clash === '' ? [] : [`${at}: ${clash} port definition with ${other.at}`];
      });
      known.set(key, [...others, { port, at }]);
      return warnings;
    }),
  );
}

/** The conflict of two definitions of the same container port and protocol. */
function clashOf(a: ContainerPort, b: ContainerPort): string {
  const { hostPort: portA = 0, hostIP: addressA = '' } = a;
  const { hostPort: portB = 0, hostIP: addressB = '' } = b;
  if (portA === portB && addressA === addressB) return 'duplicate';
  if (portA === 0 || portB === 0) return 'overlapping';
  return portA === portB && (addressA === '') !== (addressB === '') ? 'dangerously ambiguous' : '';
}

/** The items that repeat a member, with its value quoted. */
function repeated<T extends object>(items: readonly T[], member: keyof T): { i: number; value: string }[] {
  const values = items.map((item) => JSON.stringify(item[member] ?? ''));
  return values.flatMap((value, i) => (values.indexOf(value) < i ? [{ i, value }] : []));
}

/** The common members of kinds that make Pods from a template. */
interface Workload {
  readonly metadata: ObjectMeta;
  readonly spec: { readonly template?: PodTemplateSpec };
}

/** The warnings when a workload is created: of its name and of its template. */
export function workloadWarnings(workload: Workload): string[] {
  return [...workloadNameWarnings(workload), ...templateWarnings(workload.spec.template)];
}

/** The warnings when a workload is updated: of its template, if the spec has changed (`WarningsOnUpdate` of the kinds). */
export function workloadUpdateWarnings({ metadata, spec }: Workload, old: Workload): string[] {
  return metadata.generation === old.metadata.generation ? [] : templateWarnings(spec.template);
}

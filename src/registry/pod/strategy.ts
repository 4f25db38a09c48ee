import type { ObjectMeta } from '../../objects/meta.ts';
import { type FieldError, forbiddenField, invalid } from '../field-errors.ts';
import { genericStrategy, specChanges } from '../generic.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../metadata.ts';
import { nameIsDNSSubdomain } from '../names.ts';
import type { SubresourceStrategy } from '../strategy.ts';
import { validateContainer } from './containers.ts';
import { setPodDefaults } from './defaults.ts';
import { admitPriority } from './priority.ts';
import { admitRuntimeClass } from './runtime-class.ts';
import { qosClass } from './quality.ts';
import { validatePodStatus } from './status.ts';
import { addDefaultTolerations } from './tolerations.ts';
import type { Container, Pod } from './types.ts';
import { validatePodChange } from './update.ts';
import { validatePodSpec } from './validation.ts';
import { podWarnings } from './warnings.ts';

const metaRules = { namespaced: true, nameRule: nameIsDNSSubdomain };

/**
 * The rules of Pods (`pkg/registry/core/pod/strategy.go`, `ValidatePodCreate`), with the admission plugins
 * Priority and DefaultTolerationSeconds. The ServiceAccount plugin is off, as in the recorded cluster.
 */
export const podStrategy = genericStrategy<Pod>({
  ...metaRules,
  hasStatus: true,
  deleteReturnsObject: true,
  generationChanges: specChanges,
  setDefaults: setPodDefaults,
  admitCreate(pod) {
    admitPriority(pod, pod.spec);
    admitRuntimeClass(pod, pod.spec);
    addDefaultTolerations(pod.spec);
  },
  prepareForCreate(pod, { now }) {
    pod.status = { phase: 'Pending', qosClass: qosClass(pod.spec) };
    if ((pod.spec.schedulingGates ?? []).length === 0) return;
    pod.status.conditions = [
      {
        type: 'PodScheduled',
        status: 'False',
        lastTransitionTime: now,
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ];
  },
  validateCreate: ({ spec }) => [
    ...validatePodSpec(spec, 'spec', true),
    ...validatePodOnly(spec),
    ...validateOnCreate(spec),
  ],
  validateUpdate: ({ metadata, spec }, old) => [
    ...validateMetadataAndSpec({ metadata, spec }),
    ...validatePodChange(spec, old.spec),
  ],
  prepareStatus(pod, old) {
    takeMember(pod.metadata, old.metadata, 'ownerReferences');
    takeMember(pod.status, old.status, 'qosClass');
  },
  validateStatus: validatePodStatus,
  warningsOnCreate: ({ spec }) => podWarnings(spec, 'spec'),
  gracePeriodSeconds({ spec, status }, requested) {
    if ((spec.nodeName ?? '') === '' || status.phase === 'Failed' || status.phase === 'Succeeded') return 0;
    const seconds = requested ?? spec.terminationGracePeriodSeconds ?? 0;
    return seconds < 0 ? 1 : seconds;
  },
  fields: (pod) => podFields(pod),
  subresources: new Map([
    ['ephemeralcontainers', ephemeralContainers()],
    ['resize', resize()],
  ]),
});

/** Takes a member over from the stored object, or removes it where that has none. */
function takeMember<T extends object>(object: T, old: T, member: keyof T): void {
  if (old[member] === undefined) Reflect.deleteProperty(object, member);
  else object[member] = old[member];
}

function validateMetadataAndSpec({
  metadata,
  spec,
}: {
  metadata: ObjectMeta;
  spec: Pod['spec'];
}): FieldError[] {
  return [
    ...validateObjectMeta(metadata, metaRules),
    ...validatePodSpec(spec, 'spec', true),
    ...validatePodOnly(spec),
  ];
}

/** What holds for Pods but not for templates, which have always been taken so (`validatePodMetadataAndSpec`). */
function validatePodOnly(spec: Pod['spec']): FieldError[] {
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

/** What holds for a new Pod only. */
function validateOnCreate(spec: Pod['spec']): FieldError[] {
  const errors: FieldError[] = [];
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if ((spec.nodeName ?? '') !== '' && (spec.schedulingGates ?? []).length > 0) {
    errors.push(forbiddenField('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  return errors;
}

/** `/ephemeralcontainers` adds containers for debugging; those that are there stay (`EphemeralContainersStrategy`). */
function ephemeralContainers(): SubresourceStrategy<Pod> {
  return {
    prepareForUpdate(pod, old) {
      const { ephemeralContainers: wanted } = pod.spec;
      pod.status = old.status;
      pod.spec = { ...old.spec };
      if (wanted === undefined) delete pod.spec.ephemeralContainers;
      else pod.spec.ephemeralContainers = wanted;
      raiseGeneration(pod, old);
    },
    validateUpdate({ metadata, spec }, old) {
      const path = 'spec.ephemeralContainers';
      const containers = spec.ephemeralContainers ?? [];
      const errors = validateObjectMetaUpdate(metadata, old.metadata);
      containers.forEach((container, i) =>
        errors.push(...validateContainer(container, spec.volumes ?? [], `${path}[${i}]`)),
      );
      for (const { name } of old.spec.ephemeralContainers ?? []) {
        if (containers.some((container) => container.name === name)) continue;
        const detail = `existing ephemeral containers ${JSON.stringify(name)} may not be removed`;
        errors.push(forbiddenField(path, `${detail}\n`));
      }
      return errors;
    },
  };
}

/** `/resize` changes the resources of running containers and nothing else. */
function resize(): SubresourceStrategy<Pod> {
  return {
    prepareForUpdate(pod, old) {
      const wanted = new Map((pod.spec.containers ?? []).map(({ name, resources }) => [name, resources]));
      pod.status = old.status;
      const resized = (old.spec.containers ?? []).map((container): Container => {
        const resources = wanted.get(container.name);
        return resources === undefined ? container : { ...container, resources };
      });
      pod.spec = { ...old.spec, containers: resized };
      raiseGeneration(pod, old);
    },
    validateUpdate(pod, old) {
      const errors = validateObjectMetaUpdate(pod.metadata, old.metadata);
      errors.push(...validateMetadataAndSpec(pod));
      const quality = qosClass(pod.spec);
      if (quality !== old.status.qosClass) {
        errors.push(invalid('spec', quality, 'Pod QOS Class may not change as a result of resizing'));
      }
      return errors;
    },
  };
}

function raiseGeneration(pod: Pod, old: Pod): void {
  const generation = old.metadata.generation ?? 0;
  pod.metadata.generation = specChanges(pod, old) ? generation + 1 : generation;
}

function podFields({
  spec = {},
  status = {},
}: Partial<Pick<Pod, 'spec' | 'status'>>): Record<string, string> {
  const podIPs = (status.podIPs ?? []).map(({ ip }) => ip);
  return {
    'spec.nodeName': spec.nodeName ?? '',
    'spec.restartPolicy': spec.restartPolicy ?? '',
    'spec.schedulerName': spec.schedulerName ?? '',
    'spec.serviceAccountName': spec.serviceAccountName ?? '',
    'spec.hostNetwork': String(spec.hostNetwork ?? false),
    'status.phase': status.phase ?? '',
    'status.podIP': podIPs[0] ?? '',
    'status.podIPs': podIPs.join(','),
    'status.nominatedNodeName': status.nominatedNodeName ?? '',
  };
}

import type { LimitRange, Pod } from '../../objects/types/core.generated.ts';
import { at, isRecord, recordAt } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { applyDefaultLimits, brokenClaimLimits, brokenPodLimits } from '../../registry/core/limitrange.ts';
import {
  applyRuntimeClass,
  copyTopologyLabels,
  defaultPriorityClass,
  keepPriority,
  setPriority,
  type PostedBinding,
  validateOverhead,
} from '../../registry/core/pod/admission.ts';
import { addDefaultTolerations } from '../../registry/core/pod/scheduling.ts';
import type { ClusterReader } from '../../registry/generic/strategy.ts';
import { schedulingGroup, systemPriorityClasses } from '../../registry/scheduling/priorityclass.ts';
import { type AdmissionAttributes, type AdmissionPlugin, refusal } from '../rest/admission.ts';
import { type ServerCore, strategyContext } from '../rest/server-core.ts';
import { listPrefix, type Storage } from '../storage/storage.ts';
import { isPod } from '../subresources/pod-binding.ts';
import { isMainResource } from './built-in.ts';

/** Plugins for Pods and the kinds that they refer to. The rules themselves are in `registry`. */

/**
 * Containers get the default requests and limits of the LimitRanges of their namespace; Pods and PersistentVolumeClaims
 * that break a limit are refused.
 */
export function limitRanger(storage: Storage): AdmissionPlugin {
  const ranges = (namespace: string): LimitRange[] =>
    storage
      .list(listPrefix('', 'limitranges', namespace))
      .items.map(({ object }) => object)
      .filter(isLimitRange);
  return {
    name: 'LimitRanger',
    /** Updates of Pods are skipped, since the resources of a Pod do not change; claims may grow. */
    handles(attributes) {
      const { operation, namespace } = attributes;
      const isConcerned =
        (operation === 'CREATE' && isMainResource(attributes, '', 'pods')) ||
        ((operation === 'CREATE' || operation === 'UPDATE') &&
          isMainResource(attributes, '', 'persistentvolumeclaims'));
      return isConcerned && storage.count(listPrefix('', 'limitranges', namespace)) > 0;
    },
    mutate({ object, namespace }) {
      if (object !== undefined && isPod(object)) {
        for (const range of ranges(namespace)) applyDefaultLimits(range, object);
      }
      return undefined;
    },
    /** A refusal names all broken limits of the first LimitRange that has any. */
    validate(attributes) {
      const { object, namespace } = attributes;
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) return;
      for (const range of ranges(namespace)) {
        const broken = isPod(object)
          ? brokenPodLimits(range, object)
          : brokenClaimLimits(range, requestsOf(object));
        if (broken.length === 0) continue;
        const text = broken.length === 1 ? (broken[0] ?? '') : `[${[...new Set(broken)].join(', ')}]`;
        throw refusal(attributes, text);
      }
    },
  };
}

function requestsOf(claim: KubeObject): Record<string, string> {
  const requests = recordAt(claim, 'spec', 'resources', 'requests');
  return Object.fromEntries(
    Object.entries(requests).flatMap(([name, quantity]) =>
      typeof quantity === 'string' ? [[name, quantity]] : [],
    ),
  );
}

function isLimitRange(object: KubeObject): object is LimitRange {
  return object.kind === 'LimitRange' && 'spec' in object && isRecord(object.spec);
}

/**
 * Pods get the priority of their class, and at most one class is the default. Also refuses to delete the system's
 * classes, which in kube-apiserver the storage does (`pkg/registry/scheduling/priorityclass/storage`).
 */
export function priority(core: ServerCore): AdmissionPlugin {
  return {
    name: 'Priority',
    handles(attributes) {
      const { operation, object } = attributes;
      if (isMainResource(attributes, '', 'pods')) return operation === 'CREATE' || operation === 'UPDATE';
      if (!isMainResource(attributes, schedulingGroup, 'priorityclasses')) return false;
      return operation === 'DELETE' || at(object, 'globalDefault') === true;
    },
    mutate(attributes) {
      const { object, oldObject } = attributes;
      if (object === undefined || !isPod(object)) return undefined;
      if (oldObject !== undefined && isPod(oldObject)) keepPriority(object.spec, oldObject.spec);
      else refuseFor(attributes, setPriority(object.spec, clusterOf(core)));
      return undefined;
    },
    validate(attributes) {
      const { operation, object, name } = attributes;
      if (operation === 'DELETE') refuseFor(attributes, systemClassFault(name));
      else if (object === undefined || !isPod(object)) refuseFor(attributes, secondDefault(core, attributes));
    },
  };
}

function secondDefault(core: ServerCore, { operation, name }: AdmissionAttributes): string | undefined {
  const present = defaultPriorityClass(clusterOf(core))?.metadata.name;
  if (present === undefined || (operation === 'UPDATE' && present === name)) return undefined;
  return `PriorityClass ${present} is already marked as default. Only one default can exist`;
}

function systemClassFault(name: string): string | undefined {
  if (!systemPriorityClasses.some(({ metadata }) => metadata.name === name)) return undefined;
  return 'this is a system priority class and cannot be deleted';
}

/** Pods stay five minutes on a failed node, unless they have other tolerations. */
export const defaultTolerationSeconds: AdmissionPlugin = {
  name: 'DefaultTolerationSeconds',
  handles: (attributes) =>
    (attributes.operation === 'CREATE' || attributes.operation === 'UPDATE') &&
    isMainResource(attributes, '', 'pods'),
  mutate({ object }) {
    if (object !== undefined && isPod(object)) addDefaultTolerations(object.spec);
    return undefined;
  },
};

/** New Pods get the overhead, the node selector and the tolerations of their runtime class. */
export function runtimeClass(core: ServerCore): AdmissionPlugin {
  return {
    name: 'RuntimeClass',
    handles: isNewPod,
    mutate(attributes) {
      refuseFor(
        attributes,
        ofPod(attributes, ({ spec }) => applyRuntimeClass(spec, clusterOf(core))),
      );
      return undefined;
    },
    validate(attributes) {
      refuseFor(
        attributes,
        ofPod(attributes, ({ spec }) => validateOverhead(spec, clusterOf(core))),
      );
    },
  };
}

/** Pods that are bound to a node get the labels of its zone and region; so do Bindings, which pass them on. */
export function podTopologyLabels(core: ServerCore): AdmissionPlugin {
  return {
    name: 'PodTopologyLabels',
    handles: (attributes) =>
      isNewPod(attributes) ||
      (attributes.operation === 'CREATE' &&
        attributes.resource.definition.plural === 'pods' &&
        attributes.subresource === 'binding'),
    mutate({ object }) {
      if (object === undefined) return undefined;
      const nodeName = isPod(object) ? (object.spec.nodeName ?? '') : boundNode(object);
      if (nodeName !== '') {
        copyTopologyLabels(object.metadata, clusterOf(core).get('', 'nodes', '', nodeName));
      }
      return undefined;
    },
  };
}

function boundNode({ target }: PostedBinding): string {
  return target?.kind === 'Node' ? (target.name ?? '') : '';
}

function isNewPod(attributes: AdmissionAttributes): boolean {
  return attributes.operation === 'CREATE' && isMainResource(attributes, '', 'pods');
}

function ofPod({ object }: AdmissionAttributes, rule: (pod: Pod) => string | undefined): string | undefined {
  return object !== undefined && isPod(object) ? rule(object) : undefined;
}

/** @throws {StatusError} 403 where there is a reason. */
function refuseFor(attributes: AdmissionAttributes, why: string | undefined): void {
  if (why !== undefined) throw refusal(attributes, why);
}

function clusterOf(core: ServerCore): ClusterReader {
  return strategyContext(core, false).cluster;
}

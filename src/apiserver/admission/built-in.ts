import type { Ingress } from '../../objects/types/networking.generated.ts';
import type { Namespace, Node, PersistentVolumeClaim } from '../../objects/types/core.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { forbidden, notFound } from '../../objects/status.ts';
import {
  hasCondition,
  isCustomResourceDefinition,
} from '../../registry/apiextensions/customresourcedefinition/strategy.ts';
import { addNotReadyTaint } from '../../registry/core/node.ts';
import {
  protectStorage,
  resizeObstacle,
  setDefaultStorageClass,
} from '../../registry/core/persistentvolumeclaim.ts';
import { setDefaultClass } from '../../registry/networking/ingress.ts';
import { type AdmissionAttributes, type AdmissionPlugin, refusal } from '../rest/admission.ts';
import { type ServerCore, strategyContext } from '../rest/server-core.ts';
import { objectKey, type Storage } from '../storage/storage.ts';

/** Plugins for kinds other than Pods. The rules themselves are in `registry`. */

/** Whether a write is of a resource itself, not of a subresource. */
export function isMainResource(
  { resource: { definition }, subresource }: AdmissionAttributes,
  group: string,
  plural: string,
): boolean {
  return definition.plural === plural && definition.group === group && subresource === '';
}

/**
 * Refuses new objects while those of their definition are being deleted (apiextensions `customresource_handler.go`
 * forbidCreateAdmission, which wraps the chain).
 */
export function terminatingDefinitions(storage: Storage): AdmissionPlugin {
  return {
    name: 'forbidCreateAdmission',
    handles: ({ operation, resource }) => resource.custom && operation === 'CREATE',
    validate(attributes) {
      const { group, plural } = attributes.resource.definition;
      const key = objectKey('apiextensions.k8s.io', 'customresourcedefinitions', '', `${plural}.${group}`);
      const definition = storage.getForUpdate(key)?.object;
      if (definition === undefined || !isCustomResourceDefinition(definition)) return;
      if (definition.metadata.deletionTimestamp === undefined && !hasCondition(definition, 'Terminating'))
        return;
      throw refusal(attributes, 'create not allowed while custom resource definition is terminating');
    },
  };
}

/** Namespaces that cannot be deleted. */
const immortal = new Set(['default', 'kube-system', 'kube-public']);

/**
 * Nothing is created in a namespace that does not exist or terminates, and the system's namespaces cannot be deleted
 * (apiserver `plugin/namespace/lifecycle/admission.go`).
 */
export function namespaceLifecycle(storage: Storage): AdmissionPlugin {
  return {
    name: 'NamespaceLifecycle',
    handles({ operation, resource: { definition }, namespace }) {
      if (operation === 'CONNECT') return false;
      if (definition.group === '' && definition.plural === 'namespaces') return operation === 'DELETE';
      if (!definition.namespaced || operation !== 'CREATE' || namespace === '') return false;
      // Access reviews work in namespaces that do not exist.
      return definition.plural !== 'localsubjectaccessreviews';
    },
    mutate(attributes) {
      const { operation, namespace, name } = attributes;
      if (operation === 'DELETE') {
        if (immortal.has(name)) throw refusal(attributes, 'this namespace may not be deleted');
        return undefined;
      }
      const stored = storage.getForUpdate(objectKey('', 'namespaces', '', namespace));
      if (stored === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace);
      if (!isTerminating(stored.object)) return undefined;
      throw refusal(
        attributes,
        `unable to create new content in namespace ${namespace} because it is being terminated`,
        [
          {
            reason: 'NamespaceTerminating',
            message: `namespace ${namespace} is being terminated`,
            field: 'metadata.namespace',
          },
        ],
      );
    },
  };
}

function isTerminating(namespace: KubeObject): boolean {
  return isNamespace(namespace) && namespace.status.phase === 'Terminating';
}

function isNamespace(object: KubeObject): object is Namespace {
  return object.kind === 'Namespace' && 'status' in object;
}

/** New Nodes take no Pods until they are ready. */
export const taintNodesByCondition: AdmissionPlugin = {
  name: 'TaintNodesByCondition',
  handles: (attributes) => attributes.operation === 'CREATE' && isMainResource(attributes, '', 'nodes'),
  mutate({ object }) {
    if (object !== undefined && isNode(object)) addNotReadyTaint(object);
    return undefined;
  },
};

function isNode(object: KubeObject): object is Node {
  return object.kind === 'Node' && 'spec' in object;
}

/** New PersistentVolumeClaims without a class get the default class. */
export function defaultStorageClass(core: ServerCore): AdmissionPlugin {
  return {
    name: 'DefaultStorageClass',
    handles: (attributes) =>
      attributes.operation === 'CREATE' && isMainResource(attributes, '', 'persistentvolumeclaims'),
    mutate({ object }) {
      if (object !== undefined && isClaim(object)) {
        setDefaultStorageClass(object, strategyContext(core, false).cluster);
      }
      return undefined;
    },
  };
}

function isClaim(object: KubeObject): object is PersistentVolumeClaim {
  return object.kind === 'PersistentVolumeClaim' && 'spec' in object;
}

/** New PersistentVolumes and PersistentVolumeClaims get a finalizer. */
export const storageObjectInUseProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  handles: (attributes) =>
    attributes.operation === 'CREATE' &&
    ['persistentvolumes', 'persistentvolumeclaims'].some((plural) => isMainResource(attributes, '', plural)),
  mutate({ object }) {
    if (object !== undefined) protectStorage(object);
    return undefined;
  },
};

/** Bound claims of classes that allow it may grow. */
export function claimResize(core: ServerCore): AdmissionPlugin {
  return {
    name: 'PersistentVolumeClaimResize',
    handles: (attributes) =>
      attributes.operation === 'UPDATE' && isMainResource(attributes, '', 'persistentvolumeclaims'),
    validate({ object, oldObject, resource, name }) {
      if (object === undefined || oldObject === undefined || !isClaim(object) || !isClaim(oldObject)) return;
      const why = resizeObstacle(object, oldObject, strategyContext(core, false).cluster);
      if (why !== undefined) throw forbidden(resource.groupResource, name, why);
    },
  };
}

/** New Ingresses without a class get the default class. */
export function defaultIngressClass(core: ServerCore): AdmissionPlugin {
  return {
    name: 'DefaultIngressClass',
    handles: (attributes) =>
      attributes.operation === 'CREATE' && isMainResource(attributes, 'networking.k8s.io', 'ingresses'),
    mutate({ object }) {
      if (object !== undefined && isIngress(object)) {
        setDefaultClass(object, strategyContext(core, false).cluster);
      }
      return undefined;
    },
  };
}

function isIngress(object: KubeObject): object is Ingress {
  return object.kind === 'Ingress' && 'spec' in object;
}

/**
 * The objects in the scopes of a quota: Pods, and claims by the classes of their volumes
 * (`pkg/quota/v1/evaluator/core` pods.go, persistent_volume_claims.go).
 */
import type { KubeObject } from '../../../objects/meta.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../objects/read.ts';

/** True when an object counts for a quota: all scopes must hold, each is one of Pods or of claims. */
export function isInScopes(quota: KubeObject, plural: string, object: KubeObject): boolean {
  const scopes = listAt(quota, 'spec', 'scopes');
  const selected = listAt(quota, 'spec', 'scopeSelector', 'matchExpressions');
  if (scopes.length === 0 && selected.length === 0) return true;
  if (plural === 'persistentvolumeclaims') {
    return scopes.length === 0 && selected.every((requirement) => matchesClaim(requirement, object));
  }
  if (plural !== 'pods') return false;
  return (
    scopes.every((scope) => isInScope(String(scope), object)) &&
    selected.every((requirement) => matches(requirement, object))
  );
}

function isInScope(scope: string, pod: KubeObject): boolean {
  const deadline = recordAt(pod, 'spec')['activeDeadlineSeconds'];
  switch (scope) {
    case 'Terminating':
      return deadline !== undefined && numberAt(pod, 'spec', 'activeDeadlineSeconds') >= 0;
    case 'NotTerminating':
      return deadline === undefined;
    case 'BestEffort':
      return isBestEffort(pod);
    case 'NotBestEffort':
      return !isBestEffort(pod);
    case 'PriorityClass':
      return textAt(pod, 'spec', 'priorityClassName') !== '';
    default:
      // Scopes of features that are not supported here.
      return false;
  }
}

function matches(requirement: unknown, pod: KubeObject): boolean {
  const scope = textAt(requirement, 'scopeName');
  const operator = textAt(requirement, 'operator');
  const values = listAt(requirement, 'values');
  if (operator === 'Exists') return isInScope(scope, pod);
  if (operator === 'DoesNotExist') return !isInScope(scope, pod);
  if (scope !== 'PriorityClass') return false;
  const name = textAt(pod, 'spec', 'priorityClassName');
  if (operator === 'In') return values.includes(name);
  return operator === 'NotIn' && name !== '' && !values.includes(name);
}

/** Any class counts that a claim asks for, has, or is about to get (KEP-3751). */
function matchesClaim(requirement: unknown, claim: KubeObject): boolean {
  if (textAt(requirement, 'scopeName') !== 'VolumeAttributesClass') return false;
  const classes = [
    textAt(claim, 'spec', 'volumeAttributesClassName'),
    textAt(claim, 'status', 'currentVolumeAttributesClassName'),
    textAt(claim, 'status', 'modifyVolumeStatus', 'targetVolumeAttributesClassName'),
  ].filter((name) => name !== '');
  const values = listAt(requirement, 'values');
  switch (textAt(requirement, 'operator')) {
    case 'Exists':
      return classes.length > 0;
    case 'DoesNotExist':
      return classes.length === 0;
    case 'In':
      return classes.some((name) => values.includes(name));
    default:
      return classes.length === 0 || classes.some((name) => !values.includes(name));
  }
}

function isBestEffort(pod: KubeObject): boolean {
  const containers = [...listAt(pod, 'spec', 'containers'), ...listAt(pod, 'spec', 'initContainers')];
  return containers.every(
    (container) =>
      Object.keys(recordAt(container, 'resources', 'requests')).length === 0 &&
      Object.keys(recordAt(container, 'resources', 'limits')).length === 0,
  );
}

import { classOf } from '../../objects/storage-classes.ts';
import { foreignClaim } from '../../objects/pods.ts';
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
} from '../../objects/types/core.generated.ts';
import type { StorageClass } from '../../objects/types/storage.generated.ts';
import {
  isBindCompleted,
  isProvisioned,
  matchingVolume,
  unprovisionable,
  waitsForConsumer,
} from '../persistent-volumes/plan.ts';
import { priorityOf } from './occupancy.ts';
import { matchesTerms, type Obstacle, passing, lasting } from './plan-nodes.ts';
import { keyOf } from '../../objects/meta.ts';
import type { ResourceClaim } from '../../objects/types/resource.generated.ts';

/** What claims let a Pod be placed where (kube-scheduler's plugins VolumeBinding and VolumeRestrictions). */

/** A claim that a Pod names. */
interface NamedClaim {
  readonly name: string;
  /** Undefined: there is none. */
  readonly claim: PersistentVolumeClaim | undefined;
  /** The Pods beside this one that are placed and use it. */
  readonly users: readonly Pod[];
  /** Why it is not that of an ephemeral volume: of {@link ephemeralProblem}. */
  readonly problem?: string;
}

/** Why the claim of an ephemeral volume is not there or is another's; undefined: it is the Pod's. */
export function ephemeralProblem(
  pod: Pod,
  name: string,
  claim: PersistentVolumeClaim | undefined,
): string | undefined {
  if (claim !== undefined) return foreignClaim(pod, claim);
  return `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`;
}

export interface ClaimsInput {
  readonly claims: readonly NamedClaim[];
  readonly volumes: readonly PersistentVolume[];
  readonly classNamed: (name: string) => StorageClass | undefined;
}

/** Why a Pod's claims keep it from every node (PreFilter); undefined: they do not. */
export function unusableClaim({ claims, classNamed }: ClaimsInput): string | undefined {
  for (const { name, claim, problem } of claims) {
    if (claim === undefined) return problem ?? `persistentvolumeclaim "${name}" not found`;
    if (claim.status.phase === 'Lost') {
      return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${claim.spec.volumeName ?? ''}"`;
    }
    if (claim.metadata.deletionTimestamp !== undefined) {
      return `persistentvolumeclaim "${name}" is being deleted`;
    }
    if (problem !== undefined) return problem;
  }
  const isImmediate = claims.some(
    ({ claim }) =>
      claim !== undefined &&
      !isBindCompleted(claim) &&
      ((claim.spec.volumeName ?? '') !== '' || !waitsForConsumer(classNamed(classOf(claim)))),
  );
  return isImmediate ? 'pod has unbound immediate PersistentVolumeClaims' : undefined;
}

/** What a claim gets once its Pod has a node: a volume that is there, or one that its class makes for the node. */
export interface ClaimBinding {
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume | undefined;
}

/**
 * The volumes of unbound claims for a Pod on a node, or why it cannot be there (`FindPodVolumes`).
 *
 * @param below as if Pods of a lower priority had left the node.
 */
export function bindClaims(
  { claims, volumes, classNamed }: ClaimsInput,
  node: Node,
  below = Number.NEGATIVE_INFINITY,
): readonly ClaimBinding[] | Obstacle {
  const stays = (user: Pod): boolean =>
    priorityOf(user) >= below || user.spec.nodeName !== node.metadata.name;
  const isTaken = claims.some(
    ({ claim, users }) => claim?.spec.accessModes?.includes('ReadWriteOncePod') === true && users.some(stays),
  );
  if (isTaken) {
    return passing(
      'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
    );
  }
  const isReachable = (volume: PersistentVolume): boolean => {
    const required = volume.spec.nodeAffinity?.required;
    return required === undefined || matchesTerms(required.nodeSelectorTerms, node);
  };
  const bindings: ClaimBinding[] = [];
  const reasons = new Set<string>();
  for (const { claim } of claims) {
    if (claim === undefined) continue;
    if (isBindCompleted(claim)) {
      const bound = volumes.find(({ metadata }) => metadata.name === claim.spec.volumeName);
      if (bound === undefined) {
        reasons.add('node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)');
      } else if (!isReachable(bound)) reasons.add("node(s) didn't match PersistentVolume's node affinity");
      continue;
    }
    const free = volumes.filter((volume) => !bindings.some((other) => other.volume === volume));
    const volume = matchingVolume(claim, free, { isReachable });
    if (volume === undefined && !isProvisioned(classNamed(classOf(claim)))) {
      reasons.add("node(s) didn't find available persistent volumes to bind");
    }
    bindings.push({ claim, volume });
  }
  return reasons.size === 0 ? bindings : { reasons: [...reasons], isLasting: true };
}

/** What a Pod that has a node waits for without an end (VolumeBinding's PreBind): a volume that cannot be made. */
export function failedBinding(
  bindings: readonly ClaimBinding[],
  { classNamed }: ClaimsInput,
): string | undefined {
  for (const { claim, volume } of bindings) {
    const why = volume === undefined ? unprovisionable(claim, classNamed(classOf(claim))) : undefined;
    if (why === undefined) continue;
    const { name = '' } = claim.metadata;
    return `running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "${name}": ${why}`;
  }
  return undefined;
}

/** What the resource claims of a Pod let it be placed where (kube-scheduler's plugin DynamicResources). */

export interface DevicesInput {
  /** @param name of a claim in the Pod's namespace. */
  readonly claimNamed: (name: string) => ResourceClaim | undefined;
  readonly hasClass: (name: string) => boolean;
}

/** A claim that a Pod names, itself or by a template. */
interface PodClaim {
  /** Undefined: it is not made yet. */
  readonly name: string | undefined;
  /** It was made of a template, for this Pod alone. */
  readonly isOwn: boolean;
}

/** The resource claims of a Pod, without those of which its status says that they are not needed. */
export function podClaimsOf({ spec, status }: Pod): readonly PodClaim[] {
  return (spec.resourceClaims ?? []).flatMap<PodClaim>(
    ({ name, resourceClaimName, resourceClaimTemplateName }) => {
      if (resourceClaimName !== undefined) return [{ name: resourceClaimName, isOwn: false }];
      if (resourceClaimTemplateName === undefined) return [];
      const made = (status.resourceClaimStatuses ?? []).find((each) => each.name === name);
      if (made === undefined) return [{ name: undefined, isOwn: true }];
      return made.resourceClaimName === undefined ? [] : [{ name: made.resourceClaimName, isOwn: true }];
    },
  );
}

/** Whether a claim was made for a Pod. */
export function isOfPod({ metadata }: ResourceClaim, pod: Pod): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ controller, uid }) => controller === true && uid === pod.metadata.uid,
  );
}

/** Why a Pod's resource claims keep it from every node (PreFilter); undefined: they do not. */
export function unusableDevices(pod: Pod, { claimNamed, hasClass }: DevicesInput): string | undefined {
  const { namespace = '' } = pod.metadata;
  const shown = `${namespace}/${pod.metadata.name ?? ''}`;
  const claims: ResourceClaim[] = [];
  for (const { name, isOwn } of podClaimsOf(pod)) {
    if (name === undefined) return `pod "${shown}": ResourceClaim not created yet`;
    const claim = claimNamed(name);
    if (claim === undefined) return `could not find ResourceClaim "${namespace}/${name}"`;
    if (claim.metadata.deletionTimestamp !== undefined) return `resourceclaim "${name}" is being deleted`;
    if (isOwn && !isOfPod(claim, pod)) {
      return `ResourceClaim ${keyOf(claim)} was not created for Pod ${shown} (Pod is not owner)`;
    }
    claims.push(claim);
  }
  for (const { spec, status } of claims) {
    if (status.allocation !== undefined) continue;
    for (const { name, exactly, firstAvailable = [] } of spec.devices.requests ?? []) {
      const asked = [
        ...(exactly === undefined ? [] : [{ request: name, deviceClass: exactly.deviceClassName }]),
        ...firstAvailable.map((each) => ({
          request: `${name}/${each.name}`,
          deviceClass: each.deviceClassName,
        })),
      ];
      const missing = asked.find(({ deviceClass }) => !hasClass(deviceClass));
      if (missing !== undefined) {
        return `request ${missing.request}: device class ${missing.deviceClass} does not exist`;
      }
    }
  }
  return undefined;
}

/** Why a Pod with these claims cannot be on a node (Filter). Nobody allocates: what has no devices stays without. */
export function deviceObstacle(
  pod: Pod,
  node: Node,
  { claimNamed }: Pick<DevicesInput, 'claimNamed'>,
): Obstacle | undefined {
  let isAllocated = true;
  for (const { name } of podClaimsOf(pod)) {
    const { allocation } = (name === undefined ? undefined : claimNamed(name))?.status ?? {};
    if (allocation === undefined) isAllocated = false;
    else if (allocation.nodeSelector !== undefined) {
      if (!matchesTerms(allocation.nodeSelector.nodeSelectorTerms, node)) {
        return lasting('resourceclaim not available on the node');
      }
    }
  }
  return isAllocated ? undefined : lasting('cannot allocate all claims');
}

/** What the resource claims of a Pod let it be placed where (kube-scheduler's plugin DynamicResources). */
import { keyOf } from '../../objects/meta.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import type { ResourceClaim } from '../../objects/types/resource.generated.ts';
import { lasting, matchesTerms, type Obstacle } from './plan-nodes.ts';

export interface DevicesInput {
  /** @param name of a claim in the Pod's namespace. */
  readonly claimNamed: (name: string) => ResourceClaim | undefined;
  readonly hasClass: (name: string) => boolean;
}

/** A claim that a Pod names, itself or by a template. */
export interface PodClaim {
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

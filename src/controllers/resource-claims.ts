import { isAlreadyExists, isConflict, isNotFound } from '../client/errors.ts';
import { byNamespace, indexByNamespace } from '../client/informers/cache.ts';
import { pods as podsResource, resourceClaims, resourceClaimTemplates } from '../client/resources.ts';
import { joinKey, keyOf, type ObjectKey } from '../objects/meta.ts';
import { errorMessage } from '../objects/status.ts';
import type { Pod, PodResourceClaim } from '../objects/types/core.generated.ts';
import type { ResourceClaim, ResourceClaimTemplate } from '../objects/types/resource.generated.ts';
import { type ControllerSpec, NotYetError } from '../runtime/key-loop.ts';
import { NewEvents } from '../runtime/new-events.ts';
import { OwnWrites } from '../runtime/own-writes.ts';
import { isOfPod, podClaimsOf } from './scheduler/plan-claims.ts';

const claimAnnotation = 'resource.kubernetes.io/pod-claim-name';
const fieldManager = 'ResourceClaimController';
const maxReservations = 256;
/** Of 63, without a dash and five random characters. */
const maxBase = 57;

function namesTemplate({ resourceClaimTemplateName }: PodResourceClaim): boolean {
  return resourceClaimTemplateName !== undefined;
}

/** The claim that a Pod gets of a template. It is deleted with the Pod. */
export function claimOfTemplate(
  { metadata: { namespace = '', name = '', uid = '' } }: Pod,
  podClaim: string,
  { spec }: ResourceClaimTemplate,
): Pick<ResourceClaim, 'metadata' | 'spec'> {
  const { labels, annotations } = spec.metadata;
  const whole = `${name}-${podClaim}-`;
  const cut = (text: string): string => text.slice(0, Math.trunc((text.length * maxBase) / whole.length));
  return {
    metadata: {
      namespace,
      // Both names are cut, or nothing of the second one would be left.
      generateName: whole.length > maxBase ? `${cut(name)}-${cut(podClaim)}` : whole,
      annotations: { ...annotations, [claimAnnotation]: podClaim },
      ...(labels !== undefined && { labels }),
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid, controller: true }],
    },
    spec: spec.spec,
  };
}

/**
 * Makes the resource claims of Pods that name a template, says their names in the status of the Pods, and reserves what
 * is allocated for Pods that have a node (kube-controller-manager's `resourceclaim-controller`,
 * `pkg/controller/resourceclaim`).
 */
export const resourceClaimsController: ControllerSpec = {
  name: 'resourceclaim-controller',
  eventSource: 'resource_claim',
  queue: 'resource_claim',
  build(loop) {
    const { clients } = loop.context;
    const podClient = clients.for(podsResource);
    const claimClient = clients.for(resourceClaims);
    const pods = loop.cache(podsResource);
    const claims = loop.cache(resourceClaims, { indexes: { [byNamespace]: indexByNamespace } });
    const templates = loop.cache(resourceClaimTemplates);

    const writes = new OwnWrites(loop, claims);
    const events = new NewEvents(loop.context);

    const podsWith = (isMeant: (pod: Pod) => boolean): ObjectKey[] =>
      [...pods.cache.values()]
        .filter((pod) => (pod.spec.resourceClaims ?? []).length > 0 && isMeant(pod))
        .map(keyOf);
    loop.on(pods, ({ kind, object }) =>
      kind === 'deleted' || (object.spec.resourceClaims ?? []).length === 0 ? [] : [keyOf(object)],
    );
    loop.on(claims, ({ object: claim }) => {
      const { namespace, name } = claim.metadata;
      return podsWith(
        (pod) =>
          pod.metadata.namespace === namespace &&
          (isOfPod(claim, pod) || podClaimsOf(pod).some((each) => each.name === name)),
      );
    });
    loop.on(templates, ({ kind, object: { metadata } }) =>
      kind === 'deleted'
        ? []
        : podsWith(
            ({ metadata: { namespace }, spec }) =>
              namespace === metadata.namespace &&
              (spec.resourceClaims ?? []).some((each) => each.resourceClaimTemplateName === metadata.name),
          ),
    );

    /** The name of the claim of a template: that of the status, one that was made before, or of a new one. */
    const claimName = async (
      key: ObjectKey,
      pod: Pod,
      { name, resourceClaimTemplateName = '' }: PodResourceClaim,
      signal: AbortSignal,
    ): Promise<string | undefined> => {
      const { namespace = '' } = pod.metadata;
      const said = (pod.status.resourceClaimStatuses ?? []).find((each) => each.name === name);
      // The claim is not needed.
      if (said !== undefined && said.resourceClaimName === undefined) return undefined;
      const present = claims.cache.get(joinKey(namespace, said?.resourceClaimName ?? ''));
      if (present !== undefined && isOfPod(present, pod)) return present.metadata.name;
      const made = [...claims.cache.byIndex(byNamespace, namespace)].find(
        (claim) => isOfPod(claim, pod) && claim.metadata.annotations?.[claimAnnotation] === name,
      );
      if (made !== undefined) return made.metadata.name;
      const template = templates.cache.get(joinKey(namespace, resourceClaimTemplateName));
      if (template === undefined) {
        const missing = `resourceclaimtemplate.resource.k8s.io "${resourceClaimTemplateName}" not found`;
        throw new NotYetError(`resource claim template "${resourceClaimTemplateName}": ${missing}`);
      }
      const created = await claimClient.create(claimOfTemplate(pod, name, template), { signal });
      writes.written(key, created);
      return created.metadata.name;
    };

    const nameClaims = async (key: ObjectKey, pod: Pod, signal: AbortSignal): Promise<void> => {
      const { namespace = '', name: podName = '', uid } = pod.metadata;
      const before = pod.status.resourceClaimStatuses ?? [];
      const names = new Map(before.map(({ name, resourceClaimName }) => [name, resourceClaimName]));
      let isNew = false;
      for (const podClaim of (pod.spec.resourceClaims ?? []).filter(namesTemplate)) {
        let name: string | undefined;
        try {
          name = await claimName(key, pod, podClaim, signal);
        } catch (error) {
          const message = `PodResourceClaim ${podClaim.name}: ${errorMessage(error)}`;
          events.record(key, pod, [{ type: 'Warning', reason: 'FailedResourceClaimCreation', message }]);
          throw error;
        }
        if (name === undefined || names.get(podClaim.name) === name) continue;
        names.set(podClaim.name, name);
        isNew = true;
      }
      events.forget(key);
      if (!isNew) return;
      const resourceClaimStatuses = [...names]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, resourceClaimName]) => ({
          name,
          ...(resourceClaimName !== undefined && { resourceClaimName }),
        }));
      const patch = { metadata: { uid }, status: { resourceClaimStatuses } };
      await podClient.mergePatch(namespace, podName, patch, { subresource: 'status', fieldManager, signal });
    };

    /** A Pod that was placed without a scheduler has its claims, too. */
    const reserve = async (key: ObjectKey, pod: Pod, signal: AbortSignal): Promise<void> => {
      const { namespace = '', name: podName = '', uid = '' } = pod.metadata;
      for (const { name, isOwn } of podClaimsOf(pod)) {
        const claim = name === undefined ? undefined : claims.cache.get(joinKey(namespace, name));
        if (claim?.status.allocation === undefined || (isOwn && !isOfPod(claim, pod))) continue;
        const { reservedFor = [] } = claim.status;
        const isReserved = reservedFor.some((consumer) => consumer.uid === uid);
        if (isReserved || reservedFor.length >= maxReservations) continue;
        const consumer = { resource: 'pods', name: podName, uid };
        const status = { ...claim.status, reservedFor: [...reservedFor, consumer] };
        writes.written(key, await claimClient.replaceStatus({ ...claim, status }, { signal }));
      }
    };

    return async (key, signal) => {
      const pod = pods.cache.get(key);
      if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) {
        events.forget(key);
        return undefined;
      }
      const waitMs = writes.pendingMs(key);
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      try {
        await nameClaims(key, pod, signal);
        if ((pod.spec.nodeName ?? '') !== '') await reserve(key, pod, signal);
      } catch (error) {
        // The cache is behind, or the Pod is gone: its event comes.
        if (!isAlreadyExists(error) && !isConflict(error) && !isNotFound(error)) throw error;
        return { requeueAfterMs: 1000 };
      }
      return undefined;
    };
  },
};
